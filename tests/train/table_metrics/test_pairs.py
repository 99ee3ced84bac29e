"""Overlap of joint distributions: by hand, by dense tables, against SDMetrics."""

from __future__ import annotations

import itertools
import json
from pathlib import Path

import numpy as np
import pytest

from exactdp.train.table_metrics import cells, pairs
from exactdp.train.tables.schema import Column, Schema
from tests.train.table_metrics.tables import SCHEMA, draw

PEERS = json.loads(Path(__file__).with_name("peers.json").read_text())
TWO = Schema((Column("a", "category", values=("x", "y")), Column("b", "category", values=("x", "y"))))


def test_by_hand() -> None:
    real = np.array([[0, 0], [0, 1], [1, 0], [1, 1]])
    synthetic = np.array([[0, 0], [1, 1]])  # equal marginals, half of the joint cells
    found = pairs.similarities(real, synthetic, TWO, bins=50)
    assert found[0, 1] == found[1, 0] == 0.5
    assert np.isnan(np.diag(found)).all()
    assert pairs.mean(found) == 0.5


def test_a_dense_computation_agrees() -> None:
    real, synthetic = draw(250, seed=5), draw(180, seed=6, strength=0.3)
    found = pairs.similarities(real, synthetic, SCHEMA, bins=7)
    grid = cells.grid(real, SCHEMA, bins=7)
    for i, k in itertools.combinations(range(6), 2):
        tables = []
        for codes in (real, synthetic):
            counts = np.zeros((grid[i].size, grid[k].size))
            np.add.at(counts, (grid[i].places(codes[:, i]), grid[k].places(codes[:, k])), 1.0)
            tables.append(counts / len(codes))
        assert found[i, k] == pytest.approx(1.0 - 0.5 * np.abs(tables[0] - tables[1]).sum(), abs=1e-12)


def test_sdmetrics_agrees() -> None:
    found = pairs.similarities(
        np.array(PEERS["real"]), np.array(PEERS["synthetic"]), SCHEMA, bins=PEERS["bins"]
    )
    assert len(PEERS["pairs"]) == 10
    for names, value in PEERS["pairs"].items():
        first, second = names.split(",")
        assert found[SCHEMA.index(first), SCHEMA.index(second)] == pytest.approx(value, abs=1e-12)


def test_invariances() -> None:
    real = draw(200, seed=7)
    other = draw(150, seed=8)
    mixed = np.random.default_rng(0).permutation(real)
    assert pairs.mean(pairs.similarities(real, mixed, SCHEMA, bins=50)) == 1.0
    found = pairs.similarities(real, other, SCHEMA, bins=50)
    np.testing.assert_array_equal(found, pairs.similarities(mixed, other[::-1], SCHEMA, bins=50))
    # No pair is closer than either of its columns.
    shuffled = np.stack([np.random.default_rng(k).permutation(real[:, k]) for k in range(6)], axis=1)
    assert pairs.mean(pairs.similarities(real, shuffled, SCHEMA, bins=50)) < 0.9
    disjoint = np.array([[0, 0]]), np.array([[1, 1]])
    assert pairs.mean(pairs.similarities(*disjoint, TWO, bins=50)) == 0.0


def test_one_column_has_no_pair() -> None:
    single = Schema(TWO.columns[:1])
    assert pairs.mean(pairs.similarities(np.array([[0]]), np.array([[0]]), single, bins=50)) is None


def test_sparse_counting_is_the_same_as_dense() -> None:
    """Categories of 100 000 values have 10^10 joint cells."""
    many = tuple(f"v{k}" for k in range(100_000))
    schema = Schema((Column("a", "category", values=many), Column("b", "category", values=many)))
    generator = np.random.default_rng(1)
    few = generator.integers(0, 5, (300, 2)), generator.integers(0, 5, (200, 2))
    small = Schema(tuple(Column(name, "category", values=many[:5]) for name in "ab"))
    scale = 19_999  # the same cells, far apart
    found = pairs.similarities(few[0] * scale, few[1] * scale, schema, bins=50)
    np.testing.assert_array_equal(found, pairs.similarities(*few, small, bins=50))
