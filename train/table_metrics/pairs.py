"""Pair: how far the joint distributions of two columns overlap, over all pairs of columns."""

from __future__ import annotations

import itertools

import numpy as np
from jaxtyping import Float, Int

from exactdp.train.table_metrics.cells import grid, joint, overlap, places
from exactdp.train.tables.schema import Schema


def similarities(
    real: Int[np.ndarray, "rows columns"],
    synthetic: Int[np.ndarray, "others columns"],
    schema: Schema,
    *,
    bins: int,
) -> Float[np.ndarray, "columns columns"]:
    """For each pair of columns 1 - 1/2 sum |p - q| over its joint cells; symmetric, nan on the diagonal.

    Pair is the mean over pairs, see `mean`. Cells as in `exactdp.train.table_metrics.cells`. Time is that of
    counting both tables once a pair; memory is one to four bytes a cell of the tables.

    Args:
      real: codes.
      synthetic: codes.
      schema: of both.
      bins: of a number. The released code makes an edge of each of its 50, hence 49 bins, over the real
        rows' range as here; it counts numbers outside into the lowest bin, which is not done here.

    Raises:
      ValueError: `bins` is below one.

    Source: arXiv 2412.02467.
    """
    cells = grid(real, schema, bins=bins)
    ours, theirs = places(real, cells), places(synthetic, cells)
    found = np.full((len(cells), len(cells)), np.nan)
    for i, k in itertools.combinations(range(len(cells)), 2):
        sizes = cells[i].size, cells[k].size
        (first, size), (second, _) = joint(ours[i], ours[k], sizes), joint(theirs[i], theirs[k], sizes)
        found[i, k] = found[k, i] = overlap(first, second, size)
    return found


def mean(matrix: Float[np.ndarray, "columns columns"]) -> float | None:
    """Mean of what a symmetric matrix has above its diagonal; None for a single column, which has no pair."""
    above = matrix[np.triu_indices(len(matrix), 1)]
    return float(above.mean()) if above.size else None
