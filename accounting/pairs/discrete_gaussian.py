"""The discrete Gaussian mechanism on the integers."""

from __future__ import annotations

import dataclasses
import functools
import math

import numpy as np
from scipy import special

from exactdp.accounting import validate
from exactdp.accounting.pairs import atoms, base, gaussian

_EPS = float(np.finfo(np.float64).eps)
_UNDERFLOW = 1e-307  # SciPy's ndtr returns 0 from about 1e-309 on
_REACH = 38.7
"""Masses further out, in standard deviations, are below every float64."""
_DIRECT = 5_000.0
"""Up to this noise multiplier the atoms are listed one by one."""


@dataclasses.dataclass(frozen=True)
class DiscreteGaussian(atoms.Atomic):
    """Noise with Pr[x] proportional to exp(-x^2 / (2 noise_multiplier^2)) on an integer query.

    P = N_Z(sensitivity, sigma^2) and Q = N_Z(0, sigma^2) with sigma = noise_multiplier; the losses
    u = sensitivity (x - sensitivity / 2) / sigma^2 form a lattice.

    Args:
      noise_multiplier: sigma, in the integers' unit, in [1e-3, 1e8]. (It is the standard deviation up to
        terms of size exp(-2 pi^2 sigma^2).)
      sensitivity: largest change of the query, an integer >= 1, in the same unit.

    Raises:
      ValueError: an argument is outside its range.

    Source: Canonne, Kamath and Steinke 2020 (arXiv 2004.00010), Definition 1.
    """

    noise_multiplier: float
    sensitivity: int = 1

    def __post_init__(self) -> None:
        self.plain()
        sigma = validate.positive("noise_multiplier", self.noise_multiplier)
        if not 1e-3 <= sigma <= 1e8:
            raise ValueError(f"noise_multiplier must be in [1e-3, 1e8], got {sigma}")
        if validate.count("sensitivity", self.sensitivity, minimum=1) > 2**50:
            raise ValueError(f"sensitivity must be <= 2**50, got {self.sensitivity}")

    @property
    def symmetric(self) -> bool:
        return True

    @property
    def support(self) -> tuple[float, float]:
        return -math.inf, math.inf

    def _loss(self, x: base.Array) -> base.Array:
        distance = float(self.sensitivity)
        return distance * (x - 0.5 * distance) / float(self.noise_multiplier) ** 2

    def _last_at_or_below(self, u: base.Array) -> base.Array:
        """The largest integer x whose stored loss is <= u."""
        sigma, distance = float(self.noise_multiplier), float(self.sensitivity)
        x = np.floor(np.clip(u * sigma**2 / distance + 0.5 * distance, -(2.0**52), 2.0**52))
        x = np.where(self._loss(x) > u, x - 1.0, x)
        return np.where(self._loss(x + 1.0) <= u, x + 1.0, x)

    @functools.cached_property
    def _total(self) -> float:
        """Sum of exp(-x^2 / 2 sigma^2) over the integers; by Poisson summation where sigma is large."""
        sigma = float(self.noise_multiplier)
        if sigma > 3.0:
            return sigma * math.sqrt(2.0 * math.pi) * (1.0 + 2.0 * math.exp(-2.0 * math.pi**2 * sigma**2))
        x = np.arange(1, int(_REACH * sigma) + 3)
        with np.errstate(under="ignore"):
            return 1.0 + 2.0 * math.fsum(np.exp(-0.5 * (x / sigma) ** 2))

    def _pmf(self, x: base.Array) -> base.Array:
        with np.errstate(under="ignore"):
            return np.exp(-0.5 * (x / float(self.noise_multiplier)) ** 2) / self._total

    def _build(self) -> atoms.Atoms:
        sigma, distance = float(self.noise_multiplier), int(self.sensitivity)
        wide = int(_REACH * sigma) + 2
        if distance > 2 * wide:  # the two laws are disjoint to the last float
            x = np.concatenate([np.arange(-wide, wide + 1), np.arange(distance - wide, distance + wide + 1)])
        else:
            x = np.arange(-wide, distance + wide + 1)
        x = x.astype(np.float64)
        # A mass at z standard deviations has the relative rounding z^2; z^2 > 1500 is no float.
        return atoms.Atoms(
            self._loss(x), self._pmf(x - distance), self._pmf(x), _EPS * (12.0 + 0.5 * _REACH**2)
        )

    @property
    def _listed(self) -> bool:
        return float(self.noise_multiplier) <= _DIRECT

    def masses(self, edges: base.Array) -> base.Masses:
        if self._listed:
            return super().masses(edges)
        x = self._last_at_or_below(edges)
        p, p_error = self._cells(x - float(self.sensitivity))
        q, q_error = self._cells(x)
        moved = 4 * _EPS * np.minimum(1.0 + np.abs(np.append(edges, edges[-1])), 1e3)
        return base.Masses(p, q, p_error + moved * p, q_error)

    def _tail(self, k: base.Array) -> base.Array:
        """Pr[noise >= k] for k >= 1 by Euler-Maclaurin at the midpoint k - 1/2.

        sum_(x >= k) f(x) = int_(k-1/2)^inf f + f'/24 - 7 f'''/5760 + 31 f^(5)/967680 - ..., whose next
        term is below 1e-18 of the tail for sigma > 5000.
        """
        sigma = float(self.noise_multiplier)
        z = (k - 0.5) / sigma
        with np.errstate(under="ignore"):
            point = np.exp(-0.5 * z * z) / math.sqrt(2.0 * math.pi)
            # Derivatives of the normal density are Hermite polynomials: f^(n) = (-1)^n He_n f.
            terms = -z / (24.0 * sigma**2) + 7.0 * (z**3 - 3.0 * z) / (5760.0 * sigma**4)
            terms = terms - 31.0 * (z**5 - 10.0 * z**3 + 15.0 * z) / (967680.0 * sigma**6)
            return special.ndtr(-z) + point * terms

    def _cells(self, last: base.Array) -> tuple[base.Array, base.Array]:
        """Masses of the noise up to `last[0]`, from there to `last[1]`, ..., and bounds of their errors."""
        lower, upper = self._below(last), self._below(-last - 1.0)
        z = last / float(self.noise_multiplier)
        error = np.minimum(lower, upper) * 8.0 * _EPS * (2.0 + z * z)
        left = last < 0.0
        inner = np.where(left[1:], lower[1:] - lower[:-1], upper[:-1] - upper[1:])
        straddle = left[:-1] & ~left[1:]
        inner = np.where(straddle, 1.0 - lower[:-1] - upper[1:], inner)
        mass = np.concatenate([lower[:1], inner, upper[-1:]])
        between = error[1:] + error[:-1] + np.where(straddle, 2 * _EPS, 0.0)
        return np.maximum(mass, 0.0), np.concatenate([error[:1], between, error[-1:]])

    def _below(self, last: base.Array) -> base.Array:
        """Pr[noise <= last]."""
        tail = self._tail(np.where(last < 0.0, -last, last + 1.0))
        return np.where(last < 0.0, tail, 1.0 - tail)

    def hockey_stick(self, epsilon: float, *, reverse: bool = False) -> tuple[float, float]:
        if self._listed:
            value, error = super().hockey_stick(epsilon)
            return value, error + _UNDERFLOW
        x = self._last_at_or_below(np.array([epsilon]))
        (_, p), (_, p_error) = self._cells(x - float(self.sensitivity))
        (_, q), (_, q_error) = self._cells(x)
        scale = math.exp(min(epsilon, 700.0))
        value = max(float(p) - scale * float(q), 0.0)
        moved = 4 * _EPS * (2.0 + abs(epsilon)) * float(p)
        return value, min(
            float(p_error) + scale * float(q_error) + moved, float(p) + float(p_error)
        ) + _UNDERFLOW

    def quadrature(
        self, *, slopes: tuple[float, float], frequency: float, cosine_power: float, log_target: float
    ) -> base.Quadrature:
        sigma, distance = float(self.noise_multiplier), float(self.sensitivity)
        spacing = distance / sigma**2
        # Where a trapezoid rule for the continuous Gaussian has longer steps than the lattice, both sums
        # are the same integral to within the aliasing error of the longer step (Poisson summation).
        smooth = gaussian.Gaussian(sigma, distance)
        try:
            rule = smooth.quadrature(
                slopes=slopes, frequency=frequency, cosine_power=cosine_power, log_target=log_target + 1.5
            )
            if rule.step > 2.0 * spacing:
                return dataclasses.replace(rule, log_alias=-log_target)
        except base.Unsuitable:
            pass
        reach = sigma * math.sqrt(2.0 * log_target + 4.0) + 2.0
        low = math.floor(min(slopes[0], 0.0) * distance - reach)
        high = math.ceil(max(slopes[1], 0.0) * distance + reach)
        if high - low > 200_000:
            raise base.Unsuitable(f"quadrature needs {high - low} nodes")
        x = np.arange(low, high + 1, dtype=np.float64)
        log_weight = -0.5 * (x / sigma) ** 2 - math.log(self._total)
        # Beyond the ends the masses fall by at least the log density's slope there, from x to x + 1.
        return base.Quadrature(
            self._loss(x), log_weight, -math.inf, spacing, -x[0] / distance, -x[-1] / distance
        )
