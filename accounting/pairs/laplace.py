"""The Laplace mechanism: noise of density exp(-|x| / b) / (2 b)."""

from __future__ import annotations

import dataclasses
import math
from fractions import Fraction

import numpy as np

from exactdp.accounting import validate
from exactdp.accounting.pairs import base, panels

_EPS = float(np.finfo(np.float64).eps)
_MAX_DEGREE = 100


@dataclasses.dataclass(frozen=True)
class Laplace(base.Pair):
    """Laplace noise on a query of the given L1 sensitivity.

    With c = sensitivity / noise_multiplier the loss lies in [-c, c]: P has mass 1/2 at c, e^-c / 2 at -c
    and the density e^((u - c) / 2) / 4 between; H(e^eps) = 1 - e^((eps - c) / 2) for |eps| <= c.

    Args:
      noise_multiplier: scale b of the noise divided by the clip norm, > 0.
      sensitivity: distance of the two centres in clip norms, > 0.

    Raises:
      ValueError: an argument is not finite or not positive.

    Source: Dwork, McSherry, Nissim and Smith 2006; loss distribution: Sommer, Meiser and Mohammadi 2019
    (IACR ePrint 2018/820).
    """

    noise_multiplier: float
    sensitivity: float = 1.0

    def __post_init__(self) -> None:
        self.plain()
        validate.positive("noise_multiplier", self.noise_multiplier)
        validate.positive("sensitivity", self.sensitivity)
        validate.positive("sensitivity / noise_multiplier", self.width)

    @property
    def width(self) -> float:
        """c, the largest loss: one release is pure DP with this epsilon."""
        return self.sensitivity / self.noise_multiplier

    @property
    def laplace_width(self) -> Fraction | None:
        return Fraction(self.sensitivity) / Fraction(self.noise_multiplier)

    @property
    def symmetric(self) -> bool:
        return True

    @property
    def support(self) -> tuple[float, float]:
        return -self.width, self.width

    def hockey_stick(self, epsilon: float, *, reverse: bool = False) -> tuple[float, float]:
        c = self.width
        if epsilon >= c:
            # c itself is rounded: right above it, the true value may be of the size of that rounding.
            return 0.0, (_EPS * c if epsilon <= c * (1.0 + 2 * _EPS) else 0.0)
        if epsilon <= -c:
            return -math.expm1(epsilon), 4 * _EPS
        half = 0.5 * (epsilon - c)
        return -math.expm1(half), 4 * _EPS * -math.expm1(half) + _EPS * c * math.exp(half)

    def masses(self, edges: base.Array) -> base.Masses:
        c = self.width
        inside = np.clip(edges, -c, c)
        low, high = np.append(-c, inside), np.append(inside, c)
        # From the lower end for P, from the upper end for Q: no difference of exponentials.
        with np.errstate(under="ignore"):
            p = 0.5 * np.exp(0.5 * (low - c)) * np.expm1(0.5 * (high - low))
            q = -0.5 * np.exp(-0.5 * (low + c)) * np.expm1(-0.5 * (high - low))
            # high - low is exact up to one rounding of a difference of that size.
            unit = 8 * _EPS * (1.0 + c)
            p_error, q_error = unit * p, unit * q
            first, last = np.searchsorted(edges, [-c, c], side="left")
            tail = 0.5 * math.exp(-c)
        for cell, dp, dq in ((first, tail, 0.5), (last, 0.5, tail)):
            p[cell] += dp
            q[cell] += dq
            p_error[cell] += 4 * _EPS * (1.0 + c) * dp
            q_error[cell] += 4 * _EPS * (1.0 + c) * dq
        return base.Masses(p, q, p_error, q_error, telescoping=False)

    def quadrature(
        self, *, slopes: tuple[float, float], frequency: float, cosine_power: float, log_target: float
    ) -> base.Quadrature:
        c = self.width
        steepest = max(abs(slopes[0]) + cosine_power, abs(slopes[1])) + 0.5
        count, degree = _plan(c, steepest, frequency, cosine_power, log_target)
        x, log_weight = panels.gauss(degree)
        h = c / count
        centres = h * (2.0 * np.arange(count) + 1.0 - count)
        u = (centres[:, None] + h * x[None, :]).ravel()
        inner = np.tile(log_weight, count) + math.log(0.25 * h) - 0.5 * (u + c)
        ends = np.array([-c, *u, c])
        weights = np.concatenate([[math.log(0.5)], inner, [math.log(0.5) - c]])
        return base.Quadrature(ends, weights, -log_target)

    def density(self, *, slope: float) -> base.DensityCells:
        c = self.width
        count = int(min(max(60.0, 20.0 * (slope + 1.0) * c), 5000.0))
        u = np.linspace(-c, c, count)
        return base.DensityCells(u, math.log(0.25) - 0.5 * (u + c), np.full(count, -0.5), open_right=False)


def _plan(
    c: float, steepest: float, frequency: float, cosine_power: float, log_target: float
) -> tuple[int, int]:
    """Number of panels of [-c, c] and of Gauss nodes in each, their product near its least.

    On a panel of half-width h, an integrand f that is at most M on the Bernstein ellipse rho is integrated
    with error 8 h M rho^(-2n) rho / (rho - 1): twice the length times the best approximation of degree
    2n - 1 (Trefethen 2013, Theorems 8.2 and 19.3). The ellipse reaches (rho + 1/rho) h / 2 along the real
    line, so M is at most exp(steepest (h + reach) + growth) times f anywhere on the panel, and the panel's
    integral at least 2 h times the least f.
    """
    best, rho = (math.inf, 0, 0), _RHO
    for count in np.unique(np.geomspace(1.0, 1e5, 60).astype(int)):
        h = c / float(count)
        reach, rise = 0.5 * h * (rho + 1.0 / rho), 0.5 * h * (rho - 1.0 / rho)
        usable = rise < 3.1
        if not usable.any():
            continue
        r, a = rho[usable], rise[usable]
        growth = steepest * (h + reach[usable]) + frequency * a - cosine_power * np.log(np.cos(0.5 * a))
        nodes = (log_target + growth + np.log(4.0 * r / (r - 1.0))) / (2.0 * np.log(r))
        degree = int(math.ceil(float(nodes.min())))
        if degree <= _MAX_DEGREE:
            best = min(best, (float(count * degree), int(count), degree))
        elif best[0] < math.inf:
            break
        if count * 4 > best[0]:
            break
    if best[0] > 200_000:
        raise base.Unsuitable(f"quadrature needs {best[0]} nodes")
    return best[1], max(best[2], 2)


_RHO = 1.0 + np.geomspace(0.05, 60.0, 60)
