"""Associations against SciPy, direct formulas and dython; levels by hand."""

from __future__ import annotations

import itertools
import json
import math
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

from exactdp.train.table_metrics import associations
from exactdp.train.tables.schema import MISSING, Column, Schema
from tests.train.table_metrics.tables import SCHEMA, draw

PEERS = json.loads(Path(__file__).with_name("peers.json").read_text())


def corrected(first: np.ndarray, second: np.ndarray) -> float:
    """Bergsma's V from SciPy's chi-squared."""
    counts = stats.contingency.crosstab(first, second).count
    n = counts.sum()
    chi = stats.chi2_contingency(counts, correction=False).statistic
    plain = stats.contingency.association(counts, method="cramer")
    assert plain == pytest.approx(math.sqrt(chi / n / (min(counts.shape) - 1)))
    r, c = counts.shape
    phi = max(0.0, chi / n - (r - 1) * (c - 1) / (n - 1))
    return math.sqrt(phi / (min(r - (r - 1) ** 2 / (n - 1), c - (c - 1) ** 2 / (n - 1)) - 1))


@pytest.mark.parametrize("seed", range(6))
def test_cramers_v_against_scipy(seed: int) -> None:
    generator = np.random.default_rng(seed)
    first = generator.integers(0, 2 + seed, 200)
    second = np.where(generator.random(200) < 0.2 * seed, first, generator.integers(0, 5, 200))
    # Sizes with room that no value takes.
    assert associations.cramers_v(first, second, sizes=(40, 30)) == pytest.approx(
        corrected(first, second), abs=1e-12
    )
    assert associations.cramers_v(second, first, sizes=(30, 40)) == pytest.approx(
        corrected(first, second), abs=1e-12
    )


def test_cramers_v_where_it_is_known() -> None:
    same = np.tile(np.arange(5), 40)
    assert associations.cramers_v(same, 4 - same, sizes=(5, 5)) == pytest.approx(1.0, abs=1e-12)
    independent = np.tile(np.arange(2), 50), np.repeat(np.arange(2), 50)
    assert associations.cramers_v(*independent, sizes=(2, 2)) == 0.0
    constant = np.zeros(5, int)
    assert associations.cramers_v(constant, np.arange(5), sizes=(5, 5)) == 0.0
    assert associations.cramers_v(np.arange(5), np.arange(5), sizes=(5, 5)) == 0.0  # no value twice
    assert associations.cramers_v(np.array([1]), np.array([1]), sizes=(2, 2)) == 0.0


def test_correlation_ratio() -> None:
    generator = np.random.default_rng(3)
    groups, values = generator.integers(0, 4, 150), generator.integers(-100, 100, 150) * 1_000
    values += groups * 50_000
    between = sum((groups == g).sum() * (values[groups == g].mean() - values.mean()) ** 2 for g in range(4))
    expected = math.sqrt(between / ((values - values.mean()) ** 2).sum())
    assert associations.correlation_ratio(groups, values) == pytest.approx(expected, abs=1e-12)
    # One-way analysis of variance: F = eta^2 / (1 - eta^2) times the degrees of freedom.
    f = stats.f_oneway(*(values[groups == g].astype(float) for g in range(4))).statistic
    assert expected**2 / (1 - expected**2) * (146 / 3) == pytest.approx(f)
    # Missing numbers are left out, even if a group has no other.
    holes = np.where(groups == 1, MISSING, values)
    kept = groups != 1
    assert associations.correlation_ratio(groups, holes) == associations.correlation_ratio(
        groups[kept], values[kept]
    )
    assert associations.correlation_ratio(groups, np.full(150, 10**15)) == 0.0
    assert associations.correlation_ratio(groups, np.full(150, MISSING)) == 0.0
    assert associations.correlation_ratio(groups, groups * 7 - 3) == pytest.approx(1.0, abs=1e-12)


def test_pearson() -> None:
    generator = np.random.default_rng(4)
    x = generator.integers(-(10**6), 10**6, 100)
    y = -x + generator.integers(-(10**6), 10**6, 100)
    expected = abs(stats.pearsonr(x.astype(float), y.astype(float)).statistic)
    assert associations.pearson(x, y) == pytest.approx(expected, abs=1e-12)
    # Far from zero as near it.
    assert associations.pearson(x + 10**14, y) == pytest.approx(expected, abs=1e-9)
    x[:3], y[2:5] = MISSING, MISSING
    assert associations.pearson(x, y) == pytest.approx(
        abs(stats.pearsonr(x[5:].astype(float), y[5:].astype(float)).statistic), abs=1e-12
    )
    assert associations.pearson(x, np.full(100, 3)) == 0.0
    assert associations.pearson(x, np.full(100, MISSING)) == 0.0


def test_dython_agrees() -> None:
    real = np.array(PEERS["real"])
    found = associations.matrix(real, SCHEMA)
    theirs = PEERS["associations"]
    for first, second in itertools.combinations(theirs, 2):
        ours = found[SCHEMA.index(first), SCHEMA.index(second)]
        if {first, second} == {"sex", "rich"}:  # two by two: dython corrects for continuity
            two = real[:, SCHEMA.index(first)], real[:, SCHEMA.index(second)]
            assert ours == pytest.approx(corrected(*two), abs=1e-12)
            assert ours == pytest.approx(theirs[first][second], abs=0.01) and ours > theirs[first][second]
        else:
            assert ours == pytest.approx(theirs[first][second], abs=1e-9)


def test_matrix_is_symmetric_and_blind_to_the_order_of_rows() -> None:
    codes = draw(300, seed=9)
    found = associations.matrix(codes, SCHEMA)
    np.testing.assert_array_equal(found, found.T)
    assert np.diag(found).tolist() == [1.0] * 6
    assert ((found >= 0.0) & (found <= 1.0)).all()
    np.testing.assert_allclose(
        found, associations.matrix(np.random.default_rng(0).permutation(codes), SCHEMA), atol=1e-12
    )


def test_a_missing_category_is_a_value() -> None:
    schema = Schema(
        (Column("a", "category", values=("x", "y"), missing=True), Column("b", "category", values=("x", "y")))
    )
    first = np.tile([0, MISSING], 30)
    codes = np.stack([first, (first == MISSING).astype(int)], axis=1)
    assert associations.matrix(codes, schema)[0, 1] == pytest.approx(1.0, abs=1e-12)


def test_levels_by_hand() -> None:
    def symmetric(*above: float) -> np.ndarray:
        found = np.eye(4)
        found[np.triu_indices(4, 1)] = above
        return found

    real = symmetric(0.0, 0.1, 0.29, 0.3, 0.5, 1.0)
    synthetic = symmetric(0.0999, 0.0999, 0.1, 0.4999, 0.4999, 0.5)
    assert associations.accuracy(real, synthetic) == pytest.approx(4 / 6)
    assert associations.accuracy(real, real) == 1.0
    assert associations.accuracy(np.eye(1), np.eye(1)) is None
    # Counted over the whole matrix, as the released code does.
    whole = symmetric(0, 0, 0, 0, 0, 0)
    whole += np.triu(real, 1) + np.triu(real, 1).T
    other = np.eye(4) + np.triu(synthetic, 1) + np.triu(synthetic, 1).T
    share = (np.digitize(whole, (0.1, 0.3, 0.5)) == np.digitize(other, (0.1, 0.3, 0.5))).mean()
    assert associations.with_diagonal(4 / 6, 4) == pytest.approx(share)


def test_one_row() -> None:
    assert associations.matrix(draw(1, seed=1), SCHEMA).tolist() == np.eye(6).tolist()
