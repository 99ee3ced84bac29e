"""What every dominating pair offers to the accountants.

A pair (P, Q) is described through u = log dP/dQ alone: two pairs with the same law of u have the same
divergences (arXiv 2106.08567). The accountants never ask which family a pair belongs to.
"""

from __future__ import annotations

import abc
import dataclasses
import math
from collections.abc import Callable
from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from exactdp.accounting.laws.law import Law

Array = NDArray[np.float64]


class Unsuitable(ArithmeticError):
    """An engine cannot certify this query; the router tries the next one."""


@dataclasses.dataclass(frozen=True)
class Quadrature:
    """Nodes that integrate functions of u against Q, with what their error is.

    A function W(u) whose logarithmic slope on the real line lies in the `slopes` asked for, and that
    satisfies |W(u + ia)| <= W(u) exp(frequency * |a|) cos(a / 2)^(-cosine_power), is integrated with

        |sum_i exp(log_weight_i) W(u_i) - E_Q[W]| <= exp(log_alias) E_Q[|W|] + tails,

    where the tails are what a trapezoid rule of this `step` leaves out beyond its end nodes: there the
    integrand falls at least as fast as its slope at the end says (the density is log-concave).

    Attributes:
      u: nodes, increasing, shape [n].
      log_weight: log of the Q-weights, shape [n].
      log_alias: log of the relative aliasing error; `-inf` for exact sums.
      step: distance of the nodes of a trapezoid rule; 0 where there are no tails.
      score_low: slope of the log density at the first node.
      score_high: slope of the log density at the last node.
    """

    u: Array
    log_weight: Array
    log_alias: float
    step: float = 0.0
    score_low: float = 0.0
    score_high: float = 0.0

    def tails(self, slope_low: float, slope_high: float) -> tuple[float, float]:
        """Ratios of all that is left out on either side to the first and the last term.

        Args:
          slope_low: lower bound of the integrand's logarithmic slope left of the first node.
          slope_high: upper bound of it right of the last node.

        Raises:
          Unsuitable: the integrand need not fall there.
        """
        if self.step == 0.0:
            return 0.0, 0.0
        low, high = self.score_low + slope_low, -(self.score_high + slope_high)
        if low <= 0.0 or high <= 0.0:
            raise Unsuitable("quadrature range does not reach the falling tails")
        low, high = min(low * self.step, 700.0), min(high * self.step, 700.0)
        return 1.0 / math.expm1(low), 1.0 / math.expm1(high)


@dataclasses.dataclass(frozen=True)
class DensityCells:
    """The density of u under Q on cells, with brackets of its logarithmic slope.

    Attributes:
      u: cell edges, increasing, shape [n].
      log_density: log density of u under Q at the edges, shape [n].
      score: derivative of `log_density` at the edges, non-increasing (log-concave), shape [n].
      open_right: whether the density goes on beyond the last edge (else it ends there with a jump).
    """

    u: Array
    log_density: Array
    score: Array
    open_right: bool = True


@dataclasses.dataclass(frozen=True)
class Masses:
    """P- and Q-mass of the cells (-inf, e_0], (e_0, e_1], ..., (e_last, inf) of a finite loss.

    Attributes:
      p: P-masses, shape [len(edges) + 1].
      q: Q-masses, same shape.
      p_error: bound of the absolute error of `p`.
      q_error: bound of the absolute error of `q`.
      telescoping: whether the errors come from the edges alone, what one cell gains being lost by the next
        (differences of distribution functions); else each cell's error is its own.
    """

    p: Array
    q: Array
    p_error: Array
    q_error: Array
    telescoping: bool = True


class Pair(abc.ABC):
    """A dominating pair (P, Q): a frozen dataclass of public parameters.

    "Remove" is the direction P against Q (a record's presence raises the loss), "add" is Q against P.
    A new mechanism implements `masses` and the three properties; with `quadrature` (and `density`) it
    also gets the contour engine, which is faster and sharper.
    """

    def plain(self) -> None:
        """Turns NumPy scalars among the parameters into Python numbers: arithmetic is float64 throughout."""
        for name, value in list(vars(self).items()):
            if isinstance(value, np.generic):
                object.__setattr__(self, name, value.item())

    @property
    def infinity_mass(self) -> float:
        """P-mass where Q has none."""
        return 0.0

    @property
    def missing_mass(self) -> float:
        """Q-mass where P has none."""
        return 0.0

    @property
    def symmetric(self) -> bool:
        """Whether (Q, P) has the same divergences as (P, Q)."""
        return False

    @property
    def gaussian_mu(self) -> float | None:
        """mu where the pair is as N(mu, 1) against N(0, 1); such pairs compose in closed form."""
        return None

    @property
    def laplace_width(self) -> Fraction | None:
        """The largest loss where the pair is that of a Laplace release; equal ones compose in closed form."""
        return None

    @property
    def binary(self) -> tuple[tuple[float, float, float], tuple[float, float, float]] | None:
        """The two finite values of u, increasing, with P- and Q-mass, where there are just two."""
        return None

    @property
    @abc.abstractmethod
    def support(self) -> tuple[float, float]:
        """Essential infimum and supremum of the finite values of u."""

    @property
    def slope_limits(self) -> tuple[float, float]:
        """The open interval of s with E_Q[exp(s u); u finite] < inf."""
        return -math.inf, math.inf

    @abc.abstractmethod
    def masses(self, edges: Array) -> Masses:
        """P- and Q-masses of the cells of u between increasing finite `edges`."""

    @abc.abstractmethod
    def hockey_stick(self, epsilon: float, *, reverse: bool = False) -> tuple[float, float]:
        """H(e^epsilon) = sup_A P(A) - e^epsilon Q(A), or of (Q, P) when `reverse`.

        Returns:
          The value and a bound of its absolute error; `epsilon` may be any finite number.
        """

    def quadrature(
        self, *, slopes: tuple[float, float], frequency: float, cosine_power: float, log_target: float
    ) -> Quadrature:
        """Nodes for E_Q of functions of u; see `Quadrature` for what is promised.

        Args:
          slopes: bracket of the logarithmic slope of the integrand at u <= 0, inside `slope_limits` where
            `cosine_power` is 0; the upper end holds for all u, the lower one less `cosine_power`.
          frequency: the integrand's oscillation, >= 0.
          cosine_power: exponent of the bound on the strip, >= 0; where it, or `frequency`, is positive
            only strips of half-width below pi are used.
          log_target: the relative error aimed at is exp(-log_target).

        Raises:
          Unsuitable: the pair has no such nodes (the lattice engine does not need them).
        """
        raise Unsuitable(f"{type(self).__name__} offers no quadrature")

    def density(self, *, slope: float) -> DensityCells | None:
        """Cells of a log-concave density of u under Q (atoms left out); None where there is none.

        Args:
          slope: the cells should cover the mass tilted by exp(slope * u), slope >= 0.
        """
        return None

    def directions(self) -> tuple[Law, Law]:
        """The laws of the loss in the remove (P against Q) and in the add direction (Q against P)."""
        from exactdp.accounting.laws import mapped

        return mapped.directions(self, sampling_probability=1.0)


def trapezoid(
    *,
    log_density: Callable[[Array], Array],
    score: Callable[[float], float],
    log_growth: Callable[[Array], Array],
    half_width: float,
    low: float,
    high: float,
    frequency: float,
    cosine_power: float,
    log_target: float,
) -> Quadrature:
    """Trapezoid rule for a density of u that is analytic in a strip.

    On |Im u| <= a the density is bounded by exp(log_growth(a)) times its value on the real line, so that
    Poisson summation bounds the error of step h by 2 exp(growth(a) + frequency a) / (exp(2 pi a / h) - 1)
    relative to E_Q[|W|]. The half-width a is chosen to make the step longest.

    Args:
      log_density: vectorised log density (any constant: the weights are normalised to Q-mass one).
      score: its derivative, scalar in, scalar out.
      log_growth: vectorised, of a.
      half_width: half-width of the strip of analyticity.
      low: left end of the nodes.
      high: right end of the nodes; Q's own mass must lie between the ends, for the weights are
        normalised to one.
      frequency: as in `Pair.quadrature`.
      cosine_power: as in `Pair.quadrature`.
      log_target: as in `Pair.quadrature`.

    Raises:
      Unsuitable: more than 4e5 nodes would be needed.
    """
    limit = min(half_width, math.pi) * 0.98
    a = limit * _FRACTIONS
    growth = log_growth(a) - cosine_power * np.log(np.cos(0.5 * a)) + frequency * a
    # 1.5: two sums are rounded by aliasing, the integrand's and the normaliser's, and 4 e^-1.5 < 0.9.
    steps = 2.0 * math.pi * a / (growth + log_target + 1.5)
    step = float(np.max(steps))
    count = int((high - low) / step) + 2
    if count > 400_000:
        raise Unsuitable(f"quadrature needs {count} nodes")
    u = low + step * np.arange(count, dtype=np.float64)
    log_weight = log_density(u)
    peak = float(log_weight.max())
    log_weight = log_weight - (peak + math.log(float(np.exp(log_weight - peak).sum())))
    return Quadrature(u, log_weight, -log_target, step, score(low), score(float(u[-1])))


_FRACTIONS = np.concatenate([np.geomspace(1e-3, 0.1, 12)[:-1], np.linspace(0.1, 1.0, 24)])
