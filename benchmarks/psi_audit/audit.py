"""The audit of one map on one data set."""

from __future__ import annotations

import dataclasses

import jax
import numpy as np
from scipy.spatial import distance as scipy_distance

from exactdp.accounting import validate
from exactdp.accounting.attribute import distances
from exactdp.accounting.fdp.risk import attribute_advantage
from exactdp.accounting.interval import Interval
from exactdp.benchmarks.psi_audit import balls, verdict
from exactdp.benchmarks.psi_audit.balls import Curves
from exactdp.benchmarks.psi_audit.claim import Claim
from exactdp.benchmarks.psi_audit.sample import Sample, View
from exactdp.benchmarks.psi_audit.verdict import Verdict
from exactdp.mechanisms.public import Public
from exactdp.train.attacks import Reidentification, reidentify
from exactdp.train.attacks.reidentification import MATCHERS
from exactdp.train.data import Dataset

_FEWEST = 40
_BALL_SHARE = 4
_SHARES = (0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.4, 0.5, 0.6, 0.8, 1.0)
_DEFAULT_SHARE = 0.25
_TABLE_RADIUS = 0.45
_SMALLEST_SIDE = 8


@dataclasses.dataclass(frozen=True)
class Options:
    """How an audit is made.

    Attributes:
      distance: of Ball; one of `distances.NAMES`.
      radius: rho of Ball; None for 0.45 in L2 between tabular records (indicators all right: a wrong one is 1
        away, and at twice the radius still so), else a quarter of the median distance of two records.
      records: candidates to re-identify among; Ball is estimated from four times as many.
      noise: standard deviation of what alters a copy, in units of a feature.
      neighbours: of one view, for Ball.
      confidence: of each interval.
      seed: of the choice of records, noise and ties. It protects nothing.

    Raises:
      ValueError: an argument is out of range.
    """

    distance: str = "l2"
    radius: float | None = None
    records: int = 500
    noise: float = 0.1
    neighbours: int = 50
    confidence: float = 0.95
    seed: int = 0

    def __post_init__(self) -> None:
        validate.one_of("distance", self.distance, distances.NAMES)
        if self.radius is not None:
            validate.non_negative("radius", self.radius)
        validate.count("records", self.records, _FEWEST)
        validate.positive("noise", self.noise)
        validate.count("neighbours", self.neighbours, 4)
        validate.open_probability("confidence", self.confidence)
        if validate.count("seed", self.seed) >= 2**32:
            raise ValueError(f"seed must be below 2^32, got {self.seed}")


@dataclasses.dataclass(frozen=True)
class Audit:
    """The result; none of it is private itself: it is computed from the records without noise.

    Attributes:
      matches: re-identification by each matcher, distance and copy (the same, altered).
      radii: ascending.
      place: which of them is the one asked for.
      typical: median distance of two records.
      ball: Ball with the view, at each radius.
      curves: what it was made from.
      advantage: Theorem 4's bound at each radius; empty where nothing is claimed.
      verdict: the judgement at the radius asked for.
    """

    matches: tuple[Reidentification, ...]
    radii: tuple[float, ...]
    place: int
    typical: float
    ball: tuple[Interval, ...]
    curves: Curves
    advantage: tuple[Interval, ...]
    verdict: Verdict


def audit(data: Dataset, *, public: Public, levels: int, claim: Claim | None, options: Options) -> Audit:
    """Audits a public feature map.

    Args:
      data: the records; training and test set are taken together.
      public: Psi.
      levels: as `View` takes it.
      claim: of a release, for Theorem 4.
      options: the rest.

    Raises:
      ValueError: the map or the distance does not take the records, there are fewer than 40, or a sample of
        them is all alike.
    """
    public.require_shape(data.input_shape)
    view = View(public, levels)
    sample_key, match_key = jax.random.split(jax.random.key(options.seed))
    sample = Sample.of(data, key=sample_key).first(_BALL_SHARE * options.records)
    if len(sample.y) < _FEWEST:
        raise ValueError(f"{data.name}: an audit needs {_FEWEST} records at least, got {len(sample.y)}")
    typical = float(
        np.median(scipy_distance.pdist(distances.features(options.distance, sample.first(options.records).x)))
    )
    if typical == 0.0:
        raise ValueError(f"{data.name}: two records must differ, by {options.distance} most are alike")
    radius = options.radius
    if radius is None:
        table = options.distance == "l2" and not sample.is_image
        radius = _TABLE_RADIUS if table else _DEFAULT_SHARE * typical
    radii = tuple(sorted({radius, *(share * typical for share in _SHARES)}))
    place = radii.index(radius)
    curves = balls.estimate(
        sample,
        view=view,
        distance=options.distance,
        radii=radii,
        neighbours=options.neighbours,
        confidence=options.confidence,
    )
    found = tuple(curves.interval(at) for at in range(len(radii)))
    matches = _matches(sample.first(options.records), view=view, key=match_key, noise=options.noise)
    advantage = () if claim is None else tuple(attribute_advantage(claim.curve, ball=b) for b in found)
    judgement = verdict.judge(
        ball=found[place],
        without_view=curves.without_view[place].interval,
        refuted=curves.refuted(place),
        radius=radius,
        matches=[match for match in matches if match.noise > 0.0],
        is_image=sample.is_image,
        advantage=advantage[place] if advantage else None,
        confidence=options.confidence,
    )
    return Audit(matches, radii, place, typical, found, curves, advantage, judgement)


def _matches(sample: Sample, *, view: View, key: jax.Array, noise: float) -> tuple[Reidentification, ...]:
    names = [
        name
        for name in distances.NAMES
        if name != "perceptual" or (sample.is_image and min(sample.x.shape[1:3]) >= _SMALLEST_SIDE)
    ]

    return tuple(
        reidentify(sample.x, view=view, key=key, matcher=matcher, distance=name, noise=spread)
        for matcher in MATCHERS
        for spread in (0.0, noise)
        for name in names
    )
