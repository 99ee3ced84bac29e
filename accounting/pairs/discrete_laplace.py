"""The discrete Laplace (two-sided geometric) mechanism on the integers."""

from __future__ import annotations

import dataclasses
import math

import numpy as np

from exactdp.accounting import validate
from exactdp.accounting.pairs import atoms

_EPS = float(np.finfo(np.float64).eps)


@dataclasses.dataclass(frozen=True)
class DiscreteLaplace(atoms.Atomic):
    """Noise with Pr[x] proportional to exp(-|x| / noise_multiplier) on an integer query.

    The loss is (|x| - |x - sensitivity|) / noise_multiplier: sensitivity + 1 values between
    +-sensitivity / noise_multiplier, the ends carrying the tails. One release is pure DP with that epsilon.

    Args:
      noise_multiplier: scale b of the noise, in the integers' unit, > 0.
      sensitivity: largest change of the query, an integer >= 1, in the same unit.

    Raises:
      ValueError: an argument is outside its range; `sensitivity` exceeds 1e6.

    Source: Ghosh, Roughgarden and Sundararajan 2009 (arXiv 0811.2841).
    """

    noise_multiplier: float
    sensitivity: int = 1

    def __post_init__(self) -> None:
        self.plain()
        validate.positive("noise_multiplier", self.noise_multiplier)
        validate.positive("sensitivity / noise_multiplier", self.sensitivity / self.noise_multiplier)
        if validate.count("sensitivity", self.sensitivity, minimum=1) > 1_000_000:
            raise ValueError(f"sensitivity must be <= 1e6, got {self.sensitivity}")

    @property
    def symmetric(self) -> bool:
        return True

    def _build(self) -> atoms.Atoms:
        b, distance = float(self.noise_multiplier), int(self.sensitivity)
        x = np.arange(distance + 1, dtype=np.float64)
        decay = math.exp(-1.0 / b)
        point = -math.expm1(-1.0 / b) / (1.0 + decay)  # Pr[0]
        # Ends carry the tails: x <= 0 and x >= sensitivity, Pr[0] / (1 - decay) each at distance 0.
        weight = np.full(distance + 1, point)
        weight[0] = weight[-1] = 1.0 / (1.0 + decay)
        with np.errstate(under="ignore"):
            p = weight * np.exp((x - distance) / b)
        u = (2.0 * x - distance) / b
        return atoms.Atoms(u, p, p[::-1].copy(), _EPS * (8.0 + 2.0 * distance / b))
