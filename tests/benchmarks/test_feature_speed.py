"""The residual's speed script runs on a small batch and writes what it says."""

from __future__ import annotations

from pathlib import Path

import jax
import numpy as np
import pytest

from exactdp.benchmarks import feature_speed
from exactdp.benchmarks.curves import store


def test_measures_and_writes(tmp_path: Path) -> None:
    rows = feature_speed.measure("mlp", repeats=2, budget=60.0, records=8)
    assert [row.step for row in rows] == ["non-private", "non-private, apart", "clipped"]
    assert all(row.milliseconds > 0.0 and row.ratio > 0.0 and row.runs == 2 for row in rows)
    assert min(row.ratio for row in rows[:2]) == 1.0
    header, found = store.read_csv(feature_speed.write(rows, tmp_path / "speed", repeats=2))
    assert [row["step"] for row in found] == [row.step for row in rows]
    assert header["repeats"] == 2 and "own_ratio" not in found[0]
    assert "aimed at 1.3" in feature_speed.table(rows).splitlines()[-1]


def test_both_orders_of_the_two_passes_compute_the_same() -> None:
    chosen = feature_speed.case("mlp", records=4)
    assert chosen.tuned_loss is not None
    one, other = (jax.jit(loss)(chosen.params, chosen.batch) for loss in (chosen.loss, chosen.tuned_loss))
    assert one.shape == (4,) and float(np.abs(one).max()) > 1e-3
    np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-6)


def test_unknown_model_is_refused() -> None:
    with pytest.raises(ValueError, match="cases must be of mlp, unet, got 'cnn'"):
        feature_speed.case("cnn")
