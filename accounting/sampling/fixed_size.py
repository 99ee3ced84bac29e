"""Sampling a fixed number of records without replacement."""

from __future__ import annotations

import dataclasses
from typing import ClassVar

from exactdp.accounting import validate
from exactdp.accounting.laws.fixed_size import FixedSizeLaw
from exactdp.accounting.laws.law import Law
from exactdp.accounting.pairs.base import Pair


@dataclasses.dataclass(frozen=True)
class FixedSize:
    """A pair behind a uniformly drawn batch of m of n records, one record being replaced, coins hidden.

    With q = m / n, the profile of one step is at most

        H_a((1-q)Q + qP, Q) for a >= 1,    1 - a + a H_{1/a}((1-q)Q + qP, Q) for a < 1.

    Why, for a >= 1. Let x be replaced by x'. The step is (1-q) R + q S_x against (1-q) R + q S_x', R being
    the release without that record. With a = 1 + q (b - 1), advanced joint convexity gives
    H_a <= q [(1 - a/b) H_b(S_x, R) + (a/b) H_b(S_x, S_x')]. A batch without the record is one with it in
    which another record took its place: both divergences are those of a replacement, so that
    H_a <= q H_b(P, Q) = H_a((1-q)Q + qP, Q). For a < 1, swap the two data sets.

    Args:
      pair: symmetric pair that dominates the mechanism without sampling under *replacement* of a record.
        For Gaussian noise on a sum of gradients of norm at most 1 that is
        `Gaussian(noise_multiplier, sensitivity=2.0)`: a replacement moves the sum by up to 2.
      sampling_probability: q = m / n in [0, 1], m and n being public and fixed.

    Guarantee: a dominating pair, hence an upper bound for one step and for every adaptive composition.
    One step is attained at each a by some pair of data sets (all other records equal to x' for a >= 1, to x
    for a < 1), but by no single one for all a, so a composition may be strictly below. A lower bound that
    two data sets attain at all counts is `PoissonHidden` of the same pair at the same q.

    Raises:
      ValueError: `pair` is not a `Pair` or not symmetric, or `sampling_probability` is outside [0, 1].

    Source: Zhu, Dong and Wang 2022 (arXiv 2106.08567), on subset sampling; advanced joint convexity: Balle,
    Barthe and Gaboardi 2018 (arXiv 1807.01647), Theorem 2.
    """

    pair: Pair
    sampling_probability: float

    adjacency: ClassVar[str | None] = "replace"
    coins: ClassVar[str | None] = "hidden"

    def __post_init__(self) -> None:
        if not isinstance(self.pair, Pair):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise ValueError(f"pair must be a dominating pair without sampling, got {self.pair!r}")
        validate.probability("sampling_probability", self.sampling_probability)
        if not self.pair.symmetric:
            # The mirrored profile needs P(u > 0) + Q(u > 0) <= 1, or the atom at 0 would be negative.
            raise ValueError(
                f"pair must be symmetric (replacement is a symmetric relation), got {self.pair!r}"
            )

    def directions(self) -> tuple[Law, Law] | None:
        """The law, once for each direction (they are equal); None where nothing is ever sampled."""
        q = float(self.sampling_probability)
        if q == 0.0:
            return None
        if q == 1.0:
            return self.pair.directions()
        law = FixedSizeLaw(self.pair, q)
        return law, law
