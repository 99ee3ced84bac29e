"""The search for one parameter that meets a target (epsilon, delta).

A parameter is sought in the logarithm, where epsilon is nearly a power of it: secant steps inside a bracket,
each aimed just beyond the root so that both ends close in. About ten accountant calls give seven digits.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable

from exactdp.accounting import prv, validate
from exactdp.accounting.interval import Interval
from exactdp.accounting.pairs.base import Unsuitable
from exactdp.accounting.prv import Composition

_MAX_CALLS = 120
_FAR = 3e-3  # width of epsilon, over the target, that serves while the bracket is wide
_EASY = 1e-8  # one that is had at any epsilon: it serves where epsilon is far above a tiny target


@dataclasses.dataclass(frozen=True)
class Calibrated:
    """A parameter that meets a target, and how near it is to the best such value.

    Attributes:
      parameter: its name.
      value: it satisfies the target: `epsilon.upper` <= the target (or `delta.upper`).
      epsilon: certified epsilon at `value`.
      delta: delta at which that holds; an interval of one point where it was given.
      rejected: the nearest value that certainly misses the target; None where there is none, the value then
        being a limit of its range or a direct answer.
      gap: |value - rejected| / value, 0 where `rejected` is None; at most the tolerance asked for unless the
        accountant could not tell nearer values apart. For whole numbers, 1 / value is the least.
      calls: how often the accountant was asked.
    """

    parameter: str
    value: float
    epsilon: Interval
    delta: Interval
    rejected: float | None
    gap: float
    calls: int


def calibrate(
    build: Callable[[float], Composition],
    *,
    parameter: str,
    epsilon: float,
    delta: float,
    increasing: bool,
    limits: tuple[float, float],
    start: float | None = None,
    tolerance: float = 1e-7,
    whole: bool = False,
) -> Calibrated:
    """The least private value of a parameter that still satisfies (epsilon, delta).

    Args:
      build: the composition for a value of the parameter, `[(mechanism, count), ...]`.
      parameter: its name, for the result and for errors.
      epsilon: target, > 0.
      delta: target, in (0, 1).
      increasing: whether epsilon grows with the parameter; epsilon must be monotone in it between the limits.
      limits: least and largest value that may be tried, 0 < least < largest.
      start: where to begin; the middle of the limits (in the logarithm) by default.
      tolerance: relative distance between the answer and a value that fails, in (0, 0.1].
      whole: whether the parameter is a whole number (it is then answered exactly).

    Returns:
      The value, certified to satisfy the target, beside the nearest one certified to miss it. Only the
      statement that nothing between them is better rests on monotonicity.

    Raises:
      ValueError: an argument is out of range, or no value within the limits reaches the target; the
        message then gives the epsilon attained at the limit.
      ArithmeticError: no value could be certified.
    """
    target = validate.positive("epsilon", epsilon)
    given = validate.open_probability("delta", delta)
    tol = validate.open_probability("tolerance", tolerance)
    if tol > 0.1:
        raise ValueError(f"tolerance must be at most 0.1, got {tolerance}")
    least, largest = (validate.positive("limits", end) for end in limits)
    if not least < largest:
        raise ValueError(f"limits must increase, got {limits}")
    first = math.sqrt(least) * math.sqrt(largest) if start is None else validate.positive("start", start)
    if not least <= first <= largest:
        raise ValueError(f"start must be within the limits {limits}, got {start}")
    search = _Search(build, parameter, target, given, increasing, (least, largest), tol, whole)
    return search.run(first)


@dataclasses.dataclass
class _Search:
    """One search; `safe` and `unsafe` hold the ends of the bracket as (value, epsilon)."""

    build: Callable[[float], Composition]
    parameter: str
    target: float
    delta: float
    increasing: bool
    limits: tuple[float, float]
    tolerance: float
    whole: bool
    safe: tuple[float, Interval] | None = None
    unsafe: tuple[float, Interval] | None = None
    rejected: float | None = None
    calls: int = 0
    failure: ArithmeticError | None = None

    def run(self, first: float) -> Calibrated:
        trail: list[tuple[float, float]] = []  # (log value, log epsilon / target)
        slope = 1.0 if self.increasing else -1.0
        value, step, widths = self._snap(first), 2.0, [math.inf]
        while self.calls < _MAX_CALLS:
            interval = self._evaluate(value)
            x, y = math.log(value), self._excess(interval)
            if math.isfinite(y):
                near = [p for p in trail if 1e-6 < abs(p[0] - x)]
                if near:
                    other = min(near, key=lambda p: abs(p[0] - x))
                    secant = (y - other[1]) / (x - other[0])
                    if secant * slope > 0.0:
                        slope = secant
                trail.append((x, y))
            safe_limit = self.limits[0] if self.increasing else self.limits[1]
            if self.safe is None and value == safe_limit:
                self._unreachable(interval)
            if self.unsafe is None and value == (self.limits[1] if self.increasing else self.limits[0]):
                return self._answer()
            if self.safe and self.unsafe:
                if self._closed():
                    return self._answer()
                widths.append(abs(math.log(self.safe[0] / self.unsafe[0])))
                stuck = len(widths) > 4 and widths[-1] > 0.5 * widths[-4]
            else:
                stuck = False
            value, step = self._propose(x, y, slope, step, stuck)
            if stuck:
                widths = [math.inf]
        if self.safe is None:
            raise self.failure or ArithmeticError(f"{self.parameter}: the search did not come to an end")
        return self._answer()

    def _evaluate(self, value: float) -> Interval:
        composition = self.build(int(value) if self.whole else value)
        # Wide intervals suffice far away; near the end they must tell neighbours apart.
        close = self.safe and self.unsafe and abs(math.log(self.safe[0] / self.unsafe[0])) < 1e-2
        fine = None if self.whole else 0.3 * self.tolerance * self.target
        interval = self._ask(composition, fine if close else max(_FAR * self.target, _EASY))
        if not close and interval.lower <= self.target < interval.upper:
            interval = self._ask(composition, fine)
        # Of several safe values the largest risk counts, of the others the smallest.
        risk = value if self.increasing else -value
        if interval.upper <= self.target:
            if self.safe is None or risk > (self.safe[0] if self.increasing else -self.safe[0]):
                self.safe = (value, interval)
        else:
            if self.unsafe is None or risk < (self.unsafe[0] if self.increasing else -self.unsafe[0]):
                self.unsafe = (value, interval)
            if interval.lower > self.target:
                known = self.rejected
                if known is None or risk < (known if self.increasing else -known):
                    self.rejected = value
        return interval

    def _ask(self, composition: Composition, width: float | None) -> Interval:
        self.calls += 1
        try:
            return prv.epsilon(composition, delta=self.delta, tolerance=width)
        except Unsuitable as error:  # not certified: not safe, and nothing is known of it
            self.failure = error
            return Interval(0.0, math.inf)

    def _excess(self, interval: Interval) -> float:
        """log(epsilon / target); infinite where the interval says nothing definite."""
        middle = interval.midpoint
        if middle == 0.0:
            return -math.inf
        return math.log(middle / self.target) if math.isfinite(middle) else math.inf

    def _propose(self, x: float, y: float, slope: float, step: float, stuck: bool) -> tuple[float, float]:
        """The next value to try, and the largest step while no bracket is known."""
        safe = math.log(self.safe[0]) if self.safe else None
        unsafe = math.log(self.unsafe[0]) if self.unsafe else None
        guess = x - y / slope if math.isfinite(y) else math.nan
        # Aim beyond the root by what the secant may be wrong, to catch it from the other side.
        margin = max(0.4 * self.tolerance, 0.05 * (guess - x) ** 2)
        if safe is None or unsafe is None:
            known, sign = (unsafe, -1.0) if safe is None else (safe, 1.0)
            toward = sign if self.increasing else -sign
            jump = toward * ((guess - x) + toward * margin) if math.isfinite(guess) else math.inf
            jump = min(max(jump, 0.4 * self.tolerance), step) if jump > 0.0 else step
            base = x if known is None else known
            value = self._snap(math.exp(self._clip(base + toward * jump)))
            if self.whole and value == round(math.exp(base)):  # the jump was less than one
                value = self._snap(value + toward)
            return value, 2.0 * step
        low, high = min(safe, unsafe), max(safe, unsafe)
        if stuck or not math.isfinite(guess):
            nxt = 0.5 * (low + high)
        else:
            far = 1.0 if high - guess > guess - low else -1.0
            nxt = guess + far * margin
            if not low < nxt < high:
                nxt = guess if low < guess < high else 0.5 * (low + high)
        value = self._snap(math.exp(nxt))
        ends = sorted((self.safe[0], self.unsafe[0])) if self.safe and self.unsafe else [value, value]
        if self.whole:
            value = min(max(value, ends[0] + 1.0), ends[1] - 1.0)
        elif not ends[0] < value < ends[1]:
            value = math.exp(0.5 * (low + high))
        return value, step

    def _closed(self) -> bool:
        if self.safe is None or self.unsafe is None:
            return False
        a, b = self.safe[0], self.unsafe[0]
        return abs(a - b) <= (1.0 if self.whole else self.tolerance * a)

    def _clip(self, x: float) -> float:
        low, high = (math.log(end) for end in self.limits)
        return min(max(x, low), high)

    def _snap(self, value: float) -> float:
        """A whole number where one is wanted; a limit where it is reached up to rounding."""
        if self.whole:
            value = float(round(value))
        for end in self.limits:
            if abs(value - end) <= 1e-12 * end:
                return end
        return min(max(value, self.limits[0]), self.limits[1])

    def _unreachable(self, interval: Interval) -> None:
        if self.failure is not None and math.isinf(interval.upper):
            raise self.failure
        end = self.limits[0] if self.increasing else self.limits[1]
        raise ValueError(
            f"epsilon must be at least {interval.upper:.6g} at delta = {self.delta:g}, which is what "
            f"{self.parameter} = {end:g} reaches, got {self.target:g}"
        )

    def _answer(self) -> Calibrated:
        if self.safe is None:
            raise self.failure or ArithmeticError(f"{self.parameter}: no value could be certified")
        value, interval = self.safe
        gap = 0.0 if self.rejected is None else abs(value - self.rejected) / value
        given = Interval(self.delta, self.delta, "given")
        return Calibrated(self.parameter, value, interval, given, self.rejected, gap, self.calls)
