"""Cells that values are counted in: categories as they are, numbers in bins, missing in a cell of its own.

The bins of a number are equally wide and span the range of the *real* rows; what a synthetic table has below
or above falls into two cells of their own. A range that took in the synthetic rows, as the released code of
arXiv 2412.02467 has it for histograms, or a wide public range, would flatter: one value far out makes the
bins so wide that all others fall into one of them, and every table agrees with every other.
"""

from __future__ import annotations

import dataclasses

import numpy as np
from jaxtyping import Int

from exactdp.accounting import validate
from exactdp.train.tables.schema import MISSING, Column, Schema

_OUTSIDE = 2  # cells of a number: below and above
_FEW, _DENSEST = 2**16, 2**22  # keys counted in an array, by way of a table of all of them


def require_table(name: str, codes: Int[np.ndarray, "rows columns"], schema: Schema) -> None:
    """Checks that a coded table is one, with a row at least, and each cell in its column's domain.

    Raises:
      ValueError: it is not; the message has column and row number, never a cell.
    """
    columns = schema.columns
    if codes.ndim != 2 or codes.dtype != np.int64 or codes.shape[1] != len(columns):
        raise ValueError(
            f"{name} must be a table of int64 codes with {len(columns)} columns, got {codes.dtype} of shape "
            f"{codes.shape}"
        )
    if not len(codes):
        raise ValueError(f"{name} must have at least one row, got none")
    for place, column in enumerate(columns):
        cells = codes[:, place]
        inside = (cells >= column.low) & (cells <= column.high)
        if column.missing:
            inside |= cells == MISSING
        if not inside.all():
            row = int(np.argmin(inside))
            raise ValueError(f"{name}: column {column.name!r} must be in its domain, row {row} is not")


@dataclasses.dataclass(frozen=True)
class Cells:
    """The cells of one column.

    Attributes:
      column: its domain.
      bins: of a number.
      ends: smallest and largest code of a number among the real rows; None where all are missing.
    """

    column: Column
    bins: int
    ends: tuple[int, int] | None

    @classmethod
    def of(cls, real: Int[np.ndarray, " rows"], column: Column, *, bins: int) -> Cells:
        """The cells that a column's real codes span.

        Raises:
          ValueError: `bins` is below one.
        """
        bins = validate.count("bins", bins, minimum=1)
        if column.kind == "category":
            return cls(column, bins, None)
        present = real[real != MISSING]
        return cls(column, bins, (int(present.min()), int(present.max())) if present.size else None)

    @property
    def size(self) -> int:
        """How many cells there are, the one for missing values included; it is the last."""
        return 1 + (self.column.size if self.column.kind == "category" else self.bins + _OUTSIDE)

    def places(self, codes: Int[np.ndarray, " rows"]) -> Int[np.ndarray, " rows"]:
        """The cell of each code, in the smallest unsigned type that holds all.

        Of a number: 0 below the real rows' range, 1 ... bins in it, bins + 1 above. Exact: integers only,
        cell 1 + floor(bins (code - low) / (high - low + 1)), so that codes get a bin each where they are no
        more than the bins.
        """
        found = codes
        if self.column.kind != "category":
            if self.ends is None:
                found = np.zeros_like(codes)
            else:
                low, high = self.ends
                inside = np.clip(codes, low, high)  # within 2e15, times the bins: no overflow below 4000 bins
                found = 1 + (inside - low) * self.bins // (high - low + 1)
                found = np.where(codes < low, 0, np.where(codes > high, self.bins + 1, found))
        found = np.where(codes == MISSING, self.size - 1, found)
        return found.astype(np.min_scalar_type(self.size))


def grid(real: Int[np.ndarray, "rows columns"], schema: Schema, *, bins: int) -> tuple[Cells, ...]:
    """The cells of every column."""
    return tuple(Cells.of(real[:, k], column, bins=bins) for k, column in enumerate(schema.columns))


def places(
    codes: Int[np.ndarray, "rows columns"], cells: tuple[Cells, ...]
) -> list[Int[np.ndarray, " rows"]]:
    """For each column the cell of each row."""
    return [own.places(codes[:, k]) for k, own in enumerate(cells)]


def tally(keys: Int[np.ndarray, " rows"], size: int) -> tuple[Int[np.ndarray, " n"], Int[np.ndarray, " n"]]:
    """Which of `size` keys occur, ascending, and how often each."""
    if size <= min(_DENSEST, _FEW + 8 * len(keys)):
        counts = np.bincount(keys, minlength=size)
        found = np.flatnonzero(counts)
        return found, counts[found]
    return np.unique(keys, return_counts=True)


def joint(
    first: Int[np.ndarray, " rows"], second: Int[np.ndarray, " rows"], sizes: tuple[int, int]
) -> tuple[Int[np.ndarray, " rows"], int]:
    """One key a row for the cells of two columns, and how many keys there are."""
    return first.astype(np.int64) * sizes[1] + second, sizes[0] * sizes[1]


def overlap(first: Int[np.ndarray, " a"], second: Int[np.ndarray, " b"], size: int) -> float:
    """sum_k min(p_k, q_k) of the shares with which `size` keys occur in two tables; in [0, 1].

    The same as 1 - 1/2 sum_k |p_k - q_k|. Exact up to one rounding: counts are compared as integers.
    """
    (keys, counts), (other_keys, other_counts) = tally(first, size), tally(second, size)
    _, here, there = np.intersect1d(keys, other_keys, assume_unique=True, return_indices=True)
    shared = np.minimum(counts[here] * len(second), other_counts[there] * len(first))
    return float(shared.sum()) / (len(first) * len(second))
