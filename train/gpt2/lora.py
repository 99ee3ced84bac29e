"""Low-rank pairs beside frozen dense layers."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

import jax
import jax.numpy as jnp
from flax import nnx
from jaxtyping import Array, Float

from exactdp.accounting import validate
from exactdp.train.gpt2.model import GPT2, Graph, Parameters

LAYERS = ("qkv", "out", "up", "down")
"""The dense layers of a GPT-2's layer that can have a pair."""


class Pair(nnx.Param[jax.Array]):
    """One of the two matrices of a pair; by this type they are told from the frozen parameters."""


class LowRank(nnx.Module):
    """y = base(x) + scale (x first) second, with first [in, rank] and second [rank, out].

    Args:
      base: the dense layer, frozen.
      rank: >= 1.
      scale: of what the pair adds.
      key: draws `first`, normal with std 1 / sqrt(in); `second` is 0, so that the layer begins as `base`.
    """

    def __init__(self, base: nnx.Linear, *, rank: int, scale: float, key: jax.Array) -> None:
        inputs, outputs = base.kernel.shape
        self.base = base
        self.first = Pair(jax.random.normal(key, (inputs, rank), jnp.float32) / math.sqrt(inputs))
        self.second = Pair(jnp.zeros((rank, outputs), jnp.float32))
        self.scale = scale

    def __call__(self, x: Float[Array, "*lead inputs"]) -> Float[Array, "*lead outputs"]:
        """The base layer's output with the pair's."""
        result = self.base(x)
        # Two thin products: the sum of kernels is never formed, nor is its gradient.
        low = x.astype(result.dtype) @ self.first[...].astype(result.dtype)
        return result + self.scale * (low @ self.second[...].astype(result.dtype))


def attach(
    graph: Graph,
    params: Parameters,
    *,
    rank: int,
    key: jax.Array,
    alpha: float | None = None,
    layers: Iterable[str] = LAYERS,
) -> tuple[Graph, Parameters, Parameters]:
    """The model with a low-rank pair beside each of the dense layers `layers`, as (graph, pairs, frozen).

    Train `pairs` and keep `frozen`, the parameters as they were; the logits are
    `model.logits(graph, join(pairs, frozen), tokens)`. Nothing else is trained, so that only the pairs are
    clipped and get noise. At first the function is the model's own.

    Args:
      graph: of `model.build`.
      params: of `model.build`.
      rank: of the pairs, >= 1.
      key: a typed JAX key.
      alpha: what a pair adds is multiplied by alpha / rank; None for `rank`, > 0.
      layers: some of `LAYERS`; in every layer of the model.

    Raises:
      ValueError: an argument outside of what is said above, or a model that has pairs.

    Source: Hu et al., arXiv 2106.09685.
    """
    validate.count("rank", rank, 1)
    scale = 1.0 if alpha is None else validate.positive("alpha", alpha) / rank
    chosen = list(dict.fromkeys(layers))
    if not chosen:
        raise ValueError(f"layers must be some of {', '.join(LAYERS)}, got none")
    for name in chosen:
        validate.one_of("layers", name, LAYERS)
    if not jnp.issubdtype(key.dtype, jax.dtypes.prng_key):
        raise ValueError(f"key must be a typed key as jax.random.key makes, got an array of {key.dtype}")
    model = nnx.merge(graph, params)
    for number, layer in enumerate(model.layers):
        for name in chosen:
            owner: Any = layer.attention if name in ("qkv", "out") else layer
            base = getattr(owner, name)
            if isinstance(base, LowRank):
                raise ValueError(f"graph must be of a model without pairs, got one beside {name}")
            own = jax.random.fold_in(key, len(LAYERS) * number + LAYERS.index(name))
            setattr(owner, name, LowRank(base, rank=rank, scale=scale, key=own))
    widened, pairs, frozen = nnx.split(model, Pair, ...)
    return widened, pairs, frozen


def join(pairs: Parameters, frozen: Parameters) -> Parameters:
    """All parameters of the model with pairs, as `model.logits` takes them."""
    return nnx.merge_state(pairs, frozen)


def merged(graph: Graph, pairs: Parameters, frozen: Parameters) -> tuple[Graph, Parameters]:
    """The model without pairs that computes the same function, as (graph, params).

    Its kernels are kernel + scale first second.

    For generation and for `weights.save`: it costs no more than a model that never had pairs.
    """
    model: GPT2 = nnx.merge(graph, pairs, frozen)
    for layer in model.layers:
        for owner in (layer.attention, layer):
            for name in LAYERS:
                found = getattr(owner, name, None)
                if isinstance(found, LowRank):
                    kernel = found.base.kernel
                    product = jnp.matmul(
                        found.first[...], found.second[...], precision=jax.lax.Precision.HIGHEST
                    )
                    kernel[...] = kernel[...] + found.scale * product
                    setattr(owner, name, found.base)
    return nnx.split(model)
