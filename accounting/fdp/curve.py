"""Trade-off curves f: fpr -> least fnr, and what can be done with one.

A trade-off curve is convex, continuous, non-increasing on [0, 1], with 0 <= f(x) <= 1 - x. Source: Dong, Roth
and Su 2022 (arXiv 1905.02383), Definition 2.1.
"""

from __future__ import annotations

import abc
import dataclasses
import math
from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from exactdp.accounting import validate

Array = NDArray[np.float64]

_SLACK = 1e-12


class TradeoffCurve(abc.ABC):
    """f(fpr): the least false-negative rate of a test that has that false-positive rate."""

    @abc.abstractmethod
    def fnr(self, fpr: float) -> float:
        """f(fpr), `fpr` in [0, 1].

        Raises:
          ValueError: `fpr` is outside [0, 1].
        """

    @abc.abstractmethod
    def inverse(self) -> TradeoffCurve:
        """The curve of the same pair with the hypotheses exchanged: f^-1(y) = inf {x : f(x) <= y}."""

    @abc.abstractmethod
    def delta(self, epsilon: float) -> float:
        """delta(epsilon) = 1 + f*(-e^epsilon) = max_x 1 - f(x) - e^epsilon x, for any finite `epsilon`.

        Source: Dong, Roth and Su 2022 (arXiv 1905.02383), on the two as convex duals.
        """

    @abc.abstractmethod
    def epsilon(self, delta: float) -> float:
        """The least epsilon >= 0 with delta(epsilon) <= `delta`; `math.inf` where there is none.

        Raises:
          ValueError: `delta` is outside [0, 1).
        """

    @property
    def advantage(self) -> float:
        """max_x 1 - x - f(x): total variation, the best membership advantage tpr - fpr."""
        return self.delta(0.0)

    def __call__(self, fpr: float) -> float:
        return self.fnr(fpr)


@dataclasses.dataclass(frozen=True)
class PiecewiseLinearTradeoff(TradeoffCurve):
    """A trade-off curve through knots, linear between them. Values are exact up to a few roundings.

    Args:
      fpr: knots, increasing from 0 to 1, shape [n], n >= 2.
      fnr: values there, convex, non-increasing, at most 1 - fpr, 0 at fpr = 1, shape [n].

    Raises:
      ValueError: the knots are not those of a trade-off curve.
    """

    fpr_knots: tuple[float, ...]
    fnr_knots: tuple[float, ...]

    def __init__(self, fpr: Sequence[float], fnr: Sequence[float]) -> None:
        x = np.array([validate.probability("fpr", value) for value in fpr])
        y = np.array([validate.probability("fnr", value) for value in fnr])
        if len(x) != len(y) or len(x) < 2:
            raise ValueError(f"fpr and fnr must have the same length >= 2, got {len(x)} and {len(y)}")
        if x[0] != 0.0 or x[-1] != 1.0 or np.any(np.diff(x) <= 0.0):
            raise ValueError(f"fpr must increase from 0 to 1, got {tuple(fpr)}")
        if y[-1] != 0.0 or np.any(y > 1.0 - x + _SLACK):
            raise ValueError(f"fnr must be at most 1 - fpr and 0 at fpr = 1, got {tuple(fnr)}")
        # Convexity through cross products, as slopes of nearly equal knots are noise.
        dx, dy = np.diff(x), np.diff(y)
        if np.any(dy > _SLACK) or np.any(dy[:-1] * dx[1:] > dy[1:] * dx[:-1] + _SLACK):
            raise ValueError(f"fnr must be convex and non-increasing, got {tuple(fnr)}")
        object.__setattr__(self, "fpr_knots", tuple(x.tolist()))
        object.__setattr__(self, "fnr_knots", tuple(np.minimum(y, 1.0 - x).tolist()))

    @classmethod
    def from_points(cls, fpr: ArrayLike, fnr: ArrayLike) -> PiecewiseLinearTradeoff:
        """The largest convex curve at or below the points, below 1 - fpr, and non-increasing.

        Any point (fpr, fnr) in the unit square may be given; (0, 1) and (1, 0) are always among them.

        Raises:
          ValueError: a coordinate is outside [0, 1].
        """
        x = np.append(np.asarray(fpr, dtype=np.float64).ravel(), [0.0, 1.0])
        y = np.append(np.asarray(fnr, dtype=np.float64).ravel(), [1.0, 0.0])
        for name, values in (("fpr", x), ("fnr", y)):
            if np.any(~((values >= 0.0) & (values <= 1.0))):
                raise ValueError(f"{name} must be in [0, 1], got {values.tolist()}")
        return cls(*_lower_hull(x, y))

    @classmethod
    def from_lines(cls, slopes: ArrayLike, intercepts: ArrayLike) -> PiecewiseLinearTradeoff:
        """f(x) = max(0, max_i intercept_i - slope_i x).

        Args:
          slopes: >= 0, shape [n]; the lines descend.
          intercepts: in [0, 1], at most the slope (so that f(1) = 0), shape [n].

        Raises:
          ValueError: a slope is negative, or an intercept outside [0, min(1, slope)].
        """
        s = np.append(0.0, np.asarray(slopes, dtype=np.float64).ravel())
        c = np.append(0.0, np.asarray(intercepts, dtype=np.float64).ravel())
        if np.any(~(s >= 0.0)) or np.any(~((c >= 0.0) & (c <= np.minimum(1.0, s) * (1.0 + _SLACK)))):
            raise ValueError(f"lines must have slope >= 0 and intercept in [0, min(1, slope)], got {s}, {c}")
        # A line is active where (slope, intercept) is on the upper concave hull: Legendre duality.
        hull_s, hull_minus_c = _lower_hull(s, -c)
        s, c = np.array(hull_s), -np.array(hull_minus_c)
        rising = np.append(True, np.diff(c) > 0.0)  # a steeper line that is no higher at 0 is never active
        s, c = s[rising], c[rising]
        if len(s) == 1:
            return cls((0.0, 1.0), (0.0, 0.0))
        x = np.minimum(np.diff(c) / np.diff(s), 1.0)[::-1]
        y = np.maximum(c[1:] - s[1:] * x[::-1], 0.0)[::-1]
        y[-1] = 0.0  # the flattest line meets zero there
        return cls(*_lower_hull(np.append(x, [0.0, 1.0]), np.append(y, [float(c[-1]), 0.0])))

    @classmethod
    def from_profile(cls, points: Iterable[tuple[float, float]]) -> PiecewiseLinearTradeoff:
        """The symmetric curve that (epsilon, delta) guarantees together imply: max_i f_{eps_i, delta_i}.

        f_{eps, delta}(x) = max(0, 1 - delta - e^eps x, e^-eps (1 - delta - x)).

        Args:
          points: (epsilon, delta) with 0 <= epsilon <= 700 and delta in [0, 1], each a guarantee in both
            directions.

        Raises:
          ValueError: there is no point, or one is out of range.

        Source: Dong, Roth and Su 2022 (arXiv 1905.02383), Proposition 2.5 for one point.
        """
        slopes: list[float] = []
        intercepts: list[float] = []
        for epsilon, delta in points:
            eps, rest = validate.non_negative("epsilon", epsilon), 1.0 - validate.probability("delta", delta)
            if eps > 700.0:
                raise ValueError(f"epsilon must be at most 700 here, got {epsilon}")
            slopes += [math.exp(eps), math.exp(-eps)]
            intercepts += [rest, math.exp(-eps) * rest]
        if not slopes:
            raise ValueError("points must hold at least one (epsilon, delta), got none")
        return cls.from_lines(slopes, intercepts)

    def fnr(self, fpr: float) -> float:
        return float(np.interp(validate.probability("fpr", fpr), self.fpr_knots, self.fnr_knots))

    def inverse(self) -> PiecewiseLinearTradeoff:
        return PiecewiseLinearTradeoff.from_points(self.fnr_knots, self.fpr_knots)

    def symmetrised(self) -> PiecewiseLinearTradeoff:
        """The convex envelope of min(f, f^-1): the symmetric guarantee that both directions share.

        Source: Dong, Roth and Su 2022 (arXiv 1905.02383), on subsampling (the operator min{f, f^-1}**).
        """
        x, y = self.fpr_knots, self.fnr_knots
        return PiecewiseLinearTradeoff.from_points((*x, *y), (*y, *x))

    def delta(self, epsilon: float) -> float:
        eps = validate.finite("epsilon", epsilon)
        x, y = np.array(self.fpr_knots), np.array(self.fnr_knots)
        if eps > 700.0:
            return 1.0 - float(y[0])
        return max(0.0, float(np.max(1.0 - y - math.exp(eps) * x)))

    def epsilon(self, delta: float) -> float:
        if validate.probability("delta", delta) == 1.0:
            raise ValueError(f"delta must be in [0, 1), got {delta}")
        x, y = np.array(self.fpr_knots[1:]), np.array(self.fnr_knots[1:])
        if 1.0 - self.fnr_knots[0] > delta:
            return math.inf
        rest = 1.0 - y - delta
        useful = rest > 0.0
        return max(0.0, float(np.max(np.log(rest[useful]) - np.log(x[useful]), initial=0.0)))


def from_epsilon_delta(epsilon: float, *, delta: float = 0.0) -> PiecewiseLinearTradeoff:
    """f_{epsilon, delta}, the curve equivalent to (epsilon, delta)-DP in both directions."""
    return PiecewiseLinearTradeoff.from_profile([(epsilon, delta)])


def _lower_hull(x: Array, y: Array) -> tuple[list[float], list[float]]:
    """Lower convex hull, left to right (monotone chain)."""
    order = np.lexsort((y, x))
    hull: list[tuple[float, float]] = []
    for point in zip(x[order].tolist(), y[order].tolist(), strict=True):
        if hull and point[0] == hull[-1][0]:
            continue  # equal x: the first is the lower one
        while len(hull) >= 2:
            (x0, y0), (x1, y1) = hull[-2], hull[-1]
            if (x1 - x0) * (point[1] - y0) > (y1 - y0) * (point[0] - x0):
                break
            hull.pop()
        hull.append(point)
    return [p[0] for p in hull], [p[1] for p in hull]
