"""Mechanisms with known trade-off curves, sampled for audits."""

from __future__ import annotations

import dataclasses
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from exactdp.accounting import prv
from exactdp.accounting.fdp.gaussian import GaussianTradeoff
from exactdp.accounting.pairs.gaussian import Gaussian
from exactdp.accounting.pairs.pure import PureDP
from exactdp.accounting.sampling.hidden import PoissonHidden

Array = NDArray[np.float64]


class Known(Protocol):
    def draw(self, size: int, generator: np.random.Generator) -> tuple[Array, Array]: ...

    def epsilon(self, delta: float) -> float: ...


@dataclasses.dataclass(frozen=True)
class RandomisedResponse:
    epsilon0: float

    def draw(self, size: int, generator: np.random.Generator) -> tuple[Array, Array]:
        keep = 1.0 / (1.0 + np.exp(-self.epsilon0))
        with_record = (generator.random(size) < keep).astype(np.float64)
        without = (generator.random(size) >= keep).astype(np.float64)
        return with_record, without

    def epsilon(self, delta: float) -> float:
        return prv.epsilon([(PureDP(self.epsilon0), 1)], delta=delta).upper if delta > 0.0 else self.epsilon0


@dataclasses.dataclass(frozen=True)
class GaussianShift:
    mu: float

    def draw(self, size: int, generator: np.random.Generator) -> tuple[Array, Array]:
        return generator.standard_normal(size) + self.mu, generator.standard_normal(size)

    def epsilon(self, delta: float) -> float:
        return GaussianTradeoff(self.mu).epsilon(delta)


@dataclasses.dataclass(frozen=True)
class SubsampledGaussian:
    """(1 - q) N(0, 1) + q N(mu, 1) against N(0, 1): a mixture whose curve is not symmetric."""

    mu: float
    q: float

    def draw(self, size: int, generator: np.random.Generator) -> tuple[Array, Array]:
        present = generator.random(size) < self.q
        return generator.standard_normal(size) + self.mu * present, generator.standard_normal(size)

    def epsilon(self, delta: float) -> float:
        return prv.epsilon([(PoissonHidden(Gaussian(1.0 / self.mu), self.q), 1)], delta=delta).upper
