"""The command killed by a signal in every phase, and stopped by a full disk in every one that writes."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from exactdp.accounting.interval import Interval
from exactdp.accounting.ledger import Ledger
from exactdp.train import folder as folders
from exactdp.train.two_stage import run_folder as files
from tests.train.two_stage import tables

ROOT = Path(__file__).resolve().parents[3]
DELTA = 1e-4
ROWS = 200
LONG = 900.0  # seconds after which a process that has not come to a phase is given up

pytestmark = pytest.mark.slow

Place = Callable[[Path], bool]


def arguments(csv: Path, out: Path, *, resume: bool) -> list[str]:
    """Of a run in which a poll sees each phase; nothing is declared, so that statistics take a while."""
    words = ["train", "two_stage", "--csv", str(csv), "--label", "bought", "--epsilon", "20"]
    words += ["--delta", str(DELTA), "--batch_size", "16", "--first_steps", "12", "--num_steps", "12"]
    words += ["--rows", str(ROWS), "--vocabulary", "300", "--out", str(out), "--json"]
    return [*words, "--resume"] if resume else [*words, "--seed", "5"]


@pytest.fixture(scope="module", autouse=True)
def environment(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Of the processes: what one has compiled the next takes from a folder."""
    path = os.pathsep.join([str(ROOT), str(ROOT / "src"), os.environ.get("PYTHONPATH", "")])
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", path)
        patch.setenv("JAX_PLATFORMS", "cpu")
        patch.setenv("JAX_COMPILATION_CACHE_DIR", str(tmp_path_factory.mktemp("xla")))
        patch.setenv("JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS", "0")
        patch.setenv("JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES", "-1")
        yield


def started(csv: Path, out: Path, *, resume: bool) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [sys.executable, "-m", "exactdp.benchmarks.cli.main", *arguments(csv, out, resume=resume)],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    )


def finish(csv: Path, out: Path, *, resume: bool = True) -> dict[str, Any]:
    """The answer of a run that nothing stops."""
    words = [sys.executable, "-m", "exactdp.benchmarks.cli.main", *arguments(csv, out, resume=resume)]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def kill(csv: Path, out: Path, *, resume: bool, when: Place, until: Place) -> bool:
    """Kills a run between two signs of its folder; False where it was too fast for that."""
    process = started(csv, out, resume=resume)
    try:
        deadline = time.monotonic() + LONG
        while not when(out):
            assert process.poll() is None and time.monotonic() < deadline, process.communicate()[0].decode()
            time.sleep(0.002)
        process.send_signal(signal.SIGKILL)
        process.communicate()
    finally:
        process.kill()
        process.wait()
    assert process.returncode == -signal.SIGKILL
    return not until(out)


def has(*names: str) -> Place:
    def there(out: Path) -> bool:
        path = out.joinpath(*names)
        return path.exists() and (path.is_dir() or path.stat().st_size > 0)

    return there


def announced(out: Path) -> int:
    return len(Ledger.load(out / folders.LEDGER)) if has(folders.LEDGER)(out) else 0


def entries(out: Path) -> list[tuple[str, int]]:
    """What a ledger announces; the name of a run is left out, as each folder has its own."""
    return [(repr(entry.mechanism), entry.count) for entry in Ledger.load(out / folders.LEDGER).entries]


def epsilon(out: Path) -> Interval:
    found = Ledger.load(out / folders.LEDGER).epsilon(delta=DELTA)
    assert isinstance(found, Interval)
    return found


def half_way(*names: str) -> Place:
    """A stage whose first checkpoint after the start is there."""

    def there(out: Path) -> bool:
        path = out.joinpath(*names, folders.CHECKPOINTS)
        return path.is_dir() and any(one.name.isdigit() and int(one.name) > 0 for one in path.iterdir())

    return there


PHASES: dict[str, tuple[Place, Place]] = {
    "language": (has(files.STATISTICS), has(files.FIRST, folders.RUN)),
    "stage 1": (half_way(files.FIRST), has(files.FIRST, folders.RESULT)),
    "stage 2": (half_way(), has(folders.RESULT)),
    "rows": (has(files.MODEL, "tokenizer.json"), has(files.SYNTHETIC)),
    "metrics": (has(files.DRAWN), has(files.RESULT)),
}


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tables.write(tmp_path_factory.mktemp("table"), rows=3000)


def branched(run: Path, other: Path) -> Path:
    """A run that has its statistics, in a folder of its own, as a run that nothing has stopped since."""
    other.mkdir()
    for name in (files.ASKED, files.KEY, files.STATISTICS, folders.LEDGER):
        shutil.copy(run / name, other / name)
    return other


def killed_in_statistics(csv: Path, folder: Path) -> Path:
    """A run killed after it had announced its statistics and before they were written."""
    for attempt in range(8):
        out = folder / f"run-{attempt}"
        if kill(csv, out, resume=False, when=lambda out: announced(out) > 0, until=has(files.STATISTICS)):
            return out
    raise AssertionError("statistics were always faster than the signal")


def test_killed_in_every_phase(table: Path, tmp_path: Path) -> None:
    """The statistics' noise is the operating system's; what follows is a function of it and of the key."""
    out = killed_in_statistics(table, tmp_path)
    before = entries(out)
    assert before
    whole = None
    for name, (when, until) in PHASES.items():
        assert kill(table, out, resume=True, when=when, until=until), f"{name} was faster than the signal"
        if whole is None:
            # Drawn anew, and announced once: of the first draw nothing was written.
            assert entries(out)[: len(before)] == before
            whole = branched(out, tmp_path / "whole")
    assert whole is not None
    uninterrupted, found = finish(table, whole), finish(table, out)
    for name in (files.SYNTHETIC, files.STATISTICS, files.METRICS):
        assert (out / name).read_bytes() == (whole / name).read_bytes(), name
    for name in ("run", "synthetic", "seconds", "rows_per_second"):
        del found[name], uninterrupted[name]
    assert found == uninterrupted
    assert entries(out) == entries(whole)
    assert epsilon(out).upper >= epsilon(whole).upper
    assert found["epsilon"]["upper"] == epsilon(out).upper <= 20.0
    assert found["rows"] == ROWS


FULL = """
import resource, signal, sys
from exactdp.benchmarks.cli import main
{patch}
argv = sys.argv[1:]
sys.exit(main.main(main.parser(argv).parse_args(argv)))
"""
LIMIT = "resource.setrlimit(resource.RLIMIT_FSIZE, ({size}, resource.RLIM_INFINITY))"
LATER = """
from exactdp.train.two_stage import pipeline
before = pipeline.{name}
def limited(*given, **more):
    {limit}
    return before(*given, **more)
pipeline.{name} = limited
"""


@pytest.mark.parametrize(
    ("size", "later", "there", "lacking"),
    [
        (400, None, files.KEY, files.ASKED),
        (1_600, None, files.ASKED, files.STATISTICS),
        (5_000, None, files.STATISTICS, f"{files.TOKENIZER}/tokenizer.json"),
        (200_000, None, f"{files.TOKENIZER}/tokenizer.json", folders.RUN),
        (1_000, "stages.second", f"{files.FIRST}/{folders.RESULT}", folders.RUN),
        (200_000, "stages.second", folders.RUN, folders.RESULT),
        (200_000, "gpt2_weights.save", folders.RESULT, f"{files.MODEL}/model.safetensors"),
        (1_000, "sampling.draw", f"{files.MODEL}/model.safetensors", files.SYNTHETIC),
        (100, "measured.compare", files.DRAWN, files.METRICS),
    ],
)
def test_a_full_disk(
    size: int, later: str | None, there: str, lacking: str, table: Path, tmp_path: Path
) -> None:
    """No file may grow beyond a limit: from the start on, or from a later phase."""
    out = tmp_path / "run"
    limit = LIMIT.format(size=size)
    patch = limit if later is None else LATER.format(name=later, limit=limit)
    stopped = subprocess.run(
        [sys.executable, "-c", FULL.format(patch=patch), *arguments(table, out, resume=False)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert stopped.returncode == 1, stopped.stderr
    # Nothing of ours; of writes still under way TensorStore prints that their event loop is closed.
    assert str(ROOT / "src") not in stopped.stderr
    assert "Traceback" not in stopped.stderr.partition("exactdp train: error:")[2]
    assert has(there)(out), stopped.stderr
    assert not (out / lacking).exists()
    begun = has(files.ASKED)(out)
    assert ("go on with:" in stopped.stderr) == begun
    before = entries(out) if announced(out) else []
    found = finish(table, out, resume=begun)
    assert entries(out)[: len(before)] == before
    assert found["rows"] == ROWS
    assert found["epsilon"]["upper"] == epsilon(out).upper <= 20.0
