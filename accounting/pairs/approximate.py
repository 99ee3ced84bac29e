"""Approximate differential privacy: the pair that dominates every (epsilon, delta) mechanism."""

from __future__ import annotations

import dataclasses

from exactdp.accounting import validate
from exactdp.accounting.pairs import atoms, pure


@dataclasses.dataclass(frozen=True)
class ApproximateDP(atoms.Atomic):
    """The worst mechanism that is (epsilon, delta)-DP.

    With probability delta it tells which of the two data sets it saw; else it is randomised response:
    H(e^x) = delta + (1 - delta) (e^eps - e^x)_+ / (1 + e^eps) for x >= -eps.

    Args:
      epsilon: of one release, >= 0.
      delta: of one release, in [0, 1).

    Raises:
      ValueError: an argument is outside its range.

    Source: Kairouz, Oh and Viswanath 2015 (arXiv 1311.0776), Theorem 3.3 and its proof.
    """

    epsilon: float
    delta: float

    def __post_init__(self) -> None:
        self.plain()
        validate.non_negative("epsilon", self.epsilon)
        if validate.probability("delta", self.delta) == 1.0:
            raise ValueError(f"delta must be < 1, got {self.delta}")

    @property
    def infinity_mass(self) -> float:
        return float(self.delta)

    @property
    def missing_mass(self) -> float:
        return float(self.delta)

    @property
    def symmetric(self) -> bool:
        return True

    def _build(self) -> atoms.Atoms:
        return pure.response(float(self.epsilon), 1.0 - float(self.delta))
