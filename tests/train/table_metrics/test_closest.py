"""Distance to the closest record: against plain loops, and on tables of which the answer is known."""

from __future__ import annotations

import numpy as np
import pytest

from exactdp.train.table_metrics.closest import closest
from exactdp.train.tables.schema import MISSING, Column, Schema
from tests.train.table_metrics.tables import SCHEMA, draw


def gower(first: np.ndarray, second: np.ndarray) -> float:
    total = 0.0
    for column, a, b in zip(SCHEMA.columns, first.tolist(), second.tolist(), strict=True):
        if column.kind == "category" or MISSING in (a, b):
            total += float(a != b)
        else:
            total += abs(a - b) / (column.high - column.low)
    return total / len(SCHEMA.columns)


def test_plain_loops_agree() -> None:
    test, synthetic, train = draw(40, seed=1), draw(50, seed=2), draw(60, seed=3)
    found = closest(test, synthetic, train, SCHEMA)
    far = [[min(gower(row, other) for other in train) for row in table] for table in (synthetic, test)]
    for distances, ours in zip(far, (found.synthetic, found.test), strict=True):
        assert ours.median == pytest.approx(np.median(distances), abs=1e-12)
        assert ours.low == pytest.approx(np.quantile(distances, 0.05), abs=1e-12)
    wins = [float(a < b - 1e-12) + 0.5 * float(abs(a - b) <= 1e-12) for a in far[0] for b in far[1]]
    assert found.closer == pytest.approx(np.mean(wins), abs=0.01)  # ties by rounding aside
    assert found.records == 60 and (found.synthetic.rows, found.test.rows) == (50, 40)
    assert found.private


def test_copies_are_found() -> None:
    train, test = draw(300, seed=1), draw(200, seed=2)
    copied = closest(test, train[::-1], train, SCHEMA)
    assert copied.synthetic.copies == 1.0 and copied.synthetic.median == 0.0
    assert copied.closer > 0.95 and copied.test.copies < 0.2
    half = np.concatenate([train[:50], np.where(train[:50] == train[0], train[:50], train[:50])])
    half[50:, 2] = 99 - half[50:, 2]
    assert closest(test, half, train, SCHEMA).synthetic.copies == pytest.approx(0.5, abs=0.05)


def test_a_fresh_sample_is_as_close_as_the_test_rows() -> None:
    found = closest(draw(400, seed=4), draw(400, seed=5), draw(500, seed=6), SCHEMA)
    assert abs(found.closer - 0.5) < 0.06
    assert found.synthetic.median == pytest.approx(found.test.median, abs=0.01)


def test_the_same_table_twice() -> None:
    table = draw(80, seed=7)
    found = closest(table, table, draw(90, seed=8), SCHEMA)
    assert found.synthetic == found.test and found.closer == 0.5


def test_chunks_and_caps(monkeypatch: pytest.MonkeyPatch) -> None:
    tables = draw(90, seed=1), draw(70, seed=2), draw(110, seed=3)
    whole = closest(*tables, SCHEMA)
    monkeypatch.setattr("exactdp.train.table_metrics.closest._QUERIES", 7)
    monkeypatch.setattr("exactdp.train.table_metrics.closest._RECORDS", 11)
    assert closest(*tables, SCHEMA) == whole
    capped = closest(*tables, SCHEMA, most_queries=20, most_records=30)
    assert (capped.synthetic.rows, capped.test.rows, capped.records) == (20, 20, 30)
    assert capped.synthetic.copies == whole.synthetic.copies


def test_only_numbers_only_categories_constant_ranges() -> None:
    numbers = Schema((Column("n", "integer", minimum=5, maximum=5, missing=True),))
    five, none = np.array([[5]]), np.array([[MISSING]])
    found = closest(five, none, five, numbers)
    assert (found.synthetic.median, found.test.median, found.closer) == (1.0, 0.0, 0.0)
    letters = Schema((Column("c", "category", values=("a", "b")),))
    found = closest(np.array([[1]]), np.array([[0]]), np.array([[0]]), letters)
    assert (found.synthetic.median, found.test.median, found.closer) == (0.0, 1.0, 1.0)
