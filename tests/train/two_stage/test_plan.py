"""Noise and certificate of a synthetic table."""

from __future__ import annotations

import pytest

from exactdp.accounting import prv
from exactdp.accounting.ladder.two_stage_setting import released_noise
from exactdp.accounting.printed import two_stage as printed
from exactdp.train.two_stage import plan as plans
from exactdp.train.two_stage.settings import TwoStageSettings

DELTA = 1e-5


def of(**given: object) -> plans.Plan:
    settings = TwoStageSettings(**{"epsilon": 1.0, "batch_size": 32} | given)  # type: ignore[arg-type]
    return plans.plan(settings, num_rows=3200, num_columns=6, num_undeclared=4)


def test_statistics_and_stage_2_are_composed_exactly_and_meet_the_target() -> None:
    found = of()
    assert found.budget is not None
    assert found.noise is not None
    composition = [(mechanism, count) for mechanism, count, _ in found.budget.releases()]
    composition += found.sampler.releases(
        found.certificate.mechanisms[0].pair,  # type: ignore[union-attr]
        num_steps=found.num_steps,
        coins="hidden",
        adjacency="add_remove",
    )
    whole = prv.epsilon(composition, delta=DELTA)
    assert whole.upper <= 1.0
    assert whole.lower > 0.998
    assert found.certificate.epsilon(found.num_steps, delta=DELTA).upper <= 1.0
    # The statistics alone stay within their half, and cost something.
    assert 0.45 < found.budget.interval().upper <= 0.5
    # The noise is more than stage 2 alone would need, and the last that would do.
    alone = of(as_published=True)
    assert alone.noise is not None
    assert found.noise > alone.noise
    less = plans.end_to_end(0.98 * found.noise, sampler=found.sampler, budget=found.budget)
    assert less.epsilon(found.num_steps, delta=DELTA).lower > 1.0


def test_the_released_noise_is_what_the_authors_train_with() -> None:
    """Adult: 30 932 rows, batches of 32, ten passes; the ladder's own number and the authors' log."""
    adult = printed.DATASETS["adult"]
    found = plans.plan(
        TwoStageSettings(epsilon=1.0, as_published=True, batch_size=32),
        num_rows=30_932,
        num_columns=15,
        num_undeclared=15,
    )
    # The authors' loader has 967 batches a pass; ours has the rate 32 / 30 932.
    assert found.num_steps == pytest.approx(adult.num_steps, rel=1e-3)
    assert found.noise == pytest.approx(released_noise("adult", 1.0), rel=2e-3)
    assert found.noise == pytest.approx(0.913, abs=2e-3)
    assert found.budget is None
    assert not found.certificate.before
    assert not found.certificate.covers_weights


def test_a_declared_table_leaves_more_for_stage_2() -> None:
    some, none = (
        plans.plan(TwoStageSettings(epsilon=1.0), num_rows=3200, num_columns=6, num_undeclared=u)
        for u in (6, 0)
    )
    assert some.budget is not None
    assert none.budget is not None
    # Statistics get the same epsilon: what domains do not need, the tables get.
    assert none.budget.table_noise.noise_multiplier < some.budget.table_noise.noise_multiplier
    assert [note for *_, note in none.budget.releases()] == [some.budget.releases()[-1][2]]


def test_without_privacy_nothing_is_certified() -> None:
    found = of(epsilon=None)
    assert found.noise is None
    assert found.budget is None
    assert not found.certificate.covers_weights


def test_steps_and_batches() -> None:
    sampler, steps = plans.sampler(TwoStageSettings(epsilon=1.0, batch_size=256), num_rows=100)
    assert sampler.sampling_probability == 0.25
    assert steps == 40
    assert plans.sampler(TwoStageSettings(epsilon=1.0, batch_size=256), num_rows=5120)[1] == 200
    assert plans.sampler(TwoStageSettings(epsilon=1.0, num_steps=7), num_rows=5120)[1] == 7
