"""The speed script runs on a small batch and writes what it says."""

from __future__ import annotations

import pytest

from exactdp.benchmarks import training_speed


def test_measures_and_writes(tmp_path):
    rows = training_speed.measure(
        training_speed.case("mlp", records=8), ["clipped", "ours", "vmap"], repeats=2
    )
    assert [row.step for row in rows] == ["non-private", "clipped", "ours", "vmap"]
    assert all(row.milliseconds > 0 and row.ratio > 0 and row.megabytes > 0 for row in rows)
    training_speed.write(rows, tmp_path / "speed", training_speed.header(repeats=1))
    assert {p.suffix for p in (tmp_path / "speed").iterdir()} == {".csv", ".pdf", ".png"}
    assert "aimed at 1.15" in training_speed.table(rows)


def test_unknown_model_is_refused():
    with pytest.raises(ValueError, match="cases must be of"):
        training_speed.case("lstm")
