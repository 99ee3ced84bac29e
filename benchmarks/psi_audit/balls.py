"""Ball of an audited map at several radii, by whichever estimators apply."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Sequence

import numpy as np
from jaxtyping import Float, Int
from numpy.typing import NDArray

from exactdp.accounting.attribute import ball, distances, reconstruction
from exactdp.accounting.attribute.ball import Ball
from exactdp.accounting.attribute.draws import LEAST, ConditionalDraws
from exactdp.accounting.attribute.nearest import Neighbourhoods
from exactdp.accounting.attribute.reconstruction import LinearView
from exactdp.accounting.interval import Interval
from exactdp.benchmarks.psi_audit.sample import Sample, View

_ANCHORS = 20
# Records of one view: as many make a sample of its law, and no more than this are used of one.
_GROUP, _GROUP_LIMIT, _MOST_GROUPS = 30, 400, 20
_LEAST_COVERED = 0.5
_GROUPS = (
    "{groups} public views that {covered:.0%} of the records share, each with at least {least} records; "
    "certified for these views, for independent records"
)


@dataclasses.dataclass(frozen=True)
class Curves:
    """Ball against the radius.

    Attributes:
      method: "equal views" or "nearest views".
      with_view: the largest Ball over the views tried, one a radius.
      without_view: Ball of a record of which nothing is public.
      guessed: certified lower bounds by the best linear guess; empty where the map is not affine.
      error: median distance of that guess from the record; None where there is no guess.
    """

    method: str
    with_view: tuple[Ball, ...]
    without_view: tuple[Ball, ...]
    guessed: tuple[Interval, ...]
    error: float | None

    def interval(self, place: int) -> Interval:
        """Ball at the radius of that place: estimate and guess together.

        The lower end is the guess's (or that of equal views). Where a guess does better than the upper end of
        nearest views, that estimate is refuted and nothing is known from above.
        """
        seen = self.with_view[place]
        proved = [self.guessed[place].lower] if self.guessed else []
        if seen.certified:
            proved.append(seen.lower)
        lower = max(proved, default=0.0)
        return Interval(lower, 1.0 if self.refuted(place) else max(seen.upper, lower), "Ball")

    def refuted(self, place: int) -> bool:
        """Whether the guess proves more than the upper end of nearest views."""
        return bool(self.guessed) and self.guessed[place].lower > self.with_view[place].upper


def estimate(
    sample: Sample,
    *,
    view: View,
    distance: str,
    radii: Sequence[float],
    neighbours: int,
    confidence: float,
) -> Curves:
    """Ball at each radius.

    Args:
      sample: the records, shuffled.
      view: the map.
      distance: one of `distances.NAMES`.
      radii: rho, each >= 0.
      neighbours: records taken for one view where views are not equal.
      confidence: of each interval that estimate and guess give together, in (0, 1).

    Raises:
      ValueError: an argument is out of range, or there are too few records.
    """
    shape = sample.x.shape[1:]
    seen = view(sample.x).reshape(len(sample.x), -1)
    labels = sample.y if view.public.label else np.zeros(len(sample.y), np.int32)
    features = distances.features(distance, sample.x)
    affine = view.affine(shape)
    linear = None if affine is None else LinearView(*affine, precision=view.precision(shape))
    # Two estimators share the miss, as their better ends are put together.
    each = (1.0 + confidence) / 2.0
    find = _equal_views(seen, labels, features, confidence=each)
    method = "nearest views" if find is None else "equal views"
    if find is None:
        near = _neighbourhoods(sample, seen, labels, linear, distance=distance, neighbours=neighbours)
        find = functools.partial(near.ball, confidence=each)
    everyone = ConditionalDraws(features[:_GROUP_LIMIT])
    guessed, error = (), None
    if linear is not None:
        guess, truth = _guesses(sample, seen, labels, linear, distance=distance)
        guessed = tuple(
            reconstruction.lower_bound(guess, truth, radius=rho, confidence=each) for rho in radii
        )
        error = float(np.median(reconstruction.errors(guess, truth)))
    return Curves(
        method=method,
        with_view=tuple(find(rho) for rho in radii),
        without_view=tuple(everyone.ball(rho, confidence=confidence) for rho in radii),
        guessed=guessed,
        error=error,
    )


def _equal_views(
    seen: Float[np.ndarray, "n v"],
    labels: Int[np.ndarray, " n"],
    features: Float[np.ndarray, "n k"],
    *,
    confidence: float,
) -> Callable[[float], Ball] | None:
    """Ball by records of one and the same view; None where too few records share theirs."""
    whole = np.concatenate([seen, labels[:, None]], axis=1)
    _, group, sizes = np.unique(whole, axis=0, return_inverse=True, return_counts=True)
    large = np.argsort(-sizes, kind="stable")[:_MOST_GROUPS]
    large = large[sizes[large] >= _GROUP]
    covered = float(sizes[large].sum()) / len(whole)
    if covered < _LEAST_COVERED:
        return None
    draws = [ConditionalDraws(features[group == place][:_GROUP_LIMIT]) for place in large]
    each = 1.0 - (1.0 - confidence) / len(draws)
    statement = _GROUPS.format(groups=len(draws), covered=covered, least=_GROUP)

    def find(radius: float) -> Ball:
        found = [part.ball(radius, confidence=each) for part in draws]
        return ball.worst(found, confidence=confidence, statement=statement)

    return find


def _neighbourhoods(
    sample: Sample,
    seen: Float[np.ndarray, "n v"],
    labels: Int[np.ndarray, " n"],
    linear: LinearView | None,
    *,
    distance: str,
    neighbours: int,
) -> Neighbourhoods:
    """Neighbours of some views, moved to them where the map is affine."""
    flat = sample.x.reshape(len(sample.x), -1).astype(np.float64)
    variance = float(np.mean((flat - flat.mean(axis=0)) ** 2))
    # The records of a label with too few others have no neighbourhood.
    anchors = np.flatnonzero(np.bincount(labels)[labels] > LEAST)[:_ANCHORS].tolist()

    def features(anchor: int, places: NDArray[np.int64]) -> NDArray[np.float64]:
        records = flat[places]
        if linear is not None:
            views = np.broadcast_to(seen[anchor].astype(np.float64), (len(places), seen.shape[1]))
            records = linear.moved(records, views, variance=variance)
        return distances.features(distance, records.reshape(-1, *sample.x.shape[1:]))

    return Neighbourhoods.find(
        seen,
        features,
        anchors=anchors,
        neighbours=min(neighbours, len(seen) - 1),
        strata=labels.astype(np.int64),
    )


def _guesses(
    sample: Sample,
    seen: Float[np.ndarray, "n v"],
    labels: Int[np.ndarray, " n"],
    linear: LinearView,
    *,
    distance: str,
) -> tuple[Float[np.ndarray, "m k"], Float[np.ndarray, "m k"]]:
    """Features of guesses of the second half of the records, and of these; the first half shows their law."""
    shape = sample.x.shape[1:]
    flat = sample.x.reshape(len(sample.x), -1).astype(np.float64)
    half = len(flat) // 2
    centre = _means(flat[:half], labels[:half], count=int(labels.max()) + 1)[labels]
    guess = linear.guess(seen[half:] - centre[half:] @ linear.matrix.T, known=flat[:half] - centre[:half])
    guess = _possible(guess + centre[half:], known=flat[:half]).reshape(-1, *shape)
    return distances.features(distance, guess), distances.features(distance, sample.x[half:])


def _means(
    known: Float[np.ndarray, "m d"], labels: Int[np.ndarray, " m"], *, count: int
) -> Float[np.ndarray, "labels d"]:
    """The mean of each label's records, that of all where there are none."""
    overall = known.mean(axis=0)
    return np.stack(
        [
            known[labels == label].mean(axis=0) if (labels == label).any() else overall
            for label in range(count)
        ]
    )


def _possible(
    guess: Float[np.ndarray, "n d"], *, known: Float[np.ndarray, "m d"]
) -> Float[np.ndarray, "n d"]:
    """The guesses moved into the range of known records, and to 0 or 1 where these have no other values."""
    inside = np.clip(guess, known.min(axis=0), known.max(axis=0))
    binary = ((known == 0.0) | (known == 1.0)).all(axis=0)
    return np.where(binary, np.round(inside), inside)
