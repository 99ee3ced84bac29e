"""A process that is killed, or runs out of disk, at a moment of no one's choosing."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from exactdp.accounting.ledger import Ledger
from exactdp.train import folder
from tests.train import runs

ROOT = Path(__file__).resolve().parents[2]
STEPS = 300


def command(out: Path, *, resume: bool) -> list[str]:
    words = [sys.executable, "-m", "tests.train.runs", str(out), "--num_steps", str(STEPS)]
    return [*words, "--resume"] if resume else words


def environment() -> dict[str, str]:
    path = os.pathsep.join([str(ROOT), str(ROOT / "src"), os.environ.get("PYTHONPATH", "")])
    return {**os.environ, "PYTHONPATH": path, "JAX_PLATFORMS": "cpu"}


def kill_at_random(out: Path, *, resume: bool, rng: random.Random) -> bool:
    """Starts or resumes a run, and kills it some time after its steps have begun; whether it was killed."""
    already = len(Ledger.load(out / folder.LEDGER)) if resume else 0
    process = subprocess.Popen(
        command(out, resume=resume), env=environment(), stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    )
    try:
        deadline = time.monotonic() + 120.0
        while process.poll() is None and time.monotonic() < deadline:
            if (out / folder.LEDGER).exists() and (out / folder.LEDGER).stat().st_size:
                if len(Ledger.load(out / folder.LEDGER)) > already:
                    break
            time.sleep(0.01)
        time.sleep(rng.uniform(0.0, 0.5))
        process.kill()
        output = process.communicate()[0].decode()
    finally:
        process.kill()
    assert process.returncode in (0, -signal.SIGKILL), output
    return process.returncode == -signal.SIGKILL


def finish(out: Path, *, resume: bool) -> None:
    done = subprocess.run(
        command(out, resume=resume), env=environment(), capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("kills", [1, pytest.param(5, marks=pytest.mark.slow)])
def test_killed_and_resumed_equals_uninterrupted(kills: int, tmp_path: Path) -> None:
    rng = random.Random(kills)
    out, killed = tmp_path / "run", 0
    for _ in range(kills):
        killed += kill_at_random(out, resume=killed > 0, rng=rng)
    assert killed
    finish(out, resume=True)
    finish(tmp_path / "whole", resume=False)
    assert runs.same(runs.weights(out), runs.weights(tmp_path / "whole"))
    assert runs.entries(out) == runs.entries(tmp_path / "whole")


def test_a_full_disk_while_checkpointing_loses_nothing(tmp_path: Path) -> None:
    """No file may grow beyond a limit that the ledger keeps below and a checkpoint does not."""
    whole, out = tmp_path / "whole", tmp_path / "run"
    runs.run(whole)
    killed = subprocess.run(
        [
            sys.executable,
            "-c",
            "import resource, sys; from pathlib import Path; from tests.train import runs;"
            "from exactdp.train import checkpoints;"
            "save = checkpoints.Checkpoints.save\n"
            "def limited(self, state, *, record):\n"
            "    if int(state.step) == 12:\n"
            "        resource.setrlimit(resource.RLIMIT_FSIZE, (64, resource.RLIM_INFINITY))\n"
            "    return save(self, state, record=record)\n"
            "checkpoints.Checkpoints.save = limited\n"
            f"runs.run(Path({str(out)!r}))",
        ],
        env=environment(),
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert killed.returncode == 1
    assert "NotSaved: the checkpoint of step 12 could not be written" in killed.stderr
    assert "can be resumed from step 6" in killed.stderr
    # The steps that were run are announced, and no others.
    each = len(runs.prepare().plan.certificate.mechanisms)
    assert sum(entry[1] for entry in runs.entries(out)[::each]) == 12
    runs.run(out, resume=True)
    assert runs.same(runs.weights(out), runs.weights(whole))
    assert runs.entries(out) == runs.entries(whole)
