"""Paper A's experiments: one small run, figures drawn again from the committed tables, bad input."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
TABLES = ROOT / "docs" / "papers" / "figures" / "dirichlet_training"


def _run(script: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", f"exactdp.benchmarks.{script}", *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=300)


@pytest.mark.slow
def test_theorem11_end_to_end(tmp_path: Path) -> None:
    done = _run("dirichlet_theorem11", "--num_draws", "2000", "--out", str(tmp_path), "--json")
    assert done.returncode == 0, done.stderr
    assert {path.suffix for path in tmp_path.glob("dirichlet_theorem11.*")} == {".csv", ".pdf", ".png"}


@pytest.mark.parametrize(
    "script",
    [
        "dirichlet_accuracy",
        "dirichlet_sampling",
        "dirichlet_learning_rate",
        "dirichlet_vanishing",
        "dirichlet_calibration",
    ],
)
def test_figures_are_drawn_from_the_table_alone(script: str, tmp_path: Path) -> None:
    table = shutil.copy(TABLES / f"{script}_digits.csv", tmp_path)
    before = Path(table).read_bytes()
    done = _run(script, "--dataset", "digits", "--redraw", "--out", str(tmp_path))
    assert done.returncode == 0, done.stderr
    assert (tmp_path / f"{script}_digits.png").stat().st_size > 10_000
    assert Path(table).read_bytes() == before


def test_bad_input_touches_no_file(tmp_path: Path) -> None:
    done = _run("dirichlet_accuracy", "--dataset", "digits", "--delta", "2", "--out", str(tmp_path / "new"))
    assert done.returncode != 0
    assert "delta" in done.stderr
    assert not (tmp_path / "new").exists()
