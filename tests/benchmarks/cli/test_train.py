"""`exactdp train`, through the command itself."""

from __future__ import annotations

import json
import os
import shlex
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from exactdp.benchmarks.cli import main

KEYS = ["test_accuracy", "epsilon", "delta", "threat_model", "steps", "seconds", "run"]
SHORT = "--dataset digits --model linear --num_steps 30 --seed 1"


def command(line: str) -> subprocess.CompletedProcess[str]:
    words = [sys.executable, "-m", "exactdp.benchmarks.cli.main", *shlex.split(line)]
    return subprocess.run(words, capture_output=True, text=True, check=False)


def answer(line: str) -> tuple[dict[str, Any], str]:
    done = command(f"{line} --json")
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("\n") == 1
    return json.loads(done.stdout), done.stderr


def test_one_object_on_stdout_and_the_certificate_before_the_start(tmp_path: Path) -> None:
    out = tmp_path / "run"
    found, told = answer(f"train dpsgd {SHORT} --epsilon 4 --delta 1e-5 --out {out}")
    assert list(found) == KEYS
    assert 3.9 < found["epsilon"]["lower"] <= found["epsilon"]["upper"] <= 4.0
    assert (found["delta"], found["steps"], found["run"]) == (1e-5, 30, str(out))
    assert found["threat_model"]["adjacency"] == "add_remove" and 0.1 < found["test_accuracy"] <= 1.0
    assert told.index("certified by: exact, hidden coins") < told.index("epsilon <=")
    again = command(f"train dpsgd {SHORT} --epsilon 4 --out {out}")
    assert again.returncode == 2 and "out must be a folder without a run" in again.stderr
    resumed, _ = answer(f"train dpsgd {SHORT} --epsilon 4 --delta 1e-5 --out {out} --resume")
    assert resumed["test_accuracy"] == found["test_accuracy"]


def test_dirichlet_says_what_is_covered(tmp_path: Path) -> None:
    done = command(f"train dirichlet {SHORT} --epsilon 8 --accountant printed --out {tmp_path / 'run'}")
    assert done.returncode == 0, done.stderr
    sentence = "What paper A's certificate covers is rho, the Dirichlet draws of the sampled records, and not"
    assert sentence in done.stderr[: done.stderr.index("0/30")] and sentence in done.stdout
    assert "scaling chosen as the paper does: its rule gives epsilon" in done.stderr
    assert "repaired conversion" in done.stderr
    assert "test accuracy" in done.stdout and f"run: {tmp_path / 'run'}" in done.stdout
    assert "coins visible" in done.stdout


def test_no_privacy_is_infinite_epsilon(tmp_path: Path) -> None:
    found, told = answer(f"train nonprivate {SHORT} --out {tmp_path / 'run'}")
    assert found["epsilon"] == {"lower": "inf", "upper": "inf"}
    assert "Nothing is certified" in told


def test_interrupted_from_the_keyboard_and_resumed(tmp_path: Path) -> None:
    out = tmp_path / "run"
    line = f"train dpsgd --dataset digits --model linear --num_steps 20000 --epsilon 4 --seed 1 --out {out}"
    words = [sys.executable, "-m", "exactdp.benchmarks.cli.main", *line.split()]
    process = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        deadline = time.monotonic() + 120
        while not (out / "metrics.csv").exists() and time.monotonic() < deadline:
            time.sleep(0.05)
        time.sleep(2.0)
        process.send_signal(signal.SIGINT)
        printed, told = process.communicate(timeout=60)
    finally:
        process.kill()
    assert (process.returncode, printed) == (130, ""), told
    assert "interrupted after step" in told and "the same command with --resume goes on" in told


TABLE = [
    ("train other", "invalid choice: 'other'"),
    ("train dpsgd", "epsilon must be given, or both noise_multiplier and num_steps"),
    ("train dpsgd --epsilon 1 --sampling_probability 1", "sampling_probability must be in (0, 1), got 1"),
    ("train dpsgd --epsilon 1 --sampling_probability 0", "sampling_probability must be in (0, 1), got 0"),
    ("train dpsgd --epsilon 1 --sampling_probability 1e-6", "must give batches of one record at least"),
    ("train dpsgd --epsilon nan", "epsilon must be a number, got nan"),
    ("train dpsgd --epsilon 1 --accountant other", "--accountant: invalid choice: 'other'"),
    ("train dpsgd --epsilon 1 --offset 3", "offset must be left out for dpsgd, got 3"),
    ("train dpsgd --epsilon 1 --model resnet", "model must be one of linear"),
    ("train dpsgd --epsilon 1 --dataset nowhere", "name must be one of digits"),
    ("train dpsgd --epsilon 1 --optimizer lion", "optimizer must be one of sgd, adam, adamw, got 'lion'"),
    ("train dpsgd --epsilon 1 --momentum 1", "momentum must be in [0, 1), got 1"),
    ("train dpsgd --epsilon 1 --ema_decay 1", "ema_decay must be in (0, 1), got 1"),
    ("train dpsgd --epsilon 1 --accumulation 0", "accumulation must be a whole number >= 1, got 0"),
    ("train dpsgd --epsilon 1 --checkpoint_every 0", "checkpoint_every must be a whole number >= 1, got 0"),
    ("train dpsgd --epsilon 1 --devices 4096", "devices must be at most"),
    ("train dpsgd --epsilon 1 --seed -1", "seed must be a whole number >= 0, got -1"),
    ("train dpsgd --epsilon 1 --resume", "out must be given when resume is set"),
    ("train dpsgd --epsilon 1 --resume --out nowhere", "out must hold a run when resume is set"),
    ("train dpsgd --epsilon 1 --out /proc/nowhere", "out must be a folder that can be written to"),
    ("train dpsgd --epsilon 1 --out ''", "--out: must be the name of a directory, got ''"),
    ("train dirichlet --epsilon 1 --optimizer adam", "optimizer must be plain sgd for dirichlet"),
    ("train dirichlet --epsilon 1 --accumulation 2", "accumulation must be 1 for dirichlet, got 2"),
    (
        "train dirichlet --epsilon 0.01 --accountant printed --num_steps 5000",
        "epsilon must be larger for the paper's rule",
    ),
]


@pytest.mark.parametrize(("line", "message"), TABLE, ids=[line[:120] for line, _ in TABLE])
def test_bad_input(
    line: str,
    message: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    words = shlex.split(line)
    try:
        status = main.main(main.parser(words).parse_args(words))
    except SystemExit as stop:
        status = stop.code
    printed = capsys.readouterr()
    assert status == 2
    assert printed.out == ""
    assert message in printed.err
    assert not list(tmp_path.iterdir())


def test_the_other_commands_start_without_jax() -> None:
    code = (
        "import sys; from exactdp.benchmarks.cli import main; main.parser(['train', 'dpsgd']);"
        "print([name for name in ('jax', 'flax', 'optax', 'orbax', 'sklearn') if name in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, env=dict(os.environ)
    )
    assert done.stdout == "[]\n"
