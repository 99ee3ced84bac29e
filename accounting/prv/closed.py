"""Closed forms: one step, Gaussians without sampling, and steps with two possible losses."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable

import numpy as np
from scipy import special

from exactdp.accounting.laws.law import Law
from exactdp.accounting.pairs.gaussian import Gaussian
from exactdp.accounting.prv.saddle import EPS, Components


@dataclasses.dataclass(frozen=True)
class Closed:
    """delta(epsilon) in closed form, with the sum of the finite essential suprema.

    Attributes:
      value: epsilon -> (delta, bound of its absolute error).
      supremum: loss that is never exceeded, unless infinite with the probability delta(inf).
    """

    value: Callable[[float], tuple[float, float]]
    supremum: float

    def ends(self, epsilon: float) -> tuple[float, float]:
        """Certified lower and upper end of delta(epsilon)."""
        value, error = self.value(epsilon)
        return max(value - error, 0.0), min(value + error, 1.0)

    def invert(self, delta: float, *, upper: bool) -> float:
        """Smallest epsilon >= 0 whose upper (lower) end of delta is <= `delta`, to the last digits."""

        def holds(epsilon: float) -> bool:
            return self.ends(epsilon)[1 if upper else 0] <= delta

        if holds(0.0):
            return 0.0
        low, high = 0.0, 1.0
        while not holds(high):
            low, high = high, 2.0 * high
            if high > 1e15:
                return math.inf
        for _ in range(200):
            middle = 0.5 * (low + high)
            if not low < middle < high:
                break
            low, high = (low, middle) if holds(middle) else (middle, high)
        return high if upper else low


def find(components: Components) -> Closed | None:
    """The closed form of a composition in one direction, or None."""
    squares = [law.gaussian_mu for law, _ in components]
    if all(mu is not None for mu in squares):
        mu = math.sqrt(
            math.fsum(n * (mu or 0.0) ** 2 for mu, (_, n) in zip(squares, components, strict=True))
        )
        return Closed(Gaussian(noise_multiplier=1.0 / mu).hockey_stick, math.inf)
    if len(components) != 1:
        return None
    law, count = components[0]
    if count == 1:
        return Closed(law.hockey_stick, law.support[1])
    return _binomial(law, count)


def _binomial(law: Law, count: int) -> Closed | None:
    """Steps with two finite losses: their sum is a binomial."""
    binary = law.binary
    if binary is None:
        return None
    (low, p_low, q_low), (high, p_high, q_high) = binary
    if p_high <= 0.0:
        return None
    free_p, free_q = p_low + p_high, q_low + q_high
    log_free_p, log_free_q = count * math.log(free_p), count * math.log(free_q)
    infinite = -math.expm1(count * math.log1p(-law.infinity_mass)) if law.infinity_mass else 0.0

    # A Q-mass may be below every float; it is the P-mass times e^-loss.
    log_p_high = math.log(p_high)
    log_shares = (min(log_p_high - math.log(free_p), 0.0), min(log_p_high - high - math.log(free_q), 0.0))

    def value(epsilon: float) -> tuple[float, float]:
        # The number k of high losses must exceed the least with k high + (count - k) low > epsilon.
        least = math.floor((epsilon - count * low) / (high - low)) + 1
        if least > count:
            return infinite, 4 * EPS * infinite
        k = max(least, 0)
        (log_p, p_slip), (log_q, q_slip) = (_log_tail(k, count, share) for share in log_shares)
        first = math.exp(log_free_p + log_p)
        second = math.exp(min(epsilon + log_free_q + log_q, 0.0))
        slip = 4 * EPS * (abs(epsilon) + abs(log_free_p) + abs(log_free_q) + abs(log_p) + abs(log_q))
        error = first * (p_slip + slip) + min(first, second) * (q_slip + slip)
        return infinite + max(first - second, 0.0), error + 4 * EPS * infinite

    return Closed(value, count * high)


def _log_tail(k: int, count: int, log_share: float) -> tuple[float, float]:
    """log P(Binomial(count, exp(log_share)) >= k), and a bound of its absolute error."""
    if k <= 0:
        return 0.0, 0.0
    share = math.exp(log_share)
    value = float(special.betainc(k, count - k + 1, share))
    if value > 1e-290:
        return math.log(value), 1e-11
    # Far above the mean the terms fall at least geometrically; they are summed by their logarithms.
    j = np.arange(k, min(count, k + 20_000) + 1, dtype=np.float64)
    size = special.gammaln(count + 1.0) + special.gammaln(j + 1.0) + special.gammaln(count - j + 1.0)
    log_terms = special.gammaln(count + 1.0) - special.gammaln(j + 1.0) - special.gammaln(count - j + 1.0)
    log_terms = log_terms + j * log_share + (count - j) * math.log1p(-share)
    peak = float(log_terms.max())
    total = peak + math.log(float(np.exp(log_terms - peak).sum()))
    left_out = 0.0
    if j[-1] < count:
        ratio = (count - j[-1]) / (j[-1] + 1.0) * share / (1.0 - share)
        left_out = math.exp(float(log_terms[-1]) - total) * ratio / max(1.0 - ratio, EPS)
    return total, left_out + 4 * EPS * (float(size[0]) + abs(total)) + 1e-12
