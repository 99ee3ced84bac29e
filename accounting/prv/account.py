"""The router: (epsilon, delta) of any composition as a certified interval."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Literal, Protocol

from exactdp.accounting import validate
from exactdp.accounting.interval import Interval
from exactdp.accounting.laws.law import Law
from exactdp.accounting.pairs.base import Unsuitable
from exactdp.accounting.prv import closed, contour, lattice, saddle
from exactdp.accounting.prv.saddle import Components, Curve

Engine = Literal["auto", "closed form", "contour", "lattice"]
Direction = Literal["worst", "remove", "add"]

_LOG_TOLERANCE = math.log(1e-11)  # relative error of delta aimed at
_LEAST_TOLERANCE = math.log(1e-19)  # of the contour's scale: rounding is far above
_FIRST, _LAST = 13, 21  # log2 of the lattice sizes tried


class Mechanism(Protocol):
    """A pair, or a pair behind sampling: anything that knows its loss in both directions."""

    def directions(self) -> tuple[Law, Law] | None:
        """Laws in the remove and the add direction; None for a mechanism that releases nothing."""
        ...


Composition = Iterable[tuple[Mechanism, int]]
"""Mechanisms with the number of times each is run."""


def _components(composition: Composition, direction: Direction) -> list[Components]:
    """Laws with counts for each direction wanted; one entry where both directions are the same."""
    validate.one_of("direction", direction, ("worst", "remove", "add"))
    counts: dict[Mechanism, int] = {}
    entries = list(composition)
    if not entries:
        raise ValueError("composition must hold at least one (mechanism, count), got none")
    for entry in entries:
        try:
            mechanism, count = entry
        except (TypeError, ValueError):
            raise ValueError(f"composition must hold (mechanism, count) tuples, got {entry!r}") from None
        if not hasattr(mechanism, "directions"):
            raise ValueError(f"composition must hold pairs or sampled pairs, got {mechanism!r}")
        counts[mechanism] = counts.get(mechanism, 0) + validate.count("num_steps", count)
    for name in ("adjacency", "coins"):
        kinds = sorted({str(getattr(m, name)) for m in counts if getattr(m, name, None) is not None})
        if len(kinds) > 1:
            raise ValueError(f"composition must be in one threat model, got {name} {' and '.join(kinds)}")
    laws = [(m.directions(), n) for m, n in counts.items() if n > 0]
    known = [(both, n) for both, n in laws if both is not None and any(_tells(law) for law in both)]
    sides = [[(both[i], n) for both, n in known] for i in (0, 1)]
    if direction != "worst":
        return [sides[0 if direction == "remove" else 1]]
    if all(both[0] is both[1] for both, _ in known):
        return [sides[0]]
    return list(sides)


def _tells(law: Law) -> bool:
    """Whether the loss is ever other than 0."""
    return law.support != (0.0, 0.0) or law.infinity_mass > 0.0


def epsilon(
    composition: Composition,
    *,
    delta: float,
    tolerance: float | None = None,
    engine: Engine = "auto",
    direction: Direction = "worst",
) -> Interval:
    """Smallest epsilon >= 0 at which the composition is (epsilon, delta)-DP, as a certified interval.

    Both directions are composed apart, and the worse is taken at the end.

    Args:
      composition: (mechanism, count) tuples; a mechanism is a pair or a sampled pair.
      delta: in (0, 1), down to 1e-300.
      tolerance: width aimed at; the default is 1e-6 max(epsilon, 0.01). A wider interval may come back
        where an engine cannot reach it; it contains the truth all the same.
      engine: which engine answers; `"auto"` lets the router choose.
      direction: `"worst"` of both, or one alone.

    Returns:
      The interval; `inf` where some loss is infinite with a probability above `delta`.

    Raises:
      ValueError: bad input.
      ArithmeticError: the chosen `engine` cannot certify this query.
    """
    delta = validate.open_probability("delta", delta)
    _check(engine, tolerance)
    if delta < 1e-300:
        raise ValueError(f"delta must be >= 1e-300, got {delta}")
    log_delta = math.log(delta)

    def answer(components: Components, floor: float) -> Interval:
        free = sum(n * math.log1p(-law.infinity_mass) for law, n in components)
        infinite = -math.expm1(free)
        if infinite * (1.0 - 1e-12) > delta:
            return Interval(math.inf, math.inf, "closed form")
        if infinite * (1.0 + 1e-12) >= delta:
            return Interval(_least(components, log_delta, engine), math.inf, "closed form")
        return _epsilon(components, delta, log_delta, tolerance, engine, floor)

    worst = Interval(0.0, 0.0, "closed form")
    for number, components in enumerate(_components(composition, direction)):
        if worst.lower == math.inf:
            break
        found = answer(components, worst.lower) if components else Interval(0.0, 0.0, "closed form")
        worst = found if number == 0 else worst.maximum(found)
    # Outwards by a few units: losses and counts were multiplied in float64.
    return Interval(worst.lower * (1.0 - 8e-16), worst.upper * (1.0 + 8e-16), worst.engine)


def _least(components: Components, log_delta: float, engine: Engine) -> float:
    """A lower end where delta meets the infinite mass to rounding."""
    return _epsilon(components, 2.0 * math.exp(log_delta), log_delta + math.log(2.0), None, engine).lower


def delta(
    composition: Composition,
    *,
    epsilon: float,
    engine: Engine = "auto",
    direction: Direction = "worst",
) -> Interval:
    """Smallest delta at which the composition is (epsilon, delta)-DP, as a certified interval.

    Args:
      composition: (mechanism, count) tuples.
      epsilon: >= 0, finite.
      engine: which engine answers; `"auto"` lets the router choose.
      direction: `"worst"` of both, or one alone.

    Raises:
      ValueError: bad input.
      ArithmeticError: the chosen `engine` cannot certify this query.
    """
    return delta_curve(composition, epsilons=[epsilon], engine=engine, direction=direction)[0]


def delta_curve(
    composition: Composition,
    *,
    epsilons: Sequence[float],
    engine: Engine = "auto",
    direction: Direction = "worst",
) -> list[Interval]:
    """`delta` at each of `epsilons`, one contour serving as many of them as it is accurate for.

    Raises:
      ValueError: bad input.
      ArithmeticError: the chosen `engine` cannot certify this query.
    """
    points = [validate.non_negative("epsilon", e) for e in epsilons]
    _check(engine, None)
    worst = [Interval(0.0, 0.0, "closed form") for _ in points]
    for components in _components(composition, direction):
        found = _delta_curve(components, points, engine, floors=[w.lower for w in worst])
        worst = [w if w.lower >= f.upper else w.maximum(f) for w, f in zip(worst, found, strict=True)]
    return worst


def _check(engine: str, tolerance: float | None) -> None:
    validate.one_of("engine", engine, ("auto", "closed form", "contour", "lattice"))
    if tolerance is not None:
        validate.positive("tolerance", tolerance)


def _smoothing(tolerance: float, order: float) -> float:
    """eta whose smoothing costs about a third of `tolerance` in epsilon."""
    return math.sqrt(0.3 * tolerance / (order + 1.0))


def _epsilon(
    components: Components,
    delta: float,
    log_delta: float,
    tolerance: float | None,
    engine: Engine,
    floor: float = -math.inf,
) -> Interval:
    """epsilon(delta) in one direction; where it is certainly below `floor`, without refinement."""
    if engine in ("auto", "closed form"):
        form = closed.find(components)
        if form is not None:
            return Interval(form.invert(delta, upper=False), form.invert(delta, upper=True), "closed form")
        if engine == "closed form":
            raise ArithmeticError("this composition has no closed form")
    found: Interval | None = None
    if engine in ("auto", "contour"):
        try:
            found = _by_contour(components, log_delta, tolerance)
        except Unsuitable:
            if engine == "contour":
                raise
        else:
            enough = tolerance or 1e-4 * max(found.upper, 0.01)
            if engine == "contour" or found.width <= enough or found.upper <= floor:
                return found
    try:
        other = _by_lattice(components, log_delta, tolerance, floor)
    except Unsuitable:
        if found is None:
            raise
        return found
    return other if found is None else found.intersect(other)


def _invert(curve: Curve, log_delta: float, start: float, name: str) -> Interval:
    upper = saddle.invert(curve, log_delta, start=start, upper=True)
    lower = saddle.invert(curve, log_delta, start=min(start, upper), upper=False)
    return Interval(min(lower, upper), upper, name)


def _by_contour(components: Components, log_delta: float, tolerance: float | None) -> Interval:
    best: Interval | None = None
    bounded = math.isfinite(saddle.order_limit(components))
    for share in (0.8, 0.95, 0.999) if bounded else (1.0,):
        at = contour.find(components, log_delta=log_delta, share=share)
        for _ in range(2):
            start = best.upper if best is not None else contour.start(at, log_delta)
            # What the contour's scale exceeds delta by has to come out of its errors.
            loss = max(0.0, at.log_moment - at.order * start + at.log_size - log_delta)
            try:
                found = _contour_at(components, at, start, log_delta, tolerance, _LOG_TOLERANCE - loss)
            except Unsuitable:
                break
            best = found if best is None else best.intersect(found)
            if not bounded or best.width <= (tolerance or 1e-6 * max(best.upper, 0.01)):
                return best
    if best is None:
        raise Unsuitable("no order gives a contour")
    return best


def _contour_at(
    components: Components,
    at: contour.Cumulants,
    start: float,
    log_delta: float,
    tolerance: float | None,
    log_tolerance: float,
) -> Interval:
    """epsilon(delta) by the contour through one order, smoothed where its decay is not known."""
    log_tolerance = max(log_tolerance, _LEAST_TOLERANCE)
    try:
        curve = contour.Contour(components, at, epsilon=start, log_tolerance=log_tolerance)
        return _invert(curve, log_delta, start, "contour")
    except Unsuitable:
        pass
    # Nothing is proved about the integrand's decay, or not enough: smooth it, as little as serves.
    wanted = tolerance or 1e-6 * max(start, 0.01)
    eta = _smoothing(wanted, at.order)
    found = None
    for _ in range(3):
        curve = contour.Contour(components, at, epsilon=start, log_tolerance=log_tolerance, eta=eta)
        found = _invert(curve, log_delta, start, "contour")
        wanted = tolerance or 1e-6 * max(found.upper, 0.01)
        if found.width <= wanted:
            break
        eta, start = 0.8 * eta * math.sqrt(wanted / found.width), found.upper
    if found is None:
        raise Unsuitable("no smoothing gives a contour")
    return found


def _by_lattice(components: Components, log_delta: float, tolerance: float | None, floor: float) -> Interval:
    plan = lattice.Plan(components, log_delta=log_delta)
    at = plan.saddle(log_delta=log_delta)
    start, size, best = at.epsilon, _FIRST, None
    top = sum(n * law.support[1] for law, n in components)
    # delta(eps) <= 1 - e^{eps - top} whatever the law, where no loss is infinite.
    finite = math.isfinite(top) and not any(law.infinity_mass for law, _ in components)
    cap = max(0.0, top - math.exp(log_delta) + 1e-14 * (1.0 + abs(top))) if finite else math.inf
    for attempt in range(5):
        start = min(start, cap)
        curve = plan.curve(order=at.order, epsilon=start, log_delta=log_delta, log2_size=size)
        before = best.width if best is not None else math.inf
        try:
            found = _invert(curve, log_delta, start, "lattice")
        except Unsuitable:
            found = None
        if found is not None:
            found = Interval(min(found.lower, cap), min(found.upper, cap), found.engine)
            best = found if best is None else best.intersect(found)
        wanted = tolerance or 1e-6 * max(best.upper if best else 0.01, 0.01)
        if best is not None and (best.width <= wanted or best.upper <= floor):
            break
        if attempt == 0 and best is not None:
            # The saddle-point estimate that gave the order may be far off: take the order of epsilon itself.
            again = plan.saddle(epsilon=best.upper)
            if abs(again.order / at.order - 1.0) > 0.2:
                at, start = again, best.upper
                continue
        if size == _LAST or (best is not None and size > _FIRST and best.width > 0.7 * before):
            break
        grow = 0.5 * math.log2(best.width / wanted) + 0.4 if best is not None else 4.0
        size = min(_LAST, size + max(1, math.ceil(grow)))
    if best is None:
        raise Unsuitable(
            "neither engine certifies this query: delta is too far out, or the losses too large or too "
            "uneven, for float64; ask for a larger delta, or bound the composition by a simpler one"
        )
    return best


def _delta_curve(
    components: Components, points: Sequence[float], engine: Engine, *, floors: Sequence[float]
) -> list[Interval]:
    """delta at each of `points` in one direction; where it is certainly below the floor, only a bound."""
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
    floor_at = dict(zip(points, floors, strict=True))
    for e in sorted(set(points)):
        if e >= top:
            results[e] = Interval(infinite * (1 - 1e-12), infinite * (1 + 1e-12), "closed form")
            continue
        if curve is not None:
            found = _ends(curve, e, "contour")
            if found is not None:
                results[e] = found
                continue
        bound = _chernoff_bound(components, e) if floor_at[e] > 0.0 else 1.0
        if infinite + bound < floor_at[e]:
            results[e] = Interval(0.0, infinite + bound, "contour")
            continue
        curve, results[e] = _delta_at(components, e, engine)
    return [results[e] for e in points]


def _chernoff_bound(components: Components, e: float) -> float:
    """An upper bound of the finite part of delta(e), 1 where none is to be had."""
    try:
        at = contour.find(components, epsilon=e, share=0.9)
    except Unsuitable:
        return 1.0
    log_bound = at.log_moment + at.error - at.order * e + saddle.log_payoff_bound(at.order)
    return _exp(min(log_bound, 0.0), upper=True)


def _ends(curve: Curve, e: float, name: str, *, tolerance: float = 1e-7) -> Interval | None:
    """delta(e) from `curve`, or None where it is not accurate to `tolerance`, relative."""
    low, high = (curve.log_delta(e, upper=side)[0] for side in (False, True))
    if not high - low <= tolerance:
        return None
    return Interval(_exp(low, upper=False), min(_exp(high, upper=True), 1.0), name)


def _exp(x: float, *, upper: bool) -> float:
    value = math.exp(x) * (1.0 + (4e-16 if upper else -4e-16) * (1.0 + abs(x)))
    return math.nextafter(value, math.inf) if upper else max(math.nextafter(value, 0.0), 0.0)


def _delta_at(components: Components, e: float, engine: Engine) -> tuple[Curve | None, Interval]:
    if engine in ("auto", "contour"):
        try:
            at = contour.find(components, epsilon=e)
            try:
                curve = contour.Contour(components, at, epsilon=e, log_tolerance=_LOG_TOLERANCE)
            except Unsuitable:
                eta = _smoothing(1e-7 / (at.order + 1.0), at.order)
                curve = contour.Contour(components, at, epsilon=e, log_tolerance=_LOG_TOLERANCE, eta=eta)
            found = _ends(curve, e, "contour", tolerance=1e-3)
            if found is not None:
                return curve, found
            raise Unsuitable("the contour is not accurate enough")
        except Unsuitable:
            if engine == "contour":
                raise
    plan = lattice.Plan(components, log_delta=-100.0)
    at = plan.saddle(epsilon=e)
    plan = lattice.Plan(components, log_delta=min(at.log_delta, 0.0))
    best = Interval(0.0, 1.0, "lattice")
    for size in (_FIRST, 17, 20):
        curve = plan.curve(order=at.order, epsilon=e, log_delta=at.log_delta, log2_size=size)
        low, high = (curve.log_delta(e, upper=side)[0] for side in (False, True))
        found = Interval(
            _exp(low, upper=False) if low > -math.inf else 0.0, min(_exp(high, upper=True), 1.0), "lattice"
        )
        best = best.intersect(found)
        if best.width <= 1e-5 * best.upper:
            break
    return None, best
