"""The contour engine by layers of the largest loss, for deltas that one large loss decides.

As in `layers`, with the exact moment generating functions of `measures.Layer` in place of grids: each layer's
contour runs through the saddle point of its own.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterator, Sequence

from exactdp.accounting.laws.law import Moments
from exactdp.accounting.pairs.base import Unsuitable
from exactdp.accounting.prv import contour, layers, saddle
from exactdp.accounting.prv.measures import Composition, Cumulants, Layer, Measure
from exactdp.accounting.prv.saddle import EPS, Components

_MOST_POWER, _MOST_RISE, _MOST_TOP = 2000, 256, 20.0
_ABOVE = 8.0  # by which the power of the weights exceeds the largest order
_BEYOND, _OVERSHOOT, _SHARP_OVERSHOOT = 2.0, 0.3, 0.03  # how many losses may be so far beyond a cut, tilted
_NEGLIGIBLE = -34.0  # log of the share of delta below which a layer is only bounded
_FEW = 10
_ROUGHEST = -5.0  # log of the relative error of a layer's own delta


class Split:
    """delta(epsilon) as the sum of the layers': a `saddle.Curve`.

    Args:
      contours: of the layers that matter.
      bounds: (order, log of a bound on delta(epsilon) e^{order epsilon}) of the others.
    """

    def __init__(self, contours: Sequence[contour.Contour], bounds: Sequence[tuple[float, float]]) -> None:
        self._contours, self._bounds = contours, bounds

    def log_delta(self, epsilon: float, *, upper: bool) -> tuple[float, float]:
        ends = [c.log_delta(epsilon, upper=upper) for c in self._contours]
        if upper:
            ends += [(bound - order * epsilon, -order) for order, bound in self._bounds]
        finite = [(value, slope) for value, slope in ends if value > -math.inf]
        if not finite:
            return -math.inf, -math.inf
        most = max(value for value, _ in finite)
        shares = [math.exp(value - most) for value, _ in finite]
        total = math.fsum(shares)
        slope = math.fsum(w * s for w, (_, s) in zip(shares, finite, strict=True)) / total
        rounding = 4 * EPS * (2.0 + abs(most))
        return most + math.log(total) + (rounding if upper else -rounding), slope


def split(
    components: Components,
    *,
    epsilon: float,
    log_delta: float | None,
    log_tolerance: float,
    sharp: bool = False,
) -> Split:
    """The layers' contours, good near `epsilon`.

    Args:
      components: laws of one direction with their counts.
      epsilon: > 0, where they are to be used.
      log_delta: log of the delta in question there; None: it is estimated.
      log_tolerance: log of the error of delta aimed at, relative.
      sharp: with layers as sharp as may be needed, which takes longer.

    Raises:
      Unsuitable: a law has no layers, or a layer no contour.
    """
    if not epsilon > 0.0:
        raise Unsuitable("there are no layers about epsilon = 0")
    if sum(n for _, n in components) <= _FEW:
        raise Unsuitable("the characteristic function of a few steps hardly falls")
    shape, size = _Shape(overshoot=_SHARP_OVERSHOOT if sharp else _OVERSHOOT), log_delta
    found, sharper = _lay(components, epsilon, log_delta, shape)
    while sharper is not None:
        found, sharper = _lay(components, epsilon, log_delta, sharper)
    if log_delta is None:
        size = max(at.log_moment - at.order * epsilon + at.log_size for _, at in found)
    contours: list[contour.Contour] = []
    bounds: list[tuple[float, float]] = []
    for measure, at in found:
        if size is None or _negligible(at, epsilon, size):
            bound = at.log_moment + at.error + saddle.log_payoff_bound(at.order)
            bounds.append((at.order, bound + 4 * EPS * (abs(bound) + at.order * epsilon)))
            continue
        excess = at.log_moment - at.order * epsilon - size
        tolerance = min(log_tolerance - excess - at.log_size, _ROUGHEST)
        contours.append(contour.Contour(measure, at, epsilon=epsilon, log_tolerance=tolerance))
    return Split(contours, bounds)


@dataclasses.dataclass(frozen=True)
class _Shape:
    """Of the layers.

    Attributes:
      power: of the weights, see `Law.layer`.
      rise: likewise.
      top: the last cut, over epsilon: a loss beyond it is enough.
      overshoot: how many losses may be far beyond a cut that they should lie below, tilted.
    """

    overshoot: float
    power: int = 24
    rise: int = 8
    top: float = 1.3


def _lay(
    components: Components, epsilon: float, log_delta: float | None, shape: _Shape
) -> tuple[list[tuple[Measure, Cumulants]], _Shape | None]:
    """The measure below the first cut and those of the layers, each with its saddle point.

    Returns:
      The measures, and a sharper shape where this one is not sharp enough: they are then not all there.

    Raises:
      Unsuitable: a law has no layers, or they would have to be too sharp.
    """
    found: list[tuple[Measure, Cumulants]] = []
    guess: float | None = None
    for measure, high in _measures(components, layers.cuts(epsilon, shape.top * epsilon), shape):
        at = _saddle(measure, epsilon, log_delta, guess, shape.power)
        found.append((measure, at))
        guess = at.order
        if _negligible(at, epsilon, log_delta):
            continue
        if at.order + _ABOVE > shape.power:  # the orders fall from layer to layer: the first decides
            grown = 2 * shape.power if guess > 0.99 * shape.power else shape.power
            power = max(math.ceil(guess + _ABOVE), grown)
            if power > _MOST_POWER:
                raise Unsuitable("the layers would have to be too sharp")
            return found, dataclasses.replace(shape, power=power)
        if measure.beyond(at, _BEYOND) > shape.overshoot:
            if high == math.inf and shape.top < _MOST_TOP:
                return found, dataclasses.replace(shape, top=2.0 * shape.top)
            if high < math.inf and shape.rise < _MOST_RISE:
                return found, dataclasses.replace(shape, rise=2 * shape.rise)
    return found, None


def _measures(
    components: Components, cuts: Sequence[float], shape: _Shape
) -> Iterator[tuple[Measure, float]]:
    """The measure below the first cut, and one a layer, with its upper cut, each made when asked for."""

    def between(low: float, high: float) -> list[tuple[Moments, int]]:
        found = [(law.layer(low, high, power=shape.power, rise=shape.rise), n) for law, n in components]
        parts = [(measure, n) for measure, n in found if measure is not None]
        if len(parts) < len(found):
            raise Unsuitable("a law has no layers")
        return parts

    below = between(-math.inf, cuts[0])
    yield Composition(below, cut=cuts[0]), cuts[0]
    for low, high in zip(cuts, [*cuts[1:], math.inf], strict=True):
        yield Layer(below, [measure for measure, _ in between(low, high)], low=low, high=high), high
        if high < math.inf:
            below = between(-math.inf, high)


def _negligible(at: Cumulants, epsilon: float, log_delta: float | None) -> bool:
    """Whether Chernoff's bound is far below delta."""
    bound = at.log_moment - at.order * epsilon + saddle.log_payoff_bound(at.order)
    return log_delta is not None and bound - log_delta < _NEGLIGIBLE


def _saddle(
    measure: Measure, epsilon: float, log_delta: float | None, guess: float | None, power: int
) -> Cumulants:
    """The saddle point of `measure` that belongs to `epsilon`, or the largest order that `power` allows."""
    limit = measure.order_limit
    at = saddle.find_order(
        measure.cumulants,
        limit,
        lambda at: (at.epsilon - epsilon) * at.order,
        most=min(0.9 * limit, float(power)),
        enough=lambda at: _negligible(at, epsilon, log_delta),
        guess=guess,
        tolerance=0.5,
    )
    if not math.isfinite(at.log_moment):
        raise Unsuitable("a layer is empty")
    return at
