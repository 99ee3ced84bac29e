"""The parameter at which an exact ε meets a target, to the few digits that a table shows.

`exactdp.accounting.calibrate` answers the same question to many digits. Here the accountant is never asked
for more than the search needs, which matters where one certified answer takes a second.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Sequence

from exactdp.accounting import prv, validate
from exactdp.accounting.interval import Interval
from exactdp.accounting.prv import Composition

_LARGEST, _SMALLEST = 1e6, 1e-9
_MAX_CALLS = 60


@dataclasses.dataclass(frozen=True)
class Found:
    """The two sides of a target, both certified.

    Attributes:
      met: the target is met here.
      missed: and missed here, a relative tolerance away; 0 or infinity where no tried value misses it.
      epsilon: certified, at `met`.
    """

    met: float
    missed: float
    epsilon: Interval


def least_private(
    build: Callable[[float], Composition],
    *,
    epsilon: float,
    delta: float,
    start: float,
    increasing: bool,
    tolerance: float = 1e-3,
) -> Found:
    """The least private value of a parameter that meets a target ε, between two certified values.

    Secant steps in the logarithms of parameter and ε. That nothing beyond `missed` meets the target rests
    on ε being monotone in the parameter.

    Args:
      build: the composition, for a value of the parameter.
      epsilon: target, > 0, nats.
      delta: in (0, 1).
      start: where to begin, > 0.
      increasing: whether ε grows with the parameter.
      tolerance: relative distance of the two values, in [1e-6, 0.1].

    Raises:
      ValueError: an argument is outside its range.
      ArithmeticError: the accountant could not certify a value, or no value from 1e-9 to 1e6 meets the
        target.
    """
    target = validate.positive("epsilon", epsilon)
    validate.open_probability("delta", delta)
    if not 1e-6 <= validate.positive("tolerance", tolerance) <= 0.1:
        raise ValueError(f"tolerance must be in [1e-6, 0.1], got {tolerance}")
    sign = 1.0 if increasing else -1.0
    # x = sign * log(parameter), so that epsilon grows with x.
    bottom, top = sorted((sign * math.log(_SMALLEST), sign * math.log(_LARGEST)))
    x = min(max(sign * math.log(validate.positive("start", start)), bottom), top)
    low, high, at_low = -math.inf, math.inf, Interval(0.0, 0.0)
    trail: list[tuple[float, float]] = []
    for _ in range(_MAX_CALLS):
        digits = tolerance if len(trail) > 1 else max(tolerance, 0.05)
        found = prv.epsilon(build(math.exp(sign * x)), delta=delta, tolerance=0.1 * digits * target)
        if found.upper <= target:
            low, at_low = (x, found) if x > low else (low, at_low)
        elif found.lower > target:
            high = min(high, x)
        if low == top:
            return Found(math.exp(sign * low), math.inf if increasing else 0.0, at_low)
        if high == bottom:
            raise ArithmeticError(
                f"no parameter from {_SMALLEST:g} to {_LARGEST:g} meets epsilon = {target:g}"
            )
        if high - low <= tolerance:
            return Found(math.exp(sign * low), math.exp(sign * high), at_low)
        trail.append((x, math.log(min(max(found.midpoint / target, 1e-6), 1e6))))
        x = min(max(_next(trail, low, high, tolerance), bottom), top)
    raise ArithmeticError("the accountant could not tell neighbouring values from one another")


def _next(trail: Sequence[tuple[float, float]], low: float, high: float, tolerance: float) -> float:
    x, y = trail[-1]
    aim = x - y / _slope(trail)
    # Beside the root, by less than the tolerance, on the side that is not near it yet: both ends close in.
    aim += 0.4 * tolerance * (-1.0 if low < aim - tolerance else 1.0)
    if low < aim < high:
        return aim
    if math.isfinite(low) and math.isfinite(high):
        return 0.5 * (low + high)
    return low + 2.0 * tolerance if math.isfinite(low) else high - 2.0 * tolerance


def _slope(trail: Sequence[tuple[float, float]]) -> float:
    """Of log ε against x, from the last two points; 1, a common slope, where they say nothing."""
    if len(trail) < 2:
        return 1.0
    (x0, y0), (x1, y1) = trail[-2:]
    if abs(x1 - x0) < 1e-9 or not (y1 - y0) / (x1 - x0) > 0.05:
        return 1.0
    return min(max((y1 - y0) / (x1 - x0), 0.2), 20.0)
