"""CSV files: what is read, what is refused without telling a cell, and codes."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

from exactdp.train.tables import csv_file
from exactdp.train.tables.schema import MISSING, Column, Schema
from tests.train.tables import real_tables

SECRET = "Zyx-secret-31415"
AGE = Column("age", "integer", minimum=-5, maximum=90)
PAY = Column("pay", "float", minimum=-150, maximum=12_345, decimals=2, missing=True)
CITY = Column("city", "category", values=("Rome", 'St. is, "x"\n', " lead"), missing=True)
SCHEMA = Schema((AGE, PAY, CITY), "city")


def written(path: Path, content: str | bytes) -> Path:
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


def cells_of(path: Path, content: str | bytes) -> dict[str, list[str]]:
    raw = csv_file.read(written(path / "t.csv", content))
    return {name: raw.column(name).to_pylist() for name in raw.names}


@pytest.mark.parametrize(
    ("content", "found"),
    [
        ("a,b\n1,x\n", {"a": ["1"], "b": ["x"]}),
        ("a,b\r\n1,x\r\n2,y", {"a": ["1", "2"], "b": ["x", "y"]}),
        (b"\xef\xbb\xbfa,b\n1,x\n", {"a": ["1"], "b": ["x"]}),
        (b'\xef\xbb\xbf"a",b\n1,x\n', {"a": ["1"], "b": ["x"]}),
        ('a,b\n"1\n2","x ""y"", z"\n', {"a": ["1\n2"], "b": ['x "y", z']}),
        ('a b,"é, is"\n,\n\nNA,null\n', {"a b": ["", "NA"], "é, is": ["", "null"]}),
        ('only\n""\nx\n\n', {"only": ["", "x"]}),
        ('a,b\n5" pipe,x\n', {"a": ['5" pipe'], "b": ["x"]}),
        ("a,b\n2020-02-30,1\n,x y\n", {"a": ["2020-02-30", ""], "b": ["1", "x y"]}),
        ("a\n007\n", {"a": ["007"]}),
    ],
)
def test_reads(tmp_path: Path, content: str | bytes, found: dict[str, list[str]]) -> None:
    assert cells_of(tmp_path, content) == found


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", "it is empty"),
        ("\n\n", "empty lines alone"),
        ("a,b\n", "it holds none"),
        ("a,b", "it holds none"),
        (f"a,b\n1,2\n{SECRET}\n", "must have 2 cells in every row, row 2 has 1"),
        (f"a,b\n1,2\n\n3,{SECRET},x\n", "must have 2 cells in every row, row 2 has 3"),
        ("a,b\n" + "1,2\n" * 9_999 + f"{SECRET},,\n", "row 10000 has 3"),
        (f"{SECRET},b,{SECRET}\n1,2,3\n", "different names in its header, column 3 has another's"),
        (f"a,,b\n1,2,{SECRET}\n", "column 2 has no name"),
        (f"a,b,\n1,2,{SECRET}\n", "column 3 has no name"),
        (f"a,b\n1,{SECRET}é\n".encode("cp1252"), "must be UTF-8 text, line 2 is not; convert"),
        (f"a,b\n1,{SECRET}\n".encode("utf-16"), "must be UTF-8 text, line 1 is not.*UTF-16"),
        (f"a,b\n1,{SECRET}\n".encode("utf-16-le"), "NUL bytes, line 1 has one"),
        (f"a,b\n1,{SECRET}\n2,\0\n", "NUL bytes, line 3 has one"),
        (f"a,b\n1,{SECRET}\n3,é"[:-1].encode() + b"\xc3", "must be UTF-8 text, line 3 is not"),
        (f'a,b\n1,2\n3,"{SECRET}\n4,5\n', "must close every quote, row 2 does not"),
        (f'"a,b\n1,{SECRET}\n', "must|row"),
    ],
)
def test_refusals_tell_no_cell(tmp_path: Path, content: str | bytes, message: str) -> None:
    path = written(tmp_path / "t.csv", content)
    with pytest.raises(ValueError, match=message) as refusal:
        csv_file.read(path)
    assert SECRET not in str(refusal.value)
    assert str(path) in str(refusal.value)
    # Nor does what a debugger or a logger of chains would show.
    context = refusal.value.__context__
    assert context is None or (refusal.value.__suppress_context__ and SECRET not in str(context))


def test_a_row_longer_than_a_block_is_refused_without_its_text(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(csv_file, "_BLOCK", 1 << 20)
    path = written(tmp_path / "t.csv", f'a,b\n1,"{SECRET * 150_000}"\n')
    with pytest.raises(ValueError, match="rows of at most 1 MiB") as refusal:
        csv_file.read(path)
    assert SECRET not in str(refusal.value)


def test_a_character_between_blocks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(csv_file, "_BLOCK", 64)
    assert cells_of(tmp_path, "a,b\n" + "é€," * 1 + "x\n" + "1,é\n" * 40)["b"][1:] == ["é"] * 40
    with pytest.raises(ValueError, match="line 42 is not"):
        csv_file.read(written(tmp_path / "u.csv", ("a,b\n" + "1,é\n" * 40).encode() + b"2,\xe9\n"))


def test_no_file(tmp_path: Path) -> None:
    for path in (tmp_path, tmp_path / "none.csv"):
        with pytest.raises(ValueError, match="must be a file"):
            csv_file.read(path)


def test_a_table_prints_no_cell(tmp_path: Path) -> None:
    raw = csv_file.read(written(tmp_path / "t.csv", f"age,pay,city\n1,2,{SECRET}\n"))
    encoded = csv_file.encode(raw, SCHEMA)
    assert SECRET not in repr(raw) + str(raw)
    assert repr(encoded) == "Encoded()"


def test_selects_rows(tmp_path: Path) -> None:
    raw = csv_file.read(written(tmp_path / "t.csv", "a,b\n1,x\n2,y\n3,z\n"))
    assert raw.num_rows == 3
    assert raw.select(np.array([2, 0])).column("b").to_pylist() == ["z", "x"]
    with pytest.raises(ValueError, match="must be one of the header's 2 names, got 'c'"):
        raw.column("c")


def test_encodes_and_counts(tmp_path: Path) -> None:
    content = (
        'city,age,pay,more\nRome,39,1.5,x\n lead ,1e3,,x\nParis,39.5,-7,x\n,"",x,x\n" lead", 4 ,1e-2,x\n'
    )
    encoded = csv_file.encode(csv_file.read(written(tmp_path / "t.csv", content)), SCHEMA)
    assert encoded.codes.tolist() == [
        [39, 150, 0],
        [90, MISSING, MISSING],
        [40, -150, MISSING],
        [0, MISSING, MISSING],
        [4, 1, 2],
    ]
    assert encoded.replaced == (3, 2, 2)


def test_a_rows_codes_depend_on_that_row_alone(tmp_path: Path) -> None:
    rows = ["39,1.5,Rome", "x,y,Zagreb", "1e99,-.5,", ",,", "  7,1.005, lead"]
    header = "age,pay,city\n"

    def codes(lines: list[str]) -> list[list[int]]:
        raw = csv_file.read(written(tmp_path / "t.csv", header + "\n".join(lines) + "\n"))
        return csv_file.encode(raw, SCHEMA).codes.tolist()

    alone = [codes([row])[0] for row in rows]
    assert codes(rows) == alone
    assert codes(rows[::-1] * 50) == alone[::-1] * 50


def test_a_lacking_column_is_named(tmp_path: Path) -> None:
    raw = csv_file.read(written(tmp_path / "t.csv", f"age,city,{SECRET}\n1,{SECRET},{SECRET}\n"))
    with pytest.raises(ValueError, match="must have the column 'pay' of the schema") as refusal:
        csv_file.encode(raw, SCHEMA)
    assert SECRET not in str(refusal.value) + repr(raw)


def test_writes_what_it_reads(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(csv_file, "_ROWS", 7)
    rng = np.random.default_rng(0)
    codes = np.stack([rng.integers(c.low, c.high, 50, endpoint=True) for c in SCHEMA.columns], 1)
    codes[rng.random(codes.shape) < 0.2] = MISSING
    codes[:, 0] = np.where(codes[:, 0] == MISSING, 0, codes[:, 0])
    path = tmp_path / "out.csv"
    csv_file.write(path, codes, SCHEMA)
    encoded = csv_file.encode(csv_file.read(path), SCHEMA)
    np.testing.assert_array_equal(encoded.codes, codes)
    assert sum(encoded.replaced) == 0
    assert [found.name for found in tmp_path.iterdir()] == ["out.csv"]


def test_a_failed_write_leaves_the_old_file(tmp_path: Path) -> None:
    path = written(tmp_path / "out.csv", "old")
    with pytest.raises(ValueError, match="column 'age': code must be in"):
        csv_file.write(path, np.array([[1, MISSING, 0], [91, 0, 0]]), SCHEMA)
    with pytest.raises(ValueError, match="must have 3 columns"):
        csv_file.write(path, np.zeros((2, 2), np.int64), SCHEMA)
    assert path.read_text() == "old"
    assert [found.name for found in tmp_path.iterdir()] == ["out.csv"]


def test_one_empty_cell_is_a_row(tmp_path: Path) -> None:
    schema = Schema((Column("x", "category", missing=True),))
    codes = np.full((3, 1), MISSING)
    csv_file.write(tmp_path / "t.csv", codes, schema)
    np.testing.assert_array_equal(csv_file.encode(csv_file.read(tmp_path / "t.csv"), schema).codes, codes)


def test_wide_tables_and_many_categories(tmp_path: Path) -> None:
    rng = np.random.default_rng(1)
    wide = Schema(tuple(Column(f"c{i}", "integer", minimum=0, maximum=10**12) for i in range(200)))
    many = Schema((Column("word", "category", values=tuple(f"w {i}, {i * i}" for i in range(100_000))),))
    for schema, rows in ((wide, 300), (many, 100_000)):
        codes = rng.integers(0, schema.columns[0].high, (rows, len(schema.columns)), endpoint=True)
        csv_file.write(tmp_path / "t.csv", codes, schema)
        encoded = csv_file.encode(csv_file.read(tmp_path / "t.csv"), schema)
        np.testing.assert_array_equal(encoded.codes, codes)


@pytest.mark.parametrize("name", ["adult", "airline"])
def test_real_tables_round_trip(tmp_path: Path, name: str) -> None:
    raw = csv_file.read(getattr(real_tables, name)(tmp_path / "real.csv"))
    schema = real_tables.declared(raw)
    encoded = csv_file.encode(raw, schema)
    assert (raw.num_rows, len(raw.names)) == {"adult": (32_561, 15), "airline": (129_880, 24)}[name]
    assert sum(encoded.replaced) == 0
    csv_file.write(tmp_path / "again.csv", encoded.codes, schema)
    again = csv_file.encode(csv_file.read(tmp_path / "again.csv"), schema)
    np.testing.assert_array_equal(again.codes, encoded.codes)
    for column, written_column in zip(schema.columns, encoded.codes.T, strict=True):
        texts = [re.sub(r"^\s+|\s+$", "", text) for text in raw.column(column.name).to_pylist()[:200]]
        assert texts == [column.text(int(code)) for code in written_column[:200]]
