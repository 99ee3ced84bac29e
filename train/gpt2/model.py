"""GPT-2 as a Flax NNX module, and as a static graph with a pytree of parameters."""

from __future__ import annotations

import math
from typing import Any

import jax
import jax.numpy as jnp
from flax import nnx
from jaxtyping import Array, DTypeLike, Float, Int

from exactdp.train.gpt2.config import Config

Parameters = nnx.State[Any, Any]

_STD = 0.02  # of GPT-2's kernels and tables


class Attention(nnx.Module):
    """Causal self-attention: one product for queries, keys and values; softmax in float32.

    Args:
      config: sizes.
      dtype: of the computation.
      rngs: initialises the parameters.
    """

    def __init__(self, config: Config, *, dtype: DTypeLike, rngs: nnx.Rngs) -> None:
        self.qkv = nnx.Linear(config.width, 3 * config.width, dtype=dtype, rngs=rngs)
        self.out = nnx.Linear(config.width, config.width, dtype=dtype, rngs=rngs)
        self.heads = config.heads

    def split(self, x: Float[Array, "*lead width"]) -> tuple[Array, Array, Array]:
        """Queries, scaled by 1 / sqrt(width of a head), keys and values, each [*lead, heads, width of a head]."""
        size = x.shape[-1] // self.heads
        qkv = jnp.reshape(self.qkv(x), (*x.shape[:-1], 3, self.heads, size))
        query, key, value = (qkv[..., k, :, :] for k in range(3))
        return query * size**-0.5, key, value

    def mix(self, query: Array, key: Array, value: Array) -> Float[Array, "batch tokens width"]:
        """For each of a text's tokens the mixture of the values up to it, all heads in a row."""
        scores = jnp.einsum("bqhd,bkhd->bhqk", query, key, preferred_element_type=jnp.float32)
        shape = scores.shape[-2:]
        # By iota, so that no table of positions squared is kept.
        seen = jax.lax.broadcasted_iota(jnp.int32, shape, 0) >= jax.lax.broadcasted_iota(jnp.int32, shape, 1)
        weights = jax.nn.softmax(jnp.where(seen, scores, -jnp.inf), axis=-1).astype(value.dtype)
        mixed = jnp.einsum("bhqk,bkhd->bqhd", weights, value)
        return jnp.reshape(mixed, (*mixed.shape[:-2], -1))

    def __call__(self, x: Float[Array, "batch tokens width"]) -> Float[Array, "batch tokens width"]:
        """Each token's mixture of the values of the tokens up to it."""
        return self.out(self.mix(*self.split(x)))


class Layer(nnx.Module):
    """Attention, then two dense layers with GELU (by tanh), each on normed input and added to it.

    Args:
      config: sizes.
      dtype: of the computation.
      rngs: initialises the parameters.
    """

    def __init__(self, config: Config, *, dtype: DTypeLike, rngs: nnx.Rngs) -> None:
        self.norm1 = layer_norm(config, dtype=dtype, rngs=rngs)
        self.attention = Attention(config, dtype=dtype, rngs=rngs)
        self.norm2 = layer_norm(config, dtype=dtype, rngs=rngs)
        self.up = nnx.Linear(config.width, config.inner, dtype=dtype, rngs=rngs)
        self.down = nnx.Linear(config.inner, config.width, dtype=dtype, rngs=rngs)

    def dense(self, x: Float[Array, "*lead width"]) -> Float[Array, "*lead width"]:
        """The second half: what the two dense layers add."""
        return self.down(nnx.gelu(self.up(self.norm2(x)), approximate=True))

    def __call__(self, x: Float[Array, "batch tokens width"]) -> Float[Array, "batch tokens width"]:
        """The layer's output for the tokens of each text."""
        x = x + self.attention(self.norm1(x))
        return x + self.dense(x)


class GPT2(nnx.Module):
    """GPT-2: learned positions, norms before each half layer, and the token table used at both ends.

    *Records stay apart.* Row i of what the model returns depends on row i of its input alone, and position t on
    positions up to t. There is no dropout and no random state.

    *Precision.* Parameters are float32. Layers compute in `dtype`; softmax, the statistics of layer norms and
    the logits are float32.

    Args:
      config: sizes.
      rngs: initialises the parameters.
      dtype: of the computation.

    Source: Radford et al., "Language models are unsupervised multitask learners", 2019.
    """

    def __init__(self, config: Config, *, rngs: nnx.Rngs, dtype: DTypeLike = jnp.float32) -> None:
        self.tokens = nnx.Embed(config.vocabulary, config.width, dtype=dtype, rngs=rngs)
        self.positions = nnx.Embed(config.positions, config.width, dtype=dtype, rngs=rngs)
        self.layers = nnx.List([Layer(config, dtype=dtype, rngs=rngs) for _ in range(config.layers)])
        self.norm = layer_norm(config, dtype=dtype, rngs=rngs)
        self.config = config
        self.dtype = jnp.dtype(dtype)

    def features(
        self, tokens: Int[Array, "batch tokens"], positions: Int[Array, "batch tokens"] | None = None
    ) -> Float[Array, "batch tokens width"]:
        """The last layer norm's output, which `head` maps to logits."""
        x = self.embed(tokens, positions)
        for layer in self.layers:
            x = layer(x)
        return self.norm(x)

    def embed(
        self, tokens: Int[Array, "batch tokens"], positions: Int[Array, "batch tokens"] | None = None
    ) -> Float[Array, "batch tokens width"]:
        """What the first layer reads: the rows of both tables, added."""
        length = tokens.shape[1]
        if length > self.config.positions:
            raise ValueError(f"tokens must have at most {self.config.positions} positions, got {length}")
        if positions is not None:
            return self.tokens(tokens) + self.positions(positions)
        # A slice, not a look-up: added to all texts alike.
        return self.tokens(tokens) + self.positions.embedding[...][:length].astype(self.dtype)

    def head(self, x: Float[Array, "*lead width"]) -> Float[Array, "*lead vocabulary"]:
        """Logits in float32: inner products with the rows of the token table."""
        table = self.tokens.embedding[...].astype(self.dtype)
        return jnp.einsum("...d,vd->...v", x, table, preferred_element_type=jnp.float32)

    def __call__(
        self, tokens: Int[Array, "batch tokens"], positions: Int[Array, "batch tokens"] | None = None
    ) -> Float[Array, "batch tokens vocabulary"]:
        """Logits in float32 of the next token at each position."""
        return self.head(self.features(tokens, positions))


Graph = nnx.GraphDef[GPT2]


def layer_norm(config: Config, *, dtype: DTypeLike, rngs: nnx.Rngs) -> nnx.LayerNorm:
    """A layer norm with statistics in float32; the variance in two passes, as residuals grow large in GPT-2."""
    return nnx.LayerNorm(
        config.width, epsilon=config.norm_epsilon, use_fast_variance=False, dtype=dtype, rngs=rngs
    )


def build(config: Config, *, key: jax.Array, dtype: DTypeLike = jnp.float32) -> tuple[Graph, Parameters]:
    """A freshly initialised model as (graph, params).

    Kernels and tables are normal with std 0.02, but 0.02 / sqrt(2 layers) for the kernels whose results are
    added to the residual stream (`out` and `down`); biases are 0 and scales 1, as in GPT-2.

    `graph` is static and hashable; `params` is a pytree of float32 arrays, the whole state of the model: the
    same key gives the same parameters. `flax.nnx.merge(graph, params)` is the module.

    Args:
      config: sizes.
      key: a typed JAX key (`jax.random.key`).
      dtype: of the computation, float32 or bfloat16; parameters and logits are float32 all the same.

    Raises:
      ValueError: another dtype, or a key that is not typed.
    """
    if not jnp.issubdtype(key.dtype, jax.dtypes.prng_key):
        raise ValueError(f"key must be a typed key as jax.random.key makes, got an array of {key.dtype}")
    graph, shapes = abstract(config, dtype=dtype)
    leaves, structure = jax.tree.flatten_with_path(shapes)
    sides = [tuple(leaf.shape) for _, leaf in leaves]
    stds = [_std([str(getattr(entry, "key", "")) for entry in path], config.layers) for path, _ in leaves]
    total = sum(math.prod(side) for side, std in zip(sides, stds, strict=True) if std > 0.0)

    def fill(key: jax.Array) -> list[jax.Array]:
        # Slices of one draw: a draw for each takes XLA long to compile for a deep network.
        draws = jax.random.normal(key, (total,), jnp.float32)
        filled: list[jax.Array] = []
        start = 0
        for (path, _), side, std in zip(leaves, sides, stds, strict=True):
            if std == 0.0:
                is_scale = any(getattr(entry, "key", "") == "scale" for entry in path)
                filled.append(jnp.full(side, 1.0 if is_scale else 0.0, jnp.float32))
                continue
            size = math.prod(side)
            filled.append(std * jnp.reshape(draws[start : start + size], side))
            start += size
        return filled

    return graph, jax.tree.unflatten(structure, jax.jit(fill)(key))


def abstract(config: Config, *, dtype: DTypeLike = jnp.float32) -> tuple[Graph, Parameters]:
    """The model as (graph, shapes of params); nothing is drawn.

    Raises:
      ValueError: a dtype other than float32 and bfloat16.
    """
    if jnp.dtype(dtype) not in (jnp.dtype(jnp.float32), jnp.dtype(jnp.bfloat16)):
        raise ValueError(f"dtype must be float32 or bfloat16, got {jnp.dtype(dtype)}")
    # The streams only satisfy the layers' signatures.
    module = nnx.eval_shape(lambda: GPT2(config, rngs=nnx.Rngs(params=jax.random.key(0)), dtype=dtype))
    return nnx.split(module)


def logits(
    graph: Graph,
    params: Parameters,
    tokens: Int[Array, "batch tokens"],
    positions: Int[Array, "batch tokens"] | None = None,
) -> Float[Array, "batch tokens vocabulary"]:
    """Logits in float32 of the next token at each position.

    Args:
      graph: of `build`.
      params: of `build`.
      tokens: ids in [0, vocabulary); an id outside gives NaN.
      positions: of the tokens; 0, 1, ... by default.

    Raises:
      ValueError: more tokens than the model has positions.
    """
    return nnx.merge(graph, params)(tokens, positions)


def _std(names: list[str], layers: int) -> float:
    """The standard deviation of a parameter by its path; 0 for biases and scales."""
    if "kernel" not in names and "embedding" not in names:
        return 0.0
    return _STD / math.sqrt(2 * layers) if "out" in names or "down" in names else _STD
