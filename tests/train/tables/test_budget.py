"""How a table's statistics split their privacy."""

from __future__ import annotations

import math

import pytest

from exactdp.accounting import prv
from exactdp.accounting.pairs.approximate import ApproximateDP
from exactdp.accounting.pairs.discrete_gaussian import DiscreteGaussian
from exactdp.train.tables.budget import Budget


def noise_precision(budget: Budget) -> tuple[float, float, float]:
    k, u = budget.num_columns, budget.num_undeclared
    parts = ((budget.table_noise, k), (budget.domain_noise, u), (budget.kind_noise, u))
    tables, domains, kinds = (0.0 if n is None else count / n.noise_multiplier**2 for n, count in parts)
    return tables, domains, kinds


@pytest.mark.parametrize(
    ("columns", "undeclared", "epsilon"),
    [(15, 15, 0.1), (15, 4, 0.5), (15, 0, 3.0), (1, 1, 0.5), (200, 200, 1.0)],
)
def test_all_releases_together_meet_the_budget_and_use_it(
    columns: int, undeclared: int, epsilon: float
) -> None:
    budget = Budget(epsilon, 1e-5, columns, undeclared)
    spent = prv.epsilon([(pair, count) for pair, count, _ in budget.releases()], delta=1e-5)
    assert 0.99 * epsilon < spent.lower <= spent.upper <= epsilon
    assert budget.interval() == spent


def test_shares() -> None:
    budget = Budget(0.5, 1e-5, 10, 4, domain_share=0.3, kind_share=0.2, delta_share=0.5)
    tables, domains, kinds = noise_precision(budget)
    total = tables + domains + kinds
    assert (tables / total, domains / total, kinds / total) == pytest.approx((0.7, 0.24, 0.06))
    assert budget.list_delta * 4 == pytest.approx(5e-6)
    assert [(type(pair), count) for pair, count, _ in budget.releases()] == [
        (DiscreteGaussian, 4),
        (DiscreteGaussian, 4),
        (ApproximateDP, 4),
        (DiscreteGaussian, 10),
    ]
    assert all(note for *_, note in budget.releases())


def test_a_declared_table_spends_nothing_on_domains() -> None:
    budget = Budget(0.5, 1e-5, 10, 0)
    assert (budget.domain_noise, budget.kind_noise, budget.list_delta) == (None, None, 0.0)
    assert [count for _, count, _ in budget.releases()] == [10]
    open_noise = Budget(0.5, 1e-5, 10, 10).table_noise.noise_multiplier
    assert budget.table_noise.noise_multiplier < open_noise


def test_half_the_noise_would_miss_the_budget() -> None:
    budget = Budget(0.5, 1e-5, 6, 6)
    for broken in range(4):
        composition = [(pair, count) for pair, count, _ in budget.releases()]
        pair, count = composition[broken]
        if isinstance(pair, DiscreteGaussian):
            pair = DiscreteGaussian(pair.noise_multiplier / 2.0)
        else:
            pair = ApproximateDP(0.0, 10.0 * budget.list_delta)
        composition[broken] = (pair, count)
        assert prv.epsilon(composition, delta=1e-5).lower > 0.5


def test_more_columns_need_more_noise() -> None:
    few, many = Budget(0.5, 1e-5, 4, 0).table_noise, Budget(0.5, 1e-5, 16, 0).table_noise
    assert many.noise_multiplier / few.noise_multiplier == pytest.approx(math.sqrt(4.0), rel=5e-3)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"epsilon": 0.0}, "epsilon"),
        ({"delta": 1.0}, "delta"),
        ({"num_columns": 0}, "num_columns"),
        ({"num_undeclared": 4}, "num_undeclared must be at most num_columns = 3, got 4"),
        ({"domain_share": 1.0}, "domain_share"),
        ({"kind_share": 0.0}, "kind_share"),
        ({"delta_share": 2.0}, "delta_share"),
    ],
)
def test_bad_input(change: dict[str, float], message: str) -> None:
    given: dict[str, float] = {"epsilon": 1.0, "delta": 1e-5, "num_columns": 3, "num_undeclared": 1}
    with pytest.raises(ValueError, match=message):
        Budget(**(given | change))  # pyright: ignore[reportArgumentType]
