"""Re-identification: which of several records does a public view come from."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from typing import Literal

import jax
import numpy as np
from jaxtyping import Array, Float

from exactdp.accounting import validate
from exactdp.accounting.attribute import distances
from exactdp.accounting.clopper_pearson import clopper_pearson
from exactdp.accounting.interval import Interval

MATCHERS = ("view", "raw")
Matcher = Literal["view", "raw"]
View = Callable[[Float[np.ndarray, "n ..."]], Float[np.ndarray, "n ..."]]

_TOP = (1, 5)
_FEWEST = 2


@dataclasses.dataclass(frozen=True)
class Reidentification:
    """How often the record behind a public view was among the first guesses.

    Attributes:
      matcher: "view": the view of each candidate is compared with the one published; "raw": the candidate.
      distance: one of `exactdp.accounting.attribute.distances.NAMES`.
      noise: standard deviation of what was added to the candidates, in units of a feature.
      candidates: N, records to choose from; each of them was looked for once.
      hits: {k: how many were among the first k guesses}.
    """

    matcher: Matcher
    distance: str
    noise: float
    candidates: int
    hits: Mapping[int, int]

    def rate(self, top: int) -> float:
        """Share of the views whose record was among the first `top` guesses."""
        return self.hits[top] / self.candidates

    def interval(self, top: int, *, confidence: float = 0.95) -> Interval:
        """Clopper and Pearson's interval of that rate.

        Views are counted as independent trials; they share their candidates, so that with few of these the
        confidence is nominal.
        """
        return clopper_pearson(self.hits[top], trials=self.candidates, confidence=confidence)

    def chance(self, top: int) -> float:
        """The rate of guessing blindly, top / N."""
        return min(1.0, top / self.candidates)


def reidentify(
    records: Float[np.ndarray, "n ..."],
    *,
    view: View,
    key: Array,
    matcher: Matcher = "view",
    distance: str = "l2",
    noise: float = 0.0,
) -> Reidentification:
    """Looks for the record behind each public view by nearest neighbour.

    The adversary holds N candidates, one of which is a copy of the record behind the view; with `noise` it is
    not the same copy: Gaussian noise stands for another exposure, compression or crop. All candidates get it.
    Whoever knows Psi and holds the very record always recognises it, where no two views are equal: `view`
    without noise shows no more than that. Ties are broken at random.

    Args:
      records: [N, ...], N >= 2.
      view: Psi of a batch of inputs.
      key: of the noise and of the ties.
      matcher: what the published view is compared with.
      distance: how; see `exactdp.accounting.attribute.distances.features`.
      noise: standard deviation >= 0.

    Raises:
      ValueError: an argument is out of range, or records that the distance or the map does not take.
    """
    validate.one_of("matcher", matcher, MATCHERS)
    spread = validate.non_negative("noise", noise)
    n = len(records)
    if n < _FEWEST:
        raise ValueError(f"records must be {_FEWEST} at least, got {n}")
    noise_key, tie_key = jax.random.split(key)
    held = records
    if spread > 0.0:
        held = records + spread * np.asarray(jax.random.normal(noise_key, records.shape))
    published = distances.features(distance, view(records))
    candidates = distances.features(distance, view(held) if matcher == "view" else held)
    apart = distances.between(published, candidates)
    own = np.diag(apart)[:, None]
    tickets = np.asarray(jax.random.uniform(tie_key, (n, n)))
    before = (apart < own) | ((apart == own) & (tickets < np.diag(tickets)[:, None]))
    rank = before.sum(axis=1)
    return Reidentification(
        matcher=matcher,
        distance=distance,
        noise=spread,
        candidates=n,
        hits={top: int((rank < top).sum()) for top in _TOP},
    )
