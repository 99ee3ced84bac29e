"""Moments of the privacy loss without cancellation, however close to 1 they are.

With L = log dP/dQ and a = order − 1, the Rényi divergence is log(1 + S)/a, where

    S = E_P[e^{aL}] − 1 = E_P[k(a, L)],    k(a, L) = (e^{aL} − 1) + a·(e^{−L} − 1) >= 0,

because E_P[e^{−L}] = 1 when P and Q have the same support. Every term of the second form is positive, so that
a sum of them loses no digit where the divergence is tiny: small sampling probability, much noise, or an
order next to 1. The first form loses all of them there, which is how an accountant comes to answer 0.
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.float64]

_SERIES = tuple(1.0 / math.factorial(k + 2) for k in range(16))
_REVERSED = _SERIES[-2::-1]


def second_remainder(x: npt.ArrayLike) -> Array:
    """(e^x − 1 − x)/x², positive and accurate to a few units in the last place for every finite x."""
    x = np.asarray(x, dtype=np.float64)
    small = np.abs(x) < 0.7
    near = np.where(small, x, 0.0)
    series = np.full_like(near, _SERIES[-1])
    for coefficient in _REVERSED:
        series = series * near + coefficient
    far = np.where(small, 1.0, x)
    return np.where(small, series, (np.expm1(far) - far) / (far * far))


def log_excess(loss: npt.ArrayLike, a: float) -> Array:
    """Log of k(a, L) of the module's formula, elementwise; −inf where L = 0.

    Arguments:
      loss: privacy losses L, finite.
      a: order − 1, > 0.
    """
    loss = np.asarray(loss, dtype=np.float64)
    scaled = a * loss
    with np.errstate(divide="ignore", over="ignore", under="ignore", invalid="ignore"):
        # Middle: both remainders are representable and of one sign.
        middle = (np.abs(scaled) <= 30.0) & (np.abs(loss) <= 30.0)
        inner = np.where(middle, loss, 0.0)
        value = np.log(a * second_remainder(a * inner) + second_remainder(-inner))
        value = value + math.log(a) + 2.0 * np.log(np.abs(inner))
        # Large positive loss: the exponential leads.
        up = np.where(loss > 0.0, loss, 1.0)
        lead = a * up + np.log(-np.expm1(-a * up) + a * np.expm1(-up) * np.exp(-a * up))
        # Large negative loss: a·e^{−L} leads.
        down = np.where(loss < 0.0, loss, -1.0)
        trail = np.where(
            down > -30.0,
            np.log(a * np.expm1(-np.maximum(down, -30.0)) + np.expm1(a * down)),
            math.log(a) - down + np.log1p((np.expm1(a * down) / a - 1.0) * np.exp(down)),
        )
        return np.where(middle, value, np.where(loss > 0.0, lead, trail))


def _remainder_scalar(x: float) -> float:
    if abs(x) >= 0.7:
        return (math.expm1(x) - x) / (x * x)
    total = _SERIES[-1]
    for coefficient in _REVERSED:
        total = total * x + coefficient
    return total


def log_excess_scalar(loss: float, a: float) -> float:
    """`log_excess` of one loss, without the overhead of arrays."""
    if loss == 0.0:
        return -math.inf
    scaled = a * loss
    if abs(scaled) <= 30.0 and abs(loss) <= 30.0:
        inner = a * _remainder_scalar(scaled) + _remainder_scalar(-loss)
        return math.log(inner) + math.log(a) + 2.0 * math.log(abs(loss))
    if loss > 0.0:
        return scaled + math.log(-math.expm1(-scaled) + a * math.expm1(-loss) * math.exp(-scaled))
    if loss > -30.0:
        return math.log(a * math.expm1(-loss) + math.expm1(scaled))
    return math.log(a) - loss + math.log1p((math.expm1(scaled) / a - 1.0) * math.exp(loss))


def log_sum(terms: Array) -> float:
    """Log of Σ e^{terms}; −inf for nothing or for all −inf."""
    if terms.size == 0:
        return -math.inf
    top = float(np.max(terms))
    if math.isinf(top):
        return top
    with np.errstate(under="ignore"):
        return top + math.log(float(np.sum(np.exp(terms - top))))


def renyi_of_log_excess(log_s: float, a: float) -> float:
    """The divergence log(1 + S)/a from log S."""
    if log_s == math.inf:
        return math.inf
    if log_s > 30.0:
        return (log_s + math.exp(-log_s)) / a
    return math.log1p(math.exp(log_s)) / a
