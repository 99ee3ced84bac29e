"""Paper B's ladder: shifts, directions, rates, coins, the schedule, and the facts on visible coins."""

from __future__ import annotations

import json
import math

import pytest

from exactdp.accounting import prv
from exactdp.accounting.interval import Interval
from exactdp.accounting.ladder import feature
from exactdp.accounting.ladder import rung as base
from exactdp.accounting.ladder.feature_setting import Setting
from exactdp.accounting.ladder.rung import Rung
from exactdp.accounting.ladder.visible_bounds import amplification_of_pure, counting_bound
from exactdp.accounting.pairs.gaussian import Gaussian
from exactdp.accounting.sampling.hidden import PoissonHidden
from exactdp.accounting.threat import Adjacency, Coins


@pytest.fixture(scope="module")
def ladder() -> list[Rung]:
    return feature.rungs()


def interval(ladder: list[Rung], name: str) -> Interval:
    value = base.find(ladder, name).epsilon
    assert isinstance(value, Interval)
    return value


def quantity(rung: Rung, name: str) -> float:
    value = {q.name: q.value for q in rung.quantities}[name]
    assert not isinstance(value, Interval)
    return value


def test_names_and_form(ladder: list[Rung]) -> None:
    assert [rung.name for rung in ladder] == list(feature.BUILDERS)
    for rung in ladder:
        json.dumps(rung.as_dict(), allow_nan=False)
        assert "--num_records 197324" in rung.command


def test_the_printed_shift_is_too_large_by_the_batch_size(ladder: list[Rung]) -> None:
    printed = base.find(ladder, "printed, noise on the mean")
    assert quantity(printed, "noise_multiplier") == pytest.approx(1.0 / (0.02 * 197_324), rel=1e-12)
    repaired = base.find(ladder, "shift tau/m")
    assert printed.threat_model == repaired.threat_model
    assert printed.bounds(repaired)
    assert printed.upper is not None and printed.upper > 1e6


def test_printed_shift_where_it_is_certified() -> None:
    setting = Setting(1.0, 0.1, 20, 1e-5, 20, 1.0, 1.0, 1.0, 10, 1.0, 1e-4)
    printed, repaired = feature.as_printed(setting), feature.shift(setting)
    assert isinstance(printed.epsilon, Interval) and isinstance(repaired.epsilon, Interval)
    assert printed.epsilon.lower > repaired.epsilon.upper
    # The mean over m = 2 records moves half as far as the printed curve says.
    wide = prv.epsilon([(PoissonHidden(Gaussian(0.5), 0.1), 20)], delta=1e-5, direction="remove")
    assert printed.epsilon.intersect(wide).width >= 0.0


def test_directions_and_rates(ladder: list[Rung]) -> None:
    both = base.find(ladder, "both directions")
    ends = [q.value for q in both.quantities]
    assert all(isinstance(end, Interval) for end in ends)
    first, second = ends
    assert isinstance(first, Interval) and isinstance(second, Interval)
    assert first.lower > second.upper
    assert interval(ladder, "both directions").lower >= first.lower - 1e-9
    assert interval(ladder, "rate m/(n+1)").upper < interval(ladder, "both directions").lower


def test_the_order_of_threat_models(ladder: list[Rung]) -> None:
    """Replacement and visible coins cost more; they are named as other threat models."""
    both = base.find(ladder, "both directions")
    for name, adjacency, coins in (
        ("replacement", Adjacency.REPLACE_FEATURES_PUBLIC, Coins.HIDDEN),
        ("naive single batch", Adjacency.ADD_REMOVE, Coins.VISIBLE),
        ("naive single batch, replacement", Adjacency.REPLACE_FEATURES_PUBLIC, Coins.VISIBLE),
    ):
        other = base.find(ladder, name)
        assert (other.threat_model.adjacency, other.threat_model.coins) == (adjacency, coins)
        assert interval(ladder, name).lower > interval(ladder, "both directions").upper
        with pytest.raises(ValueError, match="threat_model"):
            both.bounds(other)
    assert interval(ladder, "naive single batch").lower > 9.0 * interval(ladder, "both directions").upper
    assert interval(ladder, "naive single batch, replacement").lower > interval(ladder, "replacement").upper


def test_schedule(ladder: list[Rung]) -> None:
    claim, truth, best = (
        base.find(ladder, name) for name in ("noise schedule", "noise schedule, exact", "calibrated noise")
    )
    expected = 0.02 * math.sqrt(2000 * math.log(1e5) * math.log(2000 / 1e-5))
    assert quantity(claim, "noise_multiplier") == pytest.approx(expected, rel=1e-12)
    assert claim.epsilon == 1.0
    assert claim.bounds(truth)
    assert isinstance(best.epsilon, Interval) and best.epsilon.upper <= 1.0
    assert quantity(best, "noise_multiplier") < quantity(claim, "noise_multiplier")
    ratio = quantity(best, "noise_multiplier") / quantity(claim, "noise_multiplier")
    assert quantity(best, "constant c") == pytest.approx(ratio, rel=1e-12)


def test_theorem_6_is_no_epsilon(ladder: list[Rung]) -> None:
    rung = base.find(ladder, "excess risk")
    assert rung.epsilon is None and "excess risk" in rung.reason
    (risk,) = rung.quantities
    noise = 1.0 / (0.02 * 197_324)
    expected = (1.0 + 1.0 + 60_000 * noise**2) * (2.0 + math.log(2000)) / math.sqrt(2000)
    assert risk.value == pytest.approx(expected, rel=1e-12)
    assert risk.unit == "loss"


def test_counting_bound_is_above_the_exact_value() -> None:
    for noise in (0.05, 0.1):
        bound = counting_bound(noise, sampling_probability=0.02, num_steps=500, delta=1e-5)
        exact = prv.epsilon([(PoissonHidden(Gaussian(noise), 0.02), 500)], delta=1e-5)
        assert exact.upper < bound < 1.5 * exact.lower
    assert counting_bound(0.1, sampling_probability=0.0, num_steps=500, delta=1e-5) == 0.0
    with pytest.raises(ValueError, match="noise_multiplier"):
        counting_bound(0.0, sampling_probability=0.1, num_steps=5, delta=1e-5)


def test_no_amplification_of_pure_mechanisms() -> None:
    claimed, exact = amplification_of_pure(1.0, sampling_probability=0.01, delta=1e-9)
    assert claimed == 1.0
    assert exact.upper <= 1.0 + 1e-9
    assert exact.lower > 0.999
    assert amplification_of_pure(1.0, sampling_probability=0.0, delta=1e-9)[0] == 0.0


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("noise_multiplier", 0.0),
        ("noise_multiplier", math.nan),
        ("sampling_probability", 0.0),
        ("sampling_probability", 1.01),
        ("num_steps", 0),
        ("delta", 1.0),
        ("num_records", 0),
        ("epsilon", 0.0),
        ("constant", math.inf),
        ("diameter", -1.0),
        ("dimension", 1.5),
        ("step_size", 0.0),
        ("tolerance", -1.0),
    ],
)
def test_bad_input(name: str, value: float) -> None:
    with pytest.raises(ValueError, match=name):
        feature.rungs(**{name: value})  # type: ignore[arg-type]
