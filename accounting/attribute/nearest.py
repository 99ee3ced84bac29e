"""Ball from records whose public views are near each other: an estimate, certified by nothing."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from exactdp.accounting import validate
from exactdp.accounting.attribute import ball, distances
from exactdp.accounting.attribute.ball import Ball
from exactdp.accounting.attribute.draws import LEAST, ConditionalDraws

Array = NDArray[np.float64]
Neighbours = Callable[[int, NDArray[np.int64]], Array]
"""(anchor, neighbours) -> features of the neighbours as draws given the anchor's view, [neighbours, k]."""

_STATEMENT = (
    "an estimate, not certified: the worst of {anchors} public views, each with the {neighbours} records "
    "whose views are nearest (within {bandwidth:.3g} of it, where two records' views are {typical:.3g} apart "
    "at the median) taken as draws from its law. That law may be narrower than the neighbours are: Ball may "
    "be larger than both ends, up to 1 where the view determines the record"
)


@dataclasses.dataclass(frozen=True)
class Neighbourhoods:
    """For each of several public views, the records whose views are nearest.

    Attributes:
      draws: of each anchor, its neighbours' features.
      bandwidth: h, the largest distance of a neighbour's view from its anchor's.
      typical: median distance between two records' views, to compare h with.
    """

    draws: tuple[ConditionalDraws, ...]
    bandwidth: float
    typical: float

    @classmethod
    def find(
        cls,
        views: Array,
        features: Neighbours,
        *,
        anchors: Sequence[int],
        neighbours: int,
        strata: NDArray[np.int64] | None = None,
    ) -> Neighbourhoods:
        """The neighbourhoods of some records' views; the record itself is left out of its own.

        Args:
          views: public views, one a row, [n, v].
          features: of an anchor's neighbours, from `distances.features`. Whoever can, moves the neighbours to
            the anchor's view first (`reconstruction.LinearView.moved`): their own public parts differ from
            it, and what they add to the distances is no spread of the law given the view.
          anchors: places of the records whose views are conditioned on; at least one.
          neighbours: how many to take, from 4 to n - 1; fewer where a stratum is smaller.
          strata: what else must be equal, such as a public label, [n].

        Raises:
          ValueError: an argument is out of range, lengths differ, or a stratum has fewer than 5 records.
        """
        n = len(views)
        if strata is not None and len(strata) != n:
            raise ValueError(f"views and strata must be as many, got {n} and {len(strata)}")
        wanted = validate.count("neighbours", neighbours, LEAST)
        if wanted > n - 1 or not len(anchors):
            raise ValueError(f"neighbours must be at most {n - 1}, of one anchor at least, got {neighbours}")
        found: list[ConditionalDraws] = []
        bandwidth = 0.0
        apart = distances.between(views[list(anchors)], views)
        for anchor, row in zip(anchors, apart, strict=True):
            allowed = np.arange(n) != anchor
            if strata is not None:
                allowed &= strata == strata[anchor]
            others = np.flatnonzero(allowed)
            if len(others) < LEAST:
                raise ValueError(
                    f"each stratum must have {LEAST + 1} records, that of {anchor} has {len(others) + 1}"
                )
            order = others[np.argsort(row[others], kind="stable")[:wanted]]
            bandwidth = max(bandwidth, float(row[order[-1]]))
            # By place and no longer by nearness: the halves of the draws must be alike.
            found.append(ConditionalDraws(features(anchor, np.sort(order))))
        return cls(tuple(found), bandwidth, float(np.median(apart)))

    def ball(self, radius: float, *, confidence: float = 0.95) -> Ball:
        """The largest Ball over the anchors, as if neighbours were draws given the anchor's own view.

        That holds where the law of X given Psi(X) = u hardly changes within the bandwidth. Nothing checks it,
        and where Psi is nearly invertible it is false: the neighbours of a view then differ although the view
        determines the record. `exactdp.accounting.attribute.reconstruction` tells.

        Args:
          radius: rho >= 0.
          confidence: that both ends would have for all anchors together if neighbours were such draws.

        Raises:
          ValueError: an argument is out of range.
        """
        miss = 1.0 - validate.open_probability("confidence", confidence)
        each = [draws.ball(radius, confidence=1.0 - miss / len(self.draws)) for draws in self.draws]
        statement = _STATEMENT.format(
            anchors=len(self.draws),
            neighbours=max(len(draws) for draws in self.draws),
            bandwidth=self.bandwidth,
            typical=self.typical,
        )
        top = ball.worst(each, confidence=confidence, statement=statement)
        return dataclasses.replace(top, certified=False)
