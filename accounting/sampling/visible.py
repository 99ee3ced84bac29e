"""Poisson sampling whose coins the adversary sees."""

from __future__ import annotations

import dataclasses
from typing import ClassVar

from exactdp.accounting import validate
from exactdp.accounting.laws.law import Law
from exactdp.accounting.laws.mixture import ErasureLaw
from exactdp.accounting.pairs.base import Pair


@dataclasses.dataclass(frozen=True)
class PoissonVisible:
    """A pair behind Poisson sampling, the adversary seeing who was sampled.

    A step is the erasure mixture (1-q) [nothing] + q P against (1-q) [nothing] + q Q, hence

        delta(epsilon) = q H(e^epsilon) for epsilon >= 0: a factor q, and no gain in epsilon.

    Over T steps a record pays for Binomial(T, q) unamplified releases. This is the model for every
    mechanism that gives the sample away: one batch shared by a public and a private gradient, per-record
    outputs, a label histogram of the batch.

    Args:
      pair: dominating pair of the mechanism without sampling, under the same neighbouring relation.
      sampling_probability: q in [0, 1].

    Guarantee: the pair dominates one step whose coins are published (conditioning on the coin of the
    differing record loses nothing, for the coin has the same law under both data sets), and is attained
    when the base pair is.

    Raises:
      ValueError: `pair` is not a `Pair`, or `sampling_probability` is outside [0, 1].

    Source: derived here; joint convexity with equal weights, as in Balle, Barthe and Gaboardi 2018
    (arXiv 1807.01647).
    """

    pair: Pair
    sampling_probability: float

    adjacency: ClassVar[str | None] = None
    coins: ClassVar[str | None] = "visible"

    def __post_init__(self) -> None:
        if not isinstance(self.pair, Pair):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise ValueError(f"pair must be a dominating pair without sampling, got {self.pair!r}")
        validate.probability("sampling_probability", self.sampling_probability)

    def directions(self) -> tuple[Law, Law] | None:
        """The laws in the remove and add directions; None where nothing is ever sampled."""
        q = float(self.sampling_probability)
        if q == 0.0:
            return None
        remove, add = self.pair.directions()
        if q == 1.0:
            return remove, add
        seen = ErasureLaw(remove, q)
        return seen, (seen if add is remove else ErasureLaw(add, q))
