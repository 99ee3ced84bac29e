"""A Poisson-sampled law times a smooth weight, for compositions split by their largest loss.

With X ~ Bin(m + k, p), p = 1 / (1 + e^{c - u}), the weight s_c(u) = P(X <= k) falls from 1 to 0 about
c - log(m / (k + 1)): at first like exp(-(k + 1) e^u), then like e^{-m u}, and 1 - s_c like e^{(k+1) u}
below. The weight between two losses is s_high - s_low (s = 1 at infinity, 0 at -inf): the weights of
neighbouring layers add up to that of their union, and those of all layers to 1. Each of s, 1 - s and s_high -
s_low = P(X_high <= k < X_low) is a sum of positive multiples of products of p, 1 - p and p_low - p_high, one
factor for each of the m + k trials (those of X_high and X_low share their coins). Off the real line
|1 + e^{x + ia}| >= (1 + e^x) cos(a / 2), so that such a factor grows by no more than cos(a / 2)^-2, which the
pairs' quadratures allow for.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable
from typing import Protocol

import numpy as np
from scipy import special

from exactdp.accounting.laws.law import Decay, Moments, Nodes
from exactdp.accounting.pairs.base import Array, Quadrature, Unsuitable

_EPS = float(np.finfo(np.float64).eps)
_LOG_TARGET = 65.0  # of the masses, whatever the count
_TERMS = 70, 4  # of a sum, and more for each k: from there on they are less than e^-60 of the first
_MOST_TRIES = 12
_LEAST_FALL = 1e-4  # of the logarithm of the integrand, from the last node to the next
_SPARE, _SPARE_TERMS = 45.0, 22.0  # logs: 2e5 terms, each with a tail of 1e4 times as much, are below e^22


class Weighable(Protocol):
    """A law given by a variable u that its loss increases with, and by a quadrature in u."""

    infinity_mass: float
    missing_mass: float
    least_slope: float
    """Lower bound of the slopes of log P and of log Q against the quadrature's measure."""

    @property
    def order_limit(self) -> float:
        """As `Moments.order_limit`."""
        ...

    def loss(self, u: Array) -> Array:
        """L(u)."""
        ...

    def inverse(self, loss: Array) -> Array:
        """u with L(u) = loss, or -inf below all losses; rounding does not matter."""
        ...

    def log_density(self, u: Array) -> Array:
        """log of P's density against the quadrature's measure."""
        ...

    def rule(
        self,
        *,
        order: float,
        frequency: float,
        slopes: tuple[float, float],
        cosine_power: float,
        log_target: float,
    ) -> Quadrature:
        """Quadrature of the moment at `order`, times a weight, as `Pair.quadrature` takes it.

        Args:
          order: of the moment.
          frequency: of the moment.
          slopes: lower end of the slopes of the log weight, and upper end of those of the integrand.
          cosine_power: of the weight.
          log_target: of the relative error.
        """
        ...

    def steepest(self, order: float, u: float) -> float:
        """Upper bound of the slope of log_density + order * loss right of u."""
        ...

    def decay_weighted(
        self, weight: Callable[[Array], tuple[Array, Array]], *, order: float, log_moment: float
    ) -> Decay | None:
        """`Moments.decay` of the law times a weight: its logarithm, and its slope, which is monotone."""
        ...


class Layer(Moments):
    """A law in the remove direction between two losses.

    Args:
      law: the whole law.
      low: lower loss, or -inf.
      high: upper loss, or inf.
      power: m, >= 1; above `high` the weight falls like e^{-m u}.
      rise: k + 1, >= 1; below `low` the weight falls like e^{(k + 1) u}.
    """

    def __init__(self, law: Weighable, low: float, high: float, *, power: int, rise: int) -> None:
        self._law, self._power, self._k = law, power, rise - 1
        shift = math.log(power / rise)
        self._low, self._high = (
            x if math.isinf(x) else float(law.inverse(np.array([x]))[0]) + shift for x in (low, high)
        )
        if not self._low < self._high:
            raise Unsuitable("no loss of this law lies in the layer")
        slope = law.steepest(0.0, -math.inf) + 0.5 + rise
        for _ in range(_MOST_TRIES):
            rule = self._rule(0.0, 0.0, _LOG_TARGET, slope)
            first, last = float(rule.u[0]), float(rule.u[-1])
            steep = rise * float(special.expit(self._high - last)) if self._high < math.inf else 0.0
            steep += law.steepest(0.0, last)
            if rule.step == 0.0 or -(rule.score_high + steep) * rule.step > _LEAST_FALL:
                break
            slope = 1.3 * slope + 2.0  # the nodes end before the rest of the weight falls
        else:
            raise Unsuitable("no nodes reach beyond the layer")
        # 1 - weight = P(X_high > k) + P(X_low <= k), without cancellation where the layer is nearly all.
        upper, lower = self._tails(rule.u, self._high), self._tails(rule.u, self._low)
        loss, log_density = law.loss(rule.u), law.log_density(rule.u)
        p, q, error = np.zeros_like(loss), np.zeros_like(loss), 0.0
        for tail in (upper.above, lower.below):
            # The likelihood ratio alone may be beyond every float.
            log_p = tail.log_p + rule.log_weight + log_density
            log_q = log_p - loss
            units = 8.0 + np.abs(rule.log_weight) + np.abs(log_density) + np.abs(loss) + tail.size
            p, q = p + np.exp(log_p), q + np.exp(log_q)
            error += float((np.exp(log_p) + np.exp(log_q)) @ units)
        self.infinity_mass = law.infinity_mass + float(p.sum())
        self.missing_mass = law.missing_mass + float(q.sum())
        ends = rule.tails(law.least_slope - self._trials * float(special.expit(first - self._first)), steep)
        self.mass_error = 4.0 * _EPS * error + 4.0 * math.exp(rule.log_alias)
        self.mass_error += 2.0 * ends[0] * float(p[0] + q[0]) + 2.0 * ends[1] * float(p[-1] + q[-1])

    @property
    def _trials(self) -> float:
        return float(self._power + self._k)

    @property
    def _steepest(self) -> float:
        """The largest slope of log weight."""
        return self._k + 1.0 if math.isfinite(self._low) else 0.0

    @property
    def _first(self) -> float:
        """The lowest finite cut."""
        return self._low if math.isfinite(self._low) else self._high

    @property
    def order_limit(self) -> float:
        return self._law.order_limit + (self._power if math.isfinite(self._high) else 0.0)

    def _rule(self, order: float, frequency: float, log_target: float, slope: float) -> Quadrature:
        """Nodes good for the weight and for the rest of it, at `order` and at the orders -1 and 0.

        Args:
          order: as of `nodes`.
          frequency: as of `nodes`.
          log_target: as of `Pair.quadrature`.
          slope: upper end of the bracket of slopes. The weight's own slopes do not matter for the error of a
            rule, but for where its nodes end, which `Quadrature.tails` checks.
        """
        return self._law.rule(
            order=order,
            frequency=frequency,
            slopes=(-self._trials * float(special.expit(-self._first)), slope),
            cosine_power=2.0 * self._trials,
            log_target=log_target,
        )

    def _tails(self, u: Array, cut: float) -> Tails:
        return _tails(u, cut, self._power, self._k)

    def _weight(self, u: Array) -> Tail:
        """log of the weight."""
        high, low = self._tails(u, self._high), self._tails(u, self._low)
        # s_high - s_low, or (1 - s_low) - (1 - s_high), where the second has the smaller terms.
        first, second = _difference(high.below, low.below), _difference(low.above, high.above)
        swap = low.above.log_p < high.below.log_p
        return Tail(np.where(swap, second.log_p, first.log_p), np.where(swap, second.size, first.size))

    def nodes(self, *, order: float, frequency: float, count: int) -> Nodes:
        law, log_target = self._law, 44.0 + math.log1p(count)
        slope = law.steepest(order, -math.inf) + 0.5 + self._steepest
        for _ in range(_MOST_TRIES):
            rule = self._rule(order, frequency, log_target, slope)
            weight, loss, log_density = self._weight(rule.u), law.loss(rule.u), law.log_density(rule.u)
            log_p = rule.log_weight + log_density + weight.log_p
            term, last = log_p + order * loss, float(rule.u[-1])
            steep = law.steepest(order, last) + self._rise(last)
            fall = -(rule.score_high + steep)
            if rule.step == 0.0 or (term[-1] <= term.max() - log_target and fall * rule.step > _LEAST_FALL):
                break
            slope = 1.3 * slope + 2.0  # the nodes end before the layer does
        else:
            raise Unsuitable("no nodes reach beyond the layer")
        tail = np.zeros(len(loss))
        tail[0], tail[-1] = rule.tails(
            law.least_slope - self._trials * float(special.expit(float(rule.u[0]) - self._first)), steep
        )
        # What weighs next to nothing is left out, tails included: the losses there could leave float64.
        least = log_target + _SPARE
        keep = (term > term.max() - least) | (log_p > -least)
        log_alias = float(np.logaddexp(rule.log_alias, _SPARE_TERMS - least))
        size = np.abs(log_density) + weight.size
        return Nodes(loss[keep], log_p[keep], log_alias, tail[keep], size[keep])

    def _rise(self, u: float) -> float:
        """Upper bound of the slope of log weight right of u.

        A term of j trials in X_high, i more in X_low and h in neither has the logarithmic slope
        j (1 - p_high) + i (1 - p_low - p_high) - h p_low, with j <= k where there is an upper cut.
        """
        p_low, p_high = (float(special.expit(u - cut)) for cut in (self._low, self._high))
        if self._high == math.inf:
            return self._trials * (1.0 - p_low)
        return self._k * (1.0 - p_high) - self._power * min(p_high + p_low - 1.0, p_low)

    def decay(self, *, order: float, log_moment: float) -> Decay | None:
        if self._low > -math.inf:
            return None
        return self._law.decay_weighted(self._fall, order=order, log_moment=log_moment)

    def _fall(self, u: Array) -> tuple[Array, Array]:
        """log s_high, and its slope, which falls with u."""
        tails = self._tails(u, self._high)
        return tails.below.log_p, tails.slope


@dataclasses.dataclass(frozen=True)
class Tail:
    """log of a probability, and what its rounding is over EPS, each of shape [n]."""

    log_p: Array
    size: Array


@dataclasses.dataclass(frozen=True)
class Tails:
    """P(X <= k) and P(X > k), and the slope of the logarithm of the first."""

    below: Tail
    above: Tail
    slope: Array


def _tails(u: Array, cut: float, power: int, k: int) -> Tails:
    """The tails of Bin(power + k, p) beside k at p = 1 / (1 + e^{cut - u})."""
    if math.isinf(cut):
        sure, never = (Tail(np.full_like(u, x), np.zeros_like(u)) for x in (0.0, -math.inf))
        return Tails(sure, never, np.zeros_like(u)) if cut > 0 else Tails(never, sure, np.zeros_like(u))
    trials, x = power + k, u - cut
    log_p, log_rest = -np.logaddexp(0.0, -x), -np.logaddexp(0.0, x)
    # Each sum over its largest term where that is the one next to k; only the smaller sum is used.
    odds = np.minimum(np.exp(np.minimum(x, 9.0)), 1.5 * (k + 1) / power)
    grown = np.ones_like(u)
    for j in range(min(trials - 1, _TERMS[0] + _TERMS[1] * k), k, -1):
        grown = 1.0 + grown * odds * ((trials - j) / (j + 1.0))
    above = math.log(math.comb(trials, k + 1)) + (k + 1) * log_p + (power - 1) * log_rest + np.log(grown)
    odds = np.exp(np.minimum(-x, min(10.0, 600.0 / (k + 1))))
    grown = np.ones_like(u)
    for j in range(1, k + 1):
        grown = 1.0 + grown * odds * (j / (trials - j + 1.0))
    below = math.log(math.comb(trials, k)) + k * log_p + power * log_rest + np.log(grown)
    # Each sum's exponents are no larger than its logarithm and those of the binomials.
    sizes = [np.abs(tail) + 2.0 * trials + 8.0 for tail in (below, above)]
    odds = np.exp(np.clip(above - below, -300.0, 300.0))
    small = above < below  # the larger of the two is 1 less the smaller
    with np.errstate(divide="ignore"):
        log_below = np.where(small, np.log1p(-np.exp(np.minimum(above, -0.6))), below)
        log_above = np.where(small, above, np.log1p(-np.exp(np.minimum(below, -0.6))))
    log_density = math.log((k + 1) * math.comb(trials, k + 1)) + (k + 1) * log_p + power * log_rest
    magnitude = np.abs(u) + abs(cut) + 4.0
    slopes = [np.exp(np.minimum(log_density - log_tail, 300.0)) for log_tail in (log_below, log_above)]
    return Tails(
        Tail(log_below, magnitude * slopes[0] + np.where(small, odds * sizes[1], sizes[0])),
        Tail(log_above, magnitude * slopes[1] + np.where(small, sizes[1], sizes[0] / odds)),
        -slopes[0],
    )


def _difference(more: Tail, less: Tail) -> Tail:
    """log of the difference of two probabilities."""
    apart = np.minimum(less.log_p - more.log_p, 0.0)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        kept = -np.expm1(apart)
        log_p = np.where(more.log_p == -math.inf, -math.inf, more.log_p + np.log(kept))
        size = (more.size + np.exp(apart) * less.size) / kept
    return Tail(log_p, np.where(np.isfinite(size), size, 1e15))
