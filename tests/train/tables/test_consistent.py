"""Noisy tables made consistent."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import optimize

from exactdp.train.tables import consistent
from tests.train.tables.statistics_cases import made


@given(st.lists(st.integers(-50, 50), min_size=1, max_size=8), st.integers(0, 200))
def test_projection_is_onto_the_simplex_and_is_the_nearest_point(values: list[int], total: int) -> None:
    given_values = np.array(values, float)
    found = consistent.project(given_values, float(total))
    assert found.min() >= 0.0
    assert found.sum() == pytest.approx(total, abs=1e-9)
    # Optimality: moving mass to any other entry does not bring it nearer.
    slack = given_values - found
    used = found > 1e-9
    if used.any():
        assert np.all(slack <= slack[used].min() + 1e-9)


def test_projection_agrees_with_a_solver() -> None:
    values = np.array([3.0, -1.0, 0.5, 7.0, -4.0])
    solved = optimize.minimize(
        lambda x: np.sum((x - values) ** 2),
        np.full(5, 1.0),
        bounds=[(0.0, None)] * 5,
        constraints=[{"type": "eq", "fun": lambda x: np.sum(x) - 5.0}],
    )
    np.testing.assert_allclose(consistent.project(values, 5.0), solved.x, atol=1e-5)


def test_tables_agree_on_the_label() -> None:
    found = consistent.fit(made())
    assert found.label.sum() == pytest.approx(1000.0)
    assert found.label[2] == 0.0  # within the noise
    for number in (0, 2):
        assert found.tables[number].min() >= 0.0
        np.testing.assert_allclose(found.tables[number].sum(axis=1), found.label, atol=1e-9)
    assert found.tables[2][:, 3].max() == 0.0
    assert found.tables[0][1, :5].sum() < 8.0  # as measured; the truth is 0


def test_without_a_label_all_tables_have_all_rows() -> None:
    found = consistent.fit(made(label=None))
    assert found.label.tolist() == [1000.0]
    for table in found.tables:
        assert table.sum() == pytest.approx(1000.0)


def test_consistency_brings_counts_nearer_to_the_truth() -> None:
    rng = np.random.default_rng(0)
    truth = made(noise=0.0)
    before = after = 0.0
    exact = tuple(np.maximum(table, 0) for table in truth.tables)
    exact[1][0] = exact[0].sum(axis=1)
    for _ in range(20):
        tables = tuple(
            table + np.rint(rng.normal(0.0, 25.0, table.shape)).astype(np.int64) for table in exact
        )
        noisy = dataclasses.replace(truth, noise=25.0, tables=tables, num_rows=int(exact[0].sum()))
        fitted = consistent.fit(noisy)
        before += float(sum(np.abs(a - b).sum() for a, b in zip(tables, exact, strict=True)))
        after += float(sum(np.abs(a - b).sum() for a, b in zip(fitted.tables, exact, strict=True)))
    assert after < 0.7 * before


def test_a_missing_table_is_refused() -> None:
    whole = made()
    tables = (whole.tables[0], whole.tables[1], np.empty((3, 0), np.int64))
    with pytest.raises(ValueError, match="table of column 'city'"):
        consistent.fit(made(tables=tables))


def test_significant() -> None:
    assert consistent.significant(made(), 2).tolist() == [True, True, True, False]
    assert consistent.significant(made(noise=1.0), 2).tolist() == [True, True, True, True]
