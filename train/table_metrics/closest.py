"""Distance to the closest training record: does a synthetic table copy rows?

It looks at the private training rows, and no noise is added: whatever comes out is as private as they are.
"""

from __future__ import annotations

import dataclasses

import numpy as np
from jaxtyping import Bool, Float, Int
from scipy import stats
from scipy.spatial import distance

from exactdp.train.tables import mix
from exactdp.train.tables.schema import MISSING, Schema

MOST_QUERIES = 2_000
"""Rows of each table whose closest record is looked for."""
MOST_RECORDS = 200_000
"""Training rows looked at; beyond, a subsample, which gives distances no smaller than the true ones."""

_SEED = 2412
_QUERIES, _RECORDS = 128, 2**11  # pairs at once: 2 MB, which a processor's cache holds


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
    (Gower's distance with missing as a value). All pairs are computed, in chunks; beyond the caps rows are
    subsampled by a fixed seed. Copies are counted on all rows, by hashes of 64 bits (see `mix.rows`).

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
    queries = [_some(table, most_queries, generator) for table in (synthetic, test)]
    missing = np.any([(table == MISSING).any(axis=0) for table in (records, *queries)], axis=0)
    theirs = _embedded(records, schema, missing)
    far = [_nearest(_embedded(own, schema, missing), theirs, len(schema.columns)) for own in queries]
    known = np.unique(mix.rows(train))
    found = [
        Distances(
            len(d),
            float(np.median(d)),
            float(np.quantile(d, 0.05)),
            float(np.isin(mix.rows(table), known).mean()),
        )
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
    table: Int[np.ndarray, "rows columns"], schema: Schema, some_missing: Bool[np.ndarray, " columns"]
) -> tuple[Float[np.ndarray, "rows numbers"], Float[np.ndarray, "rows categories"]]:
    """Points whose Manhattan distance is the sum over number columns, and categories as they are.

    A number x in [0, 1] stays as it is where no table lacks one; else it becomes (x/2, (1-x)/2), and a
    missing one (-1/4, -1/4), which is at distance 1 from all.
    """
    numbers, categories = list[np.ndarray](), list[np.ndarray]()
    for place, column in enumerate(schema.columns):
        codes = table[:, place]
        missing = codes == MISSING
        if column.kind == "category":
            categories.append(np.where(missing, -1, codes).astype(np.float64))
            continue
        share = (np.where(missing, column.low, codes) - column.low) / max(column.high - column.low, 1)
        if not some_missing[place]:
            numbers.append(share)
            continue
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
        own = [part[start : start + _QUERIES] for part in queries]
        room = np.empty((2, len(own[0]), _RECORDS))
        for other in range(0, len(records[0]), _RECORDS):
            theirs = [part[other : other + _RECORDS] for part in records]
            total, differ = (
                room[k].reshape(-1)[: len(own[0]) * len(theirs[0])].reshape(len(own[0]), -1) for k in (0, 1)
            )
            if own[0].shape[1]:
                distance.cdist(own[0], theirs[0], "cityblock", out=total)
            else:
                total.fill(0.0)
            if categories := own[1].shape[1]:
                distance.cdist(own[1], theirs[1], "hamming", out=differ)
                # The share that differs, back to whole numbers.
                total += np.rint(np.multiply(differ, categories, out=differ), out=differ)
            found[start : start + _QUERIES] = np.minimum(found[start : start + _QUERIES], total.min(axis=1))
    return found / columns
