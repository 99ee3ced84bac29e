"""CorAcc: how many pairs of columns are as strongly associated in one table as in another."""

from __future__ import annotations

import itertools
import math

import numpy as np
from jaxtyping import Float, Int

from exactdp.train.table_metrics.cells import Cells, joint, tally
from exactdp.train.tables.schema import MISSING, Schema

LEVELS = (0.1, 0.3, 0.5)
"""Where a level ends: [0, 0.1), [0.1, 0.3), [0.3, 0.5), [0.5, 1]."""

_TINY = 1e-12


def cramers_v(
    first: Int[np.ndarray, " rows"], second: Int[np.ndarray, " rows"], *, sizes: tuple[int, int]
) -> float:
    """Cramér's V of two categories with the bias correction of Bergsma (2013); in [0, 1].

    phi^2 = sum O_ij^2 / (R_i C_j) - 1 is chi^2 / n, with no continuity correction, which belongs to the test
    of independence and not to the strength of association; then

        phi~^2 = max(0, phi^2 - (r-1)(c-1)/(n-1)),  r~ = r - (r-1)^2/(n-1),  c~ alike,
        V = sqrt(phi~^2 / min(r~ - 1, c~ - 1)),

    r and c being the categories that occur. dython 0.7, which the released code calls, corrects alike, and
    corrects for continuity where r = c = 2. 0 where V is undefined: a column is constant, or no value comes
    twice.

    Args:
      first: categories as 0, 1, ...
      second: of the same rows.
      sizes: both below these.
    """
    rows = len(first)
    (_, of_first), (_, of_second) = tally(first, sizes[0]), tally(second, sizes[1])
    r, c = len(of_first), len(of_second)
    if rows < 2 or min(r, c) < 2:
        return 0.0
    first_count = np.bincount(first, minlength=sizes[0]).astype(np.float64)
    second_count = np.bincount(second, minlength=sizes[1]).astype(np.float64)
    keys, observed = tally(*joint(first, second, sizes))
    i, k = np.divmod(keys, sizes[1])
    squared = float((observed.astype(np.float64) ** 2 / (first_count[i] * second_count[k])).sum()) - 1.0
    squared = max(0.0, squared - (r - 1) * (c - 1) / (rows - 1))
    room = min(r - (r - 1) ** 2 / (rows - 1), c - (c - 1) ** 2 / (rows - 1)) - 1.0
    return min(1.0, math.sqrt(squared / room)) if room > _TINY else 0.0


def correlation_ratio(groups: Int[np.ndarray, " rows"], values: Int[np.ndarray, " rows"]) -> float:
    """eta = sqrt(variance between the groups' means / variance), of a number within categories; in [0, 1].

    Rows whose number is missing are left out. 0 where the number does not vary.

    Args:
      groups: categories as 0, 1, ...
      values: codes of a number.
    """
    present = values != MISSING
    if not present.any():
        return 0.0
    centred = _centred(values[present])
    total = float(centred @ centred)
    if total == 0.0:
        return 0.0
    members = np.bincount(groups[present])
    sums = np.bincount(groups[present], weights=centred)
    found = members > 0
    return min(1.0, math.sqrt(float((sums[found] ** 2 / members[found]).sum()) / total))


def pearson(first: Int[np.ndarray, " rows"], second: Int[np.ndarray, " rows"]) -> float:
    """|r| of two numbers, over the rows that have both; 0 where one does not vary; in [0, 1]."""
    present = (first != MISSING) & (second != MISSING)
    if not present.any():
        return 0.0
    x, y = _centred(first[present]), _centred(second[present])
    scale = math.sqrt(float(x @ x)) * math.sqrt(float(y @ y))
    return min(1.0, abs(float(x @ y)) / scale) if scale > 0.0 else 0.0


def _centred(codes: Int[np.ndarray, " rows"]) -> Float[np.ndarray, " rows"]:
    # From the lowest on, so that a constant is exactly 0 whatever its size.
    shifted = (codes - codes.min()).astype(np.float64)
    centred = shifted - shifted.mean()
    return centred if shifted.any() else shifted


def matrix(codes: Int[np.ndarray, "rows columns"], schema: Schema) -> Float[np.ndarray, "columns columns"]:
    """The association of each pair of columns; symmetric, 1 on the diagonal.

    Cramér's V of two categories, a missing cell being one more; the correlation ratio of a category and a
    number; |r| of two numbers.
    """
    columns = schema.columns
    category = [column.kind == "category" for column in columns]
    cells = [Cells(column, 1, None) for column in columns]
    own = [
        cells[k].places(codes[:, k]) if category[k] else np.ascontiguousarray(codes[:, k])
        for k in range(len(columns))
    ]
    found = np.eye(len(columns))
    for i, k in itertools.combinations(range(len(columns)), 2):
        if category[i] and category[k]:
            value = cramers_v(own[i], own[k], sizes=(cells[i].size, cells[k].size))
        elif category[i]:
            value = correlation_ratio(own[i], own[k])
        elif category[k]:
            value = correlation_ratio(own[k], own[i])
        else:
            value = pearson(own[i], own[k])
        found[i, k] = found[k, i] = value
    return found


def accuracy(
    real: Float[np.ndarray, "columns columns"], synthetic: Float[np.ndarray, "columns columns"]
) -> float | None:
    """CorAcc: the share of pairs of columns whose association has the same level in both matrices.

    None for a single column. The released code counts the diagonal too, whose levels are always the same, so
    that d columns give it 1/d + (1 - 1/d) times this: see `with_diagonal`.

    Source: arXiv 2412.02467; `LEVELS` from its code.
    """
    above = np.triu_indices(len(real), 1)
    if not above[0].size:
        return None
    return float((np.digitize(real[above], LEVELS) == np.digitize(synthetic[above], LEVELS)).mean())


def with_diagonal(share: float, columns: int) -> float:
    """CorAcc as the released code counts it, to be read beside the paper's numbers."""
    return (1.0 + (columns - 1) * share) / columns
