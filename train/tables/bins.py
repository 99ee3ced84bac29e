"""The bins that a column is counted in: its categories or parts of its range, and one for missing cells."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any, cast

import numpy as np
from jaxtyping import Float, Int

from exactdp.accounting import validate
from exactdp.mechanisms.statistics import bounds
from exactdp.mechanisms.statistics.bounds import Bounds
from exactdp.train.tables.schema import MISSING, Column

FEWEST_BINS, MOST_BINS = 8, 64


@dataclasses.dataclass(frozen=True)
class Bins:
    """The bins of a column.

    Bin i holds the codes edges[i] ... edges[i + 1] - 1; after those there is one for missing cells where the
    column may have any.

    Attributes:
      column: its domain.
      edges: increasing, from the smallest code to one above the largest; one number where there are no codes.

    Raises:
      ValueError: `edges` do not span the column's codes.
    """

    column: Column
    edges: tuple[int, ...]

    def __post_init__(self) -> None:
        ends = (self.column.low, self.column.high + 1)
        if not self.edges or (self.edges[0], self.edges[-1]) != ends or any(np.diff(self.edges) <= 0):
            raise ValueError(f"column {self.column.name!r}: edges must increase from {ends[0]} to {ends[1]}")

    @property
    def num_ranges(self) -> int:
        """How many bins there are, without the missing one."""
        return len(self.edges) - 1

    @property
    def size(self) -> int:
        """How many bins there are."""
        return self.num_ranges + int(self.column.missing)

    @property
    def widths(self) -> Int[np.ndarray, " ranges"]:
        """How many codes each bin but the missing one holds."""
        return np.diff(np.array(self.edges, np.int64))

    def of(self, codes: Int[np.ndarray, " rows"]) -> Int[np.ndarray, " rows"]:
        """The bin of each code.

        Raises:
          ValueError: a code is outside the column's domain.
        """
        codes = np.asarray(codes, np.int64)
        missing = codes == MISSING
        found = np.searchsorted(np.array(self.edges, np.int64), codes, side="right") - 1
        found[missing] = self.num_ranges
        outside = (codes < self.column.low) | (codes > self.column.high)
        if np.any(missing) and not self.column.missing or np.any(outside & ~missing):
            raise ValueError(
                f"column {self.column.name!r}: codes must be in the column's domain, some are not"
            )
        return found

    def draw(self, bins: Int[np.ndarray, " rows"], *, rng: np.random.Generator) -> Int[np.ndarray, " rows"]:
        """A code of each bin, all codes of a bin alike."""
        edges = np.array([*self.edges, self.edges[-1] + 1], np.int64)  # the last: of the missing bin
        codes = edges[bins]
        wide = edges[1:][bins] - codes > 1
        codes[wide] = rng.integers(codes[wide], edges[1:][bins[wide]])
        codes[bins == self.num_ranges] = MISSING
        return codes


def most_bins(num_rows: int, *, noise: float, groups: int) -> int:
    """How many bins a range is cut into: so many that a bin's mean count is clear of its noise.

    num_rows / (4 noise sqrt(groups)), within 8 ... 64: a bin's count over all `groups` of the label has noise
    of the standard deviation noise sqrt(groups).

    Args:
      num_rows: of the table; public.
      noise: standard deviation of each count.
      groups: of the label.
    """
    return int(np.clip(num_rows / (4.0 * noise * np.sqrt(groups)), FEWEST_BINS, MOST_BINS))


def of_category(column: Column) -> Bins:
    """One bin for each category."""
    return Bins(column, tuple(range(column.size + 1)))


def of_declared(column: Column, *, most: int) -> Bins:
    """Bins of a declared range, by its ends alone.

    One for each code where there are at most `most`; else the edges are those of the geometric buckets (zero
    has its own, then powers of two) joined with `most` / 2 bins of equal width, so that both an even and a
    heavy-tailed column have bins where their mass is.
    """
    low, high = column.low, column.high
    if column.size <= most:
        return Bins(column, tuple(range(low, high + 2)))
    geometric = {end for b in range(-bounds.BITS, bounds.BITS + 1) for end in _span(b)}
    equal = _split(low, high + 1, max(most // 2, 1))
    return Bins(column, tuple(sorted({edge for edge in (*geometric, *equal) if low <= edge <= high + 1})))


def of_bounds(column: Column, released: Bounds, *, most: int) -> Bins:
    """Bins of a released range: each bucket is split by its noisy mass.

    Every bucket is one bin at least; the other bins, up to `most` in all, go to the buckets in proportion to
    their positive noisy counts, and none to a bucket that has a bin for each code.
    """
    spans = [_span(released.first + place) for place in range(len(released.noisy))]
    widths = np.array([high - low for low, high in spans], np.float64)
    parts = _shares(np.maximum(np.array(released.noisy, np.float64), 0.0), widths, most=most)
    edges = {edge for (low, stop), k in zip(spans, parts, strict=True) for edge in _split(low, stop, int(k))}
    # A schema's codes end a little inside the outermost bucket.
    return Bins(column, tuple(sorted({min(max(edge, column.low), column.high + 1) for edge in edges})))


def bins(record: Any, column: Column) -> Bins:
    """The bins of a column from JSON, a list of edges.

    Raises:
      ValueError: it is none, or does not fit the column.
    """
    name = f"column {column.name!r}: edges"
    if not isinstance(record, Sequence) or isinstance(record, str):
        raise ValueError(f"{name} must be a list of whole numbers")
    edges = [validate.count(name, edge, minimum=-(2**62)) for edge in cast("Sequence[Any]", record)]
    return Bins(column, tuple(edges))


def _span(bucket: int) -> tuple[int, int]:
    low, high = bounds.ends(bucket)
    return low, high + 1


def _split(low: int, stop: int, bins: int) -> list[int]:
    """Edges of `bins` parts of low ... stop - 1, as even as whole numbers allow."""
    return sorted({low + (stop - low) * i // bins for i in range(bins + 1)})


def _shares(
    mass: Float[np.ndarray, " buckets"], widths: Float[np.ndarray, " buckets"], *, most: int
) -> Int[np.ndarray, " buckets"]:
    """Bins of each bucket: 1, and the rest in proportion to mass, at most its width."""
    bins = np.ones(len(mass))
    while (left := most - bins.sum()) >= 1.0:
        room = np.where(bins < widths, mass, 0.0)
        if not room.sum():
            break
        # Whole bins by share; where no share is a whole bin, one for the largest.
        extra = np.floor(left * room / room.sum())
        if not extra.any():
            extra[np.argmax(room / bins)] = 1.0
        bins = np.minimum(bins + extra, widths)
    return bins.astype(np.int64)
