"""The law of a sampled step's noisy sum: its epsilon by other means, and the draws from it."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from scipy import stats

from exactdp.accounting.interval import Interval
from exactdp.accounting.ladder import rung as base
from exactdp.benchmarks.two_stage_audit import claims
from exactdp.benchmarks.two_stage_audit.coupling import SHORT_ROWS
from exactdp.benchmarks.two_stage_audit.options import Options
from exactdp.benchmarks.two_stage_audit.sampled_step import SampledStep
from exactdp.benchmarks.two_stage_audit.short_and_long import OURS, RELEASED, ClippedSums, clipped_sums

OPTIONS = Options()
SETTING, _ = claims.of_adult(OPTIONS)
NORM = 0.92  # of a short row's gradient, in clip norms


def law(loss: str, ratio: int) -> SampledStep:
    return SampledStep(clipped_sums(loss, ratio=ratio), num_rows=SHORT_ROWS, setting=SETTING)


@pytest.mark.parametrize("delta", [1e-5, 1e-7])
def test_epsilon_of_clipping_that_holds_is_the_accountants(delta: float) -> None:
    found, reason = base.exact(SETTING.stage_2(num_steps=1), delta=delta, tolerance=1e-6)
    assert isinstance(found, Interval), reason
    assert law(OURS, 300).epsilon(delta) == pytest.approx(found.upper, rel=1e-4)


@pytest.mark.parametrize("ratio", [30, 300])
def test_epsilon_of_the_released_loss_by_summing_over_both_coordinates(ratio: int) -> None:
    epsilon = law(RELEASED, ratio).epsilon(OPTIONS.delta)
    q, sigma = SETTING.data.sampling_probability, SETTING.noise
    # The derived sums: parts of even size, the long row in the first; its own part at right angles.
    x, y = np.linspace(-8.0, 60.0, 3_001), np.linspace(-8.0, 9.0, 341)
    step = (x[1] - x[0]) * (y[1] - y[0])
    along = np.zeros((2, len(x)))
    for count, weight in enumerate(stats.binom.pmf(np.arange(81), SETTING.data.train_rows, q)):
        parts = np.array_split(np.arange(count + 1), -(-(count + 1) // 32))
        short = len(parts[0]) - 1
        means = (NORM * count, NORM * (count - short * (ratio - 1) / (short + ratio)))
        for side in (0, 1):
            along[side] += weight * stats.norm.pdf(x, means[side], sigma)
    absent, present = (np.outer(along[side], stats.norm.pdf(y, side, sigma)) for side in (0, 1))
    excess = np.maximum(q * present - (np.expm1(epsilon) + q) * absent, 0.0).sum() * step
    assert excess == pytest.approx(OPTIONS.delta, rel=0.05)


def test_scores_are_those_of_the_law() -> None:
    rng, size = np.random.default_rng(2), 300_000
    found = law(RELEASED, 300)
    inside, outside = (found.scores(rng, size, present=present) for present in (True, False))
    assert inside.shape == outside.shape == (size,)
    # A likelihood ratio turns probabilities without the row into those with it, and its reciprocal turns them
    # back. (The former is cut: beyond, draws are too rare.)
    assert np.mean(np.exp(-inside)) == pytest.approx(1.0, abs=1e-3)
    cut = 2.0
    assert np.mean(np.where(outside < cut, np.exp(outside), 0.0)) == pytest.approx(
        np.mean(inside < cut), abs=4e-4
    )
    # About half of the draws of the long row are beyond the cut, and hardly one without it.
    hits = np.count_nonzero(inside > cut)
    assert 0.3 * size * SETTING.data.sampling_probability < hits < size * SETTING.data.sampling_probability
    assert np.count_nonzero(outside > cut) <= 3


def test_a_long_row_that_adds_little_has_no_epsilon() -> None:
    sums = clipped_sums(OURS, ratio=300)
    values = sums.values.copy()
    values[1] = values[0] + 1e-3 * (values[1] - values[0])
    small = SampledStep(ClippedSums(values), num_rows=SHORT_ROWS, setting=SETTING)
    assert small.epsilon(OPTIONS.delta) == 0.0


def test_runs_are_drawn_in_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    found = law(RELEASED, 30)
    monkeypatch.setattr("exactdp.benchmarks.two_stage_audit.sampled_step._CHUNK", 7)
    assert found.scores(np.random.default_rng(1), 20, present=True).shape == (20,)
    assert found.scores(np.random.default_rng(1), 0, present=True).shape == (0,)


def test_refused() -> None:
    found = law(RELEASED, 30)
    with pytest.raises(ValueError, match="num_steps must be a whole number >= 0, got -1"):
        found.scores(np.random.default_rng(1), -1, present=True)
    with pytest.raises(ValueError, match=r"delta must be in \(0, 1\), got 1"):
        found.epsilon(1.0)
    with pytest.raises(ValueError, match="num_rows must be a whole number >= 1, got 0"):
        SampledStep(clipped_sums(RELEASED, ratio=30), num_rows=0, setting=SETTING)
    with pytest.raises(ValueError, match="first_steps must be a whole number >= 16, got 15"):
        dataclasses.replace(OPTIONS, first_steps=15)
