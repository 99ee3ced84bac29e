"""The audit script: bounds that are not too high, a figure from the CSV file alone."""

from __future__ import annotations

import pathlib

import pytest

pytest.importorskip("matplotlib")

from exactdp.benchmarks import audit_bounds
from exactdp.benchmarks.curves import store


def test_csv_and_figure(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "audit_bounds.csv"
    rows = audit_bounds.compute(trials=[200, 2000], repeats=6, budget=10_000, seed=1, path=path)
    header, again = store.read_csv(path)
    assert again == rows
    assert header["confidence"] == 0.95
    # Two methods take a Gaussian curve for granted and are tried on one mechanism alone.
    assert len(rows) == 2 * (7 + 5 + 5)
    assert {row["repeats"] for row in rows} == {"5", "6"}
    # 187 bounds, each too high with probability 5 % at most (the Bayesian ones about that).
    assert sum(int(row["too_high"]) for row in rows) <= 20
    assert max(float(row["mean"]) for row in rows) > 0.5
    for figure in audit_bounds.draw(path):
        assert figure.stat().st_size > 5_000


def test_bad_input(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "audit_bounds.csv"
    for name, value in (("trials", [3]), ("repeats", 0)):
        given = {"trials": [10], "repeats": 1, "budget": 10, "seed": 0} | {name: value}
        with pytest.raises(ValueError, match=f"{name} must be a whole number"):
            audit_bounds.compute(**given, path=path)
