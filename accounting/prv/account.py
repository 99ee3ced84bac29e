"""The router: (epsilon, delta) of any composition as a certified interval."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from typing import Literal, Protocol

from exactdp.accounting import validate
from exactdp.accounting.interval import Interval
from exactdp.accounting.laws.law import Law
from exactdp.accounting.pairs.base import Unsuitable
from exactdp.accounting.prv import closed, contour, lattice, saddle
from exactdp.accounting.prv.saddle import Components, Curve

Engine = Literal["auto", "closed form", "contour", "lattice"]
Direction = Literal["worst", "remove", "add"]

_LOG_TOLERANCE = math.log(1e-11)
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
    laws = [(m.directions(), n) for m, n in counts.items() if n > 0]
    known = [(both, n) for both, n in laws if both is not None]
    sides = [[(both[i], n) for both, n in known] for i in (0, 1)]
    if direction != "worst":
        return [sides[0 if direction == "remove" else 1]]
    if all(both[0] is both[1] for both, _ in known):
        return [sides[0]]
    return list(sides)


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
    validate.open_probability("delta", delta)
    _check(engine, tolerance)
    if delta < 1e-300:
        raise ValueError(f"delta must be >= 1e-300, got {delta}")
    log_delta = math.log(delta)

    def answer(components: Components) -> Interval:
        free = sum(n * math.log1p(-law.infinity_mass) for law, n in components)
        infinite = -math.expm1(free)
        if infinite * (1.0 - 1e-12) > delta:
            return Interval(math.inf, math.inf, "closed form")
        if infinite * (1.0 + 1e-12) >= delta:
            return Interval(_least(components, log_delta, engine), math.inf, "closed form")
        found = _epsilon(components, delta, log_delta, tolerance, engine)
        top = sum(n * law.support[1] for law, n in components)
        if math.isfinite(top) and infinite == 0.0:
            # delta(eps) <= 1 - e^{eps - top}, whatever the law.
            cap = max(0.0, top + math.log1p(-delta) + 1e-14 * (1.0 + abs(top)))
            return Interval(min(found.lower, cap), min(found.upper, cap), found.engine)
        return found

    return _worst(composition, direction, answer)


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
    curves = [_delta_curve(c, points, engine) for c in _components(composition, direction)]
    return [_combine(list(ends)) for ends in zip(*curves, strict=True)]


def _check(engine: str, tolerance: float | None) -> None:
    validate.one_of("engine", engine, ("auto", "closed form", "contour", "lattice"))
    if tolerance is not None:
        validate.positive("tolerance", tolerance)


def _worst(
    composition: Composition, direction: Direction, answer: Callable[[Components], Interval]
) -> Interval:
    sides = _components(composition, direction)
    return _combine([answer(c) if c else Interval(0.0, 0.0, "closed form") for c in sides])


def _combine(intervals: Sequence[Interval]) -> Interval:
    worst = intervals[0]
    for other in intervals[1:]:
        worst = worst.maximum(other)
    return worst


def _smoothing(tolerance: float, order: float) -> float:
    """eta whose smoothing costs about a third of `tolerance` in epsilon."""
    return math.sqrt(0.3 * tolerance / (order + 1.0))


def _epsilon(
    components: Components, delta: float, log_delta: float, tolerance: float | None, engine: Engine
) -> Interval:
    if engine in ("auto", "closed form"):
        form = closed.find(components)
        if form is not None:
            return Interval(form.invert(delta, upper=False), form.invert(delta, upper=True), "closed form")
        if engine == "closed form":
            raise ArithmeticError("this composition has no closed form")
    if engine in ("auto", "contour"):
        try:
            return _by_contour(components, log_delta, tolerance)
        except Unsuitable:
            if engine == "contour":
                raise
    return _by_lattice(components, log_delta, tolerance)


def _invert(curve: Curve, log_delta: float, start: float, name: str) -> Interval:
    upper = saddle.invert(curve, log_delta, start=start, upper=True)
    lower = saddle.invert(curve, log_delta, start=upper, upper=False)
    return Interval(min(lower, upper), upper, name)


def _by_contour(components: Components, log_delta: float, tolerance: float | None) -> Interval:
    at = contour.find(components, log_delta=log_delta)
    start = at.epsilon
    try:
        curve = contour.Contour(components, at, epsilon=start, log_tolerance=_LOG_TOLERANCE)
    except Unsuitable:
        wanted = tolerance or 1e-6 * max(start, 0.01)
        eta = _smoothing(wanted, at.order)
        curve = contour.Contour(components, at, epsilon=start, log_tolerance=_LOG_TOLERANCE, eta=eta)
    return _invert(curve, log_delta, start, "contour")


def _by_lattice(components: Components, log_delta: float, tolerance: float | None) -> Interval:
    at = lattice.find(components, log_delta=log_delta)
    start, size, best = at.epsilon, _FIRST, None
    for attempt in range(5):
        curve = lattice.Lattice(
            components, order=at.order, epsilon=start, log_delta=log_delta, log2_size=size
        )
        try:
            found = _invert(curve, log_delta, start, "lattice")
        except Unsuitable:
            found = None
        if found is not None:
            best = found if best is None else best.intersect(found)
        wanted = tolerance or 1e-6 * max(best.upper if best else 0.01, 0.01)
        if best is not None and best.width <= wanted:
            break
        if attempt == 0:
            # The saddle-point estimate that gave the order may be far off: take the order of epsilon itself.
            start = best.upper if best is not None else start
            at = lattice.find(components, log_delta=log_delta, epsilon=start)
            if best is not None and abs(at.epsilon - start) > 1.0 / at.order:
                continue
        if size == _LAST:
            break
        grow = 0.5 * math.log2(best.width / wanted) + 0.4 if best is not None else 4.0
        size = min(_LAST, size + max(1, math.ceil(grow)))
    if best is None:
        raise Unsuitable("no lattice within reach certifies this query")
    return best


def _delta_curve(components: Components, points: Sequence[float], engine: Engine) -> list[Interval]:
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
    for e in sorted(set(points)):
        if e >= top:
            results[e] = Interval(infinite * (1 - 1e-12), infinite * (1 + 1e-12), "closed form")
            continue
        if curve is not None:
            found = _ends(curve, e, "contour")
            if found is not None:
                results[e] = found
                continue
        curve, results[e] = _delta_at(components, e, engine)
    return [results[e] for e in points]


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
    at = lattice.find(components, epsilon=e)
    best: Interval | None = None
    for size in (_FIRST, 17, 20):
        grid = lattice.Lattice(components, order=at.order, epsilon=e, log_delta=at.log_delta, log2_size=size)
        low, high = (grid.log_delta(e, upper=side)[0] for side in (False, True))
        found = Interval(_exp(low, upper=False) if low > -math.inf else 0.0, min(_exp(high, upper=True), 1.0), "lattice")
        best = found if best is None else best.intersect(found)
        if best.width <= 1e-5 * best.upper:
            break
    if best is None:
        raise Unsuitable("no lattice within reach certifies this query")
    return None, best
