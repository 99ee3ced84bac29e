"""Imports point one way; accounting imports nothing of ours but itself and loads quickly."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ORDER = ("accounting", "mechanisms", "train", "benchmarks")
HEAVY = {"jax", "jaxlib", "flax", "optax", "matplotlib", "torch", "tensorflow", "opacus", "absl"}
PEERS = {"dp_accounting", "prv_accountant"}


def imports(path: Path) -> Iterator[str]:
    """Every module name that a file imports, anywhere in it."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path} imports relatively: import through exactdp"
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def files(root: Path, folder: str) -> list[Path]:
    return sorted((root / folder).rglob("*.py"))


@pytest.mark.parametrize("folder", ORDER)
def test_a_folder_sees_only_those_below_it(repository_root: Path, folder: str) -> None:
    above = ORDER[ORDER.index(folder) + 1 :]
    paths = files(repository_root, folder)
    assert paths
    for path in paths:
        for name in imports(path):
            parts = name.split(".")
            assert parts[0] not in ORDER, f"{path} imports {name}, not through exactdp"
            assert not (parts[0] == "exactdp" and len(parts) > 1 and parts[1] in above), (
                f"{path} imports {name}"
            )


def test_tests_import_through_the_package(repository_root: Path) -> None:
    for path in files(repository_root, "tests"):
        for name in imports(path):
            assert name.split(".")[0] not in ORDER, f"{path} imports {name}, not through exactdp"


def test_accounting_needs_numpy_and_scipy_only(repository_root: Path) -> None:
    for path in files(repository_root, "accounting"):
        allowed = PEERS if "bridges" in path.parts else set[str]()
        for name in imports(path):
            top = name.split(".")[0]
            assert top not in HEAVY, f"{path} imports {name}"
            assert top in {"exactdp", "numpy", "scipy", *allowed} | sys.stdlib_module_names, f"{path}: {name}"


def test_links_are_relative(repository_root: Path) -> None:
    for folder in ORDER:
        link = repository_root / "src/exactdp" / folder
        assert link.is_symlink()
        assert link.readlink() == Path(f"../../{folder}")


MEASURE = """
import sys, time
start = time.process_time()
import exactdp.accounting
package = time.process_time() - start
import numpy, scipy.special
base = time.process_time()
from exactdp.accounting import fdp, prv, rdp
print(package, time.process_time() - base, *sorted({name.split(".")[0] for name in sys.modules}))
"""


def test_accounting_loads_in_half_a_second() -> None:
    # Processor time, the least of three: a clock would measure the machine's other users. NumPy and SciPy,
    # which every accountant needs, are timed apart.
    command = [sys.executable, "-c", MEASURE]
    runs = [
        subprocess.run(command, check=True, capture_output=True, text=True).stdout.split() for _ in range(3)
    ]
    assert min(float(words[0]) for words in runs) < 0.5
    assert min(float(words[1]) for words in runs) < 0.5
    assert not (HEAVY | PEERS) & set(runs[0][2:])
