"""The statistics that the published pipeline takes from the private table without noise. Not private.

Source: arXiv 2412.02467v2 and its released code.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from jaxtyping import Int

from exactdp.mechanisms.statistics import categories, kind
from exactdp.train.tables import bins as table_bins
from exactdp.train.tables import csv_file, domain
from exactdp.train.tables.bins import Bins
from exactdp.train.tables.csv_file import RawTable
from exactdp.train.tables.schema import Column, Schema
from exactdp.train.tables.statistics import Statistics

LABEL_LEAK = "the label's frequencies are exact"
MISSING_LEAK = "which columns have missing cells is exact"


def exact(raw: RawTable, *, label: str | None) -> Statistics:
    """Exact domains, and the label's exact histogram.

    A column is one of numbers if all its cells are numbers or empty; its range then goes from the smallest to
    the largest. Else its categories are all texts there are. The other columns' tables are empty.

    Not private: `leaks` says what is taken without noise, one sentence for each kind of it and column.

    Raises:
      ValueError: the label is not in the table.
    """
    if label is not None and label not in raw.names:
        raise ValueError(f"label must be one of {', '.join(map(repr, raw.names))}, got {label!r}")
    columns = tuple(_column(name, raw.column(name)) for name in raw.names)
    own_schema = Schema(columns, label)
    every = tuple(_bins(column) for column in columns)
    tables: list[Int[np.ndarray, "groups bins"]] = []
    groups: tuple[int, ...] = ()
    for place, (column, own) in enumerate(zip(columns, every, strict=True)):
        if column.name != label:
            tables.append(np.empty((1, 0), np.int64))
            continue
        codes = csv_file.encode(raw, Schema((column,))).codes[:, 0]
        tables.append(np.bincount(own.of(codes), minlength=own.size).astype(np.int64)[None])
        groups = (0,) * every[place].size
    return Statistics(
        schema=own_schema,
        num_rows=raw.num_rows,
        bins=every,
        groups=groups,
        tables=tuple(tables),
        noise=0.0,
        private=False,
        leaks=(*map(_leak, columns), MISSING_LEAK, *([] if label is None else [LABEL_LEAK])),
    )


def _leak(column: Column) -> str:
    if column.kind == "category":
        return f"column {column.name!r}: its list of categories is exact, the rarest included"
    return f"column {column.name!r}: its range is exact, so that its extreme rows show"


def _column(name: str, texts: Any) -> Column:
    kinds = kind.histogram(texts)
    present = categories.present(texts)
    missing = sum(present.values()) < len(texts)
    # Marks of missing values, counted as missing by kind, are categories here unless the cell is empty.
    marks = int(kinds[kind.MISSING]) > len(texts) - sum(present.values())
    if not present or marks or kinds[kind.TEXT]:
        return Column(name, "category", values=tuple(sorted(present)), missing=missing)
    decimals = int(np.flatnonzero(kinds[kind.MISSING + 1 : kind.TEXT])[-1])
    codes = domain.numbers(texts, decimals=decimals)
    return Column(
        name,
        "float" if decimals else "integer",
        minimum=int(codes.min()),
        maximum=int(codes.max()),
        decimals=decimals,
        missing=missing,
    )


def _bins(column: Column) -> Bins:
    if column.kind == "category":
        return table_bins.of_category(column)
    return table_bins.of_declared(column, most=table_bins.MOST_BINS)
