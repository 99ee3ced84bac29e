"""Exact log-samples of the gamma distribution, for a whole array at a time, with the pathwise gradient."""

from __future__ import annotations

import math

import jax
import jax.numpy as jnp
from jax import lax
from jax.typing import ArrayLike

from exactdp.mechanisms import gamma_gradient, keys, lane_bits

# Lanes of a chunk: as many as the bits of the word that says which of them still wait for a draw.
_CHUNK = 32
_FIRST_STREAM = 0
_BOOST_STREAM = 0xFFFFFFFF
# What a lane holds until a candidate is accepted: no log-sample is as large.
_PENDING = math.inf
# Below every log-sample of a shape >= 1e-36, so that differences of log-samples never become inf - inf.
_LOWEST = -1e37


def log_sample(key: jax.Array, shape_parameter: ArrayLike) -> jax.Array:
    """Draws log X for X ~ Gamma(shape_parameter, 1), elementwise and independent.

    For a >= 1, Marsaglia and Tsang's rejection: X = d (1 + T)^3 with d = a - 1/3, T = Z / (3 sqrt(d)), Z
    standard normal, is accepted when -log U >= -d (3 log(1 + T) - 3 T + 3 T^2 / 2 - T^3), which is the usual
    test after its cancelling terms are removed. For a < 1, log X = log X' - E / a with
    X' ~ Gamma(a + 1) and E standard exponential. One candidate is drawn for every lane at once; what is
    rejected (below 5 %) is drawn again, chunk by chunk, until nothing is left.

    The law is exact up to the rounding of float32 and of its uniforms: there is no cap on the number of
    rounds, and the loop ends with probability one whatever the shapes.

    Derivative: d log X / d a at a fixed quantile (implicit reparameterisation, `gamma_gradient`), forward and
    reverse mode, under jit, vmap, pmap and sharding. The key is not differentiated.

    Args:
      key: one typed PRNG key (threefry or rbg), used here and nowhere else.
      shape_parameter: a, any shape; converted to float32, bfloat16 too. Meant for 1e-3 to 1e4; from 1e-36 to
        1e38 the samples stay exact to float32 and finite.

    Returns:
      log X, float32, of the shape of `shape_parameter`. It does not underflow: at a = 1e-3 it is about -1000.
      NaN where the shape parameter is NaN, infinite, zero, subnormal or negative; the other lanes are not
      touched by that.

    Raises:
      ValueError: `key` is no typed scalar key, or `shape_parameter` has 2^32 elements or more.

    Source: Marsaglia, Tsang 2000 (ACM TOMS 26, 363); Figurnov, Mohamed, Mnih 2018 (arXiv 1805.08498).
    """
    keys.require_key(key)
    a = jnp.asarray(shape_parameter).astype(jnp.float32)
    if a.size >= 2**32:
        raise ValueError(f"shape_parameter must have fewer than 2^32 elements, got {a.size}")
    return _log_sample(key, a)


@jax.jit
def _log_sample(key: jax.Array, a: jax.Array) -> jax.Array:
    if a.size == 0:
        return jnp.zeros_like(a)
    # Subnormal numbers are zero on some devices: NaN for them everywhere.
    valid = (a >= jnp.finfo(jnp.float32).tiny) & (a < math.inf)
    safe = jnp.where(valid, a, 1.0)
    drawn = _draw(key, lax.stop_gradient(safe).reshape(-1)).reshape(a.shape)
    return jnp.where(valid, _attach(safe, lax.stop_gradient(drawn)), math.nan)


@jax.custom_jvp
def _attach(a: jax.Array, drawn: jax.Array) -> jax.Array:
    """`drawn`, moving with `a` along its quantile."""
    del a
    return drawn


def _attach_jvp(
    primals: tuple[jax.Array, jax.Array],
    tangents: tuple[jax.Array, jax.Array],
) -> tuple[jax.Array, jax.Array]:
    a, drawn = primals
    # Attached again, so that derivatives of this derivative see the sample move too.
    out = _attach(a, drawn)
    return out, gamma_gradient.log_sample_slope(out, shape_parameter=a) * tangents[0] + tangents[1]


_attach.defjvp(_attach_jvp)


def _draw(key: jax.Array, a: jax.Array) -> jax.Array:
    small = a < 1.0
    boosted = jnp.where(small, a + 1.0, a)
    first = _candidate(boosted, *lane_bits.pair(key, stream=_FIRST_STREAM, lanes=a.size))
    accepted = _redraw(key, boosted, first)

    def boost(values: jax.Array) -> jax.Array:
        words, _ = lane_bits.pair(key, stream=_BOOST_STREAM, lanes=a.size)
        return jnp.where(small, jnp.maximum(values - _exponential(words) / a, _LOWEST), values)

    return lax.cond(jnp.any(small), boost, lambda values: values, accepted)


def _redraw(key: jax.Array, a: jax.Array, first: jax.Array) -> jax.Array:
    """Redraws the pending lanes of `first`: each round, a chunk of 32 draws for its first pending lane."""
    size = a.size
    padding = -size % _CHUNK
    shapes = jnp.pad(a, (0, padding), constant_values=1.0).reshape(-1, _CHUNK)
    values = jnp.pad(first, (0, padding)).reshape(-1, _CHUNK)
    chunks = jnp.arange(values.shape[0])
    flags = jnp.where(values == _PENDING, jnp.uint32(1) << jnp.arange(_CHUNK, dtype=jnp.uint32), 0)
    pending = jnp.sum(flags, axis=1, dtype=jnp.uint32)

    def waiting(state: tuple[jax.Array, jax.Array, jax.Array]) -> jax.Array:
        return jnp.any(state[2] != 0)

    def one_round(
        state: tuple[jax.Array, jax.Array, jax.Array],
    ) -> tuple[jax.Array, jax.Array, jax.Array]:
        stream, values, pending = state
        # The lowest set bit; 32 when there is none.
        lane = lax.population_count((pending & -pending) - 1).astype(jnp.int32)
        shape = shapes[chunks, jnp.minimum(lane, _CHUNK - 1)]
        words = lane_bits.pair(key, stream=stream, lanes=chunks.size)
        # Without the barrier the candidate is computed again in each of its three uses.
        candidate = lax.optimization_barrier(_candidate(shape, *words))
        accepted = (pending != 0) & (candidate != _PENDING)
        values = values.at[chunks, jnp.where(accepted, lane, _CHUNK)].set(
            candidate, mode="drop", unique_indices=True
        )
        return stream + 1, values, jnp.where(accepted, pending & (pending - 1), pending)

    start = (jnp.uint32(_FIRST_STREAM + 1), values, pending)
    _, values, _ = lax.while_loop(waiting, one_round, start)
    return values.reshape(-1)[:size]


def _candidate(a: jax.Array, normal_words: jax.Array, test_words: jax.Array) -> jax.Array:
    """log of Marsaglia and Tsang's candidate for a >= 1, or `_PENDING` where it is rejected.

    One output, not a value and a flag: the compiler then computes both in one pass.
    """
    d = a - 1.0 / 3.0
    t = _normal(normal_words) * lax.rsqrt(d) / 3.0
    log1p_t = jnp.log1p(jnp.maximum(t, -0.999999))
    # log(1 + t) - t + t^2 / 2 - t^3 / 3, by its series where the difference would cancel.
    series = -(t**4) * (1 / 4 - t * (1 / 5 - t * (1 / 6 - t * (1 / 7 - t * (1 / 8 - t / 9)))))
    remainder = jnp.where(jnp.abs(t) < 0.125, series, log1p_t - t * (1.0 - t * (0.5 - t / 3.0)))
    accepted = (t > -1.0) & (_exponential(test_words) >= -3.0 * d * remainder)
    return jnp.where(accepted, jnp.log(d) + 3.0 * log1p_t, _PENDING)


def _normal(words: jax.Array) -> jax.Array:
    """Standard normal: sqrt(2) erfinv of an odd multiple of 2^-24 in (-1, 1)."""
    odd = ((words >> 8).astype(jnp.int32) * 2 + (1 - 2**24)).astype(jnp.float32)
    return math.sqrt(2.0) * lax.erf_inv(odd * 2.0**-24)


def _exponential(words: jax.Array) -> jax.Array:
    """Standard exponential: -log of a uniform in [2^-33, 1], whose small values keep all their digits."""
    return -jnp.log((words >> 1).astype(jnp.int32).astype(jnp.float32) * 2.0**-31 + 2.0**-33)
