"""Public text in the shape of a table."""

from __future__ import annotations

import pytest

from exactdp.benchmarks.experiments import text_table


def test_rows_are_consecutive_words() -> None:
    table = text_table.make(50)
    assert table.num_rows == 50
    assert len(set(table.names)) == text_table.NUM_COLUMNS == 15
    rows = [list(row.values()) for row in table.table.to_pylist()]
    assert all(before[3:] == after[:-3] for before, after in zip(rows[:-1], rows[1:], strict=True))
    assert all(cell.isascii() and cell.isalpha() for row in rows for cell in row)
    assert text_table.make(50).table.equals(table.table)


def test_no_more_rows_than_the_text_has() -> None:
    assert text_table.make(20_000).num_rows == 20_000
    with pytest.raises(ValueError, match="num_rows must be at most"):
        text_table.make(10**6)
    with pytest.raises(ValueError, match="num_rows"):
        text_table.make(0)
