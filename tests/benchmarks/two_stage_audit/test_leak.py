"""The attack on statistics: what it shows as published, and that it catches broken private statistics.

The noise of private statistics has no seed: a test that could fail by chance does so with probability 1e-6.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable

import numpy as np
import pytest

from exactdp.accounting.ladder.two_stage_setting import END_TO_END
from exactdp.accounting.pairs.discrete_gaussian import DiscreteGaussian
from exactdp.benchmarks.two_stage_audit import leak, neighbours
from exactdp.benchmarks.two_stage_audit.leak import DRAWN, LIKELIHOOD, RELEASED, Reading
from exactdp.benchmarks.two_stage_audit.neighbours import EXTREME, GAP, LABEL, RARE, Neighbours
from exactdp.benchmarks.two_stage_audit.options import Options
from exactdp.train.tables import as_published, csv_file, statistics
from exactdp.train.tables.budget import Budget
from exactdp.train.tables.csv_file import RawTable
from exactdp.train.tables.domain import Domain
from exactdp.train.tables.schema import Schema
from exactdp.train.tables.statistics import Statistics

SEED = np.random.SeedSequence(5)
MADE_UP, MADE_UP_LABEL = neighbours.made_up()
PAIR = neighbours.neighbours(MADE_UP, label=MADE_UP_LABEL, rows=60)


def by_name(readings: list[Reading]) -> dict[str, Reading]:
    return {one.name: one for one in readings}


def test_as_published_the_number_of_runs_alone_limits_the_bound() -> None:
    options = Options(trials=320)
    found = by_name(leak.published(PAIR, options, seed=SEED))
    names = [f"{RELEASED}: {attack}" for attack in (RARE, EXTREME, GAP, LABEL)]
    assert list(found) == [*names, f"{DRAWN}: {RARE}", f"{DRAWN}: {EXTREME}"]
    fnr, fpr = (1.0 - 0.025 ** (1.0 / runs) for runs in (40, 280))
    for one in found.values():
        assert (one.missed, one.false) == (0, 0)
        assert one.result.epsilon_lower == pytest.approx(math.log((1.0 - 1e-5 - fnr) / fpr))
        assert one.result.epsilon_lower > 4.0 and one.result.trials == 320
        assert one.result.threat_model == END_TO_END
    assert found[names[0]].result.epsilon_lower == pytest.approx(math.log(280 / 3.7), abs=0.11)


@dataclasses.dataclass(frozen=True)
class Weaker(Budget):
    """Adds less noise to the tables than it accounts for."""

    factor: float = 1.0

    @property
    def table_noise(self) -> DiscreteGaussian:
        return DiscreteGaussian(self.factor * super().table_noise.noise_multiplier)


BUDGET = Budget(4.0, 1e-5, num_columns=2, num_undeclared=0)
NARROW = neighbours.neighbours(
    RawTable(MADE_UP.table.select(["occupation", MADE_UP_LABEL])), label=MADE_UP_LABEL, rows=60
)


def tabulated(pair: Neighbours, factor: float) -> Callable[[RawTable], Statistics]:
    """Private tables in a domain that is public: all of the budget is theirs."""
    exact = as_published.exact(pair.present, label=pair.label).schema
    public = Schema(tuple(dataclasses.replace(column, missing=True) for column in exact.columns), pair.label)
    budget = Weaker(4.0, 1e-5, num_columns=2, num_undeclared=0, factor=factor)

    def measure(raw: RawTable) -> Statistics:
        return statistics.tabulate(csv_file.encode(raw, public).codes, Domain(public, {}), budget=budget)

    return measure


@pytest.mark.parametrize(
    ("factor", "trials", "refuted"), [(1.0, 400, False), (1.0 / 3.0, 1200, True), (1e-2, 160, True)]
)
def test_too_little_noise_is_caught(factor: float, trials: int, refuted: bool) -> None:
    """A third: errors of 8 % where 32 % are certified, 300 runs a side; eight deviations from a miss."""
    readings, verdict = leak.repaired(
        NARROW, Options(trials=trials), budget=BUDGET, seed=SEED, measure=tabulated(NARROW, factor)
    )
    assert verdict.refuted is refuted
    assert verdict.certified.upper == pytest.approx(4.0, rel=2e-3)
    one = readings[-1]
    assert one.name == f"{RELEASED}: {LIKELIHOOD}" and one.result.trials == 2 * (trials // 4)
    if factor == 1e-2:  # next to none: told apart for certain
        assert (one.missed, one.false) == (0, 0) and verdict.delta_lower > verdict.delta_certified


def test_the_score_is_the_likelihood_ratio_of_the_counts() -> None:
    """With next to no noise every count is exact: two tables, half a record on either side of each."""
    measure = tabulated(NARROW, 1e-2)
    sigma = 1e-2 * BUDGET.table_noise.noise_multiplier
    assert NARROW.likelihood(measure(NARROW.present)) == pytest.approx(1.0 / sigma**2)
    assert NARROW.likelihood(measure(NARROW.absent)) == pytest.approx(-1.0 / sigma**2)


def test_private_statistics_stay_within_their_budget() -> None:
    budget = Budget(0.5, 1e-5, num_columns=4, num_undeclared=4)
    options = Options(trials=120, confidence=1.0 - 1e-7)
    readings, verdict = leak.repaired(PAIR, options, budget=budget, seed=SEED)
    assert not verdict.refuted and verdict.certified.upper <= 0.5
    # Together they exceed it with probability 1e-6 at most.
    assert all(one.result.epsilon_lower <= 0.5 for one in readings)
    assert all(one.result.threat_model == leak.STATISTICS for one in readings)


def test_a_released_category_would_show() -> None:
    """Private counts beside an exact list of categories: the test by the list catches it for certain."""
    budget = Budget(0.5, 1e-5, num_columns=2, num_undeclared=0)

    def measure(raw: RawTable) -> Statistics:
        exact = as_published.exact(raw, label=NARROW.label).schema
        return statistics.tabulate(csv_file.encode(raw, exact).codes, Domain(exact, {}), budget=budget)

    readings, _ = leak.repaired(NARROW, Options(trials=80), budget=budget, seed=SEED, measure=measure)
    one = by_name(readings)[f"{RELEASED}: {RARE}"]
    assert (one.missed, one.false) == (0, 0) and one.result.epsilon_lower > 1.0
