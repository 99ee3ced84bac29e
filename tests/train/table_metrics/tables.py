"""Small tables for the tests."""

from __future__ import annotations

import numpy as np

from exactdp.train.tables.schema import MISSING, Column, Schema

SCHEMA = Schema(
    (
        Column("job", "category", values=("clerk", "smith", "baker", "none"), missing=True),
        Column("sex", "category", values=("f", "m")),
        Column("age", "integer", minimum=0, maximum=99),
        Column("pay", "float", minimum=-500, maximum=5_000, decimals=2, missing=True),
        Column("town", "category", values=tuple(f"town {k}" for k in range(12))),
        Column("rich", "category", values=("no", "yes")),
    ),
    label="rich",
)


def draw(rows: int, *, seed: int, strength: float = 1.0) -> np.ndarray:
    """Codes of `SCHEMA`; columns depend on each other the more, the larger `strength`."""
    generator = np.random.default_rng(seed)
    hidden = generator.normal(size=rows)

    def score() -> np.ndarray:
        return strength * hidden + generator.normal(size=rows)

    job = np.clip(np.rint(score() + 1.5), 0, 3).astype(np.int64)
    pay = np.clip(np.rint(900.0 * score() + 1_500.0), -500, 5_000).astype(np.int64)
    columns = [
        np.where(generator.random(rows) < 0.1, MISSING, job),
        (score() > 0.0).astype(np.int64),
        np.clip(np.rint(12.0 * score() + 45.0), 0, 99).astype(np.int64),
        np.where(generator.random(rows) < 0.15, MISSING, pay),
        generator.integers(0, 12, rows),
        (score() > 0.7).astype(np.int64),
    ]
    return np.stack(columns, axis=1).astype(np.int64)
