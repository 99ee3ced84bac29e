"""Private choice of a column's kind."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from exactdp.accounting.pairs.discrete_gaussian import DiscreteGaussian
from exactdp.accounting.pairs.discrete_laplace import DiscreteLaplace
from exactdp.mechanisms.statistics import kind
from exactdp.mechanisms.statistics.kind import Kind

NOISE = DiscreteGaussian(20.0)


def texts(values: Sequence[str | None]) -> Any:
    return pa.array(values, pa.string())


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("", "missing"),
        (None, "missing"),
        ("  ", "missing"),
        (" ? ", "missing"),
        ("NaN", "missing"),
        ("N/A", "missing"),
        ("1", "0 decimals"),
        (" -18.00 ", "0 decimals"),
        ("007", "0 decimals"),
        ("5.", "0 decimals"),
        ("0.000", "0 decimals"),
        ("1e3", "0 decimals"),
        ("0e5", "0 decimals"),
        ("-1.50", "1 decimals"),
        ("+.5", "1 decimals"),
        ("1.25e1", "1 decimals"),
        ("2.5E-2", "3 decimals"),
        ("0.1234567890123", "6 decimals"),
        ("1e-9", "6 decimals"),
        ("12345678901234.567", "1 decimals"),
        ("123456789012345.6", "0 decimals"),
        ("1234567890123456", "text"),
        ("1e20", "text"),
        ("1e999", "text"),
        ("1" * 400, "text"),
        ("2020-01-01", "text"),
        ("1.2.3", "text"),
        ("1,5", "text"),
        ("inf", "text"),
        ("٣", "text"),
        (".", "text"),
        ("+", "text"),
        ("0x10", "text"),
    ],
)
def test_kind_of_a_cell(text: str | None, wanted: str) -> None:
    assert kind.CELL_KINDS[int(kind.cell_kinds(texts([text]))[0])] == wanted


CELLS = st.one_of(st.none(), st.text(max_size=6), st.floats().map(str), st.integers().map(str))


@settings(max_examples=40)
@given(st.lists(CELLS, max_size=8), CELLS)
def test_a_record_changes_one_count_by_one(rows: list[str | None], more: str | None) -> None:
    change = kind.histogram(texts([*rows, more])) - kind.histogram(texts(rows))
    assert sorted(change) == [0] * (len(kind.CELL_KINDS) - 1) + [1]


def test_chunks_and_no_rows() -> None:
    both = pa.chunked_array([["1", "a"], ["", None]], pa.string())
    assert kind.cell_kinds(both).tolist() == [1, kind.TEXT, 0, 0]
    assert kind.histogram(both).tolist() == [2, 1, 0, 0, 0, 0, 0, 0, 1]
    assert kind.histogram(pa.chunked_array([], pa.string())).sum() == 0


RNG = np.random.default_rng(3)


@pytest.mark.parametrize(
    ("values", "wanted"),
    [
        (["a", "b"] * 1000, Kind("category")),
        (["2021-03-04"] * 2000, Kind("category")),
        ([str(n) for n in range(2000)], Kind("integer")),
        (["18.0", ""] * 1000, Kind("integer")),
        ([f"{x:.2f}" for x in RNG.normal(0, 100, 3000)], Kind("float", 2)),
        ([repr(float(x)) for x in RNG.normal(0, 100, 3000)], Kind("float", 6)),
        (["1.5"] * 5 + ["3"] * 3000, Kind("integer")),
        (["x"] * 40 + ["3"] * 3000, Kind("integer")),
        (["x"] * 800 + ["3"] * 3000, Kind("category")),
        (["NA"] * 1500 + ["3"] * 1500, Kind("integer")),
        ([""] * 3000, Kind("category")),
        (["?"] * 3000, Kind("category")),
        (["1"], Kind("category")),
        ([], Kind("category")),
    ],
)
def test_kinds_of_columns(values: list[str], wanted: Kind) -> None:
    # Once in 10^9 and less: the noise would have to pass 6 deviations.
    assert kind.release(texts(values), noise=NOISE, failure=1e-8) == wanted


def test_pure_noise_says_category_as_often_as_promised() -> None:
    wrong = sum(
        kind.release(texts([]), noise=DiscreteLaplace(30.0), failure=0.1).name != "category"
        for _ in range(400)
    )
    # At most 10 %: 76 of 400 would be 6 deviations above.
    assert wrong < 76


def test_bad_input() -> None:
    with pytest.raises(ValueError, match="failure"):
        kind.choose(np.zeros(9, np.int64), noise=NOISE, failure=0.0)
    with pytest.raises(ValueError, match="9 counts"):
        kind.choose(np.zeros(8, np.int64), noise=NOISE)
