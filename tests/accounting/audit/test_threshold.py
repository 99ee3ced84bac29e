"""Bands from scores: coverage on mechanisms with known epsilon, how near they get, bad input."""

from __future__ import annotations

import math
import time
from collections.abc import Callable

import numpy as np
import pytest
from scipy import stats

from exactdp.accounting.audit import band, threshold
from exactdp.accounting.audit.band import GAUSSIAN, Band
from exactdp.accounting.audit.known import Known, RandomisedResponse, Silent, SubsampledGaussian
from exactdp.accounting.fdp.gaussian import GaussianTradeoff
from exactdp.accounting.threat import Adjacency, Coins, ThreatModel

MODEL = ThreatModel(Adjacency.ADD_REMOVE, Coins.NONE, "one draw")
CONFIDENCE = 0.9
DELTA = 1e-2

Method = Callable[[np.ndarray, np.ndarray, int], Band]


def held_out(inside: np.ndarray, outside: np.ndarray, seed: int) -> Band:
    return threshold.held_out(inside, outside, delta=DELTA, seed=seed, confidence=CONFIDENCE)


def held_out_mu(inside: np.ndarray, outside: np.ndarray, seed: int) -> Band:
    return threshold.held_out(
        inside, outside, delta=DELTA, seed=seed, confidence=CONFIDENCE, target="mu", selection_share=0.5
    )


def fixed(inside: np.ndarray, outside: np.ndarray, seed: int) -> Band:
    return threshold.fixed_thresholds(inside, outside, thresholds=[0.0, 0.5, 1.0, 2.0], confidence=CONFIDENCE)


def order_statistics(inside: np.ndarray, outside: np.ndarray, seed: int) -> Band:
    return threshold.order_statistics(inside, outside, seed=seed, confidence=CONFIDENCE)


@pytest.mark.parametrize("method", [held_out, held_out_mu, fixed, order_statistics])
@pytest.mark.parametrize(
    "mechanism",
    [RandomisedResponse(1.0), SubsampledGaussian(1.0), SubsampledGaussian(2.0, 0.3), Silent()],
    ids=repr,
)
def test_coverage(mechanism: Known, method: Method) -> None:
    repeats, size = 1000, 300
    truths = {delta: mechanism.epsilon(delta) for delta in (1e-3, DELTA, 0.1)}
    if mechanism == Silent():
        truths[0.0] = 0.0
    generator = np.random.default_rng(7)
    failures, positive = 0, 0
    for seed in range(repeats):
        found = method(*mechanism.draw(size, generator=generator), seed)
        failures += any(found.epsilon_lower(delta) > truth for delta, truth in truths.items())
        positive += found.epsilon_lower(DELTA) > 0.0
    # More failures than 1 in 10 000 correct methods would have.
    assert failures <= stats.binom.isf(1e-4, repeats, 1.0 - CONFIDENCE)
    if mechanism != Silent():
        assert positive >= 0.8 * repeats  # and they do not hold by saying nothing


def test_curve_and_mu_cover_together() -> None:
    truth, repeats = GaussianTradeoff(1.0), 600
    generator = np.random.default_rng(3)
    failures = 0
    for seed in range(repeats):
        found = order_statistics(*SubsampledGaussian(1.0).draw(200, generator=generator), seed)
        above = [y >= truth.fnr(x) for x, y in zip(found.fpr_upper, found.fnr_upper, strict=True)]
        failures += found.mu_lower() > 1.0 or not all(above)
    assert failures <= stats.binom.isf(1e-4, repeats, 1.0 - CONFIDENCE)


@pytest.mark.parametrize(("mu", "share"), [(0.5, 0.85), (1.0, 0.85), (2.0, 0.75)])
def test_how_near_a_million_samples_get(mu: float, share: float) -> None:
    inside, outside = SubsampledGaussian(mu).draw(500_000, generator=np.random.default_rng(11))
    band = threshold.order_statistics(inside, outside, seed=1)
    # Nothing assumed, delta = 1e-3.
    assert share <= band.epsilon_lower(1e-3) / SubsampledGaussian(mu).epsilon(1e-3) <= 1.0
    alone = threshold.held_out(inside, outside, delta=1e-3, seed=1)
    assert share - 0.05 <= alone.epsilon_lower(1e-3) / SubsampledGaussian(mu).epsilon(1e-3) <= 1.0
    # The curve taken to be Gaussian, delta = 1e-5.
    result = band.result(delta=1e-5, threat_model=MODEL, gaussian=True)
    assert result.assumption == GAUSSIAN
    assert 0.95 <= result.epsilon_lower / SubsampledGaussian(mu).epsilon(1e-5) <= 1.0


def test_ten_million_samples_take_seconds() -> None:
    generator = np.random.default_rng(12)
    outside = generator.standard_normal(5_000_000, dtype=np.float32)
    inside = generator.standard_normal(5_000_000, dtype=np.float32) + np.float32(1.0)
    start = time.perf_counter()
    band = threshold.order_statistics(inside, outside, seed=1)
    assert time.perf_counter() - start < 10.0
    assert 0.92 <= band.epsilon_lower(1e-3) / SubsampledGaussian(1.0).epsilon(1e-3) <= 1.0
    assert (
        0.98 <= GaussianTradeoff(band.mu_lower()).epsilon(1e-5) / SubsampledGaussian(1.0).epsilon(1e-5) <= 1.0
    )


def test_low_scores_for_in_show_nothing() -> None:
    inside, outside = SubsampledGaussian(1.0).draw(2000, generator=np.random.default_rng(1))
    band = threshold.order_statistics(outside, inside, seed=1)
    assert band.epsilon_lower(1e-3) == 0.0
    assert band.mu_lower() == 0.0


def test_both_directions() -> None:
    # Scores that tell "out" for certain now and then: fnr = 0 at a positive fpr, not the other way round.
    generator = np.random.default_rng(2)
    inside = generator.random(4000)
    outside = np.where(generator.random(4000) < 0.2, -1.0, generator.random(4000))
    band = threshold.order_statistics(inside, outside, seed=1)
    assert band.epsilon_lower(0.0) > 3.0
    # Some scores are equal, so that their order is random.
    mirrored = threshold.order_statistics(-outside, -inside, seed=2)
    assert mirrored.epsilon_lower(0.0) == pytest.approx(band.epsilon_lower(0.0), rel=0.02)


def test_ties_infinities_and_few_scores() -> None:
    ties = threshold.order_statistics(np.ones(500), np.zeros(500), seed=1)
    assert ties.epsilon_lower(0.0) > 3.0
    assert threshold.order_statistics(np.ones(500), np.ones(500), seed=1).epsilon_lower(0.0) == 0.0
    infinite = threshold.order_statistics(np.full(500, np.inf), np.full(500, -np.inf), seed=1)
    assert infinite.epsilon_lower(0.0) == ties.epsilon_lower(0.0)
    few = threshold.held_out([1.0, 1.0], [0.0, 0.0], delta=0.0, seed=0)
    assert few.epsilon_lower(0.0) == 0.0
    result = few.result(delta=0.0, threat_model=MODEL)
    assert "no loss of privacy" in result.rung().note


def test_few_distinct_scores() -> None:
    # Ranks that fall within a large group of equal scores give randomised tests, on the segments between the
    # corners of the curve.
    scores = RandomisedResponse(1.0).draw(50_000, generator=np.random.default_rng(3))
    found = [threshold.order_statistics(*scores, seed=seed).epsilon_lower(1e-3) for seed in range(20)]
    assert 0.9 < min(found) <= max(found) <= RandomisedResponse(1.0).epsilon(1e-3)
    assert len(set(found)) > 1
    once = threshold.order_statistics(*scores, seed=5)
    assert once == threshold.order_statistics(*scores, seed=5)
    apart = SubsampledGaussian(1.0).draw(1000, generator=np.random.default_rng(3))
    assert threshold.order_statistics(*apart, seed=5) == threshold.order_statistics(*apart, seed=6)


def test_curve_is_the_hull() -> None:
    band = Band((0.0, 1.0), (0.5, 0.1), (0.1, 0.3), 0.95, 10, "by hand")
    curve = band.curve()
    assert curve.fnr(0.1) == pytest.approx(0.3)
    assert curve.fnr(0.0) == 1.0
    assert curve.fnr(0.3) == pytest.approx(0.2)
    assert band.epsilon_lower(0.1) == pytest.approx(np.log(6.0))
    assert band.epsilon_lower(0.0) == pytest.approx(np.log(7.0))


def test_counts() -> None:
    inside, outside = SubsampledGaussian(1.0).draw(1000, generator=np.random.default_rng(4))
    band = threshold.fixed_thresholds(inside, outside, thresholds=[0.0, 1.0])
    counted = threshold.from_counts(
        false_positives=[int((outside > t).sum()) for t in (0.0, 1.0)],
        negatives=1000,
        false_negatives=[int((inside <= t).sum()) for t in (0.0, 1.0)],
        positives=1000,
        thresholds=[0.0, 1.0],
    )
    assert counted == band


def test_pilot() -> None:
    generator = np.random.default_rng(8)
    pilot = threshold.pilot_thresholds(*SubsampledGaussian(1.0).draw(20_000, generator=generator))
    assert pilot == sorted(set(pilot)) and 8 <= len(pilot) <= 16
    inside, outside = SubsampledGaussian(1.0).draw(400_000, generator=generator)
    band = threshold.fixed_thresholds(inside, outside, thresholds=pilot)
    assert 0.8 <= band.epsilon_lower(1e-3) / SubsampledGaussian(1.0).epsilon(1e-3) <= 1.0
    assert threshold.pilot_thresholds([2.0], [1.0]) == [1.0, 2.0]
    with pytest.raises(ValueError, match="least_rank must be"):
        threshold.pilot_thresholds([2.0], [1.0], least_rank=0)


def test_delta_lower() -> None:
    band = Band((0.0, 1.0), (0.5, 0.1), (0.1, 0.3), 0.95, 10, "by hand")
    assert band.delta_lower(0.0) == pytest.approx(0.6)
    assert band.delta_lower(1.0) == pytest.approx(0.7 - 0.1 * np.e)
    assert band.delta_lower(band.epsilon_lower(0.2)) == pytest.approx(0.2)
    assert band.delta_lower(5.0) == 0.0
    with pytest.raises(ValueError, match="epsilon must be at most 700"):
        band.delta_lower(701.0)


def test_bad_input() -> None:
    good = np.arange(10.0)
    with pytest.raises(ValueError, match="scores_in must not hold NaN, got 1"):
        threshold.order_statistics([1.0, np.nan], good, seed=1)
    for bad in ([], [[1.0, 2.0]], 3.0):
        with pytest.raises(ValueError, match="scores_out must be a list of at least 1"):
            threshold.order_statistics(good, bad, seed=1)
    with pytest.raises(ValueError, match="scores_out must be a list of at least 2"):
        threshold.held_out(good, [1.0], delta=0.0, seed=1)
    with pytest.raises(ValueError, match="scores_in must be real numbers"):
        threshold.order_statistics(["a", "b"], good, seed=1)
    with pytest.raises(ValueError, match="delta must be in"):
        threshold.held_out(good, good, delta=1.0, seed=1)
    with pytest.raises(ValueError, match="seed must be"):
        threshold.held_out(good, good, delta=0.0, seed=-1)
    with pytest.raises(ValueError, match="seed must be"):
        threshold.order_statistics(good, good, seed=-1)
    with pytest.raises(ValueError, match="target must be one of"):
        threshold.held_out(good, good, delta=0.0, seed=1, target="advantage")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="confidence must be in"):
        threshold.order_statistics(good, good, seed=1, confidence=1.0)
    with pytest.raises(ValueError, match="ratio must be at least"):
        threshold.order_statistics(good, good, seed=1, ratio=1.0)
    with pytest.raises(ValueError, match="same length"):
        threshold.fixed_thresholds(good, good, thresholds=[])
    with pytest.raises(ValueError, match="thresholds must be a number"):
        threshold.fixed_thresholds(good, good, thresholds=[np.nan])
    with pytest.raises(ValueError, match="delta must be in"):
        threshold.order_statistics(good, good, seed=1).result(delta=0.0, threat_model=MODEL, gaussian=True)
    with pytest.raises(ValueError, match="fpr_upper must be in"):
        Band((0.0,), (0.0,), (0.5,), 0.95, 10, "by hand")


@pytest.mark.parametrize("rates", [(0.0,), (math.nan,), (2.0,), (-0.1,)])
def test_rates_that_are_none_are_refused(rates: tuple[float, ...]) -> None:
    with pytest.raises(ValueError, match=r"fpr must be in \(0, 1\]"):
        band.epsilons(rates, (0.5,), delta=0.1)
    with pytest.raises(ValueError, match=r"fnr must be in \(0, 1\]"):
        band.epsilons((0.5,), rates, delta=0.1)


def test_a_ratio_that_asks_for_endless_ranks_is_refused() -> None:
    scores = np.arange(10.0)
    for ratio in (1.0, 1.0 + 1e-15, math.nan, math.inf):
        with pytest.raises(ValueError, match="ratio must be"):
            threshold.order_statistics(scores, scores, seed=0, ratio=ratio)
