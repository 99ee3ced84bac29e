"""Keys and values of the tokens so far, and one token more for every row at once."""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from exactdp.train.gpt2.model import GPT2


class Cache(NamedTuple):
    """For each layer the keys and values, [rows, heads, length, width of a head].

    The positions of one head of one row lie side by side, so that a step is, for each of these, two products
    of a matrix and a vector, read once and in place.
    """

    keys: tuple[Array, ...]
    values: tuple[Array, ...]

    @property
    def length(self) -> int:
        """For how many positions there is room."""
        return self.keys[0].shape[2]

    def extended(self, length: int) -> Cache:
        """A cache with room for `length` positions, what is there kept."""
        room = ((0, 0), (0, 0), (0, length - self.length), (0, 0))
        return Cache(*(tuple(jnp.pad(x, room) for x in side) for side in self))


def prefill(model: GPT2, tokens: Int[Array, "rows length"]) -> Cache:
    """The cache after `tokens`, all positions at once.

    Args:
      model: GPT-2.
      tokens: ids; what lies after a row's own prompt is overwritten when `step` comes there.
    """
    x = model.embed(tokens)
    keys: list[Array] = []
    values: list[Array] = []
    for layer in model.layers:
        query, key, value = layer.attention.split(layer.norm1(x))
        keys.append(jnp.swapaxes(key, 1, 2))
        values.append(jnp.swapaxes(value, 1, 2))
        x = x + layer.attention.out(layer.attention.mix(query, key, value))
        x = x + layer.dense(x)
    return Cache(tuple(keys), tuple(values))


def step(
    model: GPT2, cache: Cache, tokens: Int[Array, "rows"], time: Int[Array, ""]
) -> tuple[Float[Array, "rows width"], Cache]:
    """Features of one token a row at position `time`, and the cache with that position.

    Equals the last position of `GPT2.features` on the whole text, to rounding.

    Args:
      model: GPT-2.
      cache: holds the positions before `time`; what it holds from there on is not read.
      tokens: ids.
      time: position, the same for all rows, below the cache's length.
    """
    rows = tokens.shape[0]
    x = model.tokens(tokens) + model.positions(time)
    seen = jnp.arange(cache.length, dtype=jnp.int32) <= time
    keys: list[Array] = []
    values: list[Array] = []
    for layer, old_keys, old_values in zip(model.layers, cache.keys, cache.values, strict=True):
        query, key, value = layer.attention.split(layer.norm1(x))
        keys.append(jax.lax.dynamic_update_slice_in_dim(old_keys, key[:, :, None], time, 2))
        values.append(jax.lax.dynamic_update_slice_in_dim(old_values, value[:, :, None], time, 2))
        scores = jnp.einsum("bhd,bhtd->bht", query, keys[-1], preferred_element_type=jnp.float32)
        weights = jax.nn.softmax(jnp.where(seen, scores, -jnp.inf), axis=-1).astype(value.dtype)
        mixed = jnp.einsum("bht,bhtd->bhd", weights, values[-1])
        x = x + layer.attention.out(jnp.reshape(mixed, (rows, -1)))
        x = x + layer.dense(x)
    return model.norm(x), Cache(tuple(keys), tuple(values))
