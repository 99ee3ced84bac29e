"""The statistics of a table that a generator may use: its domain, and noisy counts of label by column."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Int

from exactdp.accounting import validate
from exactdp.mechanisms.statistics import counts
from exactdp.train.tables import bins as table_bins
from exactdp.train.tables import csv_file, domain
from exactdp.train.tables import schema as table_schema
from exactdp.train.tables.bins import Bins
from exactdp.train.tables.budget import Budget
from exactdp.train.tables.csv_file import RawTable
from exactdp.train.tables.domain import Domain
from exactdp.train.tables.schema import Column, Schema

MOST_GROUPS = 16
"""A label of more bins than this is conditioned on in groups."""


@dataclasses.dataclass(frozen=True, eq=False)
class Statistics:
    """Counts of a table, with its domain.

    Attributes:
      schema: the domain; rows outside it were coded as `csv_file.encode` does.
      num_rows: of the table; public.
      bins: of each column.
      groups: group of each bin of the label, 0 ... G - 1; empty without a label, where G = 1.
      tables: of each column, int64 [G, bins]; the label's own is its histogram [1, bins]. Empty ([G, 0])
        where none was taken.
      noise: standard deviation of each count; 0 where they are exact.
      private: whether all of it was released under a budget.
      leaks: what was taken from the table without noise, one sentence each.

    Raises:
      ValueError: the parts do not fit each other.
    """

    schema: Schema
    num_rows: int
    bins: tuple[Bins, ...]
    groups: tuple[int, ...]
    tables: tuple[Int[np.ndarray, "groups bins"], ...]
    noise: float
    private: bool
    leaks: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        validate.count("num_rows", self.num_rows)
        validate.non_negative("noise", self.noise)
        columns = self.schema.columns
        if tuple(own.column for own in self.bins) != columns or len(self.tables) != len(columns):
            raise ValueError(f"bins and tables must be one for each of the {len(columns)} columns")
        place = self.label_place
        if len(self.groups) != (0 if place is None else self.bins[place].size):
            raise ValueError("groups must give one group for each bin of the label")
        if self.groups and sorted(set(self.groups)) != list(range(self.num_groups)):
            raise ValueError("groups must be 0 ... G - 1, each with a bin")
        for number, (own, table) in enumerate(zip(self.bins, self.tables, strict=True)):
            rows = 1 if number == place else self.num_groups
            if table.shape not in ((rows, own.size), (rows, 0)):
                raise ValueError(
                    f"column {own.column.name!r}: table must be [{rows}, {own.size}], got {table.shape}"
                )
        if self.private and self.leaks:
            raise ValueError(f"private statistics must have no leaks, got {len(self.leaks)}")

    @property
    def label_place(self) -> int | None:
        """Place of the label among the columns; None where there is none."""
        return None if self.schema.label is None else self.schema.index(self.schema.label)

    @property
    def num_groups(self) -> int:
        """G, at least 1."""
        return max(self.groups, default=0) + 1

    def as_dict(self) -> dict[str, Any]:
        """For JSON."""
        return {
            "schema": self.schema.as_dict(),
            "num_rows": self.num_rows,
            "edges": [list(own.edges) for own in self.bins],
            "groups": list(self.groups),
            "tables": [table.tolist() for table in self.tables],
            "noise": self.noise,
            "private": self.private,
            "leaks": list(self.leaks),
        }

    def write(self, path: Path) -> None:
        """Writes a JSON file."""
        path.write_text(json.dumps(self.as_dict(), ensure_ascii=False), encoding="utf-8")


def statistics(record: Any) -> Statistics:
    """The statistics that `Statistics.as_dict` describes.

    Raises:
      ValueError: it describes none.
    """
    try:
        found = table_schema.schema(record["schema"])
        pairs = zip(record["edges"], found.columns, strict=True)
        return Statistics(
            schema=found,
            num_rows=validate.count("num_rows", record["num_rows"]),
            bins=tuple(table_bins.bins(edges, column) for edges, column in pairs),
            groups=tuple(validate.count("groups", group) for group in record["groups"]),
            tables=tuple(np.array(table, np.int64).reshape(len(table), -1) for table in record["tables"]),
            noise=float(record["noise"]),
            private=record["private"] is True,
            leaks=tuple(map(str, record["leaks"])),
        )
    except (KeyError, TypeError, OverflowError) as error:
        raise ValueError(f"statistics must be a JSON object as written ({type(error).__name__})") from None


def read(path: Path) -> Statistics:
    """The statistics in a JSON file.

    Raises:
      ValueError: there is no such file, or it holds none.
    """
    try:
        return statistics(json.loads(path.read_text(encoding="utf-8")))
    except (OSError, ValueError) as error:
        raise ValueError(f"statistics must be a file as written by a run, got {path}: {error}") from None


def measure(raw: RawTable, *, declared: Sequence[Column], label: str | None, budget: Budget) -> Statistics:
    """The private statistics of a table.

    Guarantee: dominated by the composition of `budget.releases()` under add/remove of a row, with the number
    of rows public. Draws noise: announce the releases first.

    Args:
      raw: the table.
      declared: public domains of some columns, all, or none.
      label: name of the label's column; None where there is none.
      budget: for that many columns and undeclared ones.

    Raises:
      ValueError: as `domain.discover`.
    """
    found = domain.discover(raw, declared=declared, label=label, budget=budget)
    return tabulate(csv_file.encode(raw, found.schema).codes, found, budget=budget)


def tabulate(codes: Int[np.ndarray, "rows columns"], found: Domain, *, budget: Budget) -> Statistics:
    """The private tables of a coded table: the second half of `measure`.

    The label's histogram comes first; by it the bins of a label of more than `MOST_GROUPS` bins are joined
    into groups (`_groups`). Then one table of label group by bin for each other column. The bins are
    functions of the domain, its noisy bucket counts, the number of rows and the noise.

    Guarantee: dominated by the table releases of `budget.releases()`, given the domain.

    Args:
      codes: in the domain.
      found: the domain.
      budget: as in `measure`.

    Raises:
      ValueError: codes and domain do not fit.
    """
    own_schema, noise = found.schema, budget.table_noise
    if codes.ndim != 2 or codes.shape[1] != len(own_schema.columns):
        raise ValueError(f"codes must have {len(own_schema.columns)} columns, got shape {codes.shape}")
    place = None if own_schema.label is None else own_schema.index(own_schema.label)
    num_rows, sigma = len(codes), float(noise.noise_multiplier)
    tables: dict[int, Int[np.ndarray, "groups bins"]] = {}
    every: dict[int, Bins] = {}
    groups: tuple[int, ...] = ()
    if place is not None:
        most = table_bins.most_bins(num_rows, noise=sigma, groups=1)
        every[place] = _bins(own_schema.columns[place], found, most=most)
        exact = np.bincount(every[place].of(codes[:, place]), minlength=every[place].size)
        tables[place] = counts.noisy(exact[None], noise=noise)
        groups = _groups(tables[place][0])
    num_groups = max(groups, default=0) + 1
    most = table_bins.most_bins(num_rows, noise=sigma, groups=num_groups)
    row = np.zeros(num_rows, np.int64)
    if place is not None:
        row = np.array(groups, np.int64)[every[place].of(codes[:, place])]
    for number, column in enumerate(own_schema.columns):
        if number == place:
            continue
        own = _bins(column, found, most=most)
        flat = np.bincount(row * own.size + own.of(codes[:, number]), minlength=num_groups * own.size)
        tables[number] = counts.noisy(flat.reshape(num_groups, own.size), noise=noise)
        every[number] = own
    order = range(len(own_schema.columns))
    return Statistics(
        schema=own_schema,
        num_rows=num_rows,
        bins=tuple(every[number] for number in order),
        groups=groups,
        tables=tuple(tables[number] for number in order),
        noise=sigma,
        private=True,
    )


def _bins(column: Column, found: Domain, *, most: int) -> Bins:
    if column.kind == "category":
        return table_bins.of_category(column)
    if column.name in found.bounds:
        return table_bins.of_bounds(column, found.bounds[column.name], most=most)
    return table_bins.of_declared(column, most=most)


def _groups(noisy: Int[np.ndarray, " bins"]) -> tuple[int, ...]:
    """Group of each label bin: its own where there are few, else neighbours of about even noisy mass."""
    if len(noisy) <= MOST_GROUPS:
        return tuple(range(len(noisy)))
    mass = np.maximum(noisy.astype(np.float64), 0.0) + 1e-9
    middle = (np.cumsum(mass) - 0.5 * mass) / mass.sum()
    raw = np.minimum((middle * MOST_GROUPS).astype(np.int64), MOST_GROUPS - 1)
    return tuple(int(group) for group in np.unique(raw, return_inverse=True)[1])
