"""The Gaussian mechanism: P = N(sensitivity, sigma^2), Q = N(0, sigma^2)."""

from __future__ import annotations

import dataclasses
import math

import numpy as np
from scipy import special

from exactdp.accounting import validate
from exactdp.accounting.pairs import base

_EPS = float(np.finfo(np.float64).eps)
_NARROW = 0.1  # of a cell's width times the size of the density's derivatives


@dataclasses.dataclass(frozen=True)
class Gaussian(base.Pair):
    """Gaussian noise of standard deviation `noise_multiplier` on a query of the given L2 sensitivity.

    With mu = sensitivity / noise_multiplier the loss u is N(mu^2/2, mu^2) under P and N(-mu^2/2, mu^2)
    under Q, and H(e^eps) = Phi(mu/2 - eps/mu) - e^eps Phi(-mu/2 - eps/mu).

    Args:
      noise_multiplier: noise standard deviation divided by the clip norm, > 0.
      sensitivity: distance of the two means in clip norms, > 0: 1 for add/remove, 2 for replacement.

    Raises:
      ValueError: an argument is not finite or not positive.

    Source: Balle and Wang 2018 (arXiv 1805.06530), Theorem 8.
    """

    noise_multiplier: float
    sensitivity: float = 1.0

    def __post_init__(self) -> None:
        self.plain()
        validate.positive("noise_multiplier", self.noise_multiplier)
        validate.positive("sensitivity", self.sensitivity)
        if not 1e-150 < self.mu < 1e150:
            raise ValueError(f"sensitivity / noise_multiplier must be in (1e-150, 1e150), got {self.mu}")

    @property
    def mu(self) -> float:
        """Distance of the means in standard deviations."""
        return self.sensitivity / self.noise_multiplier

    @property
    def gaussian_mu(self) -> float | None:
        return self.mu

    @property
    def symmetric(self) -> bool:
        return True

    @property
    def support(self) -> tuple[float, float]:
        return -math.inf, math.inf

    def hockey_stick(self, epsilon: float, *, reverse: bool = False) -> tuple[float, float]:
        mu = self.mu
        a, b = 0.5 * mu - epsilon / mu, -0.5 * mu - epsilon / mu
        first, second = special.log_ndtr(a), epsilon + special.log_ndtr(b)
        if not second < first:
            return 0.0, math.exp(min(first, 0.0)) * 1e-13
        value = math.exp(first) * -math.expm1(second - first)
        return value, 8 * _EPS * math.exp(first) * (4 + abs(first) + abs(epsilon) + a * a)

    def masses(self, edges: base.Array) -> base.Masses:
        mu = self.mu
        (p, p_error), (q, q_error) = (
            _normal_cells(edges / mu - sign * 0.5 * mu, np.abs(edges / mu) + 0.5 * mu) for sign in (1, -1)
        )
        return base.Masses(p, q, p_error, q_error)

    def quadrature(
        self, *, slopes: tuple[float, float], frequency: float, cosine_power: float, log_target: float
    ) -> base.Quadrature:
        mu, variance = self.mu, self.mu**2
        reach = mu * math.sqrt(2.0 * log_target + 4.0)
        low = variance * (min(slopes[0], 0.0) - 0.5) - reach
        high = variance * (max(slopes[1], 0.0) - 0.5) + reach
        return base.trapezoid(
            log_density=lambda u: -((u + 0.5 * variance) ** 2) / (2.0 * variance),
            score=lambda u: -(u + 0.5 * variance) / variance,
            log_growth=lambda a: a * a / (2.0 * variance),
            half_width=math.inf,
            low=low,
            high=high,
            frequency=frequency,
            cosine_power=cosine_power,
            log_target=log_target,
        )

    def density(self, *, slope: float) -> base.DensityCells:
        mu, variance = self.mu, self.mu**2
        z = np.linspace(-9.0, slope * mu + 9.0, 200 + int(20 * slope * mu) if slope * mu < 1e3 else 20_000)
        u = mu * z - 0.5 * variance
        return base.DensityCells(u, -0.5 * z * z - math.log(mu * math.sqrt(2 * math.pi)), -z / mu)


def _normal_cells(z: base.Array, size: base.Array) -> tuple[base.Array, base.Array]:
    """Masses of a standard normal between edges `z`, and bounds of their absolute errors.

    Args:
      z: edges, increasing.
      size: sum of the magnitudes that each edge is the difference of; its rounding moves the edge.
    """
    lower, upper = special.ndtr(z), special.ndtr(-z)
    left = z <= 0
    mass = np.empty(len(z) + 1)
    mass[0], mass[-1] = lower[0], upper[-1]
    # Differences are taken on the side of the smaller tail, where they lose least.
    inner = np.where(left[1:], lower[1:] - lower[:-1], upper[:-1] - upper[1:])
    straddle = left[:-1] & ~left[1:]
    mass[1:-1] = np.where(straddle, 1.0 - lower[:-1] - upper[1:], inner)
    # An edge off by eps * size moves its tail by the hazard rate (at most 1 + |z|) times that.
    unit = 4.0 * _EPS * (1.0 + z * z + (1.0 + np.abs(z)) * size)
    tail = np.minimum(lower, upper) * unit
    error = np.empty_like(mass)
    error[0], error[-1] = tail[0], tail[-1]
    error[1:-1] = tail[1:] + tail[:-1] + np.where(straddle, _EPS, 0.0)
    narrow = np.flatnonzero(np.diff(z) * (np.abs(z[:-1]) + 4.0) <= _NARROW)
    if len(narrow):
        mass[1 + narrow], rounding = _narrow_cells(z[narrow], z[narrow + 1])
        moved = 4.0 * _EPS * size * np.exp(-0.5 * z * z) / math.sqrt(2.0 * math.pi)
        error[1 + narrow] = rounding + moved[narrow] + moved[narrow + 1]
    return np.maximum(mass, 0.0), error


def _narrow_cells(low: base.Array, high: base.Array) -> tuple[base.Array, base.Array]:
    """Masses of narrow cells by quadrature, not by a difference, and bounds of what rounding adds.

    Four Gauss-Legendre nodes leave out 5.6e-10 w^9 max |phi^(8)| of a cell of width w, and |phi^(8)| is below
    (|z| + 4)^8 phi: 6e-18 of the mass where w (|z| + 4) <= 0.1.
    """
    x, weight = np.polynomial.legendre.leggauss(4)
    half, middle = 0.5 * (high - low), 0.5 * (high + low)
    nodes = middle[:, None] + half[:, None] * x[None, :]
    mass = half * (np.exp(-0.5 * nodes**2) @ weight) / math.sqrt(2.0 * math.pi)
    return mass, 4.0 * _EPS * mass * (4.0 + middle**2)
