"""Codes of whole columns equal the codes cell by cell."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from exactdp.train.tables import cells
from exactdp.train.tables.schema import MISSING, Column

COLUMNS = (
    Column("i", "integer", minimum=-120, maximum=1_000),
    Column("large", "integer", minimum=-(10**15), maximum=10**15, missing=True),
    Column("f", "float", minimum=-150, maximum=12_345, decimals=2, missing=True),
    Column("fine", "float", minimum=1, maximum=10**15, decimals=12),
    Column("c", "category", values=("x", " x", "1", "1.0", "-"), missing=True),
)
digits = st.text("0123456789", max_size=20)
numbers = st.builds(
    lambda *parts: "".join(parts),
    st.sampled_from(["", " ", "\t", "  ", "\u2003"]),
    st.sampled_from(["", "-", "+"]),
    digits,
    st.sampled_from(["", "."]),
    digits,
    st.sampled_from(["", "e0", "E-3", "e+2", "e17", "e999", "e-999", "e"]),
    st.sampled_from(["", " ", "\x1f", "\n"]),
)
texts = st.one_of(
    numbers,
    st.floats().map(repr),
    st.integers(-(10**16), 10**16).map(str),
    st.decimals(allow_nan=False, allow_infinity=False, places=3, min_value=-2, max_value=200).map(str),
    st.text(st.characters(blacklist_categories=["Cs"]), max_size=6),
    st.sampled_from(["", " ", "x ", " x", "nan", "inf", "٣", "1_000", "0.125", "0.135", "1.", ".5", "-0"]),
)


@pytest.mark.parametrize("column", COLUMNS, ids=lambda column: column.name)
@settings(max_examples=150)
@given(st.lists(texts, max_size=30))
def test_equal_to_each_cell(column: Column, given_texts: list[str]) -> None:
    found, outside = cells.codes(column, pa.array(given_texts, pa.string()))
    expected = [column.code(text) for text in given_texts]
    assert outside.tolist() == [code is None for code in expected]
    assert [int(f) for f, o in zip(found, outside, strict=True) if not o] == [
        c for c in expected if c is not None
    ]
    assert all(column.holds(int(code)) for code in found)


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("1001", 1_000),
        ("-1e300", -120),
        ("38.5", 38),
        ("39.50", 40),
        ("-0.4", 0),
        ("x", 0),
        ("", 0),
        ("inf", 0),
    ],
)
def test_outside_the_domain(text: str, code: int) -> None:
    found, outside = cells.codes(COLUMNS[0], pa.array([text]))
    assert (found.tolist(), outside.tolist()) == ([code], [True])


def test_what_is_no_number_is_missing_or_nearest_0() -> None:
    near = Column("n", "integer", minimum=-9, maximum=-4)
    assert cells.codes(near, pa.array(["x"]))[0].tolist() == [-4]
    assert cells.codes(COLUMNS[2], pa.array(["x", "1e9"]))[0].tolist() == [MISSING, 12_345]
    assert cells.codes(Column("c", "category", values=("a", "b")), pa.array(["z"]))[0].tolist() == [0]


def test_texts_are_the_inverse() -> None:
    codes = np.array([150, MISSING, -1, 150, 0])
    texts = cells.texts(COLUMNS[2], codes)
    assert texts.tolist() == ["1.50", "", "-0.01", "1.50", "0.00"]
    assert cells.codes(COLUMNS[2], pa.array(texts))[0].tolist() == codes.tolist()
    with pytest.raises(ValueError, match="domain"):
        cells.texts(COLUMNS[0], codes)
