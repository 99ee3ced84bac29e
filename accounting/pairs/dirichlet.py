"""The Dirichlet mechanism on its vertex pair: Dir(r p + alpha 1) at p = e_1 against p = e_2."""

from __future__ import annotations

import dataclasses
import functools
import math
from collections.abc import Callable

import numpy as np
from scipy import special

from exactdp.accounting import validate
from exactdp.accounting.pairs import base, panels

_EPS = float(np.finfo(np.float64).eps)


@dataclasses.dataclass(frozen=True)
class Dirichlet(base.Pair):
    """One draw rho ~ Dir(r p + alpha 1) for the inputs p = e_1 and p = e_2 (two vertices of the simplex).

    Every other coordinate has the same law under both, so that u = r logit(B) with B ~ Beta(alpha + r, alpha)
    under P and Beta(alpha, alpha + r) under Q, and

        H(e^eps) = I_y(alpha, alpha + r) - e^eps I_y(alpha + r, alpha),   y = 1 / (1 + e^(eps / r)),

    with the regularised incomplete beta function I. It is evaluated as the positive integral
    int_t^inf p(x) (1 - e^(-r (x - t))) dx over x = logit(B), t = eps / r: relative error about 1e-15 times
    (8 + |log density|), down to the smallest floats.

    For alpha >= 1/2 (and for K = 2) it dominates every pair of inputs on the simplex; for smaller offsets
    only where the scaling is small enough: `exactdp.accounting.worst_pair` has the proof and the check.

    Args:
      scaling: r > 0.
      offset: alpha > 0.

    Raises:
      ValueError: an argument is not finite or not positive.

    Source: mechanism: arXiv 2607.19580v1; the law of the loss follows from the density of Dir.
    """

    scaling: float
    offset: float

    def __post_init__(self) -> None:
        self.plain()
        validate.positive("scaling", self.scaling)
        validate.positive("offset", self.offset)

    @property
    def symmetric(self) -> bool:
        return True

    @property
    def support(self) -> tuple[float, float]:
        return -math.inf, math.inf

    @property
    def slope_limits(self) -> tuple[float, float]:
        r, alpha = self.scaling, self.offset
        return -alpha / r, (alpha + r) / r

    @property
    def _power(self) -> float:
        return 2.0 * self.offset + self.scaling

    @property
    def _mode(self) -> float:
        """The mode of x = logit(B) under Q, where the densities below have their origin."""
        return -math.log1p(self.scaling / self.offset)

    @functools.cached_property
    def _density(self) -> panels.Density:
        return panels.Density(_log_value(self.scaling, self.offset), self._score, self._log_growth)

    def _score(self, d: float) -> float:
        return self.offset - self._power * _expit(self._mode + d)

    def _log_growth(self, low: float, high: float, a: float) -> float:
        # |1 + e^(x + ia)|^2 = (1 + e^x)^2 (1 - 4 s (1 - s) sin^2(a / 2)) with s = expit(x).
        low, high = low + self._mode, high + self._mode
        s = 0.5 if low <= 0.0 <= high else _expit(min(abs(low), abs(high)))
        loss = 4.0 * s * (1.0 - s) * math.sin(0.5 * min(a, math.pi)) ** 2
        return (
            math.inf if loss >= 1.0 or (s == 0.5 and a >= math.pi) else -0.5 * self._power * math.log1p(-loss)
        )

    def masses(self, edges: base.Array) -> base.Masses:
        x = edges / self.scaling
        q, q_error = self._cells(x)
        p, p_error = (values[::-1] for values in self._cells(-x[::-1]))
        return base.Masses(p, q, p_error, q_error, telescoping=False)

    def _cells(self, x: base.Array) -> tuple[base.Array, base.Array]:
        """Q-masses of logit(B) between the edges `x`."""
        cuts = x - self._mode
        mass, error = self._density.cells(cuts)
        # Each edge is rounded by a few units: what passes it goes from one cell to the next.
        with np.errstate(under="ignore", over="ignore"):
            passing = np.exp(self._density.log_value(cuts)) / self._density.total[0]
        passing = passing * 4.0 * _EPS * (np.abs(x) + abs(self._mode))
        return mass, error + np.append(passing, 0.0) + np.append(0.0, passing)

    def hockey_stick(self, epsilon: float, *, reverse: bool = False) -> tuple[float, float]:
        if epsilon < 0.0:
            # Duality, and the pair is symmetric.
            value, error = self.hockey_stick(-epsilon)
            return -math.expm1(epsilon) + math.exp(epsilon) * value, math.exp(epsilon) * error + 4 * _EPS
        r, density = self.scaling, self._density
        # Under P, y = -logit(B) - mode has the density that logit(B) - mode has under Q.
        start = -epsilon / r - self._mode
        log_start = float(density.log_value(np.array([start]))[0])
        total, total_error = density.total
        deep = not log_start > -panels.DEEPEST
        if deep and start < 0.0:
            return 0.0, density.underflow
        # Far beyond the mode the panels begin where the density does; what lies between is below every float.
        begin = float(density.edges[-1]) if deep else start

        # Until the bracket is 1 to all digits, panels are short on the scale 1 / r too.
        def extra(y: float) -> float:
            return r if r * (start - y) < 42.0 else 0.0

        edges = density.lay(min(begin, start), rightward=False, depth=45.0, extra=extra)
        x, log_weight = panels.gauss(16)
        middle, h = 0.5 * (edges[1:] + edges[:-1]), 0.5 * (edges[:-1] - edges[1:])
        y = middle[:, None] + h[:, None] * x[None, :]
        log_f = density.log_value(y)
        bracket = -np.expm1(-r * (start - y))
        weight = h[:, None] * np.exp(log_weight)[None, :]
        with np.errstate(under="ignore"):
            terms = weight * np.exp(log_f) * bracket
            value = float(terms.sum()) / total
            rounding = float((terms * (24.0 + 8.0 * np.abs(log_f))).sum()) / total
        # The threshold is rounded: d H / d start is at most r times the mass beyond it.
        shift = 4.0 * _EPS * (abs(epsilon / r) + abs(self._mode)) * r
        with np.errstate(under="ignore"):
            mass = float((weight * np.exp(log_f)).sum()) / total
        lost = len(edges) * density.underflow
        return value, _EPS * rounding + value * (total_error + 8 * _EPS) + shift * mass + lost

    def quadrature(
        self, *, slopes: tuple[float, float], frequency: float, cosine_power: float, log_target: float
    ) -> base.Quadrature:
        r, alpha, n = self.scaling, self.offset, self._power
        # Slopes of a mixture flatten to the left; its tails are checked by the rule's own end slopes.
        least = 0.02 * alpha if cosine_power > 0.0 else 0.0
        left = max(alpha + r * min(slopes[0], 0.0), least)
        right = alpha + r * max(slopes[1], 0.0)
        if not 0.0 < left or not right < n:
            raise base.Unsuitable("the moment asked for is infinite")
        depth, mode = log_target + 4.0, self._mode
        low, high = r * (_fall(left, n, depth, -1.0) - mode), r * (_fall(right, n, depth, 1.0) - mode)
        log_value = self._density.log_value
        rule = base.trapezoid(
            log_density=lambda v: log_value(v / r),
            score=lambda v: self._score(v / r) / r,
            log_growth=lambda a: -n * np.log(np.cos(a / (2.0 * r))),
            half_width=math.pi * r,
            low=low,
            high=high,
            frequency=frequency,
            cosine_power=cosine_power,
            log_target=log_target,
        )
        return dataclasses.replace(rule, u=rule.u + r * mode)

    def density(self, *, slope: float) -> base.DensityCells | None:
        r, alpha, n, mode = self.scaling, self.offset, self._power, self._mode
        right = alpha + r * slope
        if not right < n:
            return None
        low, high = _fall(alpha, n, 40.0, -1.0), _fall(right, n, 40.0, 1.0)
        x = np.linspace(low, high, 4001)
        s = special.expit(x)
        # Cells of a 15th of the local scale: curvature of the log density, or the slopes of its tails.
        rate = 15.0 * (np.sqrt(n * s * (1.0 - s)) + 0.2 * min(alpha, n - right))
        place = np.concatenate([[0.0], np.cumsum(0.5 * (rate[1:] + rate[:-1]) * np.diff(x))])
        count = int(min(max(place[-1], 50.0), 5000.0))
        x = np.interp(np.linspace(0.0, place[-1], count), place, x)
        log_density = self._density.log_value(x - mode) - math.log(self._density.total[0] * r)
        return base.DensityCells(r * x, log_density, (alpha - n * special.expit(x)) / r)


def _expit(x: float) -> float:
    return (
        1.0 / (1.0 + math.exp(-x)) if x >= 0.0 else math.exp(x) / (1.0 + math.exp(x)) if x > -700.0 else 0.0
    )


def _fall(a: float, n: float, depth: float, sign: float) -> float:
    """Where log(e^(a x) (1 + e^x)^-n) is `depth` below its maximum, left (sign -1) or right (+1) of it."""

    def value(x: float) -> float:
        return a * x - n * (max(x, 0.0) + math.log1p(math.exp(-abs(x))))

    mode = math.log(a) - math.log(n - a)
    goal, step = value(mode) - depth, 1.0
    while value(mode + sign * step) > goal:
        step *= 2.0
    near, far = 0.0, step
    while far - near > 0.01 * far:
        middle = 0.5 * (near + far)
        near, far = (middle, far) if value(mode + sign * middle) > goal else (near, middle)
    return mode + sign * far


def _log_value(r: float, alpha: float) -> Callable[[base.Array], base.Array]:
    """log of e^(alpha x) (1 + e^x)^-(2 alpha + r) at x = mode + d, relative to the mode.

    It is -n log w with w = (1 - s) e^(-s d) + s e^((1 - s) d), s = alpha / n; the terms of first order in
    d cancel in w - 1, which is summed from positive parts.
    """
    n = 2.0 * alpha + r
    s, t = alpha / n, (alpha + r) / n

    def log_value(d: base.Array) -> base.Array:
        mild = np.clip(d, -30.0, 30.0)
        excess = s * _expm1_less(t * mild) + t * _expm1_less(-s * mild)
        log_w = np.log1p(excess)
        far = np.abs(d) > 30.0
        if far.any():
            x = np.asarray(d)[far]
            with np.errstate(under="ignore"):
                left = -s * x + np.log1p(s * np.expm1(np.minimum(x, 0.0)))
                right = t * x + np.log(s + t * np.exp(-np.maximum(x, 0.0)))
            log_w[far] = np.where(x < 0.0, left, right)
        return -n * log_w

    return log_value


def _expm1_less(y: base.Array) -> base.Array:
    """e^y - 1 - y, relatively accurate."""
    small = np.clip(y, -0.7, 0.7)
    series = np.zeros_like(small)
    for k in range(18, 1, -1):
        series = (series + 1.0) * (small / k) if k > 2 else (series + 1.0) * (small * small / 2.0)
    return np.where(np.abs(y) <= 0.7, series, np.expm1(y) - y)
