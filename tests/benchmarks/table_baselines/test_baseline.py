"""Baselines in their processes: a stand-in package is called, failures tell no cell, absence is reported."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

import numpy as np
import pytest

from exactdp.benchmarks.table_baselines import baseline
from tests.train.table_metrics.tables import SCHEMA, draw

CTGAN = """
class CTGAN:
    def __init__(self, *, epochs, batch_size, enable_gpu):
        assert (epochs, batch_size, enable_gpu) == (3, 60, False)

    def fit(self, frame, discrete):
        {fit}
        self.frame = frame
        assert discrete == ["c0", "c1", "c4", "c5", "c6"]

    def sample(self, rows):
        print("a package may print")
        return self.frame.iloc[:rows]
"""
PANDAS = """
class DataFrame:
    def __init__(self, data, columns):
        self.data, self.columns = data, columns

    @property
    def iloc(self):
        return self

    def __getitem__(self, what):
        return DataFrame(self.data[what], self.columns) if isinstance(what, slice) else self

    def to_numpy(self, dtype):
        return self.data.astype(dtype)
"""


def interpreter(folder: Path, fit: str) -> str:
    """One whose packages ctgan, pandas and torch are stand-ins, and which has no other than NumPy."""
    for name, text in (
        ("ctgan", CTGAN.format(fit=fit)),
        ("pandas", PANDAS),
        ("torch", "manual_seed = print"),
    ):
        (folder / f"{name}.py").write_text(text)
        about = folder / f"{name}-1.0.dist-info"
        about.mkdir()
        (about / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
    script = folder / "python"
    script.write_text(f'#!/bin/sh\nPYTHONPATH="{folder}" exec "{sys.executable}" "$@"\n')
    script.chmod(0o755)
    return str(script)


def test_a_package_is_called_with_the_rows(tmp_path: Path) -> None:
    train = draw(70, seed=1)
    found = baseline.run(
        "ctgan",
        train,
        SCHEMA,
        python=interpreter(tmp_path, "pass"),
        epsilon=1.0,
        delta=1e-5,
        rows=30,
        seed=1,
        epochs=3,
    )
    assert (found.status, found.note) == ("ok", "")
    np.testing.assert_array_equal(found.codes, train[:30])
    answer = found.as_dict()
    assert answer["epsilon_claimed_by_package"] is None and answer["delta"] is None
    assert answer["caveats"] == ["not private"] and answer["rows"] == 30
    assert answer["versions"] == {"ctgan": "1.0", "torch": "1.0"} and answer["seconds"] >= 0.0


def test_an_error_tells_where_and_no_cell(tmp_path: Path) -> None:
    python = interpreter(tmp_path, 'raise ValueError("row 3 has SECRET")')
    found = baseline.run(
        "ctgan", draw(70, seed=1), SCHEMA, python=python, epsilon=1.0, delta=1e-5, rows=5, seed=1, epochs=3
    )
    assert found.status == "error" and found.note.startswith("ValueError at ctgan.py:")
    assert found.codes is None and "SECRET" not in str(found.as_dict())


def test_what_is_not_there_is_reported(tmp_path: Path) -> None:
    arguments = {"epsilon": 1.0, "delta": 1e-5, "rows": 5, "seed": 1}
    found = baseline.run("aim", draw(9, seed=1), SCHEMA, python=str(tmp_path / "none"), **arguments)
    assert found.status == "not installed" and found.note.startswith("no interpreter")
    if importlib.util.find_spec("snsynth") is None:
        found = baseline.run("mst", draw(9, seed=1), SCHEMA, python=sys.executable, **arguments)
        assert (found.status, found.note) == ("not installed", "no smartnoise-synth")


def test_a_process_that_dies_or_lingers_is_reported(tmp_path: Path) -> None:
    arguments = {"epsilon": 1.0, "delta": 1e-5, "rows": 5, "seed": 1, "epochs": 3}
    folders = [tmp_path / name for name in ("dead", "slow")]
    for folder in folders:
        folder.mkdir()
    dead = interpreter(folders[0], "import os; os._exit(7)")
    found = baseline.run("ctgan", draw(70, seed=1), SCHEMA, python=dead, **arguments)
    assert (found.status, found.note) == ("error", "ended with exit status 7")
    slow = interpreter(folders[1], "import time; time.sleep(60)")
    found = baseline.run("ctgan", draw(70, seed=1), SCHEMA, python=slow, timeout=0.5, **arguments)
    assert (found.status, found.note) == ("error", "not done after 0.5 seconds")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"method": "gpt"}, "method must be one of aim, mst, dp-ctgan, ctgan, tvae, got 'gpt'"),
        ({"epsilon": 0.0}, "epsilon must be finite and > 0"),
        ({"delta": 0.0}, r"delta must be in \(0, 1\)"),
        ({"rows": 0}, "rows must be a whole number >= 1"),
        ({"rounds": 5}, "rounds must be a whole number >= 6, got 5"),
    ],
)
def test_arguments_are_checked_first(change: dict[str, object], message: str) -> None:
    arguments = {"method": "ctgan", "epsilon": 1.0, "delta": 1e-5, "rows": 5, "seed": 1} | change
    with pytest.raises(ValueError, match=message):
        baseline.run(arguments.pop("method"), draw(9, seed=1), SCHEMA, python="none", **arguments)  # type: ignore[arg-type]


def test_rows_of_a_real_package() -> None:
    """Where the test's own interpreter has ctgan."""
    pytest.importorskip("ctgan")
    arguments = {"epsilon": 1.0, "delta": 1e-5, "rows": 20, "seed": 1, "epochs": 1}
    found = baseline.run("tvae", draw(60, seed=1), SCHEMA, python=sys.executable, **arguments)
    assert found.status == "ok" and found.codes is not None and found.codes.shape == (20, 6)
