"""Certified Gauss-Legendre integration of log-concave analytic densities.

A panel [m - h, m + h] is laid so short that the density varies by less than e^5 on the Bernstein ellipse
rho = 6 around it, complex growth included. Gauss-Legendre with n nodes then has the relative error
4 rho^(1-2n) / (rho - 1) e^5 (twice the length times the best approximation of degree 2n - 1; Trefethen
2013, Theorem 8.2), below 1.6e-16 from n = 12 on.
"""

from __future__ import annotations

import dataclasses
import functools
import math
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from exactdp.accounting.pairs.base import Array, Unsuitable

_EPS = float(np.finfo(np.float64).eps)
REACH = 0.5 * (6.0 + 1.0 / 6.0)
RISE = 0.5 * (6.0 - 1.0 / 6.0)
VARIATION = 5.0
DEEPEST = 760.0
"""Log densities this far below the mode are below every float64."""

_MAX_PANELS = 100_000


@dataclasses.dataclass(frozen=True)
class Density:
    """A log-concave density with its mode at 0, not normalised.

    Attributes:
      log_value: vectorised log density, 0 at the mode; good to 4 units of itself.
      score: derivative of `log_value`, scalar.
      log_growth: (low, high, a) -> bound of log |f(x + iy)| / f(x) over low <= x <= high, |y| <= a; `inf`
        where f is not analytic there.
    """

    log_value: Callable[[Array], Array]
    score: Callable[[float], float]
    log_growth: Callable[[float, float, float], float]

    def lay(
        self,
        start: float,
        *,
        rightward: bool,
        depth: float = DEEPEST,
        extra: Callable[[float], float] | None = None,
    ) -> Array:
        """Edges of panels from `start` outward until the log density has fallen by `depth`.

        Args:
          start: first edge.
          rightward: direction.
          depth: fall of the log density, from the larger of its values at `start` and at the mode ahead.
          extra: |slope| of a further factor of the integrand at a point, non-increasing outward.

        Raises:
          Unsuitable: more than 1e5 panels would be needed.
        """
        sign = 1.0 if rightward else -1.0
        ahead = start * sign < 0.0
        floor = (0.0 if ahead else float(self.log_value(np.array([start]))[0])) - depth
        edges, at, width = [start], start, 1.0
        while len(edges) < _MAX_PANELS:
            width *= 2.0
            while self._excess(at, sign, width, 0.0 if extra is None else extra(at)) > VARIATION:
                width *= 0.7
            at += sign * width
            edges.append(at)
            if at * sign > 0.0 and len(edges) % 8 == 0 and float(self.log_value(np.array([at]))[0]) < floor:
                return np.array(edges)
        raise Unsuitable(f"density needs more than {_MAX_PANELS} panels")

    def _excess(self, at: float, sign: float, width: float, extra: float) -> float:
        h = 0.5 * width
        m = at + sign * h
        low, high = m - REACH * h, m + REACH * h
        slope = max(abs(self.score(low)), abs(self.score(high))) + extra
        variation = slope * (REACH + 1.0) * h
        return variation if variation > VARIATION else variation + self.log_growth(low, high, RISE * h)

    @functools.cached_property
    def edges(self) -> Array:
        """Panel edges over all that is not below every float64."""
        left, right = self.lay(0.0, rightward=False), self.lay(0.0, rightward=True)
        return np.concatenate([left[:0:-1], right])

    @functools.cached_property
    def total(self) -> tuple[float, float]:
        """The integral over the line, and a bound of its relative error."""
        value, error = self._integrate(self.edges, np.diff(self.edges))
        # Exact summation: the terms are positive.
        total = math.fsum(value)
        return total, (math.fsum(error) + math.exp(-DEEPEST + 10.0)) / total + _EPS

    @functools.cached_property
    def underflow(self) -> float:
        """What may be lost of the mass of one panel, or beyond the edges, because it is below every float64.

        Each of a panel's few terms loses 5e-324 at most, times its width; beyond the edges there is less.
        """
        return 1e-319 * (1.0 + float(np.diff(self.edges).max()) / self.total[0])

    def cells(self, cuts: Array) -> tuple[Array, Array]:
        """Normalised masses of (-inf, c_0], ..., (c_last, inf) and bounds of their absolute errors.

        The `cuts` are taken as exact.
        """
        edges = self.edges
        inside = np.clip(cuts, edges[0], edges[-1])
        points = np.union1d(edges, inside)
        panel = np.clip(np.searchsorted(edges, points[:-1], side="right") - 1, 0, len(edges) - 2)
        value, error = self._integrate(points, np.diff(edges)[panel])
        starts = np.concatenate([[0], np.searchsorted(points, inside)])
        stops = np.append(starts[1:], len(value))
        total, total_error = self.total
        mass, bound = _sums(value, starts, stops) / total, _sums(error, starts, stops) / total
        return mass, bound + mass * (total_error + 2 * _EPS + 4 * _EPS * (stops - starts)) + (
            1.0 + stops - starts
        ) * self.underflow

    def _integrate(self, points: Array, panel_width: Array) -> tuple[Array, Array]:
        """Integrals between `points`, each interval being part of a panel of the width given."""
        width = np.diff(points)
        value = np.empty(len(width))
        share = width / panel_width
        # In a panel, an interval 10 (100) times shorter has an ellipse rho of 41 (410).
        for above, upto, degree in ((0.1, 2.0, 12), (0.01, 0.1, 6), (-1.0, 0.01, 4)):
            chosen = (share > above) & (share <= upto)
            if chosen.any():
                x, log_weight = gauss(degree)
                nodes = points[:-1][chosen][:, None] + 0.5 * width[chosen][:, None] * (1.0 + x[None, :])
                with np.errstate(under="ignore"):
                    inner = np.exp(self.log_value(nodes)) @ np.exp(log_weight)
                    value[chosen] = 0.5 * width[chosen] * inner
        deepest = np.maximum(np.abs(self.log_value(points[:-1])), np.abs(self.log_value(points[1:])))
        return value, value * _EPS * (24.0 + 8.0 * deepest)


def _sums(values: Array, starts: NDArray[np.intp], stops: NDArray[np.intp]) -> Array:
    sums = np.add.reduceat(np.append(values, 0.0), starts)
    return np.where(stops > starts, sums, 0.0)


@functools.lru_cache(maxsize=256)
def gauss(degree: int) -> tuple[Array, Array]:
    """Gauss-Legendre nodes in (-1, 1) and the logarithms of their weights, good to 4 units each."""
    start, _ = np.polynomial.legendre.leggauss(degree)
    x = start.astype(np.longdouble)
    for _ in range(2):
        value, slope = _legendre(degree, x)
        x = x - value / slope
    _, slope = _legendre(degree, x)
    weight = 2.0 / ((1.0 - x) * (1.0 + x) * slope * slope)
    return x.astype(np.float64), np.log(weight).astype(np.float64)


def _legendre(degree: int, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The Legendre polynomial and its derivative by recurrence."""
    before, value = np.ones_like(x), x
    for k in range(1, degree):
        before, value = value, ((2 * k + 1) * x * value - k * before) / (k + 1)
    return value, degree * (x * value - before) / ((x - 1.0) * (x + 1.0))
