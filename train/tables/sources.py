"""The tables of arXiv 2412.02467, as texts, split as its released code splits them in number.

The authors' own splits were not recovered: rows are shuffled once by a public seed, and as many are taken for
training and for testing as they have.
"""

from __future__ import annotations

import dataclasses
import io
import zipfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute
import pyarrow.csv

from exactdp.accounting import validate
from exactdp.accounting.printed import two_stage as printed
from exactdp.train.data import root as data_root
from exactdp.train.data.adult_schema import CELLS
from exactdp.train.tables import csv_file
from exactdp.train.tables.csv_file import RawTable

_compute: Any = pyarrow.compute
_SPLIT_SEED = 20_241_202


@dataclasses.dataclass(frozen=True, eq=False)
class Source:
    """A table with its label.

    Attributes:
      name: of the table.
      label: name of the label's column.
      train: rows to train on.
      test: rows to test on.
      about: where it comes from, and its licence.
    """

    name: str
    label: str
    train: RawTable
    test: RawTable
    about: str


def load(name: str, *, train_rows: int = 0, test_rows: int = 0, root: str | Path | None = None) -> Source:
    """A table of the paper.

    Args:
      name: "adult", "airline" or "texas".
      train_rows: 0 for as many as the paper; fewer are the first of those.
      test_rows: likewise.
      root: the data root; None for EXACTDP_DATA.

    Raises:
      ValueError: an unknown name, a file that is missing or not laid out as published, or more rows wanted
        than there are.
    """
    validate.one_of("dataset", name, printed.DATASETS)
    label, about, read = _SOURCES[name]
    table = read(name, root).table
    sizes = printed.DATASETS[name]
    wanted = {
        "train_rows": (validate.count("train_rows", train_rows), sizes.train_rows),
        "test_rows": (validate.count("test_rows", test_rows), sizes.test_rows),
    }
    order = np.random.default_rng(_SPLIT_SEED).permutation(table.num_rows)
    parts: list[RawTable] = []
    begin = 0
    for argument, (asked, published) in wanted.items():
        # A sample of the published file has fewer rows: both parts shrink alike.
        share = min(1.0, table.num_rows / (sizes.train_rows + sizes.test_rows))
        there = int(published * share)
        if asked > there:
            raise ValueError(f"{argument} must be at most {there} for {name}, got {asked}")
        parts.append(RawTable(table.take(pa.array(order[begin : begin + (asked or there)]))))
        begin += there
    return Source(name, label, parts[0], parts[1], about)


def _adult(name: str, root: str | Path | None) -> RawTable:
    """UCI's two files together, duplicates dropped; `?` stays a value."""
    how = "Put adult.data and adult.test there, as published at https://archive.ics.uci.edu/dataset/2/adult."
    folder = data_root.find(name, root=root, candidates=["adult"], how=how)
    rows: dict[tuple[str, ...], None] = {}
    for file in ("adult.data", "adult.test"):
        path = folder / file
        if not path.is_file():
            raise ValueError(f"{name}: {folder} must hold {file}, it does not. {how}")
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1):
            # adult.test opens with a line of its own, and both files end with an empty one.
            if not line.strip() or line.startswith("|"):
                continue
            cells = tuple(cell.strip().removesuffix(".") for cell in line.split(","))
            if len(cells) != len(CELLS):
                raise ValueError(
                    f"{name}: {path} must have {len(CELLS)} cells a line, line {number} has {len(cells)}"
                )
            rows[cells] = None
    columns = [pa.array(column, pa.string()) for column in zip(*rows, strict=True)]
    return RawTable(pa.table(columns, names=list(CELLS)))


def _airline(name: str, root: str | Path | None) -> RawTable:
    """The zipped CSV file, without its column of row numbers."""
    file = "airline_passenger_satisfaction"
    path = data_root.find(
        name,
        root=root,
        candidates=[f"airline/{file}.zip"],
        how=f"Put {file}.zip there, holding {file}.csv with a column ID.",
    )
    try:
        with zipfile.ZipFile(path) as archive:
            content = archive.read(f"{file}.csv")
    except (OSError, KeyError, zipfile.BadZipFile) as error:
        raise ValueError(f"{name}: {path} must be a zip file that holds {file}.csv: {error}") from None
    table = _texts(content).table
    if "ID" not in table.column_names:
        raise ValueError(f"{name}: {file}.csv must have a column ID, its header has none")
    return RawTable(table.drop_columns(["ID"]))


def _texas(name: str, root: str | Path | None) -> RawTable:
    """texas.csv: rows whose RISK_MORTALITY is 1 or 3, duplicates dropped."""
    path = data_root.find(
        name,
        root=root,
        candidates=["texas/texas.csv"],
        how="Put texas.csv there: 18 columns of Texas hospital discharges, RISK_MORTALITY among them.",
    )
    table = csv_file.read(path).table
    label = _SOURCES[name][0]
    if label not in table.column_names:
        raise ValueError(f"{name}: {path} must have a column {label}, its header has none")
    chosen = table.filter(_compute.is_in(table.column(label), value_set=pa.array(["1", "3"])))
    if not chosen.num_rows:
        raise ValueError(f"{name}: {path} must have rows whose {label} is 1 or 3, there is none")
    return RawTable(chosen.group_by(chosen.column_names, use_threads=False).aggregate([]))


def _texts(content: bytes) -> RawTable:
    """The cells of a CSV file as texts."""
    names = pyarrow.csv.read_csv(io.BytesIO(content[: content.index(b"\n") + 1])).column_names
    options = pyarrow.csv.ConvertOptions(
        column_types=dict.fromkeys(names, pa.string()), strings_can_be_null=False
    )
    return RawTable(pyarrow.csv.read_csv(io.BytesIO(content), convert_options=options))


_SOURCES: Mapping[str, tuple[str, str, Callable[[str, str | Path | None], RawTable]]] = {
    "adult": ("income", "UCI Adult, both files, duplicates dropped; CC BY 4.0", _adult),
    "airline": ("Satisfaction", "airline passenger satisfaction; licence not stated", _airline),
    "texas": ("RISK_MORTALITY", "Texas hospital discharge data", _texas),
}
