"""Neighbouring tables: one of them has one record more, whose cells are its own; and the tests for it."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping

import numpy as np
import pyarrow as pa
from jaxtyping import Int

from exactdp.train.tables import as_published, csv_file
from exactdp.train.tables.csv_file import RawTable
from exactdp.train.tables.schema import MISSING, Column, Schema
from exactdp.train.tables.statistics import Statistics

_LARGEST_CODE = 10**15
_MADE_UP = 20_241_202  # of the embedded table alone: it is always the same

RARE, EXTREME, GAP, LABEL = "rare category", "extreme value", "missing cell", "label frequency"
ATTACKS: Mapping[str, str] = {
    RARE: "the record's category, which no other row has, is in the list",
    EXTREME: "the range ends beyond the middle between the others' largest value and the record's",
    GAP: "the column is said to have missing cells, as the record's alone is",
    LABEL: "the count of the record's label is above that of the other rows",
}
"""What the adversary answers "with the record" to. Fixed before any run."""


@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class Neighbours:
    """Two tables. Prints no cell.

    Attributes:
      absent: the rows.
      present: the same rows and the record.
      record: its cells, by column.
      label: name of the label's column, or None.
      columns: of each attack that the table allows, the column it looks at.
      extreme: the value that separates the record's from all others, in its column; NaN without one.
    """

    absent: RawTable
    present: RawTable
    record: Mapping[str, str]
    label: str | None
    columns: Mapping[str, str]
    extreme: float

    def released(self, found: Statistics) -> dict[str, float]:
        """The score of each attack on released statistics; it says "with the record" where this is > 0."""
        scores: dict[str, float] = {}
        for attack, name in self.columns.items():
            place = found.schema.index(name)
            column = found.schema.columns[place]
            if attack == RARE:
                scores[attack] = _sign(self.record[name] in column.values)
            elif attack == EXTREME:
                scores[attack] = _sign(_value(column, column.high) > self.extreme)
            elif attack == GAP:
                scores[attack] = _sign(column.missing)
            else:
                own = found.bins[place].of(self._code(column))[0]
                others = found.bins[place].of(csv_file.encode(self.absent, _only(column)).codes[:, 0])
                scores[attack] = float(found.tables[place][0, own] - np.count_nonzero(others == own)) - 0.5
        return scores

    def drawn(self, found: Statistics, codes: Int[np.ndarray, "rows columns"]) -> dict[str, float]:
        """The scores of those attacks that rows drawn from the statistics allow."""
        scores: dict[str, float] = {}
        for attack, name in self.columns.items():
            place = found.schema.index(name)
            column, own = found.schema.columns[place], codes[:, place]
            if attack == RARE:
                scores[attack] = _sign(
                    any(_text(column, code) == self.record[name] for code in np.unique(own))
                )
            elif attack == EXTREME:
                known = own[own != MISSING]
                scores[attack] = _sign(known.size > 0 and _value(column, int(known.max())) > self.extreme)
        return scores

    def likelihood(self, found: Statistics) -> float:
        """The logarithm of the likelihood ratio of the counts, with the record over without it.

        The adversary knows all other rows, so that the record adds 1 to one count of each table, to which
        normal noise is added: sum over tables of (noisy count - count of the others - 1/2) / sigma^2. (That
        the noise is whole numbers does not matter at its size. What the domain says is left out.) Where the
        counts have no noise, sigma is taken for 1.
        """
        codes = csv_file.encode(self.absent, found.schema).codes
        own = csv_file.encode(self._record_table(), found.schema).codes
        group, own_group = np.zeros(len(codes), np.int64), 0
        if (place := found.label_place) is not None:
            groups = np.array(found.groups, np.int64)
            group = groups[found.bins[place].of(codes[:, place])]
            own_group = int(groups[found.bins[place].of(own[:, place])][0])
        total = 0.0
        for number, (bins, table) in enumerate(zip(found.bins, found.tables, strict=True)):
            if not table.size:
                continue
            mine = int(bins.of(own[:, number])[0])
            others = bins.of(codes[:, number]) == mine
            row = 0 if number == place else own_group
            if number != place:
                others &= group == own_group
            total += float(table[row, mine]) - np.count_nonzero(others) - 0.5
        return total / (found.noise or 1.0) ** 2

    def _code(self, column: Column) -> Int[np.ndarray, " one"]:
        return csv_file.encode(self._record_table(), _only(column)).codes[:, 0]

    def _record_table(self) -> RawTable:
        return self.present.select(np.array([self.absent.num_rows]))


def neighbours(raw: RawTable, *, label: str | None, rows: int) -> Neighbours:
    """A table's first rows, and the same with a record made up for the attacks.

    The record is the first row, but for three cells in columns other than the label's, the first that serve:
    a category that no row has, a number as far above the largest as that is above the smallest, and an empty
    cell where no row has one.

    Args:
      raw: the table.
      label: name of the label's column, or None.
      rows: how many rows are used, >= 1; all if there are fewer.

    Raises:
      ValueError: there is no such label, or no column serves for any attack.
    """
    absent = raw.select(np.arange(min(rows, raw.num_rows)))
    found = as_published.exact(absent, label=label).schema
    record = {name: str(absent.column(name)[0].as_py()) for name in absent.names}
    columns: dict[str, str] = {}
    extreme = math.nan
    for column in found.columns:
        if column.name == label:
            continue
        if column.kind == "category":
            if RARE not in columns:
                columns[RARE], record[column.name] = column.name, _other(column.values)
                continue
        elif EXTREME not in columns:
            far = 2 * column.high - column.low + 1
            if far <= _LARGEST_CODE:
                columns[EXTREME] = column.name
                wide = dataclasses.replace(column, maximum=far)
                record[column.name] = wide.text(far)
                extreme = 0.5 * (_value(column, column.high) + _value(wide, far))
                continue
        if GAP not in columns and not column.missing:
            columns[GAP], record[column.name] = column.name, ""
    if label is not None:
        columns[LABEL] = label
    if not columns:
        raise ValueError("csv must have a column that an attack can use, or a label; it has neither")
    one = pa.table({name: pa.array([record[name]], pa.string()) for name in absent.names})
    both = pa.concat_tables([absent.table, one]).combine_chunks()
    ordered = {attack: columns[attack] for attack in ATTACKS if attack in columns}
    return Neighbours(absent, RawTable(both), record, label, ordered, extreme)


def made_up() -> tuple[RawTable, str]:
    """A table of 1000 people who do not exist, and its label: numbers, categories, two classes."""
    rng = np.random.default_rng(_MADE_UP)
    size = 1000
    age = rng.integers(17, 91, size)
    work = rng.choice(["clerk", "farmer", "nurse", "teacher"], size, p=[0.4, 0.1, 0.2, 0.3])
    hours = np.clip(np.rint(rng.normal(40.0, 9.0, size)), 1, 80).astype(np.int64)
    rich = rng.random(size) < 0.1 + 0.3 * (hours > 42) + 0.2 * (work == "teacher")
    income = np.where(rich, ">50K", "<=50K")
    cells = {"age": age, "occupation": work, "hours": hours, "income": income}
    return RawTable(pa.table({name: pa.array([str(v) for v in column]) for name, column in cells.items()})), (
        "income"
    )


def _only(column: Column) -> Schema:
    return Schema((column,))


def _sign(holds: bool) -> float:
    return 1.0 if holds else -1.0


def _text(column: Column, code: int) -> str:
    return "" if code == MISSING else column.text(int(code))


def _value(column: Column, code: int) -> float:
    """A code as a number; -inf in a column of categories."""
    return -math.inf if column.kind == "category" else code / 10.0**column.decimals


def _other(values: tuple[str, ...]) -> str:
    text = "its own"
    while text in values:
        text += " too"
    return text
