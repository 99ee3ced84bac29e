"""Closed forms: one step; Gaussians, also behind visible coins; Laplaces; two losses; failures."""

from __future__ import annotations

import dataclasses
import functools
import math
from collections.abc import Callable

from exactdp.accounting.interval import Interval
from exactdp.accounting.laws.law import Law
from exactdp.accounting.pairs.gaussian import Gaussian
from exactdp.accounting.prv import binomial, erased, laplace
from exactdp.accounting.prv.saddle import EPS, Components

_BEYOND = 1e-3  # share of the last move


@dataclasses.dataclass(frozen=True)
class Closed:
    """delta(epsilon) in closed form, with the sum of the finite essential suprema.

    Attributes:
      value: epsilon -> (delta, bound of its absolute error).
      supremum: loss that is never exceeded, unless infinite with the probability delta(inf).
      start: > 0, where the search for an epsilon begins.
    """

    value: Callable[[float], tuple[float, float]]
    supremum: float
    start: float = 1.0

    def ends(self, epsilon: float) -> tuple[float, float]:
        """Certified lower and upper end of delta(epsilon)."""
        value, error = self.value(epsilon)
        return max(value - error, 0.0), min(value + error, 1.0)

    def invert(self, delta: float) -> Interval:
        """The smallest epsilon >= 0 with delta(epsilon) <= `delta`, to the last digits."""
        upper = self._root(delta, 1, self.start)
        if not 0.0 < upper < math.inf:
            return Interval(0.0 if upper == 0.0 else self._root(delta, 0, self.start), upper, "closed form")
        step = 2.0 * math.ulp(upper)
        while step < upper:
            if self.ends(upper - step)[0] > delta:
                return Interval(upper - step, upper, "closed form")
            step *= 4.0
        return Interval(self._root(delta, 0, upper), upper, "closed form")

    def _root(self, delta: float, side: int, start: float) -> float:
        """Where the upper (side 1) or lower (0) end of delta(epsilon) crosses `delta`, on its safe side."""
        log_delta = math.log(delta)

        def excess(epsilon: float) -> float:
            end = self.ends(epsilon)[side]
            found = math.log(end) - log_delta if end > 0.0 else -math.inf
            # The sign is that of the values themselves: a difference of logarithms may err by rounding.
            return min(found, 0.0) if end <= delta else max(found, math.ulp(0.0))

        low, high, above, below = 0.0, start, math.inf, excess(start)
        while below > 0.0:
            low, high, above = high, 2.0 * high, below
            below = excess(high)
            if high > 1e15:
                return math.inf if side else low
        for trial in (0.5 * high, 0.0):
            if above == math.inf:
                value = excess(trial)
                if value > 0.0:
                    low, above = trial, value
                else:
                    high, below = trial, value
        if above == math.inf:
            return 0.0
        # Secants through the ends of the bracket's last moves, aimed a little beyond the root so that the far
        # end moves as well; where that does not shrink the bracket fast, bisection.
        near, far = sorted(((low, above), (high, below)), key=lambda point: abs(point[1]))
        slow = 0
        while low < (middle := 0.5 * (low + high)) < high and high - low > 2.0 * math.ulp(high):
            trial, size, slow = middle, high - low, slow + 1
            if slow < 3 and math.isfinite(far[1]) and near[1] != far[1]:
                root = near[0] - near[1] * (near[0] - far[0]) / (near[1] - far[1])
                aside = max(_BEYOND * abs(root - near[0]), math.ulp(high))
                root += aside if root < middle else -aside
                trial = root if low < root < high else middle
            value = excess(trial)
            if value <= 0.0:
                high = trial
            else:
                low = trial
            if slow > 2 or high - low < 0.25 * size:
                slow = 0
            near, far = sorted(((trial, value), near), key=lambda point: abs(point[1]))
        return high if side else low


def find(components: Components) -> Closed | None:
    """The closed form of a composition in one direction, or None."""
    squares = [law.gaussian_mu for law, _ in components]
    if all(mu is not None for mu in squares):
        mu = math.sqrt(
            math.fsum(n * (mu or 0.0) ** 2 for mu, (_, n) in zip(squares, components, strict=True))
        )
        return Closed(Gaussian(noise_multiplier=1.0 / mu).hockey_stick, math.inf)
    if all(law.support == (0.0, 0.0) for law, _ in components):
        return _failures(components)
    if len(components) != 1:
        return None
    law, count = components[0]
    if count == 1:
        return one_step(law)
    if law.laplace_width is not None:
        value = laplace.hockey_stick(law.laplace_width, count)
        return None if value is None else Closed(value, count * law.support[1], 0.5 * count * law.support[1])
    if law.erased_gaussian is not None:
        value = erased.hockey_stick(*law.erased_gaussian, count)
        return None if value is None else Closed(value, math.inf)
    return _binomial(law, count)


def _failures(components: Components) -> Closed:
    """Steps that tell nothing unless they tell all: delta is the probability that one of them does."""
    log_free = math.fsum(n * math.log1p(-law.infinity_mass) for law, n in components)
    infinite = -math.expm1(log_free)
    return Closed(lambda _: (infinite, 16 * EPS * infinite), 0.0)


def one_step(law: Law) -> Closed:
    """A single step."""
    return Closed(law.hockey_stick, law.support[1])


def _binomial(law: Law, count: int) -> Closed | None:
    """Steps with two finite losses: their sum is a binomial."""
    binary = law.binary
    if binary is None:
        return None
    (low, p_low, _), (high, p_high, _) = binary
    if p_high <= 0.0:
        return None
    p_low = max(p_low, math.ulp(0.0))  # a probability below every float
    free = p_low + p_high
    # Of the finite losses: `free` itself is rounded, and would be so `count` times.
    log_free = count * math.log1p(-law.infinity_mass)
    infinite = -math.expm1(count * math.log1p(-law.infinity_mass)) if law.infinity_mass else 0.0
    tail = functools.cache(functools.partial(binomial.tail, count, p_high / free, p_low / free, high - low))

    def value(epsilon: float) -> tuple[float, float]:
        # The number k of high losses must exceed the least with k high + (count - k) low > epsilon.
        k = max(math.floor((epsilon - count * low) / (high - low)) + 1, 0)
        if k > count:
            # The losses are rounded: their largest sum may lie a little above what it is computed as.
            beyond = count * high + 16 * EPS * (count * abs(high) + abs(epsilon)) - epsilon
            most = math.exp(count * math.log(p_high)) if beyond > 0.0 else 0.0
            return infinite, 4 * EPS * infinite + 1.1 * most * max(beyond, 0.0)
        least = k * high + (count - k) * low
        rounding = 16 * EPS * (abs(epsilon) + k * abs(high) + (count - k) * abs(low))
        at = tail(k)
        scale = math.exp(log_free + at.log_mass)
        # 1 - e^{eps - s_j} = (1 - e^{s_k - s_j}) + e^{s_k - s_j} (1 - e^{eps - s_k}): nothing cancels.
        rest = max(-math.expm1(min(epsilon - least, 0.0)), 0.0)
        finite = scale * (at.beyond + rest * at.scaled)
        slip = at.error + 4 * EPS * (abs(log_free) + abs(log_free + at.log_mass)) + 8 * EPS
        error = finite * slip + scale * (rounding * at.scaled + at.left_out)
        return infinite + finite, error + 4 * EPS * infinite

    return Closed(value, count * high)
