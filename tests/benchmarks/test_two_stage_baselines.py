"""The script: files in, rows of metrics out, absent packages reported."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

from exactdp.benchmarks import two_stage_baselines
from exactdp.benchmarks.curves import store
from exactdp.train.table_metrics.evaluate import evaluate
from exactdp.train.tables import csv_file
from tests.train.table_metrics.tables import SCHEMA, draw


def test_the_script_runs(tmp_path: Path) -> None:
    for name, seed in (("train", 1), ("test", 2)):
        csv_file.write(tmp_path / f"{name}.csv", draw(60, seed=seed), SCHEMA)
    (tmp_path / "schema.json").write_text(json.dumps(SCHEMA.as_dict()))
    done = subprocess.run(
        [
            sys.executable, "-m", "exactdp.benchmarks.two_stage_baselines", "--json", "--methods=aim",
            *(f"--{name}={tmp_path / name}.csv" for name in ("train", "test")),
            f"--schema={tmp_path / 'schema.json'}", f"--out={tmp_path / 'out'}", "--rows=40",
            f"--baselines_python={tmp_path / 'none'}",
        ],
        capture_output=True, text=True, check=True, env={**os.environ, "OMP_NUM_THREADS": "1"},
    )  # fmt: skip
    best, aim = json.loads(done.stdout)
    expected = evaluate(draw(60, seed=2), draw(60, seed=1)[:40], SCHEMA)
    assert best["method"] == "real training rows" and best["rows"] == 40
    assert best["hist_50"] == expected.hist and best["f1"] == expected.f1
    assert aim["status"] == "not installed" and aim["hist_50"] is None
    header, rows = store.read_csv(tmp_path / "out" / "two_stage_baselines.csv")
    assert header["train_rows"] == 60 and [row["method"] for row in rows] == ["real training rows", "aim"]
    assert json.loads((tmp_path / "out" / "aim.json").read_text())["epsilon_asked"] == 1.0
    table = two_stage_baselines.lines([best, aim])
    assert "not installed: no interpreter" in table and f"{expected.hist:.3f}" in table
