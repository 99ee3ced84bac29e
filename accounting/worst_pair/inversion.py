"""Hockey-stick divergence of any pair of inputs of the Dirichlet mechanism, by Fourier inversion.

Dir(a) against Dir(b) with equal sums has the loss of independent Gamma(a_i) against Gamma(b_i), so that

    M(z) = E_P[e^{zL}] = prod_i Γ(a_i + z c_i)/Γ(a_i) · (prod_i Γ(b_i)/Γ(a_i))^z,   c = a - b,
    H(e^ε) = (1/2πi) ∫_{Re z = τ} M(z) e^{-zε} / (z (z+1)) dz,   0 < τ < min over c_i < 0 of a_i/|c_i|.

The trapezoid rule of step h on that line, at its saddle point, gives

    sum over all k of e^{2πkτ/h} H(e^{ε + 2πk/h}):

it overshoots by the terms k ≠ 0, all positive, and each below a Chernoff bound. What is left out beyond the
last node is bounded by |Γ(x+iy)| <= |Γ(x+iY)| exp(-arctan(Y/x) (y-Y)) for y >= Y: compare the sum over n in
∂ log|Γ(x+iy)|/∂y = -sum_n y/((x+n)²+y²) with an integral. Both bounds are proved; to them comes an allowance
for rounding, which takes `scipy.special.loggamma` to be accurate to 8 units.
"""

from __future__ import annotations

import dataclasses
import math

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import special

from exactdp.accounting import validate
from exactdp.accounting.interval import Interval
from exactdp.accounting.worst_pair.renyi import pairs_of

Array = NDArray[np.float64]

_EPS = float(np.finfo(np.float64).eps)
_CHUNK = 1_000_000  # complex numbers held at once
_LOWEST = -690.0  # logarithms below this are not resolved


def hockey_stick(
    p: ArrayLike,
    p_prime: ArrayLike,
    *,
    scaling: float,
    offset: float,
    epsilon: float,
    tolerance: float = 1e-11,
) -> list[Interval]:
    """Hockey-stick divergence of Dir(r p + α) from Dir(r p' + α), one interval a pair.

    Args:
      p: input(s) on the simplex, shape [K] or [pairs, K].
      p_prime: the neighbouring input(s).
      scaling: r > 0.
      offset: α > 0.
      epsilon: any finite number.
      tolerance: relative error aimed at, in [1e-13, 0.1]; the intervals say what was reached.

    Raises:
      ValueError: an argument is outside its range.
    """
    lower, upper = bounds(p, p_prime, scaling=scaling, offset=offset, epsilon=epsilon, tolerance=tolerance)
    return [Interval(float(x), float(y), "inversion") for x, y in zip(lower, upper, strict=True)]


def bounds(
    p: ArrayLike,
    p_prime: ArrayLike,
    *,
    scaling: float,
    offset: float,
    epsilon: float,
    tolerance: float = 1e-11,
    least: float = 0.0,
) -> tuple[Array, Array]:
    """As `hockey_stick`, the ends as two arrays; errors of `tolerance` times `least` are small enough."""
    first, second = pairs_of(p, p_prime)
    r, alpha = validate.positive("scaling", scaling), validate.positive("offset", offset)
    epsilon = validate.finite("epsilon", epsilon)
    if not 1e-13 <= tolerance <= 0.1:
        raise ValueError(f"tolerance must be in [1e-13, 0.1], got {tolerance}")
    # max(0, 1 - e^ε) <= H <= 1 always.
    trivial = max(0.0, -math.expm1(epsilon)) if epsilon < 0.0 else 0.0
    lower, upper = np.full(first.shape[0], trivial * (1.0 - 4 * _EPS)), np.ones(first.shape[0])
    # Inputs that differ by rounding alone: H <= max(0, 1 - e^ε) + TV, and by Pinsker's inequality
    # TV <= sqrt(ψ'(α)) r |p - p'|_2 / 2.
    distance = np.sqrt(((first - second) ** 2).sum(axis=1))
    same = distance < 1e-12
    spread = 0.5 * r * math.sqrt(float(special.polygamma(1, alpha))) * distance
    upper[same] = np.minimum((trivial + spread)[same] * (1.0 + 16 * _EPS), 1.0)
    todo = np.nonzero(~same)[0]
    if todo.size:
        plan = _plan(alpha + r * first[todo], r * (first - second)[todo], epsilon, tolerance, least)
        low, high = _integrate(plan, epsilon)
        lower[todo], upper[todo] = np.maximum(low, lower[todo]), np.minimum(high, 1.0)
        # Where rounding swamps a value at the trivial bound both ends are that bound.
        upper = np.maximum(upper, lower)
    return lower, upper


@dataclasses.dataclass(frozen=True)
class _Plan:
    """How each pair is integrated; all arrays have the shape [pairs] or [pairs, K]."""

    a: Array
    c: Array
    constant: Array
    tilt: Array
    step: Array
    count: NDArray[np.int64]
    log_error: Array


def _plan(a: Array, c: Array, epsilon: float, tolerance: float, least: float) -> _Plan:
    """Saddle point, step and number of nodes, with the logarithm of aliasing plus truncation."""
    constant = (special.gammaln(a - c) - special.gammaln(a)).sum(axis=1)
    limit = np.where(c < 0.0, a / np.where(c < 0.0, -c, 1.0), math.inf).min(axis=1)
    tilt = _saddle(a, c, constant, epsilon, limit)
    x = a + tilt[:, None] * c
    curvature = (c * c * special.polygamma(1, x)).sum(axis=1) + tilt**-2.0 + (1.0 + tilt) ** -2.0
    peak = _log_moment(a, c, constant, tilt) - tilt * epsilon - np.log(tilt) - np.log1p(tilt)
    # The integral is close to exp(peak) / sqrt(2 π curvature); a tenth of that is aimed at.
    log_size = peak - 0.5 * np.log(2.0 * math.pi * curvature)
    if least > 0.0:
        log_size = np.maximum(log_size, math.log(least))
    log_goal = log_size + math.log(0.1 * tolerance)

    # Aliasing: a Chernoff bound at another tilt τ' makes term k at most exp(B - |τ' - τ| |k| 2π/h).
    fractions = np.concatenate([np.geomspace(1e-3, 0.5, 7), np.linspace(0.6, 0.95, 4)])
    below = tilt[:, None] * (1.0 - fractions)
    room = np.minimum(limit - tilt, 20.0 * tilt + 20.0 / np.sqrt(curvature))
    above = tilt[:, None] + room[:, None] * fractions
    period = np.zeros_like(tilt)
    chernoff: list[tuple[Array, Array]] = []
    for other in (below, above):
        log_bound = _log_moment(a[:, None, :], c[:, None, :], constant[:, None], other) - other * epsilon
        log_bound += other * np.log(other) - (1.0 + other) * np.log1p(other)
        distance = np.abs(other - tilt[:, None])
        needed = np.maximum(log_bound - log_goal[:, None] + 1.0, 1.0) / distance
        best = needed.argmin(axis=1)
        rows = np.arange(tilt.size)
        chernoff.append((log_bound[rows, best], distance[rows, best]))
        period = np.maximum(period, needed[rows, best])
    step = 2.0 * math.pi / period
    log_alias = np.full_like(tilt, -math.inf)
    for bound, distance in chernoff:
        decay = distance * period
        log_alias = np.logaddexp(log_alias, bound - decay - np.log(-np.expm1(-decay)))

    # Truncation: double the range, then halve the gap, until the bound of the tail is small enough.
    def log_tail(y: Array) -> Array:
        z = tilt + 1j * y
        size = (special.loggamma(a + z[:, None] * c).real - special.gammaln(a)).sum(axis=1)
        size += tilt * (constant - epsilon) - np.log(np.abs(z)) - np.log(np.abs(1.0 + z))
        rate = (np.abs(c) * np.arctan(np.abs(c) * y[:, None] / x)).sum(axis=1)
        return size - np.log(rate) - math.log(math.pi)

    high = 4.0 / np.sqrt(curvature)
    for _ in range(60):
        short = log_tail(high) > log_goal
        if not np.any(short):
            break
        high = np.where(short, 2.0 * high, high)
    low = 0.5 * high
    for _ in range(4):
        middle = 0.5 * (low + high)
        short = log_tail(middle) > log_goal
        low, high = np.where(short, middle, low), np.where(short, high, middle)
    count = np.minimum(np.ceil(high / step), 2e5).astype(np.int64) + 1
    log_truncation = log_tail(count * step)
    return _Plan(a, c, constant, tilt, step, count, np.logaddexp(log_alias, log_truncation))


def _log_moment(a: Array, c: Array, constant: Array, tilt: Array) -> Array:
    """log E_P[e^{τL}]; `tilt` has the shape of `constant`, or one more axis that a and c have too."""
    return (special.gammaln(a + tilt[..., None] * c) - special.gammaln(a)).sum(axis=-1) + tilt * constant


def _saddle(a: Array, c: Array, constant: Array, epsilon: float, limit: Array) -> Array:
    """Minimises log M(τ) - τε - log τ - log(1+τ), convex in 0 < τ < limit, to a few digits.

    Any τ in the range is correct; the minimum wastes the fewest nodes.
    """
    # log(τ / (limit - τ)) is bisected: both ends of the range may matter.
    low, high = np.full(limit.shape, -60.0), np.full(limit.shape, 14.0)
    for _ in range(40):
        middle = 0.5 * (low + high)
        tilt = limit * special.expit(middle)
        slope = (c * special.psi(a + tilt[:, None] * c)).sum(axis=1) + constant - epsilon
        rising = slope > 1.0 / tilt + 1.0 / (1.0 + tilt)
        low, high = np.where(rising, low, middle), np.where(rising, middle, high)
    return limit * special.expit(0.5 * (low + high))


def _integrate(plan: _Plan, epsilon: float) -> tuple[Array, Array]:
    """Lower and upper end for each pair."""
    pairs = plan.tilt.size
    lower, upper = np.zeros(pairs), np.ones(pairs)
    order = np.argsort(plan.count)
    start = 0
    while start < pairs:
        # Pairs of about the same number of nodes, as many as the memory allows.
        stop, most = start + 1, 1.3 * float(plan.count[order[start]]) + 8.0
        while stop < pairs and plan.count[order[stop]] <= min(most, _CHUNK / (stop + 1 - start)):
            stop += 1
        rows = order[start:stop]
        lower[rows], upper[rows] = _rows(plan, rows, epsilon)
        start = stop
    return lower, upper


def _rows(plan: _Plan, rows: NDArray[np.intp], epsilon: float) -> tuple[Array, Array]:
    a, c, tilt, step = plan.a[rows], plan.c[rows], plan.tilt[rows], plan.step[rows]
    nodes = np.arange(int(plan.count[rows].max()) + 1)
    z = tilt[:, None] + 1j * step[:, None] * nodes[None, :]
    value = z * (plan.constant[rows][:, None] - epsilon) - np.log(z) - np.log1p(z)
    size = np.abs(z) * (np.abs(plan.constant[rows])[:, None] + abs(epsilon)) + np.abs(value)
    for i in range(a.shape[1]):
        used = np.nonzero(c[:, i])[0]
        if used.size:
            argument = a[used, i, None] + z[used] * c[used, i, None]
            term = special.loggamma(argument)
            base = special.gammaln(a[used, i, None])
            value[used] += term - base
            # The argument is rounded, and its logarithm is close to the derivative of loggamma.
            moved = np.abs(argument) * (1.0 + np.abs(np.log(argument))) + 1.0
            size[used] += np.abs(term) + np.abs(base) + moved
    peak = np.real(value[:, 0])
    weight = np.where(nodes == 0, 1.0, 2.0)[None, :] * (nodes[None, :] <= plan.count[rows][:, None])
    with np.errstate(under="ignore", over="ignore"):
        terms = np.exp(value - peak[:, None])
        total = (weight * np.real(terms)).sum(axis=1)
        rounding = 8.0 * _EPS * (weight * np.abs(terms) * (size + 8.0)).sum(axis=1)
        scale = step / (2.0 * math.pi)
        log_scale = peak + np.log(scale)
        resolved = log_scale > _LOWEST
        factor = np.exp(np.where(resolved, log_scale, -745.0))
        error = np.exp(np.where(resolved, plan.log_error[rows], -745.0)) * (1.0 + 1e-9)
        low = np.where(resolved, factor * (total - rounding) * (1.0 - 4 * _EPS) - error, 0.0)
        # Far below the range of floats the Chernoff bound is all there is.
        chernoff = np.exp(np.minimum(peak + np.log(tilt) + np.log1p(tilt), 0.0)) + 1e-300
        high = np.where(resolved, factor * (total + rounding) * (1.0 + 4 * _EPS) + error, chernoff)
    return np.maximum(low, 0.0), np.minimum(high, 1.0)
