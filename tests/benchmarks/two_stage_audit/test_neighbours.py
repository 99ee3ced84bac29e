"""Neighbouring tables for the audit: what the record is, and what the tests say of exact statistics."""

from __future__ import annotations

import math

import numpy as np
import pyarrow as pa
import pytest

from exactdp.benchmarks.two_stage_audit import neighbours
from exactdp.benchmarks.two_stage_audit.neighbours import EXTREME, GAP, LABEL, RARE, Neighbours
from exactdp.train.tables import as_published, pseudo
from exactdp.train.tables.csv_file import RawTable


def table(**columns: list[str]) -> RawTable:
    return RawTable(pa.table({name: pa.array(cells, pa.string()) for name, cells in columns.items()}))


def small() -> RawTable:
    return table(
        price=["1.5", "2.25", "9", "4"],
        town=["Ulm", "its own", "Bonn", "Ulm"],
        size=["7", "8", "9", "8"],
        kind=["a", "b", "a", "a"],
    )


def scores(pair: Neighbours, raw: RawTable, *, seed: int = 0) -> tuple[dict[str, float], dict[str, float]]:
    found = as_published.exact(raw, label=pair.label)
    codes = pseudo.draw(found, num_rows=200, method="uniform", rng=np.random.default_rng(seed))
    return pair.released(found), pair.drawn(found, codes)


def test_the_record_is_the_first_row_but_for_its_own_cells() -> None:
    pair = neighbours.neighbours(small(), label="kind", rows=4)
    assert pair.present.num_rows == pair.absent.num_rows + 1 == 5
    assert pair.present.table.slice(0, 4).equals(pair.absent.table.combine_chunks())
    # 9.00 is as far above 1.50 as 16.51 is above it (and one more); no row has the category.
    assert pair.record == {"price": "16.51", "town": "its own too", "size": "", "kind": "a"}
    assert pair.extreme == pytest.approx(0.5 * (9.0 + 16.51))
    assert pair.columns == {RARE: "town", EXTREME: "price", GAP: "size", LABEL: "kind"}


def test_every_test_tells_exact_statistics_apart() -> None:
    pair = neighbours.neighbours(small(), label="kind", rows=4)
    inside, drawn_inside = scores(pair, pair.present)
    outside, drawn_outside = scores(pair, pair.absent)
    assert set(inside) == {RARE, EXTREME, GAP, LABEL} and set(drawn_inside) == {RARE, EXTREME}
    assert all(score > 0.0 for score in (*inside.values(), *drawn_inside.values()))
    assert all(score < 0.0 for score in (*outside.values(), *drawn_outside.values()))


def test_likelihood_counts_the_record_in_each_table() -> None:
    pair = neighbours.neighbours(small(), label="kind", rows=4)
    # As published the label's table alone is taken: one count, half a record on either side.
    for raw, expected in ((pair.present, 0.5), (pair.absent, -0.5)):
        assert pair.likelihood(as_published.exact(raw, label="kind")) == expected
    assert neighbours.neighbours(small(), label=None, rows=4).likelihood(
        as_published.exact(pair.absent, label=None)
    ) == pytest.approx(0.0)


def test_fewer_rows_and_fewer_columns() -> None:
    pair = neighbours.neighbours(small(), label="kind", rows=2)
    assert pair.absent.num_rows == 2
    only = neighbours.neighbours(table(kind=["a", "b"]), label="kind", rows=9)
    assert only.columns == {LABEL: "kind"} and math.isnan(only.extreme) and only.record == {"kind": "a"}
    numbers = neighbours.neighbours(table(n=["5", "5"]), label=None, rows=9)
    assert numbers.columns == {EXTREME: "n"} and numbers.record == {"n": "6"}
    # A number that cannot be made larger serves for a missing cell; one with a gap for nothing.
    assert neighbours.neighbours(table(n=["1", "9" * 15]), label=None, rows=9).columns == {GAP: "n"}
    with pytest.raises(ValueError, match="csv must have a column that an attack can use"):
        neighbours.neighbours(table(n=["1", "9" * 15, ""]), label=None, rows=9)
    with pytest.raises(ValueError, match="label must be one of 'n', got 'm'"):
        neighbours.neighbours(table(n=["1"]), label="m", rows=9)


def test_no_cell_is_printed() -> None:
    pair = neighbours.neighbours(small(), label="kind", rows=4)
    assert not any(cell in repr(pair) for cell in ("Ulm", "16.51", "its own"))


def test_the_made_up_table_is_always_the_same() -> None:
    (first, label), (second, _) = neighbours.made_up(), neighbours.made_up()
    assert first.table.equals(second.table) and label in first.names
    assert list(neighbours.neighbours(first, label=label, rows=400).columns) == [RARE, EXTREME, GAP, LABEL]
