"""The worst-pair script: its CSV file says what the check found, its figure is drawn from that."""

from __future__ import annotations

import pytest

pytest.importorskip("matplotlib")

from exactdp.benchmarks import worst_pair
from exactdp.benchmarks.curves import store


def test_csv_and_figure(tmp_path):
    path = tmp_path / "worst_pair.csv"
    results = worst_pair.compute(
        [(0.235, 3.0), (1.0, 0.1)], num_classes=[2, 3], num_random=2, seed=0, path=path
    )
    header, rows = store.read_csv(path)
    assert header["settings"] == [[0.235, 3.0], [1.0, 0.1]]
    assert len(rows) == sum(len(result.epsilons) * len(result.ratios) for result in results)
    beaten = [row for row in rows if row["dominated"] == "False"]
    assert {(row["scaling"], row["num_classes"], row["proof"]) for row in beaten} == {("1.0", "3", "")}
    assert max(float(row["ratio"]) for row in beaten) == pytest.approx(1.0313, abs=1e-3)
    assert max(float(row["ratio"]) for row in rows if row["proof"]) <= 1.0 + 1e-9
    for figure in worst_pair.draw(path):
        assert figure.stat().st_size > 5_000
    lines = [worst_pair.summary(result) for result in results]
    assert "proved (K = 2)" in lines[0] and "is beaten, searched" in lines[3]
