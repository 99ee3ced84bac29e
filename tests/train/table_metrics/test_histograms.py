"""Histogram intersection: by hand, against NumPy and SDMetrics, and where it must not flatter."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from exactdp.train.table_metrics import cells
from exactdp.train.table_metrics.histograms import intersections
from exactdp.train.tables.schema import MISSING, Column, Schema
from tests.train.table_metrics.tables import SCHEMA, draw

PEERS = json.loads(Path(__file__).with_name("peers.json").read_text())
NUMBER = Column("n", "integer", minimum=-1_000_000, maximum=1_000_000, missing=True)


def one(column: Column) -> Schema:
    return Schema((column,))


def table(*codes: int) -> np.ndarray:
    return np.array(codes, np.int64)[:, None]


def test_by_hand() -> None:
    letters = one(Column("c", "category", values=("a", "b", "c"), missing=True))
    # Shares 1/2, 1/4, 0, missing 1/4 and 1/3, 0, 1/3, 1/3.
    found = intersections(table(0, 0, 1, MISSING), table(0, 2, MISSING), letters, bins=20)
    assert found.tolist() == [pytest.approx(1 / 3 + 1 / 4, abs=1e-15)]
    # Two bins over 0 ... 9: 1/2 and 1/2 against 3/4 and 0, a quarter above.
    found = intersections(table(0, 9), table(0, 1, 4, 10), one(NUMBER), bins=2)
    assert found.tolist() == [0.5]


@given(
    st.lists(st.integers(-50, 50), min_size=1, max_size=30),
    st.lists(st.integers(-80, 80), min_size=1, max_size=30),
    st.integers(1, 60),
)
def test_numbers_against_numpy(real: list[int], synthetic: list[int], bins: int) -> None:
    low, high = min(real), max(real) + 1
    # Edges in exact thirds of a bin would round; integers times bins do not.
    edges = np.arange(bins + 1) * (high - low)
    p, _ = np.histogram((np.array(real) - low) * bins, edges)
    inside = [x for x in synthetic if low <= x < high]
    q, _ = np.histogram((np.array(inside, int) - low) * bins, edges)
    expected = np.minimum(p / len(real), q / len(synthetic)).sum()
    found = intersections(table(*real), table(*synthetic), one(NUMBER), bins=bins)
    assert found[0] == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("bins", [20, 50])
def test_invariances(bins: int) -> None:
    real, other = draw(300, seed=3), draw(200, seed=4)
    mixed = np.random.default_rng(0).permutation(real)
    assert intersections(real, mixed, SCHEMA, bins=bins).tolist() == [1.0] * 6
    assert intersections(real, np.concatenate([real] * 3), SCHEMA, bins=bins).tolist() == [1.0] * 6
    found = intersections(real, other, SCHEMA, bins=bins)
    assert (found > 0.5).all() and (found < 1.0).all()
    assert found.tolist() == intersections(mixed, other[::-1], SCHEMA, bins=bins).tolist()


def test_disjoint_tables_do_not_overlap() -> None:
    assert intersections(table(3, 4, 5), table(6, 2, 99), one(NUMBER), bins=20).tolist() == [0.0]
    assert intersections(table(3), table(MISSING), one(NUMBER), bins=20).tolist() == [0.0]
    assert intersections(table(MISSING), table(3), one(NUMBER), bins=20).tolist() == [0.0]


def test_an_outlier_does_not_flatter() -> None:
    """Bins over the range of both tables would hold all but one row of either."""
    real, synthetic = table(*range(100)), table(*[50] * 99, 1_000_000)
    assert intersections(real, synthetic, one(NUMBER), bins=20)[0] == pytest.approx(0.05)


def test_constant_and_missing_columns() -> None:
    assert intersections(table(7, 7), table(7), one(NUMBER), bins=50).tolist() == [1.0]
    assert intersections(table(7, 7), table(8), one(NUMBER), bins=50).tolist() == [0.0]
    assert intersections(table(MISSING), table(MISSING, MISSING), one(NUMBER), bins=50).tolist() == [1.0]
    assert intersections(table(7, MISSING), table(MISSING), one(NUMBER), bins=50).tolist() == [0.5]


def test_sdmetrics_agrees() -> None:
    found = intersections(np.array(PEERS["real"]), np.array(PEERS["synthetic"]), SCHEMA, bins=PEERS["bins"])
    assert set(PEERS["histograms"]) == {c.name for c in SCHEMA.columns if c.kind == "category"}
    for name, value in PEERS["histograms"].items():
        assert found[SCHEMA.index(name)] == pytest.approx(value, abs=1e-12)


def test_numbers_of_extreme_size_are_exact() -> None:
    wide = Column("n", "integer", minimum=-(10**15), maximum=10**15)
    own = cells.Cells.of(np.array([-(10**15), 10**15]), wide, bins=50)
    assert own.places(np.array([-(10**15), 0, 10**15])).tolist() == [1, 25, 50]
    assert own.size == 53


def test_bins_must_be_a_count() -> None:
    with pytest.raises(ValueError, match="bins must be a whole number >= 1, got 0"):
        intersections(table(1), table(1), one(NUMBER), bins=0)
