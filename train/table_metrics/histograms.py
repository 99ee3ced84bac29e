"""Hist: how far the marginal distributions of two tables overlap."""

from __future__ import annotations

import numpy as np
from jaxtyping import Float, Int

from exactdp.train.table_metrics.cells import grid, overlap
from exactdp.train.tables.schema import Schema


def intersections(
    real: Int[np.ndarray, "rows columns"],
    synthetic: Int[np.ndarray, "others columns"],
    schema: Schema,
    *,
    bins: int,
) -> Float[np.ndarray, " columns"]:
    """For each column sum_b min(p_b, q_b), the overlap of the two histograms; Hist is the mean.

    p and q are the shares of real and of synthetic rows in the cells of
    `exactdp.train.table_metrics.cells`: a missing cell is a category of its own, and a synthetic number
    outside the real rows' range overlaps with nothing. 1 for equal shares, 0 for tables without a common
    cell. The released code bins over the range of both tables, see there.

    Args:
      real: codes.
      synthetic: codes.
      schema: of both.
      bins: of a number; the paper has 20 and 50.

    Raises:
      ValueError: `bins` is below one.

    Source: arXiv 2412.02467.
    """
    values = [
        overlap(own.places(real[:, k]), own.places(synthetic[:, k]), own.size)
        for k, own in enumerate(grid(real, schema, bins=bins))
    ]
    return np.array(values)
