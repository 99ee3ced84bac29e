"""Mechanisms whose epsilon is known, as samplers of scores: what an auditor is tried on."""

from __future__ import annotations

import dataclasses
from typing import Protocol

import numpy as np
from numpy.typing import NDArray
from scipy import special

from exactdp.accounting import prv, validate
from exactdp.accounting.pairs.gaussian import Gaussian
from exactdp.accounting.pairs.pure import PureDP
from exactdp.accounting.sampling.hidden import PoissonHidden

Array = NDArray[np.float64]


class Known(Protocol):
    """A pair of laws with its exact epsilon."""

    def draw(self, size: int, *, generator: np.random.Generator) -> tuple[Array, Array]:
        """`size` independent scores with the record and as many without it."""
        ...

    def canaries(self, included: NDArray[np.bool_], *, generator: np.random.Generator) -> Array:
        """One score for each of the independent canaries, in or out as `included` says."""
        ...

    def epsilon(self, delta: float) -> float:
        """Exact epsilon at a delta in (0, 1), rounded upwards."""
        ...


class _Law:
    """Both ways of drawing from one law of a score given whether the record is in."""

    def _scores(self, included: NDArray[np.bool_], generator: np.random.Generator) -> Array:
        raise NotImplementedError

    def draw(self, size: int, *, generator: np.random.Generator) -> tuple[Array, Array]:
        """As in `Known`."""
        present, absent = np.ones(size, np.bool_), np.zeros(size, np.bool_)
        return self._scores(present, generator), self._scores(absent, generator)

    def canaries(self, included: NDArray[np.bool_], *, generator: np.random.Generator) -> Array:
        """As in `Known`."""
        return self._scores(included, generator)


@dataclasses.dataclass(frozen=True)
class RandomisedResponse(_Law):
    """Tells the truth with probability 1 / (1 + e^-epsilon0): scores are 0 and 1.

    Raises:
      ValueError: `epsilon0` is negative or not finite.
    """

    epsilon0: float

    def __post_init__(self) -> None:
        validate.non_negative("epsilon0", self.epsilon0)

    def _scores(self, included: NDArray[np.bool_], generator: np.random.Generator) -> Array:
        truthful = generator.random(len(included)) < special.expit(self.epsilon0)
        return (truthful == included).astype(np.float64)

    def epsilon(self, delta: float) -> float:
        """As in `Known`."""
        return prv.epsilon([(PureDP(self.epsilon0), 1)], delta=delta).upper


@dataclasses.dataclass(frozen=True)
class SubsampledGaussian(_Law):
    """(1 - q) N(0, 1) + q N(mu, 1) against N(0, 1); without sampling (q = 1) the curve is G_mu.

    Args:
      mu: > 0; sensitivity over noise standard deviation.
      sampling_probability: q in (0, 1].

    Raises:
      ValueError: an argument is out of range.
    """

    mu: float
    sampling_probability: float = 1.0

    def __post_init__(self) -> None:
        validate.positive("mu", self.mu)
        validate.probability("sampling_probability", self.sampling_probability)

    def _scores(self, included: NDArray[np.bool_], generator: np.random.Generator) -> Array:
        drawn = included & (generator.random(len(included)) < self.sampling_probability)
        return generator.standard_normal(len(included)) + self.mu * drawn

    def epsilon(self, delta: float) -> float:
        """As in `Known`."""
        pair = PoissonHidden(Gaussian(1.0 / self.mu), self.sampling_probability)
        return prv.epsilon([(pair, 1)], delta=delta).upper


@dataclasses.dataclass(frozen=True)
class Silent(_Law):
    """N(0, 1) either way: nothing leaks, and any positive bound is too high."""

    def _scores(self, included: NDArray[np.bool_], generator: np.random.Generator) -> Array:
        return generator.standard_normal(len(included))

    def epsilon(self, delta: float) -> float:
        """0."""
        return 0.0
