"""Which engine answers: epsilon(delta) of a composition in one direction."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable
from typing import Literal

from exactdp.accounting.interval import Interval
from exactdp.accounting.pairs.base import Unsuitable
from exactdp.accounting.prv import closed, contour, lattice, measures, nested, saddle, split
from exactdp.accounting.prv.saddle import Components, Curve

Engine = Literal["auto", "closed form", "contour", "lattice"]

LOG_TOLERANCE = math.log(1e-11)
"""Of the relative error of delta aimed at."""

_AIM = 1e-6  # the default width over max(epsilon, 0.01)
_ROUGHEST = math.log(1e-2)
"""The largest one, where a wide interval is asked for."""

_LAYERED = math.log(1e-9)  # likewise, by layers
_SHARE = 0.05  # of the tolerance, that the contour's errors may take
_LEAST_TOLERANCE = math.log(1e-19)  # of the contour's scale: rounding is far above
_FIRST, _LAST = 13, 21  # log2 of the lattice sizes tried
_LAST_SKETCH = 17  # likewise, where a first idea is wanted
_LOOSE, _FIRST_LOOSE = 1e-4, 11  # a tolerance for which a smaller size may do, and that size
_FIRST_LAYERED, _LAST_LAYERED = 12, 18  # likewise, for a lattice by layers
_FIRST_NESTED, _LAST_NESTED = 11, 18  # likewise, for two steps summed directly
_FEW = 10  # steps up to which a lattice is quick; below, one by layers aims at a hundredth of the accuracy
_TILTED = 1e-3  # width over epsilon beyond which one tilt does not serve
_NEARLY = 1e-3  # likewise, up to which sharper layers are worth while at once


def smoothing(tolerance: float, order: float) -> float:
    """The eta whose smoothing costs about a third of `tolerance` in epsilon."""
    return math.sqrt(0.3 * tolerance / (order + 1.0))


def epsilon_of(
    components: Components,
    delta: float,
    log_delta: float,
    tolerance: float | None,
    engine: Engine,
    floor: float = -math.inf,
) -> Interval:
    """epsilon(delta) in one direction; where it is certainly below `floor`, without refinement."""
    if tolerance is not None:
        # |d delta / d epsilon| <= 1: no relative error of delta that is aimed at gives a narrower interval.
        # It has two ends, each with several errors, and rounding is not the same on all processors.
        tolerance = max(tolerance, 8.0 * math.exp(LOG_TOLERANCE) * delta)
    if engine in ("auto", "closed form"):
        form = closed.find(components)
        if form is not None:
            return form.invert(delta)
        if engine == "closed form":
            raise ArithmeticError("this composition has no closed form")
    cap = _cap(components, delta)
    if cap <= floor:  # the other direction is certainly the worse
        return Interval(0.0, cap, "closed form")
    steps = sum(n for _, n in components)
    direct: Interval | None = None
    if engine in ("auto", "lattice") and steps == 2:
        with contextlib.suppress(Unsuitable):
            direct = _by_sum(components, delta, log_delta, tolerance, cap, floor)
        if direct is not None and (
            direct.width <= (tolerance or 10.0 * _wanted(direct, None)) or direct.upper <= floor
        ):
            return direct
    found = _by_transform(components, log_delta, tolerance, engine, floor)
    return found if direct is None else found.intersect(direct)


def _by_sum(
    components: Components,
    delta: float,
    log_delta: float,
    tolerance: float | None,
    cap: float,
    floor: float,
) -> Interval | None:
    """Two steps, one's delta summed over the other's losses, on ever finer grids."""
    single = max(closed.one_step(law).invert(delta).upper for law, _ in components)
    start, size, best = min(single, cap), _FIRST_NESTED, None
    while size <= _LAST_NESTED:
        curve = nested.Nested(components, epsilon=start, log_delta=log_delta, cells=2**size)
        before = best.width if best is not None else math.inf
        best = _narrowed(best, _invert(curve, log_delta, start, "lattice", tolerance), cap)
        if best.width <= _wanted(best, tolerance) or best.upper <= floor or best.width > 0.7 * before:
            break
        grow = 0.5 * math.log2(best.width / _wanted(best, tolerance)) + 0.4
        start, size = best.upper, size + min(max(1, math.ceil(grow)), 4)
    return best


def _by_transform(
    components: Components, log_delta: float, tolerance: float | None, engine: Engine, floor: float
) -> Interval:
    few = sum(n for _, n in components) <= _FEW
    quick: Interval | None = None
    if engine == "auto" and few and tolerance is not None and tolerance >= _LOOSE:
        # A few steps' characteristic function hardly falls: a coarse lattice is done sooner than the contour.
        with contextlib.suppress(Unsuitable):
            quick = _by_lattice(components, log_delta, tolerance, floor)
        if quick is not None and (quick.width <= tolerance or quick.upper <= floor):
            return quick
    found: Interval | None = None
    if engine in ("auto", "contour"):
        with contextlib.suppress(Unsuitable):
            found = _by_contour(components, log_delta, tolerance, floor)
        if found is not None and (found.width <= _wanted(found, tolerance) or found.upper <= floor):
            return found
    if engine == "auto" and not few:
        # It tells whether one tilt serves, and where to lay the layers.
        with contextlib.suppress(Unsuitable):
            sketch = _by_lattice(components, log_delta, tolerance, floor, last=_LAST_SKETCH, layered=False)
            found = sketch if found is None else found.intersect(sketch)
        if found is not None and (found.width <= _wanted(found, tolerance) or found.upper <= floor):
            return found
    if engine in ("auto", "contour"):
        with contextlib.suppress(Unsuitable):
            found = _by_split(components, log_delta, tolerance, found, sharp=False)
            if _wanted(found, tolerance) < found.width < _NEARLY * max(found.upper, 0.01):
                found = _by_split(components, log_delta, tolerance, found, sharp=True)
        if found is not None:
            enough = 100.0 * _wanted(found, None) if few else _wanted(found, None)
            if engine == "contour" or found.width <= (tolerance or enough):
                return found
        if engine == "contour":
            raise Unsuitable("no contour certifies this query")
    try:
        other = quick or _by_lattice(components, log_delta, tolerance, floor)
        found = other if found is None else found.intersect(other)
    except Unsuitable:
        if found is None:
            raise
    if engine == "auto" and not few and found.width > _wanted(found, tolerance) and found.upper > floor:
        with contextlib.suppress(Unsuitable):
            found = _by_split(components, log_delta, tolerance, found, sharp=True)
    return found


def _cap(components: Components, delta: float) -> float:
    """What epsilon(delta) never exceeds: delta(eps) <= 1 - e^{eps - top} where no loss is infinite."""
    top = sum(n * law.support[1] for law, n in components)
    if not math.isfinite(top) or any(law.infinity_mass for law, _ in components):
        return math.inf
    return max(0.0, top - delta + 1e-14 * (1.0 + abs(top)))


def _invert(
    curve: Curve, log_delta: float, start: float, name: str, tolerance: float | None = None
) -> Interval:
    precision = 0.01 * (tolerance or 0.0)
    upper = saddle.invert(curve, log_delta, start=start, upper=True, precision=precision)
    lower = saddle.invert(curve, log_delta, start=min(start, upper), upper=False, precision=precision)
    return Interval(min(lower, upper), upper, name)


def _by_contour(components: Components, log_delta: float, tolerance: float | None, floor: float) -> Interval:
    best: Interval | None = None
    bounded = math.isfinite(saddle.order_limit(components))
    for share in (0.8, 0.95, 0.999) if bounded else (1.0,):
        at = contour.find(
            components,
            log_delta=log_delta,
            share=share,
            enough=lambda at: _chernoff(components, at, log_delta) <= floor,
        )
        most = _chernoff(components, at, log_delta)
        if most <= floor:  # the other direction is certainly the worse: no contour is needed
            return Interval(0.0, most, "contour")
        # A relative error of delta moves epsilon by about that over the order.
        first = best.upper if best is not None else contour.start(at, log_delta)
        rough = math.log(_SHARE * (tolerance or _AIM * max(first, 0.01)) * at.order)
        rough = min(max(LOG_TOLERANCE, rough), _ROUGHEST)
        # With no tolerance the rough one is for what is out of reach of the fine one.
        for log_accuracy in (LOG_TOLERANCE, rough) if tolerance is None else (rough, LOG_TOLERANCE):
            start = best.upper if best is not None else first
            # What the contour's scale exceeds delta by has to come out of its errors.
            loss = max(0.0, at.log_moment - at.order * start + at.log_size - log_delta)
            try:
                found = _contour_at(components, at, start, log_delta, tolerance, log_accuracy - loss)
            except Unsuitable:
                if tolerance is None:
                    continue
                break
            best = found if best is None else best.intersect(found)
            if best.width <= (tolerance or math.inf if not bounded else _wanted(best, tolerance)):
                return best
            if tolerance is None:
                break
        if best is not None and not bounded:
            return best
    if best is None:
        raise Unsuitable("no order gives a contour")
    return best


def _by_split(
    components: Components, log_delta: float, tolerance: float | None, known: Interval | None, *, sharp: bool
) -> Interval:
    """By contours of the layers of the largest loss, laid about ever better guesses of epsilon."""
    if known is not None:
        start = known.upper  # too far above costs little: all layers are then negligible
    else:
        start = contour.start(contour.find(components, log_delta=log_delta, share=0.8), log_delta)
    log_tolerance = _LAYERED if tolerance is None else math.log(_SHARE * tolerance)
    log_tolerance = min(max(log_tolerance, LOG_TOLERANCE), _ROUGHEST)
    best = known
    for _ in range(8):
        laid = start
        try:
            curve = split.split(
                components, epsilon=start, log_delta=log_delta, log_tolerance=log_tolerance, sharp=sharp
            )
        except Unsuitable:
            if best is None:
                raise
            start = 0.5 * (start + best.upper)  # too far below
        else:
            best = _narrowed(best, _invert(curve, log_delta, start, "contour", tolerance), math.inf)
            if best.width <= _wanted(best, tolerance):
                break
            start = best.upper if best.upper < 1.5 * best.lower else max(best.lower, 0.75 * best.upper)
        if abs(start - laid) < 0.01 * laid:
            break
    if best is None:
        raise Unsuitable("no layers give a contour")
    return best


def _chernoff(components: Components, at: measures.Cumulants, log_delta: float) -> float:
    """An upper bound of epsilon(delta) from the moment at one order, to rounding."""
    if any(law.infinity_mass for law, _ in components):
        return math.inf
    found = (at.log_moment + at.error + saddle.log_payoff_bound(at.order) - log_delta) / at.order
    return max(found + 1e-12 * (1.0 + abs(found)), 0.0)


def _contour_at(
    components: Components,
    at: measures.Cumulants,
    start: float,
    log_delta: float,
    tolerance: float | None,
    log_tolerance: float,
) -> Interval:
    """epsilon(delta) by the contour through one order, smoothed where its decay is not known."""
    log_tolerance = max(log_tolerance, _LEAST_TOLERANCE)
    try:
        curve = contour.whole(components, at, epsilon=start, log_tolerance=log_tolerance)
        return _invert(curve, log_delta, start, "contour", tolerance)
    except Unsuitable:
        pass
    # Nothing is proved about the integrand's decay, or not enough: smooth it, as little as serves.
    wanted = tolerance or _AIM * max(start, 0.01)
    eta = smoothing(wanted, at.order)
    found = None
    for _ in range(3):
        curve = contour.whole(components, at, epsilon=start, log_tolerance=log_tolerance, eta=eta)
        found = _invert(curve, log_delta, start, "contour", tolerance)
        wanted = _wanted(found, tolerance)
        if found.width <= wanted:
            break
        eta, start = 0.8 * eta * math.sqrt(wanted / found.width), found.upper
    if found is None:
        raise Unsuitable("no smoothing gives a contour")
    return found


def _by_lattice(
    components: Components,
    log_delta: float,
    tolerance: float | None,
    floor: float,
    *,
    last: int = _LAST,
    layered: bool = True,
) -> Interval:
    """By one tilt, on lattices of up to 2^last points, and where that does not serve by layers."""
    plan = lattice.Plan(components, log_delta=log_delta)
    at = plan.saddle(log_delta=log_delta)
    cap = _cap(components, math.exp(log_delta))
    first = _FIRST if tolerance is None or tolerance < _LOOSE else _FIRST_LOOSE
    start, size, best = min(at.epsilon, cap), first, None

    for attempt in range(5):
        before = best.width if best is not None else math.inf
        try:
            curve = plan.curve(order=at.order, epsilon=start, log_delta=log_delta, log2_size=size)
            best = _narrowed(best, _invert(curve, log_delta, start, "lattice", tolerance), cap)
        except Unsuitable:
            if best is None:
                if size == last:
                    break
                size = min(last, size + 4)
                continue
        if best.width <= _wanted(best, tolerance) or best.upper <= floor:
            return best
        if attempt == 0:
            # The saddle-point estimate that gave the order may be far off: take the order of epsilon itself.
            again = plan.saddle(epsilon=best.upper)
            if abs(again.order / at.order - 1.0) > 0.2:
                at, start = again, min(best.upper, cap)
                continue
        if size == last or (size >= _FIRST and best.width > _TILTED * max(best.upper, 0.01)):
            break
        if size > first and best.width > 0.7 * before:
            break
        grow = 0.5 * math.log2(best.width / _wanted(best, tolerance)) + 0.4
        size = min(last, size + max(1, math.ceil(grow)))
    few = sum(n for _, n in components) < _FEW
    if layered and (best is None or best.width > _TILTED * max(best.upper, 0.01) or not few):
        coarse = 100.0 if few else 1.0
        best = _by_layers(
            plan, log_delta, best, start, cap, lambda i: tolerance or coarse * _wanted(i, None), floor
        )
    if best is None:
        raise Unsuitable(
            "neither engine certifies this query: delta is too far out, or the losses too large or too "
            "uneven, for float64; ask for a larger delta, or bound the composition by a simpler one"
        )
    return best


def _wanted(found: Interval, tolerance: float | None) -> float:
    return tolerance or _AIM * max(found.upper, 0.01)


def _narrowed(best: Interval | None, found: Interval, cap: float) -> Interval:
    found = Interval(min(found.lower, cap), min(found.upper, cap), found.engine)
    return found if best is None else best.intersect(found)


def _by_layers(
    plan: lattice.Plan,
    log_delta: float,
    best: Interval | None,
    start: float,
    cap: float,
    wanted: Callable[[Interval], float],
    floor: float,
) -> Interval | None:
    """Where no one tilt serves: by layers of the largest loss, ever finer."""
    size, start = _FIRST_LAYERED, start if best is None else min(max(start, best.lower), best.upper)
    for _ in range(8):
        try:
            curve = plan.layered(epsilon=start, log_delta=log_delta, log2_size=size)
            found = _invert(curve, log_delta, start, "lattice")
        except Unsuitable:
            return best
        best = _narrowed(best, found, cap)
        if best.width <= wanted(best) or best.upper <= floor:
            return best
        laid, start = start, best.upper if best.upper < 1.5 * best.lower else 1.02 * best.lower
        if best.width > 0.1 * best.upper and abs(start - laid) > 0.2 * laid:
            continue  # the layers were laid about another epsilon
        if size == _LAST_LAYERED:
            return best
        more = math.ceil(0.5 * math.log2(best.width / wanted(best)) + 0.4)
        size = min(size + max(more, 1), _LAST_LAYERED)
    return best
