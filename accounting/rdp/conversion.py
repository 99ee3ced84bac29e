"""From a Rényi bound at one order to (ε, δ), three ways.

Each takes: for a pair of output laws P, Q, the Rényi divergence of order λ > 1 is D_λ(P‖Q) <= ρ. Each returns
ε such that P(A) <= e^ε·Q(A) + δ for every event A. Call it for both directions of a pair, or for a ρ that
bounds both.

    "mironov"  ε = ρ + log(1/δ)/(λ−1)
    "balle"    ε = ρ + log((λ−1)/λ) − (log δ + log λ)/(λ−1)
    "optimal"  the least ε that follows from ρ, by the joint range of binary pairs

**Why "optimal" is valid and cannot be improved.** Merging outcomes into A and not-A cannot raise a Rényi
divergence, and keeps P(A) − e^ε·Q(A). So the largest e^ε with P(A) − e^ε·Q(A) = δ is at most
sup (p − δ)/q over the binary pairs (p, q) in the convex set

    C = {(p, q): p^λ q^{1−λ} + (1−p)^λ (1−q)^{1−λ} <= e^{(λ−1)ρ}},

and every point of C is itself a pair that meets the assumption, so the supremum is the answer. "balle" drops
the second term and so maximises over a larger set: it is never better.

**How the supremum is found.** The best line through (δ, 0) touches C. On a level set of the divergence its
slope is −∂_p/∂_q, which with w = logit p − logit q puts the touching point at

    p(w) = δ / (1 − (λ−1)/(λ R(w))),   R(w) = (1 − e^{−(λ−1)w})/(1 − e^{−λw}),   logit q = logit p − w,

a curve of one parameter. A bisection finds where the divergence on it reaches ρ, and the end with divergence
>= ρ is kept: its line supports a set that contains C, so its ε is an upper bound even if the search stops
early. For δ >= 1/λ the supremum is at p = 1: ε = ρ + log(1−δ).

ε is clamped at 0: (ε, δ) with ε < 0 implies (0, δ), and no mechanism is asked for more.
Numerical error: relative 1e-12, added on the safe side. δ may be as small as 1e-300 (or smaller through
`log_delta`).

Sources: Mironov 2017 (arXiv 1702.07476, Proposition 3); Balle et al. 2020 (arXiv 1905.09982, Theorem 21) and
Canonne, Kamath, Steinke 2020 (arXiv 2004.00010); the joint range: Asoodeh et al. 2020 (arXiv 2001.05990).
The one-parameter form of the touching point is derived above.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from exactdp.accounting import validate
from exactdp.accounting.rdp.bound import check_order, check_renyi
from exactdp.accounting.rdp.moments import log_excess_scalar

CONVERSIONS = ("optimal", "balle", "mironov")

_ROUNDING = 4e-15  # relative to the largest term; covers the rounding of the closed forms
_SAFETY = 1e-12  # relative; covers the rounding of the formulas below
_LAST = math.log1p(-(2.0**-53))  # log of the largest δ below 1


def _log1mexp(x: float) -> float:
    """The log of 1 − e^{−x} for x > 0."""
    return math.log(-math.expm1(-x)) if x < 0.7 else math.log1p(-math.exp(-x))


def _log_gap(w: float, order: float) -> float:
    """The log of λ(1 − e^{−aw}) − a(1 − e^{−λw}), a = λ − 1, which is λa∫₀ʷ e^{−at}(1 − e^{−t})dt > 0."""
    a = order - 1.0
    if order * w < 0.05:
        total, power, difference = 0.0, w * w / 2.0, 1.0
        for k in range(2, 14):  # Σ (−w)^k/k!·(λ^{k−1} − a^{k−1})
            total += power * difference
            power *= -w / (k + 1.0)
            difference = difference * order + a ** (k - 1)
        return math.log(order * a) + math.log(total)
    # The same number is 1 − e^{−y}; y > 0 keeps its digits unless λw is small, which is the case above.
    y = a * w - math.log1p(-a * math.expm1(-w))
    return _log1mexp(y)


def _touching_point(w: float, order: float, log_delta: float) -> tuple[float, float]:
    """log p and log R·λ/(λ−1) at parameter w."""
    a = order - 1.0
    log_p = log_delta - _log_gap(w, order) + math.log(order) + _log1mexp(a * w)
    log_slope = math.log(order / a) + _log1mexp(a * w) - _log1mexp(order * w)
    return log_p, log_slope


def _losses(log_p: float, w: float) -> tuple[float, float]:
    """The losses u = log(p/q) and −v = log((1−q)/(1−p)) of the binary pair with logit p − logit q = w."""
    p, not_p = math.exp(log_p), -math.expm1(log_p)
    fall = p * math.expm1(-w)
    v = math.log1p(fall) if fall > -0.5 else math.log(max(not_p + p * math.exp(-w), 1e-323))
    u = math.log1p(not_p * math.expm1(w)) if w < 30.0 else w + math.log(not_p + p * math.exp(-w))
    return u, -v


def _reaches(log_p: float, w: float, a: float, log_target: float) -> bool:
    """Whether the binary pair's E[e^{aL}] − 1 is at least e^{log_target}, rounding allowed for."""
    if log_p >= 0.0:
        return False
    u, minus_v = _losses(log_p, w)
    first = log_p + (log_excess_scalar(u, a) if u > 0.0 else -math.inf)
    second = math.log(-math.expm1(log_p)) + (log_excess_scalar(-minus_v, a) if minus_v > 0.0 else -math.inf)
    top = max(first, second)
    if top == -math.inf:
        return False
    total = top + math.log(math.exp(first - top) + math.exp(second - top))
    return total >= log_target + 4e-15 * (1.0 + abs(log_target))


def _optimal(order: float, renyi: float, log_delta: float) -> float:
    """The unclamped supremum of log((p−δ)/q)."""
    a = order - 1.0
    if log_delta >= 0.0:
        return -math.inf
    log_rest = math.log(-math.expm1(log_delta))  # log(1 - delta)
    if renyi == 0.0:
        return log_rest
    if log_delta >= -math.log(order):
        return renyi + log_rest
    level = a * renyi
    log_target = math.log(math.expm1(level)) if level < 30.0 else level + math.log1p(-math.exp(-level))

    def enough(w: float) -> bool:
        return _reaches(_touching_point(w, order, log_delta)[0], w, a, log_target)

    high = renyi + 1.0
    while not enough(high):
        high *= 2.0
        if high > 1e300:
            return math.inf
    low = 0.5 * high
    while enough(low):
        low, high = 0.5 * low, low
        if low < 1e-290:
            break
    for _ in range(60):
        middle = 0.5 * (low + high)
        if high - low <= 1e-14 * high:
            break
        if enough(middle):
            high = middle
        else:
            low = middle
    log_p, log_slope = _touching_point(high, order, log_delta)
    u, _ = _losses(log_p, high)
    # Two expressions of one number; the larger covers the rounding of p.
    return max(u - log_slope, u + math.log1p(-math.exp(log_delta - log_p)))


def _balle(order: float, renyi: float, log_delta: float) -> float:
    a = order - 1.0
    largest = renyi + (abs(log_delta) + math.log(order)) / a + abs(math.log(a / order))
    return renyi + math.log(a / order) - (log_delta + math.log(order)) / a + _ROUNDING * largest


def _epsilon(order: float, renyi: float, log_delta: float, conversion: str) -> float:
    """Unclamped ε of one conversion."""
    if math.isinf(renyi):
        return math.inf
    if conversion == "mironov":
        return (renyi - log_delta / (order - 1.0)) * (1.0 + _ROUNDING)
    balle = _balle(order, renyi, log_delta)
    if conversion == "balle":
        return balle
    optimal = _optimal(order, renyi, log_delta)
    return min(balle, optimal + _SAFETY * abs(optimal))


def epsilon(order: float, *, renyi: float, delta: float, conversion: str = "optimal") -> float:
    """ε at `delta` that follows from a Rényi divergence `renyi` of order `order`.

    Arguments:
      order: λ > 1, real.
      renyi: ρ >= D_λ(P‖Q), >= 0, may be infinite.
      delta: δ in (0, 1).
      conversion: "optimal", "balle" or "mironov" (formulas at the top of this module).

    Returns:
      ε >= 0, an upper bound; infinite when `renyi` is.

    Raises:
      ValueError: an argument is outside its range; a negative `renyi` is never taken for 0.

    Source: see the module.
    """
    order, renyi = check_order(order), check_renyi(renyi)
    delta = validate.open_probability("delta", delta)
    validate.one_of("conversion", conversion, CONVERSIONS)
    return max(0.0, _epsilon(order, renyi, math.log(delta), conversion))


def log_delta(order: float, *, renyi: float, epsilon: float, conversion: str = "optimal") -> float:
    """Logarithm of the δ at `epsilon` that follows from a Rényi divergence `renyi` of order `order`.

    mironov: (λ−1)(ρ−ε); balle: (λ−1)(ρ−ε+log((λ−1)/λ)) − log λ; optimal: the inverse of `epsilon` in δ.

    Arguments:
      order: λ > 1, real.
      renyi: ρ >= D_λ(P‖Q), >= 0, may be infinite.
      epsilon: ε >= 0.
      conversion: "optimal", "balle" or "mironov".

    Returns:
      log δ <= 0, an upper bound; −inf where δ = 0.

    Raises:
      ValueError: an argument is outside its range.

    Source: see the module.
    """
    order, renyi = check_order(order), check_renyi(renyi)
    epsilon = validate.non_negative("epsilon", epsilon)
    validate.one_of("conversion", conversion, CONVERSIONS)
    if math.isinf(renyi):
        return 0.0
    if renyi == 0.0:
        return -math.inf
    a = order - 1.0
    largest = a * (renyi + epsilon)
    if conversion == "mironov":
        return min(0.0, a * (renyi - epsilon) + _ROUNDING * largest)
    largest += (order + a) * abs(math.log(a / order)) + math.log(order)
    balle = min(0.0, a * (renyi - epsilon + math.log(a / order)) - math.log(order) + _ROUNDING * largest)
    if conversion == "balle":
        return balle

    def excess(value: float) -> float:
        return _epsilon(order, renyi, value, "optimal") - epsilon

    return _safe_root(excess, min(balle, _LAST), balle)


def _safe_root(excess: Callable[[float], float], start: float, fallback: float) -> float:
    """A point next to the root of a decreasing function, with excess <= 0 there; regula falsi."""
    high, at_high = start, excess(start)
    if at_high > 0.0:  # the two conversions agree to the last digits
        return fallback
    step = 0.01
    low, at_low = high - step, excess(high - step)
    while at_low <= 0.0:
        high, at_high, step = low, at_low, 4.0 * step
        if step > 1e7:
            return high
        low = high - step
        at_low = excess(low)
    for _ in range(80):
        margin = 2e-14 * (1.0 + abs(high))
        if high - low <= 4.0 * margin:
            break
        middle = low + (high - low) * at_low / (at_low - at_high) + margin
        middle = min(middle, 0.5 * (middle + high))
        value = excess(middle)
        if value > 0.0:
            low, at_low, at_high = middle, value, 0.5 * at_high
        else:
            high, at_high, at_low = middle, value, 0.5 * at_low
            probe = high - 4.0 * margin
            if probe > low and excess(probe) > 0.0:
                break
    return high


def delta(order: float, *, renyi: float, epsilon: float, conversion: str = "optimal") -> float:
    """The δ at `epsilon` that follows from a Rényi divergence `renyi` of order `order`: e^{log_delta}.

    Arguments:
      order: λ > 1, real.
      renyi: ρ >= D_λ(P‖Q), >= 0, may be infinite.
      epsilon: ε >= 0.
      conversion: "optimal", "balle" or "mironov".

    Returns:
      δ in [0, 1], an upper bound; at least the smallest positive float unless it is 0.

    Raises:
      ValueError: an argument is outside its range.
    """
    value = log_delta(order, renyi=renyi, epsilon=epsilon, conversion=conversion)
    if value == -math.inf:
        return 0.0
    return max(min(1.0, math.exp(value) * (1.0 + _SAFETY)), 5e-324)
