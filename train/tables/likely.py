"""The part of a domain that the noisy counts speak for. Post-processing."""

from __future__ import annotations

import dataclasses

import numpy as np
from jaxtyping import Int

from exactdp.train.tables import consistent
from exactdp.train.tables.bins import Bins
from exactdp.train.tables.schema import Column, Schema
from exactdp.train.tables.statistics import Statistics

_DEVIATIONS = 3.5


def schema(statistics: Statistics) -> Schema:
    """The domain to generate rows in: `statistics.schema` less what no count speaks for.

    - A column has no missing cells if their noisy count is within the noise (`consistent.significant`).
    - Bins are cut off at either end of a range, up to the first whose noisy count, or that of all the bins up
      to it together, is over 3.5 of its standard deviations. One bin always stays.

    Its codes are codes of `statistics.schema` too, category for category. Columns without a table stay as
    they are. Rows of the private table may lie outside: it is not for encoding these.
    """
    columns = [_column(statistics, number) for number in range(len(statistics.bins))]
    return Schema(tuple(columns), statistics.schema.label)


def _column(statistics: Statistics, number: int) -> Column:
    own, table = statistics.bins[number], statistics.tables[number]
    column = own.column
    if not table.size or not own.num_ranges:
        return column
    if column.missing and not consistent.significant(statistics, number)[-1]:
        column = dataclasses.replace(column, missing=False)
    if column.kind == "category":
        return column
    noise = statistics.noise * float(np.sqrt(table.shape[0]))
    first, last = _ends(own, table.sum(axis=0)[: own.num_ranges], noise)
    return dataclasses.replace(column, minimum=own.edges[first], maximum=own.edges[last + 1] - 1)


def _ends(own: Bins, noisy: Int[np.ndarray, " ranges"], noise: float) -> tuple[int, int]:
    """First and last bin that stay."""

    def cut(values: Int[np.ndarray, " ranges"]) -> int:
        sums, deviations = np.cumsum(values), noise * np.sqrt(np.arange(1, len(values) + 1))
        clear = np.flatnonzero((sums > _DEVIATIONS * deviations) | (values > _DEVIATIONS * noise))
        return int(clear[0]) if clear.size else own.num_ranges

    first, last = cut(noisy), own.num_ranges - 1 - cut(noisy[::-1])
    if first > last:  # nothing is clear: the bin of the largest count
        first = last = int(np.argmax(noisy))
    return first, last
