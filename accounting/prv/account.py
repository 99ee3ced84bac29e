"""The router: (epsilon, delta) of any composition as a certified interval."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Literal, Protocol

from exactdp.accounting import validate
from exactdp.accounting.interval import Interval
from exactdp.accounting.laws.law import Law
from exactdp.accounting.prv import deltas, routes
from exactdp.accounting.prv.routes import Engine
from exactdp.accounting.prv.saddle import Components

Direction = Literal["worst", "remove", "add"]


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
        return routes.epsilon_of(components, delta, log_delta, tolerance, engine, floor)

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
    return routes.epsilon_of(
        components, 2.0 * math.exp(log_delta), log_delta + math.log(2.0), None, engine
    ).lower


def delta(
    composition: Composition,
    *,
    epsilon: float,
    tolerance: float | None = None,
    engine: Engine = "auto",
    direction: Direction = "worst",
) -> Interval:
    """Smallest delta at which the composition is (epsilon, delta)-DP, as a certified interval.

    Args:
      composition: (mechanism, count) tuples.
      epsilon: >= 0, finite.
      tolerance: relative width of delta aimed at, > 0; the default is 1e-7 of a contour and 1e-5 of a
        lattice. A wider interval may come back where an engine cannot reach it.
      engine: which engine answers; `"auto"` lets the router choose.
      direction: `"worst"` of both, or one alone.

    Raises:
      ValueError: bad input.
      ArithmeticError: the chosen `engine` cannot certify this query.
    """
    return delta_curve(
        composition, epsilons=[epsilon], tolerance=tolerance, engine=engine, direction=direction
    )[0]


def delta_curve(
    composition: Composition,
    *,
    epsilons: Sequence[float],
    tolerance: float | None = None,
    engine: Engine = "auto",
    direction: Direction = "worst",
) -> list[Interval]:
    """`delta` at each of `epsilons`, one contour or lattice serving as many of them as it is accurate for.

    Raises:
      ValueError: bad input.
      ArithmeticError: the chosen `engine` cannot certify this query.
    """
    points = [validate.non_negative("epsilon", e) for e in epsilons]
    _check(engine, tolerance)
    worst = [Interval(0.0, 0.0, "closed form") for _ in points]
    for components in _components(composition, direction):
        found = deltas.delta_curve_of(
            components, points, engine, tolerance=tolerance, floors=[w.lower for w in worst]
        )
        worst = [w if w.lower >= f.upper else w.maximum(f) for w, f in zip(worst, found, strict=True)]
    return worst


def _check(engine: str, tolerance: float | None) -> None:
    validate.one_of("engine", engine, ("auto", "closed form", "contour", "lattice"))
    if tolerance is not None:
        validate.positive("tolerance", tolerance)
