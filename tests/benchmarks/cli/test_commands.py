"""The JSON contract, through the command itself: one object on stdout, nothing else there."""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import warnings
from pathlib import Path
from typing import Any

import pytest

from exactdp import __version__
from exactdp.benchmarks.cli import main

SAMPLED = ("--noise_multiplier", "1", "--sampling_probability", "0.01", "--num_steps", "1000")


def command(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "exactdp.benchmarks.cli.main", *words],
        capture_output=True,
        text=True,
        check=False,
    )


def answer(*words: str) -> dict[str, Any]:
    done = command(*words, "--json")
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("\n") == 1
    found = json.loads(done.stdout)
    assert isinstance(found, dict)
    return found


def test_threads_at_work_do_not_crash_an_interrupted_command(monkeypatch: pytest.MonkeyPatch) -> None:
    """The interpreter is left at once, with the status of an interrupt and of nothing else."""
    left: list[int] = []
    monkeypatch.setattr(main.os, "_exit", left.append)
    for status in (0, 1, 130):
        monkeypatch.setattr(main, "main", lambda _, status=status: status)
        assert main._command(argparse.Namespace()) == status
    assert left == [130]


def test_epsilon() -> None:
    found = answer("epsilon", "gaussian", *SAMPLED, "--delta", "1e-5")
    assert found["epsilon"]["lower"] == pytest.approx(1.8282366665, abs=2e-6)
    assert found["epsilon"]["upper"] - found["epsilon"]["lower"] <= 1e-6 * 1.83
    assert found["delta"] == 1e-5
    assert found["threat_model"]["adjacency"] == "add_remove"
    assert found["threat_model"]["coins"] == "hidden"
    assert "1000 steps" in found["threat_model"]["released"]
    assert found["engine"] and found["seconds"] > 0.0
    # Floats round-trip: asking for delta at the upper end gives back at most 1e-5.
    back = answer(
        "delta", "gaussian", *SAMPLED, "--epsilon", repr(found["epsilon"]["upper"]), "--tolerance", "1e-7"
    )
    assert back["epsilon"] == found["epsilon"]["upper"]
    assert back["delta"]["lower"] <= 1e-5 <= back["delta"]["upper"] * (1 + 1e-6)


def test_infinity_is_a_string() -> None:
    found = answer("epsilon", "approximate", "--epsilon0", "1", "--delta0", "0.1", "--delta", "0.01")
    assert found["epsilon"] == {"lower": "inf", "upper": "inf"}


def test_tradeoff() -> None:
    found = answer("tradeoff", "gaussian", "--noise_multiplier", "1", "--fpr", "0.01,0.1,0,1")
    assert found["fpr"] == [0.01, 0.1, 0.0, 1.0]
    # Phi(Phi^-1(1 - x) - 1)
    for exact, interval in zip([0.907638, 0.610857, 1.0, 0.0], found["fnr"], strict=True):
        assert interval["lower"] - 1e-6 <= exact <= interval["upper"] + 1e-6
        assert interval["upper"] - interval["lower"] < 1e-3


def test_calibrate() -> None:
    found = answer("calibrate", "gaussian", *SAMPLED[2:], "--epsilon", "1", "--delta", "1e-5")
    assert found["noise_multiplier"] == pytest.approx(1.4146194, abs=1e-6)
    assert found["epsilon"]["upper"] <= 1.0 <= found["epsilon"]["upper"] * (1 + 1e-6)
    assert found["target"] == {"epsilon": 1.0, "delta": 1e-5}
    assert found["parameters"]["noise_multiplier"] == found["noise_multiplier"]
    steps = answer(
        "calibrate", "gaussian", *SAMPLED[:4], "--epsilon", "1", "--delta", "1e-5", "--parameter", "num_steps"
    )
    assert steps["num_steps"] == 254 and steps["rejected"] == 255
    dirichlet = answer("calibrate", "dirichlet", "--offset", "3", "--epsilon", "1", "--delta", "1e-5")
    assert dirichlet["scaling"] > 0.0 and dirichlet["epsilon"]["upper"] <= 1.0


def test_ladder() -> None:
    found = answer("ladder", "feature", "--num_steps", "200")
    assert found["paper"] == "feature"
    assert found["parameters"]["num_steps"] == 200
    kinds = [rung["kind"] for rung in found["rungs"]]
    assert set(kinds) <= {"printed", "repaired", "exact", "audited"}
    assert "exact" in kinds and kinds[-1] == "audited"
    for rung in found["rungs"]:
        assert set(rung["threat_model"]) == {"adjacency", "coins", "released"}
        assert rung["source"]
        assert (rung["epsilon"] is None) == ("reason" in rung)
        if isinstance(rung["epsilon"], dict):
            assert 0.0 <= rung["epsilon"]["lower"] <= rung["epsilon"]["upper"]


def test_check(tmp_path: Path) -> None:
    text = """
[[claim]]
name = "{name}"
source = "a test"
mechanism = "gaussian"
noise_multiplier = 1.0
adjacency = "add_remove"
coins = "none"
delta = 1e-5
claimed = {{ epsilon = {claimed} }}
"""
    path = tmp_path / "claims.toml"
    path.write_text(text.format(name="loose", claimed=5.0) + text.format(name="tight", claimed=4.39))
    found = answer("check", str(path))
    assert [claim["verdict"] for claim in found["claims"]] == ["holds, loose by 1.14", "holds, tight"]
    assert (found["holds"], found["violated"], found["undecided"]) == (2, 0, 0)
    path.write_text(text.format(name="violated", claimed=4.37))
    done = command("check", str(path), "--json", "--out", str(tmp_path / "out"))
    assert done.returncode == 1
    assert json.loads(done.stdout)["violated"] == 1
    assert sorted(file.name for file in (tmp_path / "out").iterdir()) == [
        "claims.csv",
        "claims.pdf",
        "claims.png",
    ]


@pytest.mark.parametrize(
    "words", [("epsilon", "gaussian", "--delta", "1e-5"), ("check", "/nowhere.toml"), ("none",)]
)
def test_bad_input_leaves_stdout_empty(words: tuple[str, ...]) -> None:
    done = command(*words, "--json")
    assert (done.returncode, done.stdout) == (2, "")
    assert "error:" in done.stderr


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a device that is always full")
def test_output_that_cannot_be_written_is_one_line_on_stderr() -> None:
    words = ("epsilon", "pure", "--epsilon0", "1", "--delta", "1e-5", "--json")
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            [sys.executable, "-m", "exactdp.benchmarks.cli.main", *words],
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )
    assert done.returncode == 1
    assert done.stderr.splitlines() == [
        "exactdp epsilon: the answer could not be written: No space left on device"
    ]


def test_numerical_warnings_do_not_reach_the_user(monkeypatch: pytest.MonkeyPatch) -> None:
    def warn(*_: object, **__: object) -> None:
        warnings.warn("overflow encountered", RuntimeWarning, stacklevel=1)

    monkeypatch.setattr(main.app, "run", warn)
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        main.run()
    assert seen == []


def test_nothing_heavy_is_imported_by_the_accountants_commands() -> None:
    code = (
        "import sys; from exactdp.benchmarks.cli import main;"
        "words = ['epsilon', 'gaussian', '--noise_multiplier', '1', '--delta', '1e-5'];"
        "arguments = main.parser(words).parse_args(words); assert main.main(arguments) == 0;"
        "heavy = ('matplotlib', 'jax', 'dp_accounting', 'scipy.stats');"
        "print([name for name in heavy if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "[]"


def test_version() -> None:
    done = command("--version")
    assert (done.returncode, done.stdout) == (0, f"exactdp {__version__}\n")
