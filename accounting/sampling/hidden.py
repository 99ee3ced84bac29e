"""Poisson sampling whose coins stay hidden."""

from __future__ import annotations

import dataclasses
from typing import ClassVar

from exactdp.accounting import validate
from exactdp.accounting.laws import mapped
from exactdp.accounting.laws.law import Law
from exactdp.accounting.pairs.base import Pair


@dataclasses.dataclass(frozen=True)
class PoissonHidden:
    """A pair behind Poisson sampling, the adversary not seeing who was sampled.

    Remove: ((1-q)Q + qP) against Q; add: Q against ((1-q)Q + qP). The two differ and are composed
    apart; an accountant takes the worse at the end.

    Args:
      pair: dominating pair of the mechanism without sampling, for add/remove neighbours.
      sampling_probability: q in [0, 1].

    Raises:
      ValueError: `pair` is not a `Pair`, or `sampling_probability` is outside [0, 1].

    Source: Zhu, Dong and Wang 2022 (arXiv 2106.08567), Theorem 11.
    """

    pair: Pair
    sampling_probability: float

    adjacency: ClassVar[str | None] = "add_remove"
    coins: ClassVar[str | None] = "hidden"

    def __post_init__(self) -> None:
        if not isinstance(self.pair, Pair):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise ValueError(f"pair must be a Pair, got {self.pair!r}")
        validate.probability("sampling_probability", self.sampling_probability)

    def directions(self) -> tuple[Law, Law] | None:
        """The laws in the remove and add directions; None where nothing is ever sampled."""
        if self.sampling_probability == 0.0:
            return None
        return mapped.directions(self.pair, sampling_probability=float(self.sampling_probability))
