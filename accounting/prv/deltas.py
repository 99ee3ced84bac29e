"""Which engine answers: delta(epsilon) of a composition in one direction."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable, Sequence

from exactdp.accounting.interval import Interval
from exactdp.accounting.pairs.base import Unsuitable
from exactdp.accounting.prv import closed, contour, lattice, measures, nested, saddle, split
from exactdp.accounting.prv.routes import LOG_TOLERANCE, Engine, smoothing
from exactdp.accounting.prv.saddle import Components, Curve

_RELATIVE = 1e-7  # accuracy of delta aimed at
_ENOUGH, _ENOUGH_SUMMED = 1e-5, 1e-2  # likewise, of a lattice; of two steps, where nothing else does better
_LATTICE_FIRST = 1e-6  # tolerance from which on a lattice is tried before contours by layers
_NOTHING = 1e-300  # a delta below this is not refined
_FAR, _FARTHEST = -100.0, -700.0  # logs of the delta that the tails are laid for, at first and at most
_SUM_SIZES, _LATTICE_SIZES, _LAYERED_SIZES = (12, 15, 18), (13, 17, 20), (12, 14, 16)


def delta_curve_of(
    components: Components,
    points: Sequence[float],
    engine: Engine,
    *,
    tolerance: float | None = None,
    floors: Sequence[float],
) -> list[Interval]:
    """delta at each of `points` in one direction; where it is certainly below the floor, only a bound.

    Args:
      components: laws of one direction with their counts.
      points: epsilons, >= 0.
      engine: which may answer.
      tolerance: relative width aimed at, or None for an engine's own.
      floors: of each point, a delta of the other direction.
    """
    if not components:
        return [Interval(0.0, 0.0, "closed form") for _ in points]
    form = closed.find(components) if engine in ("auto", "closed form") else None
    if form is not None:
        return [Interval(*form.ends(e), "closed form") for e in points]
    if engine == "closed form":
        raise ArithmeticError("this composition has no closed form")
    infinite = -math.expm1(sum(n * math.log1p(-law.infinity_mass) for law, n in components))
    top = sum(n * law.support[1] for law, n in components)
    results: dict[float, Interval] = {}
    curve: Curve | None = None
    name = ""
    bounds = _chernoff_bounds(components) if any(floor > 0.0 for floor in floors) else [(0.0, 0.0)]
    floor_at = dict(zip(points, floors, strict=True))
    ordered = sorted(set(points))
    for index, e in enumerate(ordered):
        if e >= top - 1e-12 * (1.0 + abs(top)):
            # delta(e) <= 1 - e^{e - top} beside the infinite losses; the losses are rounded.
            rest = max(top + 1e-14 * (1.0 + abs(top)) - e, 0.0)
            results[e] = Interval(infinite * (1 - 1e-12), infinite * (1 + 1e-12) + rest, "closed form")
            continue
        if curve is not None:
            enough = tolerance or (_RELATIVE if name == "contour" else _ENOUGH)
            found = _ends(curve, e, name, tolerance=enough)
            if found is not None:
                results[e] = found
                continue
        bound = _exp(min(log_bound - order * e for order, log_bound in bounds), upper=True)
        if infinite + bound < floor_at[e]:
            results[e] = Interval(0.0, infinite + bound, "contour")
            continue
        curve, results[e] = _at(components, e, engine, tolerance, ordered[index:])
        name = results[e].engine
    return [results[e] for e in points]


def _chernoff_bounds(components: Components) -> list[tuple[float, float]]:
    """A few orders s, each with log of a bound on the finite part of delta(e) e^{s e}."""
    bounds, limit = [(0.0, 0.0)], saddle.order_limit(components)
    for order in (1.0, 4.0, 16.0, 64.0, 256.0):
        if order >= 0.9 * limit:
            break
        try:
            at = measures.cumulants(components, order)
        except Unsuitable:
            break
        bounds.append((order, at.log_moment + at.error + saddle.log_payoff_bound(order)))
    return bounds


def _ends(curve: Curve, e: float, name: str, *, tolerance: float) -> Interval | None:
    """delta(e) from `curve`, or None where it is not accurate to `tolerance`, relative."""
    low, high = (curve.log_delta(e, upper=side)[0] for side in (False, True))
    if not high - low <= tolerance:
        return None
    return Interval(_exp(low, upper=False), min(_exp(high, upper=True), 1.0), name)


def _exp(x: float, *, upper: bool) -> float:
    if x == -math.inf:
        return 0.0
    value = math.exp(x) * (1.0 + (4e-16 if upper else -4e-16) * (1.0 + abs(x)))
    return math.nextafter(value, math.inf) if upper else max(math.nextafter(value, 0.0), 0.0)


def _at(
    components: Components, e: float, engine: Engine, tolerance: float | None, points: Sequence[float]
) -> tuple[Curve | None, Interval]:
    """delta(e), and the curve that gave it if it may serve at the other `points` too."""
    best, enough = Interval(0.0, 1.0, "lattice"), tolerance or _ENOUGH
    curve: Curve | None = None
    if engine in ("auto", "lattice") and sum(n for _, n in components) == 2:

        def summed(log_delta: float, size: int) -> Curve:
            return nested.Nested(components, epsilon=e, log_delta=log_delta, cells=2**size)

        curve, best = _refined(summed, e, best, _SUM_SIZES, enough)
        if best.width <= max(_ENOUGH_SUMMED, enough) * best.upper or best.upper < _NOTHING:
            return curve, best
    if engine in ("auto", "contour"):
        with contextlib.suppress(Unsuitable):
            return _by_contour(components, e, points)
    lattice_first = engine == "auto" and tolerance is not None and tolerance >= _LATTICE_FIRST
    if lattice_first:
        curve, best = _by_tilted_lattice(components, e, best, enough)
        if best.width <= enough * best.upper:
            return curve, best
    if engine in ("auto", "contour"):
        with contextlib.suppress(Unsuitable):
            by_layers = split.split(components, epsilon=e, log_delta=None, log_tolerance=LOG_TOLERANCE)
            found = _ends(by_layers, e, "contour", tolerance=_ENOUGH)
            if found is not None:
                return by_layers, found
        if engine == "contour":
            raise Unsuitable("no contour certifies this query")
    if not lattice_first:
        curve, best = _by_tilted_lattice(components, e, best, enough)

    def layered(log_delta: float, size: int) -> Curve:
        return lattice.Plan(components, log_delta=log_delta).layered(
            epsilon=e, log_delta=log_delta, log2_size=size
        )

    if best.width > enough * best.upper:
        curve, best = _refined(layered, e, best, _LAYERED_SIZES, enough)
    return curve, best


def _by_tilted_lattice(
    components: Components, e: float, best: Interval, enough: float
) -> tuple[Curve | None, Interval]:
    at = lattice.Plan(components, log_delta=_FAR).saddle(epsilon=e)
    plan = lattice.Plan(components, log_delta=min(at.log_delta, 0.0))

    def tilted(_: float, size: int) -> Curve:
        return plan.curve(order=at.order, epsilon=e, log_delta=at.log_delta, log2_size=size)

    return _refined(tilted, e, best, _LATTICE_SIZES, enough, again=0)


def _by_contour(components: Components, e: float, points: Sequence[float]) -> tuple[Curve, Interval]:
    at = contour.find(components, epsilon=e)
    try:
        curve = contour.whole(components, at, epsilon=e, log_tolerance=LOG_TOLERANCE)
    except Unsuitable:
        eta = smoothing(1e-7 / (at.order + 1.0), at.order)
        curve = contour.whole(components, at, epsilon=e, log_tolerance=LOG_TOLERANCE, eta=eta)
    curve.prepare(points)
    found = _ends(curve, e, "contour", tolerance=1e-3)
    if found is None:
        raise Unsuitable("the contour is not accurate enough")
    return curve, found


def _refined(
    curve_of: Callable[[float, int], Curve],
    e: float,
    best: Interval,
    sizes: Sequence[int],
    enough: float,
    *,
    again: int = 3,
) -> tuple[Curve | None, Interval]:
    """delta(e) from ever finer curves, each laid for the delta found so far, and the last of them."""
    curve: Curve | None = None
    log_delta, high = _FAR, 0.0
    for size in sizes:
        for _ in range(1 + again):
            try:
                curve = curve_of(log_delta, size)
            except Unsuitable:
                return curve, best
            low, high = (curve.log_delta(e, upper=side)[0] for side in (False, True))
            best = best.intersect(
                Interval(_exp(low, upper=False), min(_exp(high, upper=True), 1.0), "lattice")
            )
            if high > log_delta or log_delta <= _FARTHEST:
                break
            log_delta = max(2.0 * log_delta, _FARTHEST)  # the tails were laid for a larger delta
        log_delta = min(max(high - 1.0, _FARTHEST), -1.0)
        if best.width <= enough * best.upper:
            break
    return curve, best
