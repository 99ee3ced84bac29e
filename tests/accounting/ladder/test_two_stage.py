"""Paper C's ladder: the noise multipliers, printed against exact, and the pipeline end to end."""

from __future__ import annotations

import json
import math

import pytest

from exactdp.accounting import prv
from exactdp.accounting.interval import Interval
from exactdp.accounting.ladder import rung as base
from exactdp.accounting.ladder import two_stage
from exactdp.accounting.ladder.rung import Rung
from exactdp.accounting.ladder.two_stage_setting import Setting, budget_noise, released_noise

# Noise multipliers of the released code, to three digits: Adult agrees with the authors' log.
KNOWN = {
    ("adult", 1.0): 0.913,
    ("airline", 1.0): 0.811,
    ("texas", 1.0): 0.850,
    ("adult", 8.0): 0.474,
    ("airline", 8.0): 0.428,
    ("texas", 8.0): 0.447,
}


@pytest.fixture(scope="module")
def ladder() -> list[Rung]:
    return two_stage.rungs()


def interval(ladder: list[Rung], name: str) -> Interval:
    value = base.find(ladder, name).epsilon
    assert isinstance(value, Interval)
    return value


def test_names_and_form(ladder: list[Rung]) -> None:
    assert [rung.name for rung in ladder] == list(two_stage.BUILDERS)
    for rung in ladder:
        json.dumps(rung.as_dict(), allow_nan=False)
        assert rung.command.startswith("exactdp ladder two_stage --dataset adult --epsilon 1.0 ")
        assert "None" not in rung.command


def test_noise_multipliers_and_both_values_of_stage_2() -> None:
    rows = two_stage.noise_table()
    assert {(row.dataset, row.epsilon) for row in rows} == set(KNOWN)
    for row in rows:
        assert round(row.noise_multiplier, 3) == pytest.approx(KNOWN[row.dataset, row.epsilon], abs=5e-4)
        assert row.epsilon - 0.01 <= row.printed <= row.epsilon
        assert isinstance(row.exact, Interval)
        assert row.exact.upper < row.printed
        assert row.exact.width < 1e-3


def test_printed_bounds_exact(ladder: list[Rung]) -> None:
    assert base.find(ladder, "printed").bounds(base.find(ladder, "exact"))
    assert interval(ladder, "steps that train").upper < interval(ladder, "exact").lower


def test_statistics_are_paid_for(ladder: list[Rung]) -> None:
    for name in ("U, private statistics", "O, public domains", "O, private domains"):
        rung = base.find(ladder, name)
        assert rung.threat_model == two_stage.END_TO_END
        found = interval(ladder, name)
        # More than stage 2 alone, at most the sum of both.
        assert interval(ladder, "exact").upper < found.lower
        assert found.upper <= interval(ladder, "exact").upper + 0.1 + 1e-9
    assert interval(ladder, "U, private statistics").lower < interval(ladder, "O, private domains").lower


def test_one_budget(ladder: list[Rung]) -> None:
    for name, columns in (("U, one budget", 15), ("O, public domains, one budget", 0)):
        found = interval(ladder, name)
        assert 0.995 < found.lower <= found.upper <= 1.0
        noise = budget_noise("adult", 1.0, share=0.1, columns=columns)
        # The printed conversion is looser than the private statistics cost: less noise, all things included.
        assert noise < released_noise("adult", 1.0)
        rung = base.find(ladder, name)
        assert {q.name: q.value for q in rung.quantities}["noise_multiplier"] == noise
        assert rung.composition is not None
        assert prv.epsilon(rung.composition, delta=1e-5).upper <= 1.0


def test_what_is_not_private_says_why(ladder: list[Rung]) -> None:
    for name, word in (
        ("U, as released", "column ranges"),
        ("O, as released", "label frequencies"),
        ("released loss", "class means"),
    ):
        rung = base.find(ladder, name)
        assert rung.epsilon is None and word in rung.reason
    assert base.find(ladder, "audited").reason == base.OPEN_AUDIT


def test_shares_add_up() -> None:
    setting = Setting("texas", 2.0, 1e-5, 1.0, 100, 0.25, 1e-3)
    for columns in (0, 17, 18):
        each, statistics = setting.statistics(columns=columns)
        assert each * (columns + 1) == pytest.approx(0.5, rel=1e-12)
        assert sum(count for _, count in statistics) == columns + 1
    assert setting.noise == 1.0 and setting.steps == 100


def test_the_step_of_the_last_update_was_read_for_one_table() -> None:
    rung = two_stage.schedule(Setting("texas", 1.0, 1e-5, 1.0, 100, 0.1, 1e-3))
    assert rung.epsilon is None and "Adult only" in rung.reason


def test_no_steps_cost_nothing() -> None:
    setting = Setting("adult", 1.0, 1e-5, 1.0, 0, 0.1, 1e-3)
    assert two_stage.exact(setting).upper == 0.0
    cost = two_stage.public_domains(setting).epsilon
    assert isinstance(cost, Interval) and 0.0999 < cost.lower <= cost.upper <= 0.1 + 1e-9


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("dataset", "adults"),
        ("epsilon", 0.0),
        ("delta", math.nan),
        ("noise_multiplier", 0.0),
        ("num_steps", -1),
        ("statistics_share", 1.0),
        ("statistics_share", 0.0),
        ("tolerance", 0.0),
    ],
)
def test_bad_input(name: str, value: object) -> None:
    with pytest.raises(ValueError, match=name):
        two_stage.rungs(**{name: value})  # type: ignore[arg-type]
