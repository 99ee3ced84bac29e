"""The loss of a Poisson-sampled Gaussian whose sampled record is replaced by its opposite.

In units of the noise, with mu = 1 / noise_multiplier, w(v) = 1 - q + q e^{v - mu^2/2} and v = mu t,

    P has density phi(t) w(v),    Q has density phi(t) w(-v),    L(v) = log w(v) - log w(-v).

With K = q e^{-mu^2/2} / (1 - q) and the share s(v) = K e^v / (1 + K e^v) of the sampled part,

    dL/dv = s(v) + s(-v) > 0,    L = l  at  v = l/2 + asinh(sinh(l/2) / K),

so L increases strictly and its inverse is closed-form (with X = e^v, e^L = l solves a quadratic in X).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction

import numpy as np
from scipy import special

from exactdp.accounting.laws import layer
from exactdp.accounting.laws.law import Decay, Law, Moments, Nodes, bins, no_weight, sets, windows
from exactdp.accounting.pairs import base
from exactdp.accounting.pairs.base import Array, Masses, Quadrature
from exactdp.accounting.pairs.gaussian import Gaussian

_EPS = float(np.finfo(np.float64).eps)
_TINY = 1e-307  # what underflow may hide
_MAX_CELLS = 20_000


class ReplaceLaw(Law):
    """Law of L under P; (Q, P) has the same law, for t -> -t swaps P and Q.

    Args:
      noise_multiplier: noise standard deviation over the clip norm, > 0.
      sampling_probability: q in (0, 1).
    """

    def __init__(self, noise_multiplier: float, sampling_probability: float) -> None:
        self._gaussian = Gaussian(noise_multiplier)
        self.mu, self.q = self._gaussian.mu, sampling_probability
        self.variance = self.mu**2
        self._log_k = math.log(self.q) - math.log1p(-self.q) - 0.5 * self.variance
        # epsilon is nearly proportional to K: it is formed without rounding its exponent or its odds.
        half = 1 / (2 * Fraction(noise_multiplier) ** 2)
        odds = Fraction(self.q) / (1 - Fraction(self.q))
        rest = float(half - Fraction(float(half)))
        self._k = float(odds) * math.exp(-float(half)) * (1.0 - rest)
        # Where K underflows only its logarithm is used, whose rounding counts |log K| times.
        self._direct = self._k > 1e-280

    @property
    def support(self) -> tuple[float, float]:
        return -math.inf, math.inf

    @property
    def anchor(self) -> float:
        return 0.0

    @property
    def order_limit(self) -> float:
        return math.inf

    def _log1p_k(self, v: Array) -> Array:
        """log(1 + K e^v)."""
        far = np.logaddexp(0.0, self._log_k + v)
        if not self._direct:
            return far
        return np.where(v <= 60.0, np.log1p(self._k * np.exp(np.minimum(v, 60.0))), far)

    def log_density(self, u: Array) -> Array:
        """log w(u), which is P's density at v = u against N(0, mu^2)."""
        return math.log1p(-self.q) + self._log1p_k(u)

    def _share(self, v: Array) -> Array:
        if not self._direct:
            return special.expit(v + self._log_k)
        with np.errstate(over="ignore"):
            return self._k / (self._k + np.exp(-v))

    def loss(self, u: Array) -> Array:
        """L at v = u, with a small relative error everywhere."""
        size = np.abs(u)
        # Near 0: (1 + K e^v) / (1 + K e^-v) = 1 + (e^{2v} - 1) s(-v), without cancellation.
        near = np.log1p(np.expm1(2.0 * np.minimum(size, 1.0)) * self._share(-np.minimum(size, 1.0)))
        far = self._log1p_k(size) - np.log1p(self._k * np.exp(-size))
        return np.copysign(np.where(size <= 1.0, near, far), u)

    def preimage(self, loss: Array) -> tuple[Array, Array]:
        """v with L(v) = loss, and a bound of its absolute error."""
        half = 0.5 * np.abs(loss)
        with np.errstate(divide="ignore", over="ignore"):
            log_ratio = half + np.log(-np.expm1(-2.0 * half)) - math.log(2.0) - self._log_k
            ratio = (
                np.sinh(np.minimum(half, 300.0)) / self._k
                if self._direct
                else np.exp(np.minimum(log_ratio, 30.0))
            )
        near = np.arcsinh(ratio)
        far = log_ratio + math.log(2.0)  # asinh(x) = log(2x) + O(x^-2)
        use_far = log_ratio > 25.0
        v = half + np.where(use_far, far, near)
        lost = 3.0 + abs(self._log_k) * (use_far | (not self._direct))
        return np.copysign(v, loss), 2.0 * _EPS * v * lost

    def masses(self, edges: Array) -> Masses:
        v, slip = self.preimage(edges)
        p, p_error = self._mixed(v, slip)
        # Under Q the law of t is that of -t under P.
        q, q_error = self._mixed(-v[::-1], slip[::-1])
        return Masses(p, q[::-1], p_error, q_error[::-1])

    def _mixed(self, v: Array, slip: Array) -> tuple[Array, Array]:
        """Masses of the cells of v under P, the displacement `slip` of the edges counted as error."""
        q, mu = self.q, self.mu
        cells = self._gaussian.masses(v - 0.5 * self.variance)
        mass = (1.0 - q) * cells.q + q * cells.p
        t = v / mu
        density = (1.0 - q) * np.exp(-0.5 * t * t) + q * np.exp(-0.5 * (t - mu) ** 2)
        shift = (slip + 2.0 * _EPS * (np.abs(v) + self.variance)) / mu
        moved = 0.4 * shift * density
        error = (1.0 - q) * cells.q_error + q * cells.p_error + 4.0 * _EPS * mass
        error[:-1] += moved
        error[1:] += moved
        return mass, error

    def hockey_stick(self, epsilon: float) -> tuple[float, float]:
        # P(t > x) - e^eps Q(t > x) at L(mu x) = eps. There (1-q)(1 - e^eps) is the difference of the two
        # sampled densities, which splits the value into two Gaussian hockey sticks, both positive.
        if epsilon < 0.0:
            value, error = self.hockey_stick(-epsilon)
            scale = math.exp(epsilon)
            value = -math.expm1(epsilon) + scale * value
            return value, scale * error + 4.0 * _EPS * value
        (point,), (slip,) = (x.tolist() for x in self.preimage(np.array([float(epsilon)])))
        half = 0.5 * self.variance
        first, first_error = self._gaussian.hockey_stick(point - half)
        second, second_error = self._gaussian.hockey_stick(point + half)
        log_scale = epsilon - point - half
        scale = math.exp(log_scale)
        value = self.q * (first + scale * second)
        error = self.q * (first_error + scale * second_error) + 8.0 * _EPS * value
        # Either part changes with the point by -e^(..) Phi(-x).
        slip += 2.0 * _EPS * (point + self.variance + epsilon)
        log_tail = float(special.log_ndtr(-point / self.mu))
        pull = math.exp(min(point - half + log_tail, 700.0)) + math.exp(min(log_scale + log_tail, 700.0))
        return value, error + 1.1 * self.q * slip * pull + _TINY

    def _phase(self) -> float:
        """c with |arg w(v + ia)| + |arg w(-v - ia)| <= c a; also the supremum of dL/dv.

        The sum is the argument of (1 + K e^{v+ia})(1 + K e^{-v+ia}) = 1 + 2K cosh(v) e^{ia} + K^2 e^{2ia}.
        Turned back by a, its imaginary part is (K^2 - 1) sin a: for K <= 1 the argument is at most a.
        Each of the two is at most a, so 2a holds always.
        """
        return 1.0 if self._log_k <= 0.0 else 2.0

    def rule(
        self,
        *,
        order: float,
        frequency: float,
        slopes: tuple[float, float],
        cosine_power: float,
        log_target: float,
    ) -> Quadrature:
        """Trapezoid rule in v for w(v)^{1+z} w(-v)^{-z} against N(0, mu^2), z = order + iy, times a weight.

        On the strip, w = A + B e^{ia} with A, B > 0 has cos(a/2) (A + B) <= |w| <= A + B and an argument in
        [0, a] for 0 <= a < pi: the integrand grows by at most cos(a/2)^{-order} e^{c |y| a}, c of `_phase`.
        """
        variance = self.variance
        reach = self.mu * math.sqrt(2.0 * log_target + 4.0)
        return base.trapezoid(
            log_density=lambda v: -v * v / (2.0 * variance),
            score=lambda v: -v / variance,
            log_growth=lambda a: a * a / (2.0 * variance),
            half_width=math.inf,
            low=variance * (self.least_slope + slopes[0]) - reach,
            high=variance * slopes[1] + reach,
            frequency=self._phase() * frequency,
            cosine_power=order + cosine_power,
            log_target=log_target,
        )

    least_slope = -1.0
    """Of the moment of order -1 (Q's own mass); the others' are >= 0."""

    def steepest(self, order: float, u: float) -> float:
        """As `Weighable.steepest`."""
        back = float(self._share(np.array([-u]))[0]) if u > -math.inf else 1.0
        return min(1.0 + 2.0 * order, self._phase() * (1.0 + order), 1.0 + order + order * back)

    def inverse(self, loss: Array) -> Array:
        """v with L(v) = loss, about."""
        return self.preimage(loss)[0]

    def nodes(self, *, order: float, frequency: float, count: int) -> Nodes:
        rule = self.rule(
            order=order,
            frequency=frequency,
            slopes=(0.0, self.steepest(order, -math.inf)),
            cosine_power=0.0,
            log_target=44.0 + math.log1p(count),
        )
        tail = np.zeros(len(rule.u))
        tail[0], tail[-1] = rule.tails(self.least_slope, self.steepest(order, float(rule.u[-1])))
        return Nodes(self.loss(rule.u), rule.log_weight + self.log_density(rule.u), rule.log_alias, tail)

    def layer(self, low: float, high: float, *, power: int, rise: int) -> Moments | None:
        return layer.Layer(self, low, high, power=power, rise=rise)

    def decay(self, *, order: float, log_moment: float) -> Decay:
        return self.decay_weighted(no_weight, order=order, log_moment=log_moment)

    def decay_weighted(
        self, weight: Callable[[Array], tuple[Array, Array]], *, order: float, log_moment: float
    ) -> Decay:
        """Bounds from the density g = f / (dL/dv) of the tilted loss, f being the tilted density of v.

        With s = s(v), r = s(-v): (log f)' = -v/mu^2 + (1 + order) s + order r, where s rises and r falls;
        (log dL/dv)' = (s - r)/(s + r) * (1 - s - r), where the first factor rises (r/s = (1 + K e^v) /
        (e^{2v} + K e^v) falls) and s + r is monotone on either side of 0, which is a cell edge.
        """
        mu, variance = self.mu, self.variance
        high = variance * min(1.0 + 2.0 * order, self._phase() * (1.0 + order)) + 9.0 * mu
        right = np.linspace(0.0, high, min(_MAX_CELLS, int(high / min(mu / 30.0, 0.25)) + 2))
        left = -right[(right > 0.0) & (right <= 9.0 * mu)][::-1]
        v, zero = np.concatenate([left, right]), len(left)
        step, score = np.diff(v), -v / variance
        s, r = self._share(v), self._share(-v)
        h = s + r
        log_f = -0.5 * v * v / variance - math.log(mu * math.sqrt(2.0 * math.pi)) - log_moment
        log_weight, fall = weight(v)
        log_f = log_f + self.log_density(v) + order * self.loss(v) + log_weight
        with np.errstate(over="ignore", invalid="ignore", under="ignore", divide="ignore"):
            f = np.exp(log_f)
            low = score[1:] + (1.0 + order) * s[:-1] + order * r[1:] + np.minimum(fall[:-1], fall[1:])
            high_slope = score[:-1] + (1.0 + order) * s[1:] + order * r[:-1] + np.maximum(fall[:-1], fall[1:])
            mass = f[:-1] * np.where(np.abs(low) < 1e-12, step, np.expm1(low * step) / low)
            bend, rest = (s - r) / h, 1.0 - h
            sides = (slice(None, -1), slice(1, None))
            products = np.stack([bend[i] * rest[j] for i in sides for j in sides])
            g, g_low, g_high = f / h, low - products.max(axis=0), high_slope - products.min(axis=0)
            steepest = np.maximum(np.abs(g_low), np.abs(g_high))
            monotone = (g_low >= 0.0) | (g_high <= 0.0)
            variation = np.where(monotone, np.abs(np.diff(g)), g[:-1] * np.expm1(steepest * step))
        # Sets of losses: all between two edges, and both tails |v| >= edge (the middle has the steep peak).
        masses, variations = windows(mass, variation, g)
        both = _suffix_sums(mass)[zero : 2 * zero] + _prefix_sums(mass[:zero])
        inner = g[zero : 2 * zero] + g[-1] + g[zero:0:-1] + g[0]
        varied = _suffix_sums(variation)[zero : 2 * zero] + _prefix_sums(variation[:zero]) + inner
        loss = self.loss(v)
        joined = bins(np.nan_to_num(mass, nan=0.0), loss[:-1], loss[1:])
        return Decay(*sets(np.append(masses, both), np.append(variations, varied)), *joined)


def _suffix_sums(x: Array) -> Array:
    return np.cumsum(x[::-1])[::-1]


def _prefix_sums(x: Array) -> Array:
    """Sums of x[0 : n - j] for j = 0, 1, ..., n - 1."""
    return np.cumsum(x)[::-1]
