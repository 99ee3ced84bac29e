"""Pseudo tables: rows drawn from statistics alone."""

from __future__ import annotations

import numpy as np
from jaxtyping import Float, Int

from exactdp.accounting import validate
from exactdp.train.tables import consistent
from exactdp.train.tables.statistics import Statistics

METHODS = ("marginals", "independent", "uniform")


def draw(
    statistics: Statistics, *, num_rows: int, method: str, rng: np.random.Generator
) -> Int[np.ndarray, "rows columns"]:
    """A pseudo table, as codes. Post-processing of the statistics.

    - "marginals": the label from its histogram, then every other column on its own given the label's group,
      both made consistent (`consistent.fit`); within a bin all codes alike. Without a label it is
      "independent".
    - "independent": every column on its own, from its counts over all labels.
    - "uniform": every column, the label too, uniform over its domain, without missing cells.

    Rows are independent of each other.

    Args:
      statistics: what may be used.
      num_rows: of the pseudo table, >= 0.
      method: one of `METHODS`.
      rng: draws the rows; no secret.

    Returns:
      int64 [num_rows, columns], in the domain of `statistics.schema`.

    Raises:
      ValueError: bad input, or the statistics have no tables and `method` needs them.

    Source: arXiv 2412.02467v2, section 4 ("uniform", with ranges and lists that are private there).
    """
    rows = validate.count("num_rows", num_rows)
    validate.one_of("method", method, METHODS)
    if method == "uniform":
        return _uniform(statistics, rows, rng)
    found = consistent.fit(statistics)
    place, width = statistics.label_place, len(statistics.bins)
    codes = np.empty((rows, width), np.int64)
    group = np.zeros(rows, np.int64)
    if place is not None:
        label = _choose(found.label, rows, rng)
        codes[:, place] = statistics.bins[place].draw(label, rng=rng)
        group = np.array(statistics.groups, np.int64)[label]
    members = [np.flatnonzero(group == g) for g in range(statistics.num_groups)]
    for number, (own, table) in enumerate(zip(statistics.bins, found.tables, strict=True)):
        if number == place:
            continue
        if method == "independent":
            bins = _choose(table.sum(axis=0), rows, rng)
        else:
            bins = np.empty(rows, np.int64)
            for g, mine in enumerate(members):
                if mine.size:  # a group without expected rows has none
                    bins[mine] = _choose(table[g], mine.size, rng)
        codes[:, number] = own.draw(bins, rng=rng)
    return codes


def _uniform(statistics: Statistics, rows: int, rng: np.random.Generator) -> Int[np.ndarray, "rows columns"]:
    codes = np.empty((rows, len(statistics.bins)), np.int64)
    for number, own in enumerate(statistics.bins):
        column = own.column
        if column.size:
            codes[:, number] = rng.integers(column.low, column.high + 1, rows)
        else:
            codes[:, number] = own.draw(np.full(rows, own.num_ranges), rng=rng)
    return codes


def _choose(
    expected: Float[np.ndarray, " bins"], rows: int, rng: np.random.Generator
) -> Int[np.ndarray, " rows"]:
    """Bins drawn in proportion to expected counts; all alike where these are all 0."""
    weights = expected if expected.sum() > 0.0 else np.ones(len(expected))
    ends = np.cumsum(weights) / weights.sum()
    # Rounding may leave the last end below 1, and must not let a bin of weight 0 be drawn.
    ends[np.flatnonzero(weights)[-1] :] = 1.0
    return np.searchsorted(ends, rng.random(rows), side="right")


def draw_labels(
    statistics: Statistics, *, num_rows: int, rng: np.random.Generator
) -> Int[np.ndarray, " rows"]:
    """Codes of the label by its histogram, made consistent where it is noisy. Post-processing of the statistics.

    Args:
      statistics: with a label.
      num_rows: >= 0.
      rng: draws the codes; no secret.

    Raises:
      ValueError: there is no label.
    """
    place = statistics.label_place
    if place is None:
        raise ValueError("statistics must have a label, they have none")
    exact = statistics.noise == 0.0
    counts = statistics.tables[place][0].astype(np.float64) if exact else consistent.fit(statistics).label
    bins = _choose(counts, validate.count("num_rows", num_rows), rng)
    return statistics.bins[place].draw(bins, rng=rng)
