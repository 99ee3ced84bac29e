"""Exact log-samples of the Dirichlet distribution with the pathwise gradient in the concentration."""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jax.typing import ArrayLike

from exactdp.mechanisms import gamma


def log_sample(key: jax.Array, concentration: ArrayLike) -> jax.Array:
    """Draws log rho for rho ~ Dir(concentration), independently for every row.

        log rho_i = log X_i - log sum_j X_j,   X_i ~ Gamma(concentration_i) independent.

    It is computed from log X throughout, so that it does not underflow: at a concentration of 1e-3 entries of
    -1000 and less are ordinary, and all of them are finite.

    Derivative: with w_i = d log X_i / d a_i at a fixed quantile,
    d log rho_i = w_i d a_i - sum_j rho_j w_j d a_j; its expectation is the derivative of the expectation.

    Args:
      key: one typed PRNG key (threefry or rbg), used here and nowhere else.
      concentration: positive, shape (..., classes); converted to float32. Meant for 1e-3 to 1e4, see
        `gamma.log_sample` for what lies outside.

    Returns:
      log rho, float32, shape (..., classes); exactly 0 for one class, empty for none. A row that has an
      entry which is NaN, infinite, zero or negative is NaN throughout; other rows are not touched.

    Raises:
      ValueError: `concentration` has no class axis, or `key` is no typed scalar key.

    Source: Figurnov, Mohamed, Mnih 2018 (arXiv 1805.08498).
    """
    a = jnp.asarray(concentration)
    if a.ndim == 0:
        raise ValueError(f"concentration must have a class axis, got a scalar of dtype {a.dtype}")
    return _normalise(gamma.log_sample(key, a))


def sample(key: jax.Array, concentration: ArrayLike) -> jax.Array:
    """Draws rho ~ Dir(concentration): exp of `log_sample`, with entries below 1e-38 rounded to 0.

    Args:
      key: as in `log_sample`.
      concentration: as in `log_sample`.

    Returns:
      rho, float32, shape (..., classes); each row sums to 1 up to rounding.

    Raises:
      ValueError: as in `log_sample`.
    """
    return jnp.exp(log_sample(key, concentration))


@jax.jit
def _normalise(log_gamma: jax.Array) -> jax.Array:
    # The largest of no entries does not exist.
    return jax.nn.log_softmax(log_gamma, axis=-1) if log_gamma.size else log_gamma
