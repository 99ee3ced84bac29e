"""Models by name, as a static graph and a pytree of parameters."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from flax import nnx
from jaxtyping import Array, DTypeLike, Float

from exactdp.accounting import validate
from exactdp.train.models.base import Model
from exactdp.train.models.initialise import initialise
from exactdp.train.models.linear import MLP, Linear
from exactdp.train.models.small_cnn import SmallCNN
from exactdp.train.models.vit import ViT
from exactdp.train.models.wide_resnet import WideResNet

Graph = nnx.GraphDef[Model]
Parameters = nnx.State[Any, Any]

_MODELS: dict[str, Callable[..., Model]] = {
    "linear": Linear,
    "mlp": MLP,
    "cnn": SmallCNN,
    "wrn-16-4": functools.partial(WideResNet, depth=16, width=4),
    "wrn-40-4": functools.partial(WideResNet, depth=40, width=4),
    "vit-tiny": ViT,
}
NAMES = tuple(_MODELS)
"""The names that `build` knows."""

_ANY_SHAPE = ("linear", "mlp")
_CNN_SIDE = 8


def build(
    name: str,
    *,
    input_shape: tuple[int, ...],
    num_classes: int,
    key: jax.Array,
    dtype: DTypeLike = jnp.float32,
) -> tuple[Graph, Parameters]:
    """The model `name` as (graphdef, params), freshly initialised.

    `graphdef` is static and hashable; `params` is a pytree of float32 arrays, the whole state of the model:
    the same key gives the same parameters. `flax.nnx.merge(graphdef, params)` is the module.

    Args:
      name: one of `NAMES`.
      input_shape: shape of one record; (height, width, channels) for all but linear and mlp, with sides of
        at least 8 for cnn.
      num_classes: >= 2.
      key: a typed JAX key (`jax.random.key`).
      dtype: of the computation, float32 or bfloat16; parameters and logits are float32 all the same.

    Raises:
      ValueError: an argument outside of what is said above.
    """
    validate.one_of("name", name, NAMES)
    validate.count("num_classes", num_classes, 2)
    if not input_shape:
        raise ValueError(f"input_shape must have at least one side, got {input_shape}")
    for side in input_shape:
        validate.count("input_shape", side, 1)
    if name not in _ANY_SHAPE and len(input_shape) != 3:
        raise ValueError(f"input_shape must be (height, width, channels) for {name}, got {input_shape}")
    if name == "cnn" and min(input_shape[:2]) < _CNN_SIDE:
        raise ValueError(f"input_shape must have sides of at least {_CNN_SIDE} for cnn, got {input_shape}")
    if jnp.dtype(dtype) not in (jnp.dtype(jnp.float32), jnp.dtype(jnp.bfloat16)):
        raise ValueError(f"dtype must be float32 or bfloat16, got {jnp.dtype(dtype)}")
    if not jnp.issubdtype(key.dtype, jax.dtypes.prng_key):
        raise ValueError(f"key must be a typed key as jax.random.key makes, got an array of {key.dtype}")

    # Under eval_shape nothing is drawn: the streams only satisfy the layers' signatures.
    module = nnx.eval_shape(
        lambda: _MODELS[name](
            tuple(input_shape), num_classes=num_classes, rngs=nnx.Rngs(params=key), dtype=dtype
        )
    )
    graphdef, shapes = nnx.split(module)
    return graphdef, initialise(shapes, key=key)


def apply(graphdef: Graph, params: Parameters, x: Float[Array, "batch ..."]) -> Float[Array, "batch classes"]:
    """Logits in float32 for the records `x`, one row a record."""
    return nnx.merge(graphdef, params)(x)


def features(
    graphdef: Graph, params: Parameters, x: Float[Array, "batch ..."]
) -> Float[Array, "batch width"]:
    """The penultimate activations of the records `x`, which the head maps to logits; one row a record."""
    return nnx.merge(graphdef, params).features(x)


def num_parameters(params: Parameters) -> int:
    """How many numbers the parameters are."""
    return sum(int(leaf.size) for leaf in jax.tree.leaves(params))
