"""The tables of arXiv 2412.02467."""

from __future__ import annotations

import os
import zipfile
from pathlib import Path

import pytest

from exactdp.train.tables import sources

needs_data = pytest.mark.skipif("EXACTDP_DATA" not in os.environ, reason="EXACTDP_DATA is not set")
ADULT_LINE = (
    "39, State-gov, {}, Bachelors, 13, Never-married, Adm-clerical, Not-in-family, White, Male, 2174, 0, 40, "
    "?, <=50K"
)


def write_adult(root: Path) -> None:
    (root / "adult").mkdir()
    lines = [ADULT_LINE.format(n) for n in range(90)]
    (root / "adult" / "adult.data").write_text("\n".join([*lines, lines[0], ""]))
    test = [ADULT_LINE.format(n) + "." for n in range(80, 130)]
    (root / "adult" / "adult.test").write_text("\n".join(["|1x3 Cross validator", *test, ""]))


def test_adult_drops_duplicates_and_full_stops(tmp_path: Path) -> None:
    write_adult(tmp_path)
    found = sources.load("adult", root=tmp_path)
    total = found.train.num_rows + found.test.num_rows
    assert total in (129, 130)  # of 130 distinct rows
    assert found.train.num_rows == pytest.approx(130 * 30_932 / 47_790, abs=1)
    assert set(found.train.column("income").to_pylist()) == {"<=50K"}
    assert set(found.train.column("native-country").to_pylist()) == {"?"}
    rows = [tuple(row.values()) for part in (found.train, found.test) for row in part.table.to_pylist()]
    assert len(set(rows)) == total
    again = sources.load("adult", root=tmp_path, train_rows=10)
    assert again.train.table.equals(found.train.table.slice(0, 10).combine_chunks())
    assert again.test.table.equals(found.test.table)


def test_texas_keeps_two_levels(tmp_path: Path) -> None:
    (tmp_path / "texas").mkdir()
    lines = [f"{n % 5},{n % 40}" for n in range(400)]
    (tmp_path / "texas" / "texas.csv").write_text("\n".join(["RISK_MORTALITY,AGE", *lines]) + "\n")
    found = sources.load("texas", root=tmp_path)
    assert set(found.train.column("RISK_MORTALITY").to_pylist()) == {"1", "3"}
    assert found.train.num_rows + found.test.num_rows in (15, 16)


def test_airline_drops_its_row_numbers(tmp_path: Path) -> None:
    (tmp_path / "airline").mkdir()
    name = "airline_passenger_satisfaction"
    text = "ID,Gender,Arrival Delay,Satisfaction\n" + "".join(
        f"{n},Male,{'' if n % 3 else n},Satisfied\n" for n in range(200)
    )
    with zipfile.ZipFile(tmp_path / "airline" / f"{name}.zip", "w") as archive:
        archive.writestr(f"{name}.csv", text)
    found = sources.load("airline", root=tmp_path)
    assert found.train.names == ("Gender", "Arrival Delay", "Satisfaction")
    assert "" in found.train.column("Arrival Delay").to_pylist()


def test_what_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="dataset must be one of"):
        sources.load("census", root=tmp_path)
    for name in ("adult", "airline", "texas"):
        with pytest.raises(ValueError, match=f"{name}: the data root"):
            sources.load(name, root=tmp_path)
    write_adult(tmp_path)
    with pytest.raises(ValueError, match="train_rows must be at most"):
        sources.load("adult", root=tmp_path, train_rows=100)


@needs_data
@pytest.mark.parametrize(("name", "columns"), [("adult", 15), ("airline", 23)])
def test_the_published_sizes(name: str, columns: int) -> None:
    found = sources.load(name)
    assert found.label in found.train.names
    assert len(found.train.names) == columns
    published = {"adult": (30_932, 16_858), "airline": (103_904, 24_976)}
    assert (found.train.num_rows, found.test.num_rows) == published[name]
