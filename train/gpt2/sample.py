"""The choice of one of many by their logits and one uniform number a row."""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

_BLOCK = 64
_ONE = 0x3F800000  # the bits of 1.0
# The largest number that is still below 1 after a product with it is rounded.
_BELOW_ONE = 1.0 - 2.0**-22


def choose(
    logits: Float[Array, "rows choices"],
    uniform: Float[Array, " rows"],
    *,
    temperature: Float[Array, ""] | float,
    top_k: int | None = None,
    top_p: Float[Array, ""] | float | None = None,
) -> Int[Array, " rows"]:
    """For each row one choice, drawn from softmax(logits / temperature) with the unlikely ones left out.

    First those below the `top_k`-th largest logit are left out, then, in falling order of probability, those
    that follow once the probabilities before have reached `top_p`. Equals are kept or left out together. By
    inversion of the distribution function: one uniform number a row is enough. Choices are resolved to 2^-23,
    so that a rarer one is drawn a little too often or not at all.

    Args:
      logits: float32; -inf for what must not be chosen; the largest of each row is finite.
      uniform: in [0, 1).
      temperature: > 0.
      top_k: >= 1; None for all.
      top_p: in (0, 1]; None for all.
    """
    scaled = logits / temperature
    weights = jnp.exp(scaled - jnp.max(scaled, axis=1, keepdims=True))
    if top_k is not None and top_k < logits.shape[1]:
        weights = _largest(weights, jnp.ones_like(weights), jnp.float32(top_k))
    if top_p is not None:
        weights = _largest(weights, weights, top_p * jnp.sum(weights, axis=1))
    return _inverted(weights, uniform)


def largest(logits: Float[Array, "rows choices"]) -> Int[Array, " rows"]:
    """For each row the first of the largest; as two plain reductions, which XLA vectorises, unlike argmax."""
    places = jax.lax.broadcasted_iota(jnp.int32, logits.shape, 1)
    found = jnp.where(logits == jnp.max(logits, axis=1, keepdims=True), places, logits.shape[1] - 1)
    return jnp.min(found, axis=1)


def _largest(
    weights: Float[Array, "rows choices"],
    sizes: Float[Array, "rows choices"],
    wanted: Float[Array, " rows"] | Float[Array, ""],
) -> Float[Array, "rows choices"]:
    """The fewest largest weights in [0, 1] whose sizes add up to `wanted`; 0 for the others.

    Without sorting: bisection on the bits of a float, whose order is that of the numbers. A row is done early
    where its sizes are exactly as wanted, as numbers of choices soon are.
    """
    bits = jax.lax.bitcast_convert_type(weights, jnp.int32)

    def going_on(ends: tuple[Array, Array]) -> Array:
        low, high = ends
        return jnp.any(high - low > 1)

    def halved(ends: tuple[Array, Array]) -> tuple[Array, Array]:
        # Twice, as asking whether to go on costs about as much.
        for _ in range(2):
            low, high = ends
            middle = low + (high - low) // 2
            total = jnp.sum(jnp.where(bits >= middle[:, None], sizes, 0.0), axis=1)
            above = jnp.where(total == wanted, middle + 1, high)
            ends = (jnp.where(total >= wanted, middle, low), jnp.where(total >= wanted, above, middle))
        return ends

    # The least weight is as good a beginning as 0, and often spares a quarter of the steps.
    low = jnp.min(bits, axis=1)
    threshold = jax.lax.while_loop(going_on, halved, (low, jnp.full_like(low, _ONE + 1)))[0]
    return jnp.where(bits >= threshold[:, None], weights, 0.0)


def _inverted(weights: Float[Array, "rows choices"], uniform: Float[Array, " rows"]) -> Int[Array, " rows"]:
    """The choice in which `uniform` of the weights' sum falls: first its block, then its place there."""
    rows, choices = weights.shape
    if choices <= 2 * _BLOCK:
        return _place(weights, uniform * jnp.sum(weights, axis=1))[0]
    blocks = -(-choices // _BLOCK)
    padded = jnp.pad(weights, ((0, 0), (0, blocks * _BLOCK - choices)))
    padded = jnp.reshape(padded, (rows, blocks, _BLOCK))
    sums = jnp.sum(padded, axis=2)
    block, rest = _place(sums, uniform * jnp.sum(sums, axis=1))
    inside = jnp.take_along_axis(padded, block[:, None, None], axis=1)[:, 0]
    return block * _BLOCK + _place(inside, rest)[0]


def _place(weights: Float[Array, "rows n"], target: Float[Array, " rows"]) -> tuple[Array, Array]:
    """The first place of positive weight where the running sum exceeds `target`, and what is left of it."""
    running = jnp.cumsum(weights, axis=1)
    possible = weights > 0
    # Sums that rounding has made smaller than the target, or not rising, must not end at a weight of zero.
    limit = jnp.max(jnp.where(possible, running, 0.0), axis=1) * _BELOW_ONE
    target = jnp.minimum(target, limit)
    place = jnp.argmax((running > target[:, None]) & possible, axis=1).astype(jnp.int32)
    before = jnp.take_along_axis(running - weights, place[:, None], axis=1)[:, 0]
    return place, jnp.maximum(target - before, 0.0)
