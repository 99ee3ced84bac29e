"""Domains found privately."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from exactdp.mechanisms.statistics import bounds, categories, kind
from exactdp.mechanisms.statistics.bounds import Bounds
from exactdp.mechanisms.statistics.kind import Kind
from exactdp.train.tables import domain
from exactdp.train.tables.budget import Budget
from exactdp.train.tables.csv_file import RawTable
from exactdp.train.tables.domain import Domain
from exactdp.train.tables.schema import Column

RNG = np.random.default_rng(5)
ROWS = 4000


def table(**columns: list[str]) -> RawTable:
    return RawTable(pa.table({name: pa.array(cells, pa.string()) for name, cells in columns.items()}))


def find(raw: RawTable, *declared: Column, label: str | None = None, epsilon: float = 5.0) -> Domain:
    budget = Budget(epsilon, 1e-6, len(raw.names), len(raw.names) - len(declared))
    return domain.discover(raw, declared=declared, label=label, budget=budget)


def test_realistic_columns() -> None:
    raw = table(
        age=[str(n) for n in RNG.integers(17, 91, ROWS)],
        pay=[f"{x:.2f}" for x in RNG.lognormal(3.0, 1.0, ROWS)],
        city=RNG.choice(["Rome", "Paris, France", "Bonn"], ROWS).tolist(),
        gap=["", "18.0"] * (ROWS // 2),
        day=[f"2024-01-{n:02d}" for n in RNG.integers(1, 4, ROWS)],
    )
    age, pay, city, gap, day = find(raw, label="city").schema.columns
    assert (age.kind, age.minimum, age.maximum) == ("integer", 16, 127)
    assert (pay.kind, pay.decimals) == ("float", 2)
    assert city.values == ("Bonn", "Paris, France", "Rome")
    assert (gap.kind, gap.minimum, gap.maximum) == ("integer", 16, 31)
    assert day.values == ("2024-01-01", "2024-01-02", "2024-01-03")
    assert all(column.missing for column in (age, pay, city, gap, day))


def test_adversarial_columns() -> None:
    raw = table(
        empty=[""] * ROWS,
        marks=["NA", "?"] * (ROWS // 2),
        constant=["7"] * ROWS,
        distinct=[f"id-{n}" for n in range(ROWS)],
        huge=["900000000000000"] * ROWS,
        beyond=["1e300"] * ROWS,
        small=["0.0000001"] * ROWS,
        negative=["-5"] * ROWS,
        mixed=["5", "x"] * (ROWS // 2),
        rare=["5"] * (ROWS - 1) + ["secret"],
    )
    found = {column.name: column for column in find(raw, epsilon=20.0).schema.columns}
    assert (found["empty"].kind, found["empty"].values) == ("category", ())
    assert found["marks"].values == ("?", "NA")
    assert (found["constant"].minimum, found["constant"].maximum) == (4, 7)
    assert found["distinct"].values == ()
    assert (found["huge"].minimum, found["huge"].maximum) == (2**49, 10**15)
    assert found["beyond"].values == ("1e300",)
    assert (found["small"].kind, found["small"].decimals, found["small"].maximum) == ("float", 6, 0)
    assert (found["negative"].minimum, found["negative"].maximum) == (-7, -4)
    assert found["mixed"].values == ("5", "x")
    assert found["rare"].kind == "integer"


def test_one_row_tells_nothing_and_stops_nothing() -> None:
    found = find(table(a=["1"], b=["x"], c=[""]), label="a", epsilon=0.5)
    assert [column.values for column in found.schema.columns if column.name != "a"] == [(), ()]


def test_declared_columns_are_taken_as_they_are() -> None:
    declared = Column("age", "integer", minimum=0, maximum=120)
    raw = table(city=["a", "b"] * 2000, age=["30"] * ROWS)
    found = find(raw, declared)
    assert found.schema.names == ("city", "age")
    assert found.schema.column("age") == declared
    assert found.bounds == {}


def test_all_that_is_known_comes_from_the_releases(monkeypatch: pytest.MonkeyPatch) -> None:
    def same_kind(texts: Any, **_: object) -> Kind:
        return Kind("integer") if texts[0].as_py().strip() in ("1", "500") else Kind("category")

    monkeypatch.setattr(kind, "release", same_kind)
    monkeypatch.setattr(bounds, "release", lambda *_, **__: Bounds(3, (5, 6)))
    monkeypatch.setattr(categories, "release", lambda *_, **__: {"x": 9, "a": 4})
    one = find(table(n=["1"] * 10, c=["u"] * 10), label="c")
    two = find(table(n=["500", "-3"], c=["v", "w"]), label="c")
    assert one == two
    assert one.schema.column("c").values == ("a", "x")
    assert one.schema.column("n").maximum == 15


def test_numbers_of_texts() -> None:
    texts = pa.chunked_array([["1.5", "x", ""], [" -2 ", "1e300", "0.25"]], pa.string())
    assert domain.numbers(texts, decimals=1).tolist() == [15, -20, 10**15, 2]
    assert domain.numbers(pa.chunked_array([], pa.string()), decimals=0).size == 0


def test_bad_input() -> None:
    raw = table(a=["1"], b=["2"])
    a, c = Column("a", "integer", minimum=0, maximum=1), Column("c", "integer", minimum=0, maximum=1)
    budget = Budget(1.0, 1e-5, 2, 1)
    for declared, label, message in (
        ([a, a], None, "declared must hold each column once, got 'a' twice"),
        ([c], None, "column must be one of 'a', 'b', got 'c'"),
        ([a], "z", "got 'z'"),
        ([], None, "budget must be for 2 columns of which 2 are undeclared, got 2 and 1"),
    ):
        with pytest.raises(ValueError, match=message):
            domain.discover(raw, declared=declared, label=label, budget=budget)
    with pytest.raises(ValueError, match="most_categories"):
        domain.discover(raw, declared=[a], label=None, budget=budget, most_categories=0)
