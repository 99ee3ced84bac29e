"""The law of the privacy loss L = log dP/dQ under P, in one direction."""

from __future__ import annotations

import abc
import dataclasses
import math
from fractions import Fraction

import numpy as np

from exactdp.accounting.pairs.base import Array, Masses, Unsuitable

_EPS = float(np.finfo(np.float64).eps)


Atom = tuple[float, float, float]
"""A loss with its P-mass and its Q-mass."""


@dataclasses.dataclass(frozen=True)
class Nodes:
    """Nodes of E_P[exp(z L); L finite], good for one order Re z and |Im z| <= frequency.

    Attributes:
      loss: values of L, shape [n].
      log_p: log of the P-weights, shape [n].
      log_alias: log of the aliasing error relative to E_P[exp(Re z L)].
      tail: what is left out, as a multiple of each term, shape [n] (zero but at the ends).
      size: what the rounding of `log_p` is over EPS, beyond its own magnitude, shape [n].
    """

    loss: Array
    log_p: Array
    log_alias: float
    tail: Array
    size: Array | float = 0.0


@dataclasses.dataclass(frozen=True)
class Decay:
    """What is proved about the tilted characteristic function phi(y) = E[e^{iyL}] of a step.

    Two bounds, from disjoint sets of losses whose tilted masses are bounded below:

    * |phi(y)| <= 1 - mass_k + variation_k / y, where L has a density of that total variation on a set
      of that mass;
    * |phi(y)|^2 = E[cos y(L - L')] <= 1 - 2 sum_{i<j} b_i b_j min (1 - cos y(l - l')), the least over l in
      bin i and l' in bin j.

    Attributes:
      mass: tilted mass of the sets with a density, shape [k].
      variation: total variation of the density there, end jumps included, shape [k].
      bins: lower bounds of the tilted masses of disjoint bins, shape [m].
      low: lower ends of the bins, increasing, shape [m].
      high: upper ends of the bins, shape [m].
    """

    mass: Array
    variation: Array
    bins: Array
    low: Array
    high: Array

    def bound(self, low: Array, high: Array) -> Array:
        """Bounds of |phi| that hold on each whole interval low <= y <= high, in [0, 1].

        The first bound falls with y; the second comes back near the multiples of 2 pi over a distance of two
        bins, and is taken at its largest on the interval.
        """
        best = self.falling_bound(low)
        i, j = np.triu_indices(len(self.bins), 1)
        near, far = self.low[j] - self.high[i], self.high[j] - self.low[i]
        useful = near > 0
        near, far, share = near[useful], far[useful], 2.0 * (self.bins[i] * self.bins[j])[useful]
        a, b = low[:, None] * near[None, :], high[:, None] * far[None, :]
        # The least of 1 - cos over [a, b]: at an end, or 0 where a multiple of 2 pi lies between.
        turns = np.floor(b / (2.0 * math.pi)) > np.floor(a / (2.0 * math.pi))
        least = 2.0 * np.minimum(np.sin(0.5 * a) ** 2, np.sin(0.5 * b) ** 2)
        apart = np.where(turns, 0.0, least) @ share
        return np.clip(np.minimum(best, 1.0 - 0.5 * apart), 0.0, 1.0)

    def falling_bound(self, y: Array) -> Array:
        """The first bound alone, in [0, 1]: it holds at each `y` > 0 and beyond."""
        if not len(self.mass):
            return np.ones(len(y))
        best = (1.0 - self.mass[:, None] + self.variation[:, None] / y[None, :]).min(axis=0)
        return np.clip(best, 0.0, 1.0)


def bins(mass: Array, low: Array, high: Array) -> tuple[Array, Array, Array]:
    """Joins cells of increasing losses into a few bins, finer in both tails, for `Decay`."""
    total = np.cumsum(mass)
    levels = np.concatenate([_LEVELS, [0.5], 1.0 - _LEVELS[::-1]]) * total[-1]
    ends = np.unique(np.concatenate([[0], np.searchsorted(total, levels) + 1, [len(mass)]]))
    ends = ends[ends <= len(mass)]
    starts = ends[:-1]
    return np.add.reduceat(mass, starts), low[starts], high[ends[1:] - 1]


_LEVELS = np.array([1e-7, 1e-4, 0.01, 0.1, 0.25, 0.4])


def windows(mass: Array, variation: Array, g: Array) -> tuple[Array, Array]:
    """Masses and total variations of the density of losses between two edges, for `sets`.

    All above an edge, and what is left of that below some others: at a weight's steep end the density's
    variation may not be known.

    Args:
      mass: lower bound of the mass of each cell, shape [n].
      variation: upper bound of the total variation within each cell, shape [n].
      g: density at the edges, shape [n + 1].
    """
    usable = np.isfinite(mass) & np.isfinite(variation)
    mass, variation = np.where(usable, mass, 0.0), np.where(usable, variation, np.inf)
    share = np.cumsum(mass)
    ends = np.searchsorted(share, _SHARES * share[-1]) + 1
    masses, variations = [], []
    for end in np.unique([*ends[ends < len(mass)], len(mass)]):
        masses.append(np.cumsum(mass[:end][::-1])[::-1])
        variations.append(np.cumsum(variation[:end][::-1])[::-1] + g[:end] + g[end])
    return np.concatenate(masses), np.concatenate(variations)


def sets(mass: Array, variation: Array) -> tuple[Array, Array]:
    """Those sets of losses, by the mass and the total variation of their density, that `Decay` needs.

    Rounding is allowed for: the mass is only used as a lower bound, the variation as an upper one.
    """
    mass, variation = np.minimum(mass, 1.0) * (1.0 - 1e-12), 1.001 * variation
    good = np.isfinite(variation) & (mass > 0.0)
    mass, variation = mass[good], variation[good]
    order = np.lexsort((-mass, variation))
    best = np.maximum.accumulate(mass[order])
    kept = order[np.diff(best, prepend=0.0) > 0.0]  # the others have no more mass, and vary no less
    return mass[kept], variation[kept]


_SHARES = np.array([0.5, 0.9, 0.99, 0.999, 1.0 - 1e-5])


def no_weight(u: Array) -> tuple[Array, Array]:
    """The weight 1: its logarithm and the slope of that."""
    return np.zeros_like(u), np.zeros_like(u)


class Moments(abc.ABC):
    """A measure of the finite losses of one step, of mass at most 1, as far as its moments go."""

    infinity_mass: float = 0.0
    """1 less the mass of the measure: P(L = inf), of a whole law."""

    missing_mass: float = 0.0
    """1 less the integral of exp(-L): the Q-mass where P has none, of a whole law."""

    mass_error: float = 0.0
    """Bound of the absolute errors of both."""

    @property
    @abc.abstractmethod
    def order_limit(self) -> float:
        """Supremum of the z with a finite integral of exp(z L)."""

    def nodes(self, *, order: float, frequency: float, count: int) -> Nodes:
        """Quadrature nodes accurate enough for `count` steps.

        Raises:
          Unsuitable: there are none.
        """
        raise Unsuitable(f"{type(self).__name__} offers no quadrature")

    def decay(self, *, order: float, log_moment: float) -> Decay | None:
        """Bounds of the characteristic function tilted by `order`; None where nothing is known."""
        return None


class Law(Moments):
    """The law of the loss of one step in one direction."""

    @property
    def gaussian_mu(self) -> float | None:
        """mu where the law is that of N(mu, 1) against N(0, 1); such laws compose in closed form."""
        return None

    @property
    def erased_gaussian(self) -> tuple[float, float] | None:
        """(mu, q) where the step is `gaussian_mu`'s with probability q and else tells nothing, visibly."""
        return None

    @property
    def laplace_width(self) -> Fraction | None:
        """The largest loss where the law is that of a Laplace release; equal ones compose in closed form."""
        return None

    @property
    def binary(self) -> tuple[Atom, Atom] | None:
        """The two finite losses, increasing, where there are just two; they compose to a binomial."""
        return None

    @property
    @abc.abstractmethod
    def support(self) -> tuple[float, float]:
        """Essential infimum and supremum of the finite losses."""

    @property
    @abc.abstractmethod
    def anchor(self) -> float:
        """A finite loss near which most of the mass of a step lies, on one side of it or on both."""

    def layer(self, low: float, high: float, *, power: int, rise: int) -> Moments | None:
        """The law times a smooth weight between the losses `low` and `high`; the weights of layers add up.

        Args:
          low: -inf, or where the weight rises to 1.
          high: inf, or where the weight falls to 0: far above, like e^{-power L} or faster.
          power: >= 1, the same for all layers.
          rise: >= 1, the same for all layers: the larger, the sharper are both edges.
        """
        return None

    @abc.abstractmethod
    def masses(self, edges: Array) -> Masses:
        """P- and Q-masses of the finite losses between increasing `edges`."""

    @abc.abstractmethod
    def hockey_stick(self, epsilon: float) -> tuple[float, float]:
        """delta(epsilon) of one step for any real `epsilon`, and a bound of its absolute error."""


@dataclasses.dataclass(frozen=True)
class Tilted:
    """The law of a step tilted by exp(order * L), and its cumulant generating function there.

    Attributes:
      log_moment: K = log E_P[exp(order L); L finite].
      log_moment_error: bound of the absolute error of `log_moment`.
      mean: tilted mean, K'.
      variance: tilted variance, K''.
      weight: tilted weights, sum 1, shape [n].
      deviation: losses less the mean, shape [n].
      quadrature_error: aliasing and tails, relative to the moment.
      magnitude: mean size of the exponents that the weights were computed from; rounding grows with it.
    """

    log_moment: float
    log_moment_error: float
    mean: float
    variance: float
    weight: Array
    deviation: Array
    quadrature_error: float
    magnitude: float


def tilt(law: Moments, nodes: Nodes, order: float) -> Tilted:
    """Tilts `nodes` of `law` by `order` > 0.

    Where the moment m is near 1 (many small steps), m - 1 is summed directly as
    E_P[(e^{zL} - 1) + z (e^{-L} - 1)], whose terms are of second order: the constants cancel exactly.
    """
    exponent = nodes.log_p + order * nodes.loss
    peak = float(exponent.max())
    weight = np.exp(exponent - peak)
    total = float(weight.sum())
    weight /= total
    quadrature_error = math.exp(nodes.log_alias) + float(nodes.tail @ weight)
    log_moment = peak + math.log(total)
    magnitude = np.abs(nodes.log_p) + np.abs(order * nodes.loss) + nodes.size
    size = float(weight @ magnitude)
    error = 4 * _EPS * (size + abs(peak) + 4.0)
    small = abs(log_moment) < 0.5 and float(np.max(order * nodes.loss)) < 600.0 and nodes.loss.min() > -600.0
    if small:
        p = np.exp(nodes.log_p)
        first, second = np.expm1(order * nodes.loss), order * np.expm1(-nodes.loss)
        infinite, missing = law.infinity_mass, law.missing_mass
        moment_less_one = float(p @ (first + second)) - infinite - order * (infinite - missing)
        exponent_size = 4.0 + np.abs(nodes.log_p) + nodes.size
        rounding = 4 * _EPS * float((p * exponent_size) @ (np.abs(first + second)))
        rounding += 4 * _EPS * float(p @ (np.abs(first) + np.abs(second)))
        if infinite or missing:
            rounding += 8 * _EPS * (infinite * (1 + order) + order * missing)
        rounding += (1 + 2 * order) * law.mass_error
        log_moment = math.log1p(moment_less_one)
        slack = math.exp(nodes.log_alias) * (1 + order)
        slack += float((nodes.tail * p) @ (1.0 + order * np.exp(-nodes.loss)))
        error = 1.1 * rounding / (1.0 + moment_less_one) + 2.0 * slack
    mean = float(weight @ nodes.loss)
    if small:
        # The mean's first-order terms cancel in the same way: E_P[e^-L - 1] is known exactly.
        raised = nodes.loss * np.exp(order * nodes.loss) + np.expm1(-nodes.loss)
        mean = (float(np.exp(nodes.log_p) @ raised) - law.infinity_mass + law.missing_mass) / math.exp(
            log_moment
        )
    deviation = nodes.loss - mean
    return Tilted(
        log_moment,
        error + 1.5 * quadrature_error,
        mean,
        float(weight @ deviation**2),
        weight,
        deviation,
        quadrature_error,
        size,
    )
