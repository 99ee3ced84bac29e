"""The audit of the loss: the derived move, and bounds above and below what is claimed; noise has a seed."""

from __future__ import annotations

import dataclasses

import jax
import numpy as np
import pytest

from exactdp.accounting.ladder.two_stage_setting import STAGE_2
from exactdp.accounting.printed import two_stage as printed
from exactdp.benchmarks.two_stage_audit import claims, coupling
from exactdp.benchmarks.two_stage_audit.claims import EXACT, PRINTED, Claims
from exactdp.benchmarks.two_stage_audit.coupling import SHORT_ROWS, STEP, Coupled
from exactdp.benchmarks.two_stage_audit.options import Options
from exactdp.benchmarks.two_stage_audit.short_and_long import OURS, PHYSICAL_BATCH, RELEASED, clipped_sums
from exactdp.train.attacks import coupled_loss

OPTIONS = Options(trials=200, draws=8_000, first_steps=400_000)
SETTING, CLAIMED = claims.of_adult(OPTIONS)


def audited(loss: str, ratio: int) -> Coupled:
    return coupling.audit(
        loss, ratio, SETTING, OPTIONS, seed=np.random.SeedSequence(1), key=jax.random.key(1)
    )


@pytest.mark.parametrize("ratio", [9, 30])
def test_the_clipped_sum_moves_as_derived(ratio: int) -> None:
    sums = clipped_sums(RELEASED, ratio=ratio)
    norm = float(np.linalg.norm(sums.short))
    assert norm == pytest.approx(0.65 * np.sqrt(2.0), rel=1e-3)  # just below the clip norm
    for count in (1, 8, SHORT_ROWS):
        # The long row's own part has the clip norm, at right angles to the others'.
        expected = np.hypot(coupled_loss.move(count, ratio=ratio, norm=norm), 1.0)
        assert np.linalg.norm(sums.move(count)) == pytest.approx(expected, rel=2e-3)


def test_ours_moves_by_the_clip_norm_at_most() -> None:
    sums = clipped_sums(OURS, ratio=30)
    assert all(np.linalg.norm(sums.move(count)) <= 1.0 + 1e-5 for count in range(PHYSICAL_BATCH + 1))
    assert all(np.linalg.norm(sums.split(70).move(count)) <= 1.0 + 1e-5 for count in range(71))


def test_a_large_batch_is_split_evenly() -> None:
    sums = clipped_sums(RELEASED, ratio=30)
    split = sums.split(70)
    # One batch up to 32 rows, then two of even size (Opacus): the long row couples its own half alone.
    np.testing.assert_allclose(split.move(31), sums.move(31))
    np.testing.assert_allclose(split.values[1, 31], sums.values[1, 31])
    np.testing.assert_allclose(split.values[1, 32], sums.values[1, 16] + sums.values[0, 16], rtol=1e-6)
    np.testing.assert_allclose(split.values[0, 33], sums.values[0, 17] + sums.values[0, 16], rtol=1e-6)
    # Three of 22, 22 and 21 with the long row in the first.
    expected = sums.values[1, 21] + sums.values[0, 22] + sums.values[0, 21]
    np.testing.assert_allclose(split.values[1, 64], expected, rtol=1e-6)
    np.testing.assert_allclose(split.values[0, 70], 70 * sums.short, rtol=1e-4, atol=1e-5)


def test_the_released_loss_exceeds_what_is_claimed() -> None:
    found = audited(RELEASED, 30)
    assert found.moved > 13.0
    assert found.step.epsilon_lower > found.verdict.certified.upper and found.verdict.refuted
    assert found.stage.epsilon_lower > CLAIMED.upper(PRINTED) > CLAIMED.upper(EXACT)
    # The printed claim has this very threat model: it is refuted, and not only about something else.
    assert found.stage.refutes(
        CLAIMED.upper(PRINTED), delta=printed.DELTA, threat_model=printed.PRINTED.threat_model
    )
    assert {found.first.threat_model, found.stage.threat_model} == {STAGE_2}
    assert found.step.threat_model == STEP
    assert [one.trials for one in (found.first, found.step, found.stage)] == [400_000, 8_000, 200]


def test_the_first_sum_alone_exceeds_what_is_claimed_for_all() -> None:
    found = audited(RELEASED, 300)
    assert CLAIMED.upper(PRINTED) < 2.5 < found.first.epsilon_lower < found.first_integrated
    # It is one of the sums that the claim is about.
    assert found.first.refutes(
        CLAIMED.upper(PRINTED), delta=printed.DELTA, threat_model=printed.PRINTED.threat_model
    )
    # The other readings do not depend on the first step's draws.
    fewer = dataclasses.replace(OPTIONS, first_steps=16)
    again = coupling.audit(
        RELEASED, 300, SETTING, fewer, seed=np.random.SeedSequence(1), key=jax.random.key(1)
    )
    assert again.first.epsilon_lower == 0.0 and again.stage == found.stage and again.step == found.step


def test_ours_stays_within_what_is_claimed() -> None:
    found = audited(OURS, 30)
    assert found.moved <= 1.0 + 1e-5 and not found.verdict.refuted
    # The attack works: it shows a good part of what the step may leak.
    assert 0.3 * found.verdict.certified.upper < found.step.epsilon_lower < found.verdict.certified.upper
    assert found.stage.epsilon_lower <= CLAIMED.upper(EXACT)
    assert found.first.epsilon_lower <= found.first_integrated < 0.02


def test_claims() -> None:
    assert CLAIMED.upper(PRINTED) == pytest.approx(0.9915, abs=1e-4)
    assert CLAIMED.upper(EXACT) == pytest.approx(0.57995, abs=1e-4)
    assert CLAIMED.exceeded(0.7) == [EXACT] and CLAIMED.exceeded(0.5) == []
    table, budget = claims.of_table(OPTIONS, num_rows=60, num_columns=4)
    assert list(table.values) == [PRINTED, EXACT, claims.REPAIRED, claims.STATISTICS]
    assert isinstance(table, Claims) and budget.num_undeclared == 4
    assert table.upper(claims.STATISTICS) <= 0.5 < table.upper(claims.REPAIRED) <= 1.0


def test_refused() -> None:
    with pytest.raises(ValueError, match="loss must be one of"):
        clipped_sums("other", ratio=1)
    with pytest.raises(ValueError, match="most must be a whole number >= 0, got -1"):
        clipped_sums(OURS, ratio=30).split(-1)
    with pytest.raises(ValueError, match="ratio must be at most 1020, got 1021"):
        clipped_sums(OURS, ratio=1021)
