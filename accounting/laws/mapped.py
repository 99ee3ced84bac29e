"""The loss of a pair seen through hidden Poisson coins (and, at probability 1, of the pair itself).

With w(u) = 1 - q + q e^u, the remove direction ((1-q)Q + qP against Q) has loss log w(u) and the add
direction (Q against (1-q)Q + qP) has loss -log w(u). Source: Zhu, Dong and Wang 2022
(arXiv 2106.08567), Theorem 11.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import final

import numpy as np
from scipy import special

from exactdp.accounting.laws import layer
from exactdp.accounting.laws.law import Atom, Decay, Law, Moments, Nodes, bins, no_weight, sets, windows
from exactdp.accounting.pairs.base import Array, Masses, Pair, Quadrature

NEAR_LIMIT = 0.97
"""Share of a pair's largest slope up to which its quadrature and its cells are asked for."""

_EPS = float(np.finfo(np.float64).eps)


def directions(pair: Pair, *, sampling_probability: float) -> tuple[Law, Law]:
    """The laws of the loss in the remove and in the add direction."""
    remove = MappedLaw(pair, sampling_probability, add=False)
    if sampling_probability == 1.0 and pair.symmetric:
        return remove, remove
    return remove, MappedLaw(pair, sampling_probability, add=True)


@final
class MappedLaw(Law):
    """Law of +log w(u) under (1-q)Q + qP, or of -log w(u) under Q."""

    def __init__(self, pair: Pair, sampling_probability: float, *, add: bool) -> None:
        self.pair, self.q, self.add = pair, sampling_probability, add
        q = sampling_probability
        visible, lost = q * pair.infinity_mass, (pair.missing_mass if q == 1.0 else 0.0)
        self.infinity_mass, self.missing_mass = (lost, visible) if add else (visible, lost)
        self._sign = -1.0 if add else 1.0
        self._log_odds = math.inf if q == 1.0 else math.log(q) - math.log1p(-q)

    def log_w(self, u: Array) -> Array:
        """log w(u)."""
        if self.q == 1.0:
            return np.asarray(u, dtype=np.float64)
        near = np.log1p(self.q * np.expm1(np.minimum(u, 30.0)))
        with np.errstate(over="ignore", under="ignore"):
            far = math.log(self.q) + u + np.log1p(np.exp(-np.maximum(u, 30.0) - self._log_odds))
        return np.where(u <= 30.0, near, far)

    def inverse(self, loss: Array) -> Array:
        """u with log w(u) = loss; -inf at or below log(1-q)."""
        if self.q == 1.0:
            return loss
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            near = np.log1p(np.expm1(np.minimum(loss, 30.0)) / self.q)
            far = loss - math.log(self.q) + np.log1p((self.q - 1.0) * np.exp(-np.maximum(loss, 30.0)))
        u = np.where(loss <= 30.0, near, far)
        return np.where(loss <= math.log1p(-self.q), -np.inf, u)

    @property
    def support(self) -> tuple[float, float]:
        low, high = (float(x) for x in self.log_w(np.array(self._u_support())))
        return (-high, -low) if self.add else (low, high)

    def _u_support(self) -> tuple[float, float]:
        low, high = self.pair.support
        return (-math.inf if self.pair.missing_mass and self.q < 1.0 else low), high

    @property
    def gaussian_mu(self) -> float | None:
        return self.pair.gaussian_mu if self.q == 1.0 else None

    @property
    def laplace_width(self) -> Fraction | None:
        return self.pair.laplace_width if self.q == 1.0 else None

    @property
    def binary(self) -> tuple[Atom, Atom] | None:
        atoms, q = self.pair.binary, self.q
        if atoms is None or (self.pair.missing_mass and q < 1.0):
            return None
        losses = self._sign * self.log_w(np.array([atoms[0][0], atoms[1][0]]))
        mapped = []
        for loss, (_, p_mass, q_mass) in zip(losses, atoms, strict=True):
            mixed = (1.0 - q) * q_mass + q * p_mass
            mapped.append((float(loss), q_mass, mixed) if self.add else (float(loss), mixed, q_mass))
        return (mapped[1], mapped[0]) if self.add else (mapped[0], mapped[1])

    @property
    def anchor(self) -> float:
        if self.q < 1.0:
            return self._sign * math.log1p(-self.q)
        return 0.0

    @property
    def order_limit(self) -> float:
        low, high = self.pair.slope_limits
        if not self.add:
            return high - 1.0
        return -low if self.q == 1.0 else math.inf

    def hockey_stick(self, epsilon: float) -> tuple[float, float]:
        q = self.q
        if q == 1.0:
            return self.pair.hockey_stick(epsilon, reverse=self.add)
        # Remove: q H(e^u) with u the preimage of the loss. Add: e^eps q e^u H_rev(e^-u).
        log_w = self._sign * epsilon
        if log_w <= math.log1p(-q):
            return (0.0, 0.0) if self.add else (-math.expm1(epsilon), 4.0 * _EPS)
        u = float(self.inverse(np.array([log_w]))[0])
        # The preimage itself is rounded: expm1(log_w)/q loses digits near -1.
        slip = 4.0 * _EPS * (1.0 + abs(u) + (math.exp(-u) if log_w < 0.0 else 0.0))
        low, high = (self._scaled(epsilon, u + shift) for shift in (slip, -slip))
        value, error = self._scaled(epsilon, u)
        spread = max(abs(low[0] - value), abs(high[0] - value))
        return value, error + spread + 8.0 * _EPS * value * (1.0 + abs(epsilon) + abs(u))

    def _scaled(self, epsilon: float, u: float) -> tuple[float, float]:
        scale = math.exp(epsilon + math.log(self.q) + u) if self.add else self.q
        value, error = self.pair.hockey_stick(-u if self.add else u, reverse=self.add)
        return scale * value, scale * error

    def masses(self, edges: Array) -> Masses:
        q = self.q
        u = self.inverse(self._sign * edges)
        if self.add:
            u = u[::-1]
        known = np.isfinite(u)
        if not known.any():  # every edge lies where no finite u maps to
            whole = self.pair.masses(np.zeros(1))
            p, q_mass, p_error, q_error = (
                np.array([x.sum()]) for x in (whole.p, whole.q, whole.p_error, whole.q_error)
            )
            base = Masses(p, q_mass, p_error, q_error, whole.telescoping)
        else:
            base = self.pair.masses(u[known])
        empty = np.zeros(len(edges) + 1 - len(base.p))
        p, q_mass, p_error, q_error = (
            np.concatenate([empty, x]) for x in (base.p, base.q, base.p_error, base.q_error)
        )
        if self.pair.missing_mass and q < 1.0:
            q_mass[len(empty)] += self.pair.missing_mass
        mixed, mixed_error = (1.0 - q) * q_mass + q * p, (1.0 - q) * q_error + q * p_error
        if self.add:
            return Masses(q_mass[::-1], mixed[::-1], q_error[::-1], mixed_error[::-1], base.telescoping)
        return Masses(mixed, q_mass, mixed_error, q_error, base.telescoping)

    def nodes(self, *, order: float, frequency: float, count: int) -> Nodes:
        # Slopes of the integrand against Q's density; 0 and 1 for the moments of order -1 and 0.
        slopes = (-order * self.q, 1.0) if self.add else (0.0, 1.0 + order)
        rule = self.pair.quadrature(
            slopes=slopes,
            frequency=frequency,
            cosine_power=order if self.add and self.q < 1.0 else 0.0,
            log_target=44.0 + math.log1p(count),
        )
        log_w = self.log_w(rule.u)
        share_low, share_high = special.expit(rule.u[[0, -1]] + self._log_odds)
        ends = rule.tails(-order * share_low, share_high) if self.add else rule.tails(0.0, 1.0 + order)
        tail = np.zeros(len(log_w))
        tail[0], tail[-1] = ends[0], tail[-1] + ends[1]
        log_p = rule.log_weight if self.add else rule.log_weight + log_w
        loss = self._sign * log_w
        if self.pair.missing_mass and self.q < 1.0:
            low = math.log1p(-self.q)
            loss = np.append(loss, self._sign * low)
            log_p = np.append(log_p, math.log(self.pair.missing_mass) + (0.0 if self.add else low))
            tail = np.append(tail, 0.0)
        return Nodes(loss, log_p, rule.log_alias, tail)

    least_slope = 0.0

    def loss(self, u: Array) -> Array:
        """L(u)."""
        return self._sign * self.log_w(u)

    def log_density(self, u: Array) -> Array:
        """log of P's density against Q's, of the sampled pair; in the remove direction."""
        return self.log_w(u)

    def rule(
        self,
        *,
        order: float,
        frequency: float,
        slopes: tuple[float, float],
        cosine_power: float,
        log_target: float,
    ) -> Quadrature:
        """As `Weighable.rule`; in the remove direction."""
        return self.pair.quadrature(
            slopes=(slopes[0], min(slopes[1], NEAR_LIMIT * self.pair.slope_limits[1])),
            frequency=frequency,
            cosine_power=cosine_power,
            log_target=log_target,
        )

    def steepest(self, order: float, u: float) -> float:
        """As `Weighable.steepest`; in the remove direction."""
        return 1.0 + order

    def layer(self, low: float, high: float, *, power: int, rise: int) -> Moments | None:
        if self.add or self.pair.infinity_mass or self.pair.missing_mass:
            return None
        return layer.Layer(self, low, high, power=power, rise=rise)

    def decay(self, *, order: float, log_moment: float) -> Decay | None:
        return self.decay_weighted(no_weight, order=order, log_moment=log_moment)

    def decay_weighted(
        self, weight: Callable[[Array], tuple[Array, Array]], *, order: float, log_moment: float
    ) -> Decay | None:
        """`decay` of the law times a weight of u.

        Args:
          weight: log of the weight and its slope, which is monotone.
          order: the tilt.
          log_moment: log of the moment of the law with its weight.
        """
        steepest = NEAR_LIMIT * self.pair.slope_limits[1]  # a weight may allow for larger orders
        cells = self.pair.density(slope=1.0 if self.add else min(1.0 + order, steepest))
        if cells is None:
            return None
        u, step = cells.u, np.diff(cells.u)
        share = special.expit(u + self._log_odds)  # w'/w
        log_weight, fall = weight(u)
        exponent = -order if self.add else 1.0 + order
        log_f = cells.log_density + exponent * self.log_w(u) - log_moment + log_weight
        with np.errstate(over="ignore", invalid="ignore", under="ignore", divide="ignore"):
            f = np.exp(log_f)
            slope_low, slope_high = _slopes(cells.score, exponent * share, fall)
            mass = f[:-1] * np.where(np.abs(slope_low) < 1e-12, step, np.expm1(slope_low * step) / slope_low)
            # Density of the loss: g = f / |dL/du|, whose logarithmic slope is that of f less (1 - share).
            log_share = -np.log1p(np.exp(-u - self._log_odds))
            g = np.exp(log_f - log_share)
            g_low, g_high = _slopes(cells.score, (exponent + 1.0) * share, fall)
            g_low, g_high = g_low - 1.0, g_high - 1.0
            if self.q == 1.0:
                g_low, g_high = slope_low, slope_high
            steepest = np.maximum(np.abs(g_low), np.abs(g_high))
            variation = np.where(
                (g_low >= 0) | (g_high <= 0), np.abs(np.diff(g)), g[:-1] * np.expm1(steepest * step)
            )
        log_w = self.log_w(u)
        joined = bins(np.nan_to_num(mass, nan=0.0), log_w[:-1], log_w[1:])
        if self.add:
            joined = joined[0][::-1], -joined[2][::-1], -joined[1][::-1]
        return Decay(*sets(*windows(mass, variation, g)), *joined)


def _slopes(score: Array, *pulls: Array) -> tuple[Array, Array]:
    """Bracket of score + pulls on each cell: the score falls, each pull is monotone."""
    low, high = score[1:], score[:-1]
    for pull in pulls:
        low = low + np.minimum(pull[:-1], pull[1:])
        high = high + np.maximum(pull[:-1], pull[1:])
    return low, high
