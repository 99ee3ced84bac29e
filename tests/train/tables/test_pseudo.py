"""Pseudo tables."""

from __future__ import annotations

import numpy as np
import pytest

from exactdp.train.tables import bins, consistent, pseudo
from exactdp.train.tables.schema import MISSING, Column, Schema
from exactdp.train.tables.statistics import Statistics
from tests.train.tables.statistics_cases import made

ROWS = 40_000


def drawn(method: str, *, label: str | None = "label", seed: int = 0) -> np.ndarray:
    return pseudo.draw(made(label=label), num_rows=ROWS, method=method, rng=np.random.default_rng(seed))


def near(seen: np.ndarray, wanted: np.ndarray) -> bool:
    """Whether shares are within 5 standard deviations."""
    return bool(np.all(np.abs(seen - wanted) <= 5.0 * np.sqrt(wanted * (1.0 - wanted) / ROWS) + 1e-12))


def test_marginals_have_the_label_and_each_column_given_it() -> None:
    codes, fitted = drawn("marginals"), consistent.fit(made())
    assert near(np.bincount(codes[:, 1], minlength=3) / ROWS, fitted.label / 1000.0)
    for group in (0, 1):
        mine = codes[codes[:, 1] == group]
        wanted = fitted.tables[0][group] / 1000.0
        assert near(np.bincount(mine[:, 0], minlength=10) / ROWS, wanted)
        assert near(np.bincount(mine[:, 2], minlength=4)[:4] / ROWS, fitted.tables[2][group] / 1000.0)


def test_independent_columns_do_not_know_the_label() -> None:
    codes = drawn("independent")
    old = codes[:, 0] >= 5
    yes = codes[:, 1] == 1
    assert old.mean() == pytest.approx(0.3, abs=0.03)
    assert np.corrcoef(old, yes)[0, 1] == pytest.approx(0.0, abs=0.03)


def test_marginals_know_the_label() -> None:
    codes = drawn("marginals")
    assert np.corrcoef(codes[:, 0] >= 5, codes[:, 1] == 1)[0, 1] > 0.9


def test_without_a_label_marginals_are_independent() -> None:
    assert np.array_equal(drawn("marginals", label=None), drawn("independent", label=None))
    assert (
        np.corrcoef(drawn("marginals", label=None)[:, 0] >= 5, drawn("marginals", label=None)[:, 1])[0, 1]
        < 0.03
    )


def test_uniform_is_uniform_over_the_domain() -> None:
    codes = drawn("uniform")
    for place, size in ((0, 10), (1, 2), (2, 3)):
        assert near(np.bincount(codes[:, place], minlength=size) / ROWS, np.full(size, 1.0 / size))


@pytest.mark.parametrize("method", pseudo.METHODS)
def test_codes_are_in_the_domain_and_a_function_of_the_seed(method: str) -> None:
    codes = drawn(method)
    assert codes.dtype == np.int64
    for column, own in zip(made().schema.columns, codes.T, strict=True):
        assert all(column.holds(int(code)) for code in np.unique(own))
    assert np.array_equal(codes, drawn(method))
    assert not np.array_equal(codes, drawn(method, seed=1))
    assert pseudo.draw(made(), num_rows=0, method=method, rng=np.random.default_rng(0)).shape == (0, 3)


def test_a_column_without_values_is_missing() -> None:
    empty = Column("empty", "category", missing=True)
    for noisy in (5, -3):
        alone = Statistics(
            Schema((empty,)), 5, (bins.of_category(empty),), (), (np.array([[noisy]]),), 4.0, private=True
        )
        for method in pseudo.METHODS:
            codes = pseudo.draw(alone, num_rows=4, method=method, rng=np.random.default_rng(0))
            assert codes.tolist() == [[MISSING]] * 4


def test_a_private_draw_stays_missing_where_it_is_clear() -> None:
    codes = pseudo.draw(made(noise=1.0), num_rows=ROWS, method="marginals", rng=np.random.default_rng(0))
    assert 0.005 < np.mean(codes[:, 2] == MISSING) < 0.02


def test_bad_input() -> None:
    rng = np.random.default_rng(0)
    with pytest.raises(ValueError, match="num_rows"):
        pseudo.draw(made(), num_rows=-1, method="uniform", rng=rng)
    with pytest.raises(ValueError, match="method must be one of marginals, independent, uniform, got 'x'"):
        pseudo.draw(made(), num_rows=1, method="x", rng=rng)
