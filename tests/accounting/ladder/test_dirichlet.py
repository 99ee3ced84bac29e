"""Paper A's ladder: the recovered numbers, the order of the rungs, and the reconstructed table."""

from __future__ import annotations

import json
import math

import pytest

from exactdp.accounting import prv
from exactdp.accounting.interval import Interval
from exactdp.accounting.ladder import dirichlet
from exactdp.accounting.ladder import rung as base
from exactdp.accounting.ladder.factor_three import factor_three_floor
from exactdp.accounting.ladder.r_star import largest_scaling, r_star_table
from exactdp.accounting.ladder.rung import Rung
from exactdp.accounting.pairs.dirichlet import Dirichlet
from exactdp.accounting.printed import dirichlet as printed
from exactdp.accounting.sampling.visible import PoissonVisible
from exactdp.accounting.threat import Adjacency, Coins

CELL = {"sampling_probability": 0.005, "num_steps": 20_000, "delta": 1e-5}
CHAIN = (
    "repaired conversion",
    "exact Rényi curve of the draw",
    "without the factor 3",
    "exact Rényi divergence of the step",
    "exact, hidden coins",
)


@pytest.fixture(scope="module")
def ladder() -> list[Rung]:
    return dirichlet.rungs()


def upper(ladder: list[Rung], name: str) -> float:
    value = base.find(ladder, name).upper
    assert value is not None
    return value


def test_names_and_form(ladder: list[Rung]) -> None:
    assert [rung.name for rung in ladder] == list(dirichlet.BUILDERS)
    for rung in ladder:
        json.dumps(rung.as_dict(), allow_nan=False)
        assert rung.command.startswith("exactdp ladder dirichlet --scaling 0.235 --offset 3.0 ")
        assert (rung.kind == "printed") or rung.corrects or rung.kind == "audited"


def test_printed_and_repaired_values(ladder: list[Rung]) -> None:
    assert upper(ladder, "repaired conversion") == pytest.approx(1.0014, abs=5e-5)
    quantities = {q.name: q.value for q in base.find(ladder, "repaired conversion").quantities}
    assert quantities["order"] == 12.0
    assert quantities["limit as scaling -> 0"] == pytest.approx(0.675, abs=5e-4)
    least = {q.name: q.value for q in base.find(ladder, "printed").quantities}
    assert least["least value of the conversion term"] == pytest.approx(3.903, abs=5e-4)
    assert upper(ladder, "printed") > 3.903
    assert upper(ladder, "Mironov conversion") > upper(ladder, "repaired conversion")


def test_each_repair_lowers_the_bound_of_one_threat_model(ladder: list[Rung]) -> None:
    rungs = [base.find(ladder, name) for name in CHAIN]
    assert {rung.threat_model for rung in rungs} == {dirichlet.ADD_REMOVE_HIDDEN}
    for above, below in zip(rungs, rungs[1:], strict=False):
        assert above.bounds(below)
        assert above.upper is not None and below.upper is not None
        assert above.upper > below.upper


def test_visible_coins_cost_ten_times_more(ladder: list[Rung]) -> None:
    seen = base.find(ladder, "exact, visible coins")
    assert (seen.threat_model.adjacency, seen.threat_model.coins) == (
        Adjacency.REPLACE_LABEL_PUBLIC,
        Coins.VISIBLE,
    )
    assert isinstance(seen.epsilon, Interval)
    assert seen.epsilon.lower > 10.0 * upper(ladder, "repaired conversion")
    # What the paper is about: the printed value does not hold there.
    replaced = base.find(ladder, "label-public replacement")
    assert replaced.threat_model.coins == Coins.HIDDEN
    assert isinstance(replaced.epsilon, Interval)
    assert replaced.epsilon.lower > upper(ladder, "printed")


def test_bracket_of_replacement(ladder: list[Rung]) -> None:
    bracket = base.find(ladder, "label-public replacement, coins really hidden").epsilon
    hidden, seen = (
        base.find(ladder, name).epsilon for name in ("exact, hidden coins", "exact, visible coins")
    )
    assert isinstance(bracket, Interval) and isinstance(hidden, Interval) and isinstance(seen, Interval)
    assert (bracket.lower, bracket.upper) == (hidden.lower, seen.upper)


def test_visible_value_against_the_binomial_sum() -> None:
    """delta = sum over N of Binomial(T, q) of the N-fold draw's delta, N apart."""
    from scipy import stats

    setting = dirichlet.Setting(0.5, 3.0, 0.05, 8, 1e-3, 1.0, 1e-4)
    found = dirichlet.visible(setting).epsilon
    assert isinstance(found, Interval)
    weights = stats.binom(8, 0.05).pmf(range(9))
    for epsilon, side in ((found.lower - 1e-5, 1), (found.upper + 1e-5, -1)):
        deltas = [
            prv.delta([(setting.pair, n)], epsilon=epsilon) if w > 1e-9 and n else Interval(0.0, 0.0)
            for n, w in enumerate(weights)
        ]
        low = sum(w * d.lower for w, d in zip(weights, deltas, strict=True))
        high = sum(w * d.upper for w, d in zip(weights, deltas, strict=True)) + 1e-8
        assert high >= 1e-3 if side > 0 else low <= 1e-3


def test_notes_say_whether_the_pair_is_the_worst(ladder: list[Rung]) -> None:
    assert "proved to be the worst pair of inputs (offset >= 1/2)" in base.find(ladder, CHAIN[-1]).note
    small = dirichlet.Setting(2.0, 0.2, 0.01, 10, 1e-5, 5.0, 1e-3)
    assert "not proved" in dirichlet.hidden(small).note


def test_what_has_no_certificate_says_why(ladder: list[Rung]) -> None:
    weights = base.find(ladder, "released weights")
    assert weights.epsilon is None and "Jacobian" in weights.reason
    assert weights.as_dict()["epsilon"] is None
    audited = base.find(ladder, "audited")
    assert audited.epsilon is None and audited.reason == base.OPEN_AUDIT
    assert audited.threat_model == weights.threat_model


def test_large_scaling_and_no_steps() -> None:
    beyond = dirichlet.Setting(3.5, 3.0, 0.005, 100, 1e-5, 5.0, 1e-3)
    assert dirichlet.as_printed(beyond).epsilon == math.inf
    assert dirichlet.as_printed(beyond).as_dict()["epsilon"] == "inf"
    nothing = dirichlet.Setting(0.235, 3.0, 0.005, 0, 1e-5, 5.0, 1e-3)
    assert dirichlet.hidden(nothing).upper == 0.0
    assert dirichlet.visible(nothing).upper == 0.0


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("scaling", 0.0),
        ("scaling", math.nan),
        ("offset", -1.0),
        ("offset", math.inf),
        ("sampling_probability", 1.5),
        ("num_steps", -1),
        ("num_steps", 0.5),
        ("delta", 0.0),
        ("delta", 1.0),
        ("noise_multiplier", 0.0),
        ("tolerance", 0.0),
    ],
)
def test_bad_input(name: str, value: float) -> None:
    with pytest.raises(ValueError, match=name):
        dirichlet.rungs(**{name: value})  # type: ignore[arg-type]


def test_floor_of_the_factor_three() -> None:
    floor = factor_three_floor(**CELL)
    assert floor == pytest.approx(0.6754, abs=1e-4)
    tiny = printed.epsilon(1e-4, offset=3.0, conversion="balle", **CELL).value
    assert floor <= tiny < floor * (1.0 + 1e-4)
    # Nothing is sampled: what is left is the conversion at the largest order tried.
    assert factor_three_floor(sampling_probability=0.0, num_steps=10, delta=1e-5) < 1e-4


def test_table_at_the_recovered_cell() -> None:
    half, one = r_star_table([0.5, 1.0], tolerance=1e-2)
    assert one.recovered == 0.235
    assert one.repaired is not None and round(one.repaired, 4) == 0.2349
    assert one.mironov is not None and round(one.mironov, 3) == 0.149
    assert one.printed is None and "3.903" in one.reasons["printed"]
    assert isinstance(one.hidden, Interval) and isinstance(one.visible, Interval)
    assert one.hidden.lower == pytest.approx(0.425, rel=0.02)
    assert one.visible.lower == pytest.approx(0.0297, rel=0.02)
    # With hidden coins the exact accountant allows a larger scaling, with visible ones a far smaller one.
    assert one.hidden.lower > one.repaired > one.visible.upper
    assert half.repaired is None and "0.6754" in half.reasons["repaired"]
    assert half.recovered is None
    assert half.hidden is not None and half.hidden.upper < one.hidden.lower


def test_whole_table() -> None:
    rows = r_star_table()
    repaired = [row.repaired for row in rows]
    assert repaired[0] is None
    assert [round(r, 3) for r in repaired[1:] if r] == [0.235, 0.403, 0.559, 0.679]
    # Not one target of the printed table can be certified by the printed rule.
    assert all(row.printed is None for row in rows)
    assert [row.epsilon for row in rows] == [0.5, 1.0, 2.0, 3.0, 4.0]
    for above, below in zip(rows, rows[1:], strict=False):
        assert isinstance(above.hidden, Interval) and isinstance(below.hidden, Interval)
        assert above.hidden.upper < below.hidden.lower
    for row in rows:
        for interval in (row.hidden, row.visible):
            assert isinstance(interval, Interval)
            assert interval.upper <= interval.lower * 1.0011


def test_both_ends_of_the_largest_scaling_are_certified() -> None:
    found = largest_scaling(
        lambda r: PoissonVisible(Dirichlet(r, 3.0), 0.1),
        epsilon=1.0,
        num_steps=50,
        delta=1e-5,
        start=5.0,
        tolerance=1e-2,
    )
    for scaling, holds in ((found.lower, True), (found.upper, False)):
        at = prv.epsilon([(PoissonVisible(Dirichlet(scaling, 3.0), 0.1), 50)], delta=1e-5)
        assert at.upper <= 1.0 if holds else at.lower > 1.0
    assert found.upper <= found.lower * 1.011


def test_bad_table_input() -> None:
    with pytest.raises(ValueError, match="at least one target"):
        r_star_table([])
    for bad in ({"tolerance": 0.5}, {"num_steps": 0}, {"sampling_probability": 0.0}, {"delta": 1.0}):
        with pytest.raises(ValueError, match=next(iter(bad))):
            r_star_table([1.0], **bad)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="epsilons"):
        r_star_table([0.0])
