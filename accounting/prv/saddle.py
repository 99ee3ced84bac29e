"""What both engines share: saddle points, Chernoff bounds, and the inversion of delta(epsilon)."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Sequence
from typing import Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from exactdp.accounting.laws.law import Law
from exactdp.accounting.pairs.base import Array, Unsuitable

EPS = float(np.finfo(np.float64).eps)

_LEAST_LIMIT = 1e-9

Components = Sequence[tuple[Law, int]]
"""Laws of one direction, each with the number of steps that have it."""


@dataclasses.dataclass(frozen=True)
class Saddle:
    """The composed cumulant generating function K and its first two derivatives at one order."""

    order: float
    log_moment: float
    mean: float
    variance: float

    @property
    def epsilon(self) -> float:
        """The epsilon whose saddle point lies at this order."""
        return self.mean - 1.0 / self.order - 1.0 / (self.order + 1.0)

    @property
    def log_size(self) -> float:
        """log of the saddle-point estimate of delta(epsilon) over exp(K - order * epsilon)."""
        t = self.order
        spread = self.variance + 1.0 / t**2 + 1.0 / (t + 1.0) ** 2
        return -math.log(t * (t + 1.0)) - 0.5 * math.log(2.0 * math.pi * spread)

    @property
    def log_delta(self) -> float:
        """Saddle-point estimate of log delta(epsilon)."""
        return self.log_moment - self.order * self.epsilon + self.log_size


S = TypeVar("S", bound=Saddle)


def order_limit(components: Components) -> float:
    """Supremum of the orders at which the composed moment is finite."""
    return min(law.order_limit for law, _ in components)


def find_order(
    at: Callable[[float], S],
    limit: float,
    excess: Callable[[S], float],
    *,
    tolerance: float = 0.1,
    most: float = math.exp(12.0),
    enough: Callable[[S], bool] | None = None,
    guess: float | None = None,
) -> S:
    """The saddle at which the increasing function `excess` crosses zero, about.

    Any order gives a valid contour; a bad one only costs nodes. Where a single step's moment leaves 1,
    `excess` can rise by hundreds within a percent of the order.

    Args:
      at: saddle of an order.
      limit: supremum of the orders.
      excess: increasing along the orders.
      tolerance: the search ends where `excess` is this near zero.
      most: largest order to be used.
      enough: the search ends where this says so.
      guess: order to begin at.

    Raises:
      Unsuitable: the limit is next to nothing.
    """
    bounded = math.isfinite(limit)
    if limit < _LEAST_LIMIT:
        raise Unsuitable(f"moments are infinite from the order {limit:.3g} on: no tilt is worth while")

    def order(x: float) -> float:
        return limit / (1.0 + math.exp(-x)) if bounded else math.exp(x)

    share = min(most / limit, 0.9995) if bounded else 0.0
    least_x, most_x = -14.0, math.log(share / (1.0 - share)) if bounded else math.log(most)
    x = 0.0 if bounded else math.log(4.0)
    if guess is not None:
        x = math.log(guess / (limit - guess)) if bounded and guess < limit else math.log(guess)
    x = min(max(x, least_x), most_x)
    step, low, high = 1.0, -math.inf, math.inf
    low_value = high_value = 0.0
    here = at(order(x))
    for _ in range(40):
        if enough is not None and enough(here):
            break
        value = excess(here)
        if value > 0:
            high, high_value = x, value
        else:
            low, low_value = x, value
        if abs(value) < tolerance or high - low < 1e-6 or (high - low < 0.1 and abs(value) < 0.5):
            break
        if (value > 0 and x <= least_x) or (value <= 0 and x >= most_x):
            break
        if math.isinf(high) or math.isinf(low):
            x, step = (x + step, 2.0 * step) if math.isinf(high) else (x - step, 2.0 * step)
        else:
            share = low_value / (low_value - high_value)
            x = low + (high - low) * min(max(share, 0.15), 0.85)
        x = min(max(x, least_x), most_x)
        here = at(order(x))
    return here


def log_payoff_bound(order: float) -> float:
    """log of sup_x (1 - e^-x)_+ e^{-order x} = order^order / (1 + order)^(1 + order)."""
    return order * math.log(order) - (1.0 + order) * math.log1p(order) if order > 0 else 0.0


@dataclasses.dataclass(frozen=True)
class Alias:
    """Bounds of sum_{k != 0} delta(eps + k period) e^{order k period} by Chernoff.

    Attributes:
      order: the contour's order.
      log_moment: K there.
      bounds: orders s with log of a bound on delta(eps) e^{s eps}, for s = 0 and on both sides.
    """

    order: float
    log_moment: float
    bounds: tuple[tuple[float, float], ...]
    _known: dict[float, tuple[list[tuple[float, float]], list[tuple[float, float]]]] = dataclasses.field(
        default_factory=dict, repr=False, compare=False
    )

    def log_error(self, epsilon: float, period: float) -> float:
        """log of the bound, over exp(K - order * epsilon)."""
        ends = [min([a - x * epsilon for x, a in side], default=math.inf) for side in self._lines(period)]
        low, high = min(ends), max(ends)
        return high if high == math.inf else high + math.log1p(math.exp(low - high))

    def best_orders(self, epsilon: float, period: float) -> list[float]:
        """The orders, one on each side, that give the bound."""
        return [
            self.order + min((a - x * epsilon, x) for x, a in side)[1] if side else 0.0
            for side in self._lines(period)
        ]

    def _lines(self, period: float) -> tuple[list[tuple[float, float]], list[tuple[float, float]]]:
        """(s - order, log of the bound at epsilon = 0) of the orders s below and above."""
        if period not in self._known:
            found: tuple[list[tuple[float, float]], list[tuple[float, float]]] = ([], [])
            for s, log_bound in self.bounds:
                fall = abs(s - self.order) * period
                if fall > 1e-3:
                    value = log_bound - self.log_moment - fall - math.log(-math.expm1(-fall))
                    found[s > self.order].append((s - self.order, value))
            self._known.clear()
            self._known[period] = found
        return self._known[period]

    def period(self, epsilon: float, log_target: float, start: float) -> float:
        """A period >= `start` that brings the error to exp(log_target).

        Raises:
          Unsuitable: there is none within reason.
        """
        period = start
        for _ in range(200):
            if self.log_error(epsilon, period) <= log_target:
                return period
            period *= 1.15
        raise Unsuitable("no period brings the aliasing error down")


def chernoff_orders(order: float, limit: float, *, closest: float = 0.02) -> list[float]:
    """Orders around a contour's at which to bound what the period wraps around.

    K of many steps explodes once one step's moment leaves 1, so that useful orders may lie close by.

    Args:
      order: the contour's.
      limit: supremum of the orders.
      closest: distance of the nearest one above, as a share of the reach.
    """
    reach = 0.9 * (limit - order) if math.isfinite(limit) else 2.0 * order + 1.0
    shares = [0.02, 0.05, 0.12, 0.3, 0.6, 1.0]
    while shares[0] > closest:
        shares.insert(0, 0.4 * shares[0])
    return [0.35 * order, 0.75 * order, *(order + f * reach for f in shares)]


def chernoff(
    order: float, log_moment: float, orders: Sequence[float], log_moment_bound: Callable[[float], float]
) -> Alias:
    """Bounds at `orders` (and at 0); `log_moment_bound` is an upper bound of K.

    Raises:
      Unsuitable: no moment above the contour's order is finite.
    """
    bounds = [(0.0, 0.0)]
    for s in sorted(orders):
        if s == 0.0:
            continue
        try:
            bound = log_moment_bound(s)
        except Unsuitable:
            continue
        bounds.append((s, bound + log_payoff_bound(s)))
        if s > order and bound - log_moment > 300.0 + 2.0 * (s - order) / order * abs(log_moment):
            break
    if bounds[-1][0] <= order:
        raise Unsuitable("no order above the contour's has a finite moment")
    return Alias(order, log_moment, tuple(bounds))


def complex_log1p(w: NDArray[np.complex128]) -> NDArray[np.complex128]:
    """log(1 + w) with an absolute error of a few units wherever |1 + w| is not lost altogether.

    Near w = 0 the real part is log1p(|1 + w|^2 - 1) / 2; away from it, where that difference would cancel,
    the logarithm of |1 + w| itself. w = -1 gives a very negative real part.
    """
    square = 2.0 * w.real + w.real**2 + w.imag**2
    near = 0.5 * np.log1p(np.maximum(square, -0.75))
    far = np.log(np.maximum(np.hypot(1.0 + w.real, w.imag), 1e-300))
    return np.where(square > -0.75, near, far) + 1j * np.arctan2(w.imag, 1.0 + w.real)


def node_error(log_phi: Array, error: Array, count: int) -> tuple[Array, Array]:
    """Relative error of phi^count at nodes where |phi| = exp(log_phi) is known to `error`.

    Returns:
      log of a bound of the relative error's growth, and log of a bound of |phi|^count itself.
    """
    size = np.exp(log_phi)
    with np.errstate(divide="ignore", over="ignore"):
        relative = count * error / np.maximum(size - error, 1e-300)
        bound = count * np.log(np.minimum(size + error, 1.0))
    return relative + 4 * EPS * count * np.abs(log_phi), bound


def lost(scale: Array, log_size: Array, relative: Array, bound: Array) -> float:
    """What rounding can add to a sum of terms scale * M, |M| = exp(log_size) known to `relative`.

    Where the relative error is not small, the term and its bound exp(bound) are lost as a whole.
    """
    size = np.exp(log_size)
    grown = np.where(relative < 0.5, size * np.expm1(np.minimum(relative, 0.5)), size + np.exp(bound))
    return float(scale @ grown) + 8 * EPS * float(scale @ size)


def assemble(
    value: float,
    error: float,
    slope: float,
    scale: float,
    scale_error: float,
    log_free: float,
    *,
    upper: bool,
) -> tuple[float, float]:
    """log of one end of delta = infinite mass + exp(scale) * value, and d log delta / d epsilon.

    Args:
      value: finite part over exp(scale).
      error: bound of its absolute error.
      slope: derivative of `value * exp(scale)` in epsilon, over exp(scale).
      scale: logarithm of the factor in common.
      scale_error: bound of its absolute error.
      log_free: log of the probability that no step's loss is infinite.
      upper: which end is wanted.
    """
    finite = value + error if upper else value - error
    log_finite = (
        scale + (scale_error if upper else -scale_error) + math.log(finite) if finite > 0 else -math.inf
    )
    derivative = slope / value if value > 0 else -math.inf
    if log_free == 0.0:
        return log_finite, derivative
    log_infinite = math.log(-math.expm1(log_free)) + (4 * EPS if upper else -4 * EPS)
    total = float(np.logaddexp(log_finite, log_infinite))
    return total, derivative * math.exp(min(log_finite - total, 0.0)) if log_finite > -math.inf else -math.inf


class Curve(Protocol):
    """delta(epsilon) near one epsilon, as an engine computes it."""

    def log_delta(self, epsilon: float, *, upper: bool) -> tuple[float, float]:
        """log of the certified upper or lower end of delta(epsilon), and d log delta / d epsilon."""
        ...


def invert(curve: Curve, log_delta: float, *, start: float, upper: bool, precision: float = 0.0) -> float:
    """The epsilon >= 0 at which the upper (lower) end of delta passes exp(log_delta), on the safe side.

    Newton's method, or bisection where it fails. What is returned certifies by itself: the upper end of
    delta there is <= exp(log_delta), or the lower end is >= exp(log_delta) (or epsilon is 0).

    Args:
      curve: whose end is wanted.
      log_delta: log of delta.
      start: a first guess.
      upper: which end.
      precision: by how much it may be beyond the crossing, where that is more than rounding.

    Raises:
      Unsuitable: no such epsilon was found (the curve is not accurate near it).
    """

    def excess(epsilon: float) -> tuple[float, float]:
        value, slope = curve.log_delta(epsilon, upper=upper)
        return value - log_delta, slope

    def certifies(epsilon: float) -> bool:
        value = excess(epsilon)[0]
        return value <= 0.0 if upper else epsilon == 0.0 or value >= 0.0

    epsilon = max(start, 0.0)
    for _ in range(25):
        value, slope = excess(epsilon)
        if not (math.isfinite(value) and -math.inf < slope < 0.0):
            break
        move = min(max(value / -slope, -1.0 - 0.5 * epsilon), 1.0 + 0.5 * epsilon)
        epsilon = max(epsilon + move, 0.0)
        if epsilon == 0.0 and move < 0.0:
            if upper and certifies(0.0):
                return 0.0
            break
        nudge = max(1e-13 * max(1e-3, epsilon), precision)
        if abs(move) <= nudge:
            for _ in range(12):
                if certifies(epsilon):
                    return epsilon
                epsilon = max(epsilon + (nudge if upper else -nudge), 0.0)
                nudge *= 2.0
            break
    return _bisect(excess, max(start, 0.0), upper=upper)


def _bisect(excess: Callable[[float], tuple[float, float]], start: float, *, upper: bool) -> float:
    """`invert` by bisection."""
    width = 1e-6 + 1e-3 * start
    low = high = start
    while low > 0.0 and not excess(low)[0] > 0.0:
        low, width = max(low - width, 0.0), 2.0 * width
    width = 1e-6 + 1e-3 * start
    while not excess(high)[0] <= 0.0:
        high, width = high + width, 2.0 * width
        if width > 1e9:
            raise Unsuitable("the curve is not accurate enough to be inverted")
    while high - low > 2e-13 * max(1e-3, high):
        middle = 0.5 * (low + high)
        if excess(middle)[0] > 0.0:
            low = middle
        else:
            high = middle
    if not upper and low == 0.0:
        return 0.0
    return high if upper else low
