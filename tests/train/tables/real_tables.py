"""Real tables as CSV files, and a schema of a table that covers exactly its values; for tests alone."""

from __future__ import annotations

import os
import zipfile
from pathlib import Path

import pyarrow as pa
import pytest

from exactdp.train.data.adult_schema import CELLS
from exactdp.train.tables.csv_file import RawTable
from exactdp.train.tables.schema import Column, Schema


def folder(name: str) -> Path:
    """A folder of EXACTDP_DATA; skips the test where it is not there."""
    found = Path(os.environ.get("EXACTDP_DATA", "")) / name
    if not os.environ.get("EXACTDP_DATA") or not found.is_dir():
        pytest.skip(f"EXACTDP_DATA holds no {name}")
    return found


def adult(path: Path) -> Path:
    lines = (folder("adult") / "adult.data").read_text().splitlines()
    path.write_text("\n".join([",".join(CELLS), *lines, ""]))
    return path


def airline(path: Path) -> Path:
    with zipfile.ZipFile(folder("airline") / "airline_passenger_satisfaction.zip") as archive:
        (member,) = (name for name in archive.namelist() if name.endswith(".csv"))
        path.write_bytes(archive.read(member))
    return path


def declared(raw: RawTable, *, label: str | None = None, ranges: bool = True) -> Schema:
    """The smallest domain: of a real use this would be private."""
    return Schema(tuple(_column(name, raw.column(name), ranges) for name in raw.names), label)


def _column(name: str, texts: pa.ChunkedArray, ranges: bool) -> Column:
    distinct = {text.strip() for text in texts.unique().to_pylist()}
    missing = "" in distinct
    distinct.discard("")
    if ranges and distinct and all(text.lstrip("-").isdigit() for text in distinct):
        numbers = [int(text) for text in distinct]
        return Column(name, "integer", minimum=min(numbers), maximum=max(numbers), missing=missing)
    return Column(name, "category", values=tuple(sorted(distinct)), missing=missing)
