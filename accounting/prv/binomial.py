"""Tails of a binomial, weighted as delta weights them, to a few units of float64 whatever the count."""

from __future__ import annotations

import dataclasses
import math

import numpy as np

from exactdp.accounting.pairs.base import Array
from exactdp.accounting.prv.saddle import EPS

# 1/12, 1/360, 1/1260, 1/1680, 1/1188: Stirling's series of log n! - log(sqrt(2 pi n) (n / e)^n).
_STIRLING = (1.0 / 12.0, -1.0 / 360.0, 1.0 / 1260.0, -1.0 / 1680.0, 1.0 / 1188.0)

_LEAST_TERM = 1e-307


@dataclasses.dataclass(frozen=True)
class Tail:
    """Sums over j >= k of w_j = P(Binomial = j) / exp(log_mass).

    Attributes:
      log_mass: log of the largest term's probability.
      beyond: sum of w_j (1 - e^{-(j - k) gap}).
      scaled: sum of w_j e^{-(j - k) gap}.
      error: bound of the relative error of both.
      left_out: bound of the sum of the w_j left out.
    """

    log_mass: float
    beyond: float
    scaled: float
    error: float
    left_out: float


def tail(count: int, p: float, q: float, gap: float, k: int) -> Tail:
    """The tail from `k` on.

    Args:
      count: number of trials.
      p: probability of a success, in (0, 1).
      q: 1 - p, known to a few units.
      gap: what a success adds, > 0.
      k: 0 <= k <= count.
    """
    spread = math.sqrt(count * p * q)
    found = terms(count, p, q, least=k, length=math.ceil(10.0 * spread) + 200)
    w, fall = found.w, gap * (found.j - k)
    return Tail(
        found.log_mass,
        float(w @ -np.expm1(-fall)),
        float(w @ np.exp(-fall)),
        float(w @ found.error) / float(w.sum()),
        found.left_out,
    )


@dataclasses.dataclass(frozen=True)
class Terms:
    """Probabilities w_j = P(Binomial = j) / exp(log_mass) around the largest.

    Attributes:
      log_mass: log of the largest term's probability.
      j: increasing, one after the other.
      w: at each j, at most 1.
      error: bound of the relative error of exp(log_mass) w_j, at each j.
      left_out: bound of the sum of the w_j, j >= `least`, left out.
    """

    log_mass: float
    j: Array
    w: Array
    error: Array
    left_out: float


def terms(count: int, p: float, q: float, *, least: int, length: int) -> Terms:
    """The terms from `least` on that are within `length` of the largest of them.

    Args:
      count: number of trials.
      p: probability of a success, in (0, 1).
      q: 1 - p, known to a few units.
      least: 0 <= least <= count.
      length: >= 1.
    """
    mode = min(max(least, math.floor((count + 1) * p)), count)
    above = np.arange(mode, min(mode + length, count), dtype=np.float64)
    up = np.cumprod((count - above) / (above + 1.0) * (p / q))
    below = np.arange(mode, max(mode - length, least), -1.0)
    down = np.cumprod(below / (count - below + 1.0) * (q / p))
    j = np.concatenate([below[::-1] - 1.0, [float(mode)], above + 1.0])
    w = np.concatenate([down[::-1], [1.0], up])
    kept = w >= _LEAST_TERM  # smaller ones would lose digits
    j, w = j[kept], w[kept]
    log_mass, mass_error = _log_mass(count, mode, p, q)
    left_out = _left_out(w[-1], (count - j[-1]) / (j[-1] + 1.0) * (p / q)) if j[-1] < count else 0.0
    left_out += _left_out(w[0], j[0] / (count - j[0] + 1.0) * (q / p)) if j[0] > least else 0.0
    # A term's factors are each known to a few units; so are p and q, within eight.
    error = 4 * EPS * (5.0 * np.abs(j - mode) + 2.0 * np.abs(j - count * p)) + mass_error + 64 * EPS
    return Terms(log_mass, j, w, error, left_out)


def _left_out(last: float, ratio: float) -> float:
    """What follows `last` where each term is at most `ratio` times the one before."""
    return last * ratio / max(1.0 - ratio, EPS)


def _log_mass(count: int, j: int, p: float, q: float) -> tuple[float, float]:
    """log P(Binomial(count, p) = j) by the saddle-point form, and a bound of its absolute error.

    Source: C. Loader, Fast and accurate computation of binomial probabilities, 2000.
    """
    if j in (0, count):
        value = count * (math.log(q) if p > 0.5 else math.log1p(-p)) if j == 0 else count * _log(p, q)
        return value, 8 * EPS * (abs(value) + count * min(p, q))
    first, second = _deviance(j, count * p), _deviance(count - j, count * q)
    value = _stirling(count) - _stirling(j) - _stirling(count - j) - first - second
    value -= 0.5 * (math.log(2.0 * math.pi) + math.log(j) + math.log1p(-j / count))
    return value, 16 * EPS * (first + second + abs(j - count * p) + abs(value) + 4.0)


def _log(p: float, q: float) -> float:
    return math.log(p) if p < 0.5 else math.log1p(-q)


def _deviance(x: float, mean: float) -> float:
    """x log(x / mean) + mean - x, without cancellation near x = mean."""
    d = (x - mean) / mean
    if abs(d) > 0.1:
        return x * math.log(x / mean) + mean - x
    k = np.arange(2, 20)
    terms: Array = (-d) ** k / (k * (k - 1.0))
    return mean * float(terms[::-1].sum())


def _stirling(n: int) -> float:
    """log n! - log(sqrt(2 pi n) (n / e)^n)."""
    if n < 16:
        return math.lgamma(n + 1.0) - 0.5 * math.log(2.0 * math.pi * n) - n * math.log(n) + n
    square, total = float(n) * float(n), 0.0
    for coefficient in reversed(_STIRLING):
        total = total / square + coefficient
    return total / n
