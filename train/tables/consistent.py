"""Noisy tables made consistent: counts >= 0 that agree on the label, by least squares. Post-processing.

With N rows (public), the label's noisy histogram h and a noisy table T_j [group, bin] for each other column
j, all counts with the same noise:

1. The total of label group g is estimated by the sum of h over its bins and by each row sum of T_j; a sum of
   m counts has m times the variance, so the estimates are averaged with weights 1 / m, and the averages are
   projected onto {x >= 0, sum x = N}.
2. Each group of h, and each row of each T_j, is projected onto {x >= 0, sum x = total of the group}.

The projection of v is max(v - c, 0) with the c that gives the sum: the nearest point, and where many true
counts are 0 it takes away most of what their noise adds. Before it, missing cells whose noisy count is within
the noise (`significant`) are counted as none.
"""

from __future__ import annotations

import dataclasses

import numpy as np
from jaxtyping import Bool, Float

from exactdp.train.tables.statistics import Statistics

_DEVIATIONS = 3.0


@dataclasses.dataclass(frozen=True, eq=False)
class Consistent:
    """Expected counts of a table of `num_rows` rows.

    Attributes:
      label: [bins of the label], or [1] without a label; sums to the number of rows.
      tables: of each column but the label, [G, bins]; its rows sum to the totals of the groups. The label's
        own entry is `label` as [1, bins].
    """

    label: Float[np.ndarray, " bins"]
    tables: tuple[Float[np.ndarray, "groups bins"], ...]


def fit(statistics: Statistics) -> Consistent:
    """The consistent counts.

    Raises:
      ValueError: a column has no table.
    """
    place, num_groups = statistics.label_place, statistics.num_groups
    for own, table in zip(statistics.bins, statistics.tables, strict=True):
        if not table.size:
            raise ValueError(f"statistics must hold a table of column {own.column.name!r}, they hold none")
    tables = [table.astype(np.float64) for table in statistics.tables]
    may = [_may_be(statistics, number) for number in range(len(tables))]
    total, weight, groups_may = np.zeros(num_groups), np.zeros(num_groups), np.ones(num_groups, bool)
    groups = np.array(statistics.groups, np.int64)
    if place is not None:
        m = np.bincount(groups, minlength=num_groups)
        total += np.bincount(groups, weights=tables[place][0], minlength=num_groups) / m
        weight += 1.0 / m
        groups_may = np.bincount(groups, weights=may[place], minlength=num_groups) > 0
    for number, table in enumerate(tables):
        if number != place:
            total += table.sum(axis=1) / table.shape[1]
            weight += 1.0 / table.shape[1]
    totals = _project(total / weight, float(statistics.num_rows), groups_may)
    if place is None:
        label = np.array([float(statistics.num_rows)])
    else:
        label = np.zeros(len(groups))
        for group in range(num_groups):
            mine = groups == group
            label[mine] = _project(tables[place][0][mine], float(totals[group]), may[place][mine])
    found = [
        label[None]
        if number == place
        else np.stack([_project(row, t, may[number]) for row, t in zip(table, totals, strict=True)])
        for number, table in enumerate(tables)
    ]
    return Consistent(label, tuple(found))


def project(values: Float[np.ndarray, " n"], total: float) -> Float[np.ndarray, " n"]:
    """The nearest point of {x >= 0, sum x = total} in the Euclidean norm, for total >= 0."""
    order = np.sort(values)[::-1]
    shifts = (np.cumsum(order) - total) / np.arange(1, len(order) + 1)
    # The longest prefix that stays positive; the first always does where the total is positive.
    last = int(np.flatnonzero(order - shifts > 0.0)[-1]) if total > 0.0 else 0
    return np.maximum(values - shifts[last], 0.0) if total > 0.0 else np.zeros(len(values))


def significant(statistics: Statistics, number: int) -> Bool[np.ndarray, " bins"]:
    """Which bins of a column have a noisy count, over the label, of more than 3 standard deviations."""
    table = statistics.tables[number]
    return table.sum(axis=0) > _DEVIATIONS * statistics.noise * np.sqrt(table.shape[0])


def _may_be(statistics: Statistics, number: int) -> Bool[np.ndarray, " bins"]:
    """Which bins of a column may hold rows: all but a missing bin within the noise."""
    own = statistics.bins[number]
    found = np.ones(own.size, bool)
    if own.column.missing and own.num_ranges:
        found[-1] = significant(statistics, number)[-1]
    return found


def _project(
    values: Float[np.ndarray, " n"], total: float, may: Bool[np.ndarray, " n"]
) -> Float[np.ndarray, " n"]:
    """The projection of those that may be positive, and 0 for the others."""
    found = np.zeros(len(values))
    if may.any():
        found[may] = project(values[may], total)
    return found
