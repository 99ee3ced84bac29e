"""(ε, δ) of a composition of Rényi curves.

Rényi divergences of one order add up under adaptive composition. Every order gives a valid bound, so that the
search below cannot be wrong, only less than perfect: it starts at order 10, walks to where ε rises on both
sides, and finishes with a golden-section search in log(λ−1). For exact curves (λ−1)·D_λ is convex, the
Mironov and Balle conversions are then quasi-convex in λ, and the search finds their minimum.

Curves are functions of the order. They describe one direction; where the two differ, call this for
each and take the worse:

    curve = functools.partial(subsampled_gaussian, noise_multiplier=1.0, sampling_probability=0.01)
    epsilon([(curve, 1000)], delta=1e-5)

Rényi divergences are inflated by 1e-10 of themselves, more than the numerical error that the curves of this
package state.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence

from exactdp.accounting import validate
from exactdp.accounting.rdp import conversion as conversions
from exactdp.accounting.rdp.bound import UpperBound, check_order, check_renyi, next_up

Curve = Callable[[float], float]
Composition = Sequence[tuple[Curve, int]]

OPACUS_ORDERS: tuple[float, ...] = tuple(1.0 + k / 10.0 for k in range(1, 100)) + tuple(
    float(order) for order in range(12, 64)
)
"""The fixed grid of Opacus: 1.1 to 10.9 by 0.1, then 12 to 63."""

_INFLATION = 1e-10
_SMALLEST, _LARGEST = 1e-9, 1e9  # of λ − 1
_GOLDEN = 0.5 * (math.sqrt(5.0) - 1.0)


def compose(composition: Composition) -> Curve:
    """The Rényi curve of a composition: Σ count·ε(λ).

    Arguments:
      composition: pairs (curve, count), counts whole and >= 0, at least one pair.

    Returns:
      a curve; a count of 0 contributes nothing, even where its curve is infinite.

    Raises:
      ValueError: the composition is empty or a count is not a whole number >= 0.
    """
    parts = [(curve, validate.count("count", count)) for curve, count in composition]
    if not parts:
        raise ValueError("composition must hold at least one (curve, count), got none")

    def composed(order: float) -> float:
        return math.fsum(count * check_renyi(curve(order)) for curve, count in parts if count)

    return composed


def epsilon(
    composition: Composition,
    *,
    delta: float,
    conversion: str = "optimal",
    orders: Iterable[float] | None = None,
) -> UpperBound:
    """The least ε at `delta` over the orders.

    Arguments:
      composition: pairs (curve, count).
      delta: δ in (0, 1).
      conversion: "optimal", "balle" or "mironov".
      orders: the orders to try; all real orders > 1 when omitted.

    Returns:
      an upper bound on ε and the order that gave it; infinite where every order is.

    Raises:
      ValueError: an argument is outside its range.
    """
    curve = compose(composition)
    delta = validate.open_probability("delta", delta)
    validate.one_of("conversion", conversion, conversions.CONVERSIONS)

    def objective(order: float, choice: str) -> float:
        renyi = next_up(curve(order), relative=_INFLATION)
        return conversions.epsilon(order, renyi=renyi, delta=delta, conversion=choice)

    return _minimise(objective, conversion, orders)


def delta(
    composition: Composition,
    *,
    epsilon: float,
    conversion: str = "optimal",
    orders: Iterable[float] | None = None,
) -> UpperBound:
    """The least δ at `epsilon` over the orders.

    Arguments:
      composition: pairs (curve, count).
      epsilon: ε >= 0.
      conversion: "optimal", "balle" or "mironov".
      orders: the orders to try; all real orders > 1 when omitted.

    Returns:
      an upper bound on δ, at most 1, and the order that gave it.

    Raises:
      ValueError: an argument is outside its range.
    """
    curve = compose(composition)
    epsilon = validate.non_negative("epsilon", epsilon)
    validate.one_of("conversion", conversion, conversions.CONVERSIONS)

    def objective(order: float, choice: str) -> float:
        renyi = next_up(curve(order), relative=_INFLATION)
        return conversions.log_delta(order, renyi=renyi, epsilon=epsilon, conversion=choice)

    best = _search(objective, conversion, orders)
    if best[0] == -math.inf:
        return UpperBound(0.0, best[1])
    return UpperBound(max(min(1.0, math.exp(best[0]) * (1.0 + 1e-12)), 5e-324), best[1])


def _minimise(
    objective: Callable[[float, str], float], conversion: str, orders: Iterable[float] | None
) -> UpperBound:
    value, order = _search(objective, conversion, orders)
    return UpperBound(value, order)


def _search(
    objective: Callable[[float, str], float], conversion: str, orders: Iterable[float] | None
) -> tuple[float, float]:
    """(least value, order)."""
    if orders is not None:
        grid = [check_order(order) for order in orders]
        if not grid:
            raise ValueError("orders must hold at least one order, got none")
        return min((objective(order, conversion), order) for order in grid)
    cheap = "balle" if conversion == "optimal" else conversion
    found = _descend(lambda a: objective(1.0 + a, cheap), 9.0)
    value, a = found
    if conversion == "optimal":
        # The tighter conversion gains most at smaller orders: search it too, from the other one's optimum.
        value, a = _descend(lambda b: objective(1.0 + b, conversion), a)
    return value, 1.0 + a


def _descend(objective: Callable[[float], float], start: float) -> tuple[float, float]:
    """Local minimum over a = λ − 1 on a log scale: (value, a), the best point evaluated."""
    seen: dict[float, float] = {}

    def at(a: float) -> float:
        if a not in seen:
            seen[a] = objective(a)
        return seen[a]

    a, factor = start, 2.0
    while math.isinf(at(a)) and a > _SMALLEST:
        a /= factor
    while a > _SMALLEST and at(a / factor) < at(a):
        a /= factor
    while a < _LARGEST and at(a * factor) < at(a):
        a *= factor
    low, high = math.log(a / factor), math.log(a * factor)
    left, right = high - _GOLDEN * (high - low), low + _GOLDEN * (high - low)
    while high - low > 1e-6:
        if at(math.exp(left)) <= at(math.exp(right)):
            high, right = right, left
            left = high - _GOLDEN * (high - low)
        else:
            low, left = left, right
            right = low + _GOLDEN * (high - low)
    best = min(seen, key=lambda point: (seen[point], point))
    return seen[best], best
