"""Any two probability vectors as a dominating pair."""

from __future__ import annotations

import dataclasses
import functools
import math

import numpy as np

from exactdp.accounting import validate
from exactdp.accounting.pairs import atoms, base

_EPS = float(np.finfo(np.float64).eps)


@dataclasses.dataclass(frozen=True)
class Finite(atoms.Atomic):
    """Two probability vectors over the same outcomes.

    The loss of outcome i is log(p_i / q_i); outcomes of equal loss are merged. p_i > 0 = q_i is mass at
    infinite loss (`infinity_mass`), p_i = 0 < q_i is `missing_mass`.

    Args:
      p: probabilities under P, any sequence; stored as a tuple.
      q: probabilities under Q, the same length.

    A sum within 1e-12 of one is taken for rounding: the pair meant is (p / sum p, q / sum q).

    Raises:
      ValueError: different lengths, no entry, an entry that is not a finite number >= 0, a sum further
        from one than 1e-12, or no outcome that both give mass to.

    Source: Zhu, Dong and Wang 2022 (arXiv 2106.08567), Definition 7.
    """

    p: tuple[float, ...]
    q: tuple[float, ...]

    def __post_init__(self) -> None:
        for name in ("p", "q"):
            vector = tuple(validate.non_negative(name, x) for x in getattr(self, name))
            total = math.fsum(vector)
            if abs(total - 1.0) > 1e-12:
                raise ValueError(f"{name} must sum to 1 within 1e-12, got {total}")
            object.__setattr__(self, name, vector)
        if len(self.p) != len(self.q):
            raise ValueError(f"p and q must have the same length, got {len(self.p)} and {len(self.q)}")
        if not any(x > 0.0 < y for x, y in zip(self.p, self.q, strict=True)):
            raise ValueError("p and q must share an outcome of positive mass, got disjoint supports")

    @functools.cached_property
    def _normalised(self) -> tuple[base.Array, base.Array]:
        return tuple(np.array(x) / math.fsum(x) for x in (self.p, self.q))  # type: ignore[return-value]

    @property
    def infinity_mass(self) -> float:
        p, q = self._normalised
        return math.fsum(p[q == 0.0])

    @property
    def missing_mass(self) -> float:
        p, q = self._normalised
        return math.fsum(q[p == 0.0])

    def _build(self) -> atoms.Atoms:
        p, q = self._normalised
        both = (p > 0.0) & (q > 0.0)
        p, q = p[both], q[both]
        near = np.abs(p - q) < 0.5 * np.minimum(p, q)
        with np.errstate(over="ignore", under="ignore", divide="ignore"):
            ratio = p / q
            plain = (ratio > 1e-300) & (ratio < 1e300)
            u = np.where(plain, np.log(ratio), np.log(p) - np.log(q))
            # p - q is exact when the two are within a factor 2; the logarithm then keeps its digits near 0.
            u = np.where(near, np.log1p(np.where(near, (p - q) / q, 0.0)), u)
        values, place = np.unique(u, return_inverse=True)
        merged_p, merged_q = np.zeros(len(values)), np.zeros(len(values))
        np.add.at(merged_p, place, p)
        np.add.at(merged_q, place, q)
        largest = int(np.bincount(place).max())
        return atoms.Atoms(values, merged_p, merged_q, _EPS * (8.0 + largest))
