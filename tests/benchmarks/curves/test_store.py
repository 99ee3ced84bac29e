"""Files: complete or absent, and CSV headers that say what made them."""

from __future__ import annotations

import math
import os
from pathlib import Path

import pytest

from exactdp.benchmarks.curves import store

HEADER = {"exactdp": "1", "parameters": {"delta": 1e-5, "none": None}, "text": "a: b, # c"}
COLUMNS = ("x", "text", "missing")
ROWS: list[list[object]] = [
    [0.1, 'with, comma and "quotes"', None],
    [math.inf, "# no comment", None],
    [3, "", 1e-300],
]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    file = tmp_path / "a.csv"
    store.write_csv(file, HEADER, COLUMNS, ROWS)
    return file


def test_round_trip(path: Path) -> None:
    header, rows = store.read_csv(path)
    assert header == HEADER
    assert [float(row["x"]) for row in rows] == [0.1, math.inf, 3.0]
    assert [row["text"] for row in rows] == ['with, comma and "quotes"', "# no comment", ""]
    assert [row["missing"] for row in rows] == ["", "", "1e-300"]


def test_only_the_very_same_header_is_current(path: Path, tmp_path: Path) -> None:
    assert store.is_current(path, HEADER)
    assert not store.is_current(path, {**HEADER, "exactdp": "2"})
    assert not store.is_current(path, {**HEADER, "parameters": {"delta": 2e-5, "none": None}})
    assert not store.is_current(path, {**HEADER, "more": 1})
    assert not store.is_current(tmp_path / "absent.csv", HEADER)


def test_a_damaged_or_empty_file_is_not_current(path: Path) -> None:
    whole = path.read_text()
    path.write_text(whole.replace("# exactdp: ", "# exactdp "))
    assert not store.is_current(path, HEADER)
    path.write_text("".join(line for line in whole.splitlines(keepends=True) if line.startswith(("#", "x"))))
    assert not store.is_current(path, HEADER)


def test_a_failed_write_leaves_the_old_file_and_nothing_else(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = path.read_bytes()

    def fail(*_: object) -> None:
        raise OSError("disk full")

    monkeypatch.setattr(os, "replace", fail)
    with pytest.raises(OSError, match="disk full"):
        store.write_atomically(path, b"new")
    assert path.read_bytes() == before
    assert [other.name for other in path.parent.iterdir()] == ["a.csv"]


def test_files_can_be_read_by_others(path: Path) -> None:
    umask = os.umask(0)
    os.umask(umask)
    assert path.stat().st_mode & 0o777 == 0o666 & ~umask


def test_directories(tmp_path: Path) -> None:
    made = store.prepare_directory("out", tmp_path / "new" / "deep")
    assert made.is_dir() and list(made.iterdir()) == []
    (tmp_path / "file").write_text("")
    with pytest.raises(ValueError, match="out must be a directory that can be written to, got .*file"):
        store.prepare_directory("out", tmp_path / "file")
    with pytest.raises(ValueError, match="out must be a directory that can be written to"):
        store.prepare_directory("out", "/proc/nowhere")


def test_versions_name_the_code() -> None:
    versions = store.versions()
    assert set(versions) == {"exactdp", "code", "numpy", "scipy", "python"}
    assert len(versions["code"]) == 16
