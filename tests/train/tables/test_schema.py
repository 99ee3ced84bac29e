"""The public domain of a table."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from exactdp.train.tables import schema
from exactdp.train.tables.schema import MISSING, Column, Schema

AGE = Column("age", "integer", minimum=-5, maximum=90)
PAY = Column("pay, $", "float", minimum=-150, maximum=12_345, decimals=2, missing=True)
CITY = Column("city", "category", values=("Rome", 'St. is, "x"', " lead"))


@pytest.mark.parametrize(
    ("column", "text", "code"),
    [
        (AGE, "39", 39),
        (AGE, " -5 ", -5),
        (AGE, "39.0", 39),
        (AGE, "4e1", 40),
        (AGE, "91", None),
        (AGE, "39.5", None),
        (AGE, "", None),
        (AGE, "nan", None),
        (AGE, "٣", None),
        (AGE, "1e999", None),
        (PAY, "", MISSING),
        (PAY, "1.5", 150),
        (PAY, "-1.50", -150),
        (PAY, "-1.51", None),
        (PAY, "0.125", 12),
        (PAY, "123.45", 12_345),
        (CITY, "Rome", 0),
        (CITY, " Rome", 0),
        (CITY, " lead", 2),
        (CITY, "lead", None),
        (CITY, "", None),
    ],
)
def test_code_of_a_text(column: Column, text: str, code: int | None) -> None:
    assert column.code(text) == code


@given(st.integers(-150, 12_345))
def test_texts_and_codes_are_each_others_inverse(code: int) -> None:
    assert PAY.code(PAY.text(code)) == code
    assert len(PAY.text(code).split(".")[1]) == 2


def test_text_refuses_what_is_outside() -> None:
    assert PAY.text(MISSING) == ""
    for column, code in ((AGE, MISSING), (AGE, 91), (CITY, 3), (CITY, -1)):
        with pytest.raises(ValueError, match="domain"):
            column.text(code)


def test_size() -> None:
    assert (AGE.size, PAY.size, CITY.size) == (96, 12_496, 3)
    assert Column("x", "category", missing=True).size == 0


def test_json(tmp_path: Path) -> None:
    found = Schema((AGE, PAY, CITY), "city")
    path = tmp_path / "schema.json"
    path.write_text(json.dumps(found.as_dict()))
    assert schema.read(path) == found
    assert found.index("pay, $") == 1
    assert found.column("city") is CITY


BAD: list[tuple[Any, str]] = [
    ([], "list"),
    ({"columns": []}, "one at least"),
    ({"columns": [{"kind": "integer"}]}, "name"),
    ({"columns": [{"name": "a", "kind": "date"}]}, "kind"),
    ({"columns": [{"name": "a", "kind": "integer", "minimum": 0}]}, "maximum"),
    ({"columns": [{"name": "a", "kind": "integer", "minimum": 1.5, "maximum": 2}]}, "minimum"),
    ({"columns": [{"name": "a", "kind": "integer", "minimum": 3, "maximum": 2}]}, "at most maximum"),
    ({"columns": [{"name": "a", "kind": "float", "minimum": 1, "maximum": 2}]}, "decimals"),
    ({"columns": [{"name": "a", "kind": "category", "values": ["x", "x"]}]}, "twice"),
    ({"columns": [{"name": "a", "kind": "category", "values": "xy"}]}, "list"),
    ({"columns": [{"name": "a", "kind": "category", "values": []}]}, "none"),
    ({"columns": [{"name": "a", "kind": "category", "values": ["x"], "minimum": 1}]}, "left out"),
    ({"columns": [{"name": "a", "kind": "category", "values": ["x"], "max": 1}]}, "known properties"),
    ({"columns": [{"name": "a", "kind": "category", "values": ["x"]}] * 2}, "'a' twice"),
    ({"columns": [{"name": "a", "kind": "category", "values": ["\ud800"]}]}, "a file can hold"),
    ({"columns": [{"name": "a\0", "kind": "category", "values": ["x"]}]}, "a file can hold"),
    ({"columns": [{"name": "a", "kind": "category", "values": ["x"]}], "label": "b"}, "label"),
]


@pytest.mark.parametrize(("record", "message"), BAD)
def test_bad_schemas_are_refused(tmp_path: Path, record: Any, message: str) -> None:
    path = tmp_path / "schema.json"
    path.write_text(json.dumps(record))
    with pytest.raises(ValueError, match=message):
        schema.read(path)


def test_a_missing_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="schema must be a file"):
        schema.read(tmp_path / "none.json")
