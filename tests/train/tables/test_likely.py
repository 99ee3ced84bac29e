"""The part of a domain that noisy counts speak for."""

from __future__ import annotations

import dataclasses

import numpy as np

from exactdp.train.tables import likely
from tests.train.tables.statistics_cases import AGE, CITY, LABEL, made


def test_missing_cells_go_where_no_count_speaks_for_them() -> None:
    assert likely.schema(made()).columns == (
        AGE,
        dataclasses.replace(LABEL, missing=False),
        dataclasses.replace(CITY, missing=False),
    )
    assert likely.schema(made(noise=1.0)).column("city").missing


def test_ends_of_ranges_go_where_no_count_speaks_for_them() -> None:
    whole = made(label=None)
    for counts, ends in (
        ([3, -9, 30, 900, 4, 800, 5, 9, -3, 2], (3, 5)),
        ([3, -9, 36, 900, 4, 800, 5, 9, -3, 2], (2, 5)),
        # Each count is within the noise, but not all of them together.
        ([0, 0, 900, 33, 33, 33, 33, 33, 33, 33], (2, 8)),
        ([1, 5, 20, 3, 0, 0, 0, 0, 0, 0], (2, 2)),
        ([900] * 10, (0, 9)),
    ):
        tables = (np.array([counts]), *whole.tables[1:])
        found = likely.schema(made(label=None, tables=tables)).column("age")
        assert (found.minimum, found.maximum) == ends


def test_columns_without_a_table_stay() -> None:
    whole = made(label=None)
    tables = (np.empty((1, 0), np.int64), *whole.tables[1:])
    assert likely.schema(made(label=None, tables=tables)).column("age") == AGE
