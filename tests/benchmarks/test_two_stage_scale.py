"""The script that measures memory from end to end: its table, and a run of it."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from exactdp.benchmarks import two_stage_scale as script
from exactdp.train.table_metrics.cells import require_table
from exactdp.train.tables import csv_file
from exactdp.train.two_stage import pipeline


def test_the_table_is_of_its_schema(tmp_path: Path) -> None:
    made, schema = script.codes(500), script.schema()
    assert len(schema.columns) == 15
    require_table("made", made, schema)
    csv_file.write(tmp_path / "table.csv", made, schema)
    assert np.array_equal(csv_file.encode(csv_file.read(tmp_path / "table.csv"), schema).codes, made)


def test_verdict() -> None:
    def row(peak: float) -> script.Row:
        return {"phase": "rows", "seconds": 1.0, "peak_gib": peak}

    assert script.verdict([row(1.0), row(3.5)]) == "peak 3.50 GiB, aimed at 4: reached"
    assert script.verdict([row(4.5), row(1.0)]).endswith("missed")


@pytest.mark.slow
def test_a_hundred_thousand_rows_in_three_gigabytes(tmp_path: Path) -> None:
    """In a process of its own, as its peak is measured."""
    words = [sys.executable, "-m", "exactdp.benchmarks.two_stage_scale", "--json", "--out", str(tmp_path)]
    words += ["--table_rows", "100000", "--rows", "256", "--first_steps", "4", "--num_steps", "2"]
    done = subprocess.run([*words, "--batch_size", "256"], capture_output=True, text=True, check=True)
    found = json.loads(done.stdout)
    assert [row["phase"] for row in found["rows"]] == ["file", "reading", *pipeline.PHASES]
    assert found["verdict"].endswith("reached")
    assert 0.3 < max(row["peak_gib"] for row in found["rows"]) < 3.0
    assert (tmp_path / "run" / "synthetic.csv").is_file()
