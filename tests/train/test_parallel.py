from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from exactdp.train import checkpoints, parallel
from exactdp.train.state import State
from tests.train import runs

ROOT = Path(__file__).resolve().parents[2]
DEVICES = 8

# One process with eight devices trains on one of them, on all, and on all with the parameters split.
SCRIPT = """
import json, sys
from pathlib import Path
import jax
from tests.train import runs
assert len(jax.devices()) == 8
out, found = Path(sys.argv[1]), {}
for method in sys.argv[2].split(","):
    ready = runs.prepare(method, model="mlp", num_steps=8, sampling_probability=0.31)
    for name, options in {
        "one": {},
        "eight": {"devices": 8},
        "split": {"devices": 8, "split_parameters": True},
    }.items():
        if name == "split" and method != "dpsgd":
            continue
        result = runs.run(out / method / name, ready, **options)
        leaves = jax.tree.leaves(result.state.params)
        devices = {len(leaf.sharding.device_set) for leaf in leaves}
        found[f"{method} {name}"] = [*devices, all(leaf.sharding.is_fully_replicated for leaf in leaves)]
print(json.dumps(found))
"""


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, Any]]:
    out = tmp_path_factory.mktemp("parallel")
    path = os.pathsep.join([str(ROOT), str(ROOT / "src"), os.environ.get("PYTHONPATH", "")])
    flags = os.environ.get("XLA_FLAGS", "")
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", SCRIPT, str(out), "dpsgd,dirichlet,feature"],
        env={
            **os.environ,
            "PYTHONPATH": path,
            "JAX_PLATFORMS": "cpu",
            "XLA_FLAGS": f"{flags} --xla_force_host_platform_device_count={DEVICES}",
        },
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-4000:]
    return out, json.loads(done.stdout.splitlines()[-1])


@pytest.mark.parametrize(
    ("method", "name"), [("dpsgd", "eight"), ("dpsgd", "split"), ("dirichlet", "eight"), ("feature", "eight")]
)
def test_eight_devices_give_the_parameters_of_one(
    method: str, name: str, trained: tuple[Path, dict[str, Any]]
) -> None:
    out, found = trained
    one, other = (runs.weights(out / method / n) for n in ("one", name))
    assert one.keys() == other.keys()
    moved = 0.0
    for key, value in one.items():
        np.testing.assert_allclose(other[key], value, rtol=0.0, atol=2e-5)
        moved = max(moved, float(np.abs(value).max()))
    assert moved > 0.1
    assert found[f"{method} one"] == [1, True]
    assert found[f"{method} {name}"] == [DEVICES, name == "eight"]


def free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


def test_a_run_begun_on_one_process_goes_on_on_two(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two processes under jax.distributed, each with its shard of the records, by way of loopback."""

    class Crash(Exception):
        pass

    original = checkpoints.Checkpoints.save

    def save(self: checkpoints.Checkpoints, state: State, *, record: dict[str, Any]) -> None:
        if int(state.step) > 6:
            raise Crash
        original(self, state, record=record)

    whole, out = tmp_path / "whole", tmp_path / "run"
    runs.run(whole)
    with monkeypatch.context() as patched:
        patched.setattr(checkpoints.Checkpoints, "save", save)
        with pytest.raises(Crash):
            runs.run(out)
    address = f"127.0.0.1:{free_port()}"
    path = os.pathsep.join([str(ROOT), str(ROOT / "src"), os.environ.get("PYTHONPATH", "")])
    environment = {**os.environ, "PYTHONPATH": path, "JAX_PLATFORMS": "cpu"}
    words = [sys.executable, "-m", "tests.train.runs", str(out), "--resume", "--num_steps", "20"]
    words += ["--checkpoint_every", "6", "--coordinator", address, "--process_id"]
    processes = [
        subprocess.Popen(
            [*words, str(i)], env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        )
        for i in range(2)
    ]
    try:
        told = [process.communicate(timeout=300)[0] for process in processes]
    finally:
        for process in processes:
            process.kill()
    assert [process.returncode for process in processes] == [0, 0], told
    one, other = runs.weights(whole), runs.weights(out)
    for key, value in one.items():
        np.testing.assert_allclose(other[key], value, rtol=0.0, atol=2e-5)
    assert runs.entries(out) == runs.entries(whole)


def test_bad_processes_are_refused() -> None:
    with pytest.raises(ValueError, match="process_id must be below num_processes 2, got 2"):
        parallel.connect("127.0.0.1:1", num_processes=2, process_id=2)
    with pytest.raises(ValueError, match="num_processes must be a whole number >= 2, got 1"):
        parallel.connect("127.0.0.1:1", num_processes=1, process_id=0)


def test_devices_that_are_not_there_are_refused() -> None:
    with pytest.raises(ValueError, match="devices must be at most"):
        parallel.make(10_000)
    with pytest.raises(ValueError, match="devices must be a whole number >= 1, got 0"):
        parallel.make(0)


def test_rows_are_padded_until_the_devices_divide_them() -> None:
    assert parallel.Layout().padded(np.ones((5, 2))).shape == (5, 2)
