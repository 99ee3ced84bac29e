"""A million rows within the memory that is promised."""

from __future__ import annotations

import subprocess
import sys

import pytest

PROGRAM = """
import resource
import numpy as np
from exactdp.train.table_metrics.evaluate import evaluate
from exactdp.train.tables.schema import Column, Schema

ROWS = 1_000_000
many = tuple(f"v{k}" for k in range(100_000))
columns = [Column("many", "category", values=many)]
columns += [Column(f"c{k}", "category", values=tuple("abcdefghij"), missing=True) for k in range(6)]
columns += [Column(f"n{k}", "integer", minimum=0, maximum=1_000, missing=True) for k in range(7)]
columns += [Column("y", "category", values=("no", "yes"))]

def table(seed):
    generator = np.random.default_rng(seed)
    parts = [generator.integers(0, column.high + 1, ROWS) for column in columns]
    parts[-1] = (parts[-2] + generator.normal(0.0, 300.0, ROWS) > 500).astype(np.int64)
    return np.stack(parts, axis=1)

real, synthetic, train = table(1), table(2), table(3)
found = evaluate(real, synthetic, Schema(tuple(columns), "y"), train=train)
assert found.hist > 0.97 and found.f1 > 0.6 and found.rows["synthetic"] == ROWS
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024)
"""


@pytest.mark.slow
def test_a_million_rows_in_two_gigabytes() -> None:
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=True)
    assert int(done.stdout) < 2 * 2**30
