"""The long run on a few inputs: what it writes and prints."""

from __future__ import annotations

import csv
import json
import subprocess
import sys
from pathlib import Path


def _run(out: Path, *more: str) -> str:
    command = [sys.executable, "-m", "exactdp.benchmarks.soundness.run", "--out", str(out), *more]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def test_widths_are_told_without_references(tmp_path: Path) -> None:
    out = tmp_path / "widths.csv"
    printed = _run(out, "--noreference", "--count", "12", "--seed", "5")
    with out.open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 12 and {row["truth"] for row in rows} == {""}
    many = [row for row in rows if sum(m["count"] for m in json.loads(row["mechanisms"])) >= 10]
    told = next(line for line in printed.splitlines() if line.startswith("intervals of ten steps"))
    finite = [row for row in many if row["upper"] not in ("", "inf")]
    assert f" 0 of {len(finite)}, the widest " in told
    assert "12 configurations: " in printed and "miss the reference: 0; answers that are errors: 0" in printed
