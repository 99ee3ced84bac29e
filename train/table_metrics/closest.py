"""Distance to the closest training record: does a synthetic table copy rows?

It looks at the private training rows, and no noise is added: whatever comes out is as private as they are.
"""

from __future__ import annotations

import dataclasses
import hashlib

import numpy as np
from jaxtyping import Float, Int
from scipy import stats
from scipy.spatial import distance

from exactdp.train.tables.schema import MISSING, Schema

MOST_QUERIES = 2_000
"""Rows of each table whose closest record is looked for."""
MOST_RECORDS = 200_000
"""Training rows looked at; beyond, a subsample, which gives distances no smaller than the true ones."""

_SEED = 2412
_QUERIES, _RECORDS = 128, 2**15  # pairs at once


@dataclasses.dataclass(frozen=True)
class Distances:
    """From the rows of one table to their closest training records.

    Attributes:
      rows: looked from.
      median: of the distances, each in [0, 1].
      low: their 5 % quantile.
      copies: share of *all* rows of the table that equal a training row in every cell.
    """

    rows: int
    median: float
    low: float
    copies: float


@dataclasses.dataclass(frozen=True)
class Closest:
    """Synthetic rows beside held-out real ones, which are as close to training rows as chance has it.

    Attributes:
      synthetic: rows of the synthetic table.
      test: held-out real rows.
      closer: share of pairs of a synthetic and a test row in which the synthetic one is closer to its closest
        training row, ties counting half; about 1/2 where the synthetic table is a fresh sample, more where it
        hugs the training rows.
      records: training rows looked at.
      private: True: not covered by any certificate of the synthetic table.
    """

    synthetic: Distances
    test: Distances
    closer: float
    records: int
    private: bool = True


def closest(
    test: Int[np.ndarray, "a columns"],
    synthetic: Int[np.ndarray, "b columns"],
    train: Int[np.ndarray, "c columns"],
    schema: Schema,
    *,
    most_queries: int = MOST_QUERIES,
    most_records: int = MOST_RECORDS,
) -> Closest:
    """Distances of synthetic and of test rows to their closest training rows, and shares of exact copies.

    The distance of two rows is the mean over columns of: whether two categories differ; |a - b| over the
    width of the column's public range for numbers; 1 where one value is missing and the other is not
    (Gower's distance with missing as a value). All pairs are computed, in chunks of 33 MB; beyond the caps
    rows are subsampled by a fixed seed. Copies are counted on all rows.

    Args:
      test: codes of held-out real rows.
      synthetic: codes.
      train: codes of the private training rows.
      schema: of all.
      most_queries: cap on synthetic and on test rows.
      most_records: cap on training rows.
    """
    generator = np.random.default_rng(_SEED)
    records = _some(train, most_records, generator)
    theirs = _embedded(records, schema)
    far = [
        _nearest(_embedded(_some(table, most_queries, generator), schema), theirs, len(schema.columns))
        for table in (synthetic, test)
    ]
    known = _digests(train)
    found = [
        Distances(len(d), float(np.median(d)), float(np.quantile(d, 0.05)), _copies(table, known))
        for d, table in zip(far, (synthetic, test), strict=True)
    ]
    ranks = stats.rankdata(np.concatenate(far))[len(far[0]) :]  # of the test rows; Mann and Whitney's count
    closer = float(ranks.sum() / len(far[1]) - (len(far[1]) + 1) / 2.0) / len(far[0])
    return Closest(found[0], found[1], closer, len(records))


def _some(
    table: Int[np.ndarray, "rows columns"], most: int, generator: np.random.Generator
) -> Int[np.ndarray, "some columns"]:
    if len(table) <= most:
        return table
    return table[np.sort(generator.choice(len(table), most, replace=False))]


def _embedded(
    table: Int[np.ndarray, "rows columns"], schema: Schema
) -> tuple[Float[np.ndarray, "rows numbers"], Float[np.ndarray, "rows categories"]]:
    """Points whose Manhattan distance is the sum over number columns, and categories as they are.

    A number x in [0, 1] becomes (x/2, (1-x)/2), a missing one (-1/4, -1/4), which is at distance 1 from all.
    """
    numbers, categories = list[np.ndarray](), list[np.ndarray]()
    for place, column in enumerate(schema.columns):
        codes = table[:, place]
        missing = codes == MISSING
        if column.kind == "category":
            categories.append(np.where(missing, -1, codes).astype(np.float64))
            continue
        share = (np.where(missing, column.low, codes) - column.low) / max(column.high - column.low, 1)
        numbers += [np.where(missing, -0.25, share / 2.0), np.where(missing, -0.25, (1.0 - share) / 2.0)]
    empty = np.zeros((len(table), 0))
    return (
        np.stack(numbers, axis=1) if numbers else empty,
        np.stack(categories, axis=1) if categories else empty,
    )


def _nearest(
    queries: tuple[np.ndarray, np.ndarray], records: tuple[np.ndarray, np.ndarray], columns: int
) -> Float[np.ndarray, " rows"]:
    found = np.full(len(queries[0]), np.inf)
    for start in range(0, len(found), _QUERIES):
        own = slice(start, start + _QUERIES)
        for other in range(0, len(records[0]), _RECORDS):
            theirs = slice(other, other + _RECORDS)
            total = np.zeros((len(queries[0][own]), len(records[0][theirs])))
            if queries[0].shape[1]:
                total += distance.cdist(queries[0][own], records[0][theirs], "cityblock")
            if categories := queries[1].shape[1]:
                # The share that differs, back to whole numbers.
                total += np.rint(categories * distance.cdist(queries[1][own], records[1][theirs], "hamming"))
            found[own] = np.minimum(found[own], total.min(axis=1))
    return found / columns


def _digests(table: Int[np.ndarray, "rows columns"]) -> set[bytes]:
    return {_digest(row) for row in table}


def _digest(row: Int[np.ndarray, " columns"]) -> bytes:
    return hashlib.blake2b(row.tobytes(), digest_size=16).digest()


def _copies(table: Int[np.ndarray, "rows columns"], known: set[bytes]) -> float:
    return sum(_digest(row) in known for row in table) / len(table)
