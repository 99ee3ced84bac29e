"""Settings shared by all tests: one thread each, no display, reproducible examples."""

from __future__ import annotations

import os
from pathlib import Path

# pytest-xdist runs one process a core; a thread pool in each would only get in the others' way.
# Set before NumPy is imported, which reads these once.
for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(_name, "1")
os.environ.setdefault("MPLBACKEND", "Agg")

import hypothesis  # noqa: E402
import pytest  # noqa: E402

# Examples are a function of the test alone, so that a red run is red again; no deadline, as machines differ.
hypothesis.settings.register_profile(
    "exactdp",
    deadline=None,
    derandomize=True,
    database=None,
    print_blob=True,
    suppress_health_check=[hypothesis.HealthCheck.too_slow],
)
hypothesis.settings.load_profile("exactdp")


_LONGEST = (
    "train/two_stage/test_pipeline.py",
    "train/test_parallel.py",
    "train/test_feature.py",
    "benchmarks/cli/test_train.py",
    "packaging/test_documents.py",
    "benchmarks/training_audit/test_audit.py",
)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """The longest files first, so that no process is left with one when the others are done."""
    items.sort(key=lambda item: not item.path.as_posix().endswith(_LONGEST))


@pytest.fixture(scope="session")
def repository_root() -> Path:
    """The folder that holds setup.cfg."""
    return Path(__file__).resolve().parent.parent
