"""Statistics made by hand, for tests."""

from __future__ import annotations

import numpy as np

from exactdp.train.tables import bins
from exactdp.train.tables.schema import Column, Schema
from exactdp.train.tables.statistics import Statistics

LABEL = Column("label", "category", values=("no", "yes"), missing=True)
AGE = Column("age", "integer", minimum=0, maximum=9)
CITY = Column("city", "category", values=("a", "b", "c"), missing=True)


def made(
    *, label: str | None = "label", noise: float = 10.0, tables: tuple[np.ndarray, ...] | None = None
) -> Statistics:
    """Of 1000 rows: 700 "no" mostly young, 300 "yes" all old; a few negative counts, as noise makes them."""
    columns = (AGE, LABEL, CITY)
    age = np.array(
        [[150, 150, 150, 150, 100, -9, 4, -3, 5, 2], [3, -7, 1, 0, 4, 60, 60, 60, 60, 62], [0] * 10]
    )
    city = np.array([[400, 300, -5, 12], [20, -8, 290, 3], [2, 0, -1, 0]])
    if label is None:
        age, city = age.sum(axis=0)[None], city.sum(axis=0)[None]
    given = (age, np.array([[690, 310, 6]]), city) if tables is None else tables
    return Statistics(
        schema=Schema(columns, label),
        num_rows=1000,
        bins=tuple(
            bins.of_category(own) if own.kind == "category" else bins.of_declared(own, most=64)
            for own in columns
        ),
        groups=(0, 1, 2) if label else (),
        tables=given,
        noise=noise,
        private=True,
    )
