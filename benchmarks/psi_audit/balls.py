"""Ball of an audited map at several radii, by whichever estimators apply."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence

import numpy as np
from jaxtyping import Float, Int

from exactdp.accounting.attribute import ball, distances, reconstruction
from exactdp.accounting.attribute.ball import Ball
from exactdp.accounting.attribute.draws import LEAST, ConditionalDraws
from exactdp.accounting.attribute.nearest import Neighbourhoods
from exactdp.accounting.attribute.reconstruction import LinearGuess
from exactdp.accounting.interval import Interval
from exactdp.benchmarks.psi_audit.sample import Sample, View

_ANCHORS = 20
# Records of one view: as many make a sample of its law, and no more than this are used of one.
_GROUP, _GROUP_LIMIT, _MOST_GROUPS = 30, 400, 20
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
    seen = view(sample.x).reshape(len(sample.x), -1)
    labels = sample.y if view.public.label else np.zeros(len(sample.y), np.int32)
    features = distances.features(distance, sample.x)
    # Two estimators share the miss, as their better ends are put together.
    each = (1.0 + confidence) / 2.0
    method, find = _find(seen, labels, features, neighbours=neighbours, confidence=each)
    everyone = ConditionalDraws(features[:_GROUP_LIMIT])
    guessed, error = _guessed(sample, seen, view=view, distance=distance, radii=radii, confidence=each)
    return Curves(
        method=method,
        with_view=tuple(find(radius) for radius in radii),
        without_view=tuple(everyone.ball(radius, confidence=confidence) for radius in radii),
        guessed=guessed,
        error=error,
    )


def _find(
    seen: Float[np.ndarray, "n v"],
    labels: Int[np.ndarray, " n"],
    features: Float[np.ndarray, "n k"],
    *,
    neighbours: int,
    confidence: float,
) -> tuple[str, Callable[[float], Ball]]:
    whole = np.concatenate([seen, labels[:, None]], axis=1)
    _, group, sizes = np.unique(whole, axis=0, return_inverse=True, return_counts=True)
    large = np.argsort(-sizes, kind="stable")[:_MOST_GROUPS]
    large = large[sizes[large] >= _GROUP]
    covered = float(sizes[large].sum()) / len(whole)
    if covered >= 0.5:
        statement = _GROUPS.format(groups=len(large), covered=covered, least=_GROUP)
        draws = [ConditionalDraws(features[group == place][:_GROUP_LIMIT]) for place in large]
        each = 1.0 - (1.0 - confidence) / len(draws)

        def equal(radius: float) -> Ball:
            found = [part.ball(radius, confidence=each) for part in draws]
            return ball.worst(found, confidence=confidence, statement=statement)

        return "equal views", equal
    # The records of a label with too few others have no neighbourhood.
    usable = np.flatnonzero(np.bincount(labels)[labels] > LEAST)
    near = Neighbourhoods.find(
        seen,
        features,
        anchors=usable[:_ANCHORS].tolist(),
        neighbours=min(neighbours, len(seen) - 1),
        strata=labels.astype(np.int64),
    )
    return "nearest views", lambda radius: near.ball(radius, confidence=confidence)


def _guessed(
    sample: Sample,
    seen: Float[np.ndarray, "n v"],
    *,
    view: View,
    distance: str,
    radii: Sequence[float],
    confidence: float,
) -> tuple[tuple[Interval, ...], float | None]:
    """Guesses of the second half of the records, from what the first half shows of their law."""
    shape = sample.x.shape[1:]
    affine = view.affine(shape)
    if affine is None:
        return (), None
    flat = sample.x.reshape(len(sample.x), -1).astype(np.float64)
    half = len(flat) // 2
    means = _means(flat[:half], sample.y[:half], by_label=view.public.label)
    centre = means[sample.y]
    matrix, offset = affine
    guess = LinearGuess(matrix, offset, precision=view.precision(shape)).guess(
        seen[half:] - centre[half:] @ matrix.T, known=flat[:half] - centre[:half]
    )
    guess = _possible(guess + centre[half:], known=flat[:half]).reshape(-1, *shape)
    features = [distances.features(distance, part) for part in (guess, sample.x[half:])]
    bounds = tuple(
        reconstruction.lower_bound(*features, radius=radius, confidence=confidence) for radius in radii
    )
    return bounds, float(np.median(reconstruction.errors(*features)))


def _means(
    known: Float[np.ndarray, "m d"], labels: Int[np.ndarray, " m"], *, by_label: bool
) -> Float[np.ndarray, "classes d"]:
    """The mean of each label's records where labels are public, else of all, one row a label."""
    overall = known.mean(axis=0)
    counts = range(int(labels.max()) + 2)
    return np.stack(
        [known[labels == c].mean(axis=0) if by_label and (labels == c).any() else overall for c in counts]
    )


def _possible(
    guess: Float[np.ndarray, "n d"], *, known: Float[np.ndarray, "m d"]
) -> Float[np.ndarray, "n d"]:
    """The guesses moved into the range of known records, and to 0 or 1 where these have no other values."""
    inside = np.clip(guess, known.min(axis=0), known.max(axis=0))
    binary = ((known == 0.0) | (known == 1.0)).all(axis=0)
    return np.where(binary, np.round(inside), inside)
