"""`exactdp audit mechanism`: its table, its JSON, and its exit status."""

from __future__ import annotations

import builtins
import json
from typing import Any

import pytest

pytest.importorskip("jax")

import jax

from exactdp.benchmarks.cli import main
from exactdp.mechanisms.audit import broken, standing, targets

GOOD = {"good": lambda: targets.gaussian(noise_multiplier=1.0)}
BAD = {"bad": lambda: broken.half_noise(noise_multiplier=1.0)}


def run(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, str, str]:
    argv = ["audit", "mechanism", *words]
    status = main.main(main.parser(argv).parse_args(argv))
    captured = capsys.readouterr()
    return status, captured.out, captured.err


def test_outcomes_and_exit_status(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(standing, "OURS", GOOD)
    monkeypatch.setattr(standing, "BROKEN", BAD)
    words = ("--trials", str(2**16), "--seed", "1")
    status, out, _ = run(capsys, *words)
    assert status == 0
    assert "bad (broken)" in out and out.endswith("\nall as expected\n")
    monkeypatch.setattr(standing, "OURS", BAD)
    monkeypatch.setattr(standing, "BROKEN", GOOD)
    status, out, _ = run(capsys, *words, "--json")
    answer = json.loads(out)
    assert status == 1 and answer["as_expected"] is False and out.count("\n") == 1
    first, second = answer["mechanisms"]
    assert (first["name"], first["verdict"]) == ("bad", "refuted")
    assert (second["name"], second["verdict"]) == ("good", "not refuted")
    assert {"epsilon_lower", "confidence", "delta", "trials", "claimed", "verdict"} <= first.keys()
    assert first["evidence"]["delta_lower"] > first["evidence"]["delta_certified"]
    assert not first["as_expected"] and not second["as_expected"]
    assert "NOT AS EXPECTED" in run(capsys, *words)[1]


def test_one_by_name(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(standing, "OURS", GOOD)
    monkeypatch.setattr(standing, "BROKEN", BAD)
    words = ("--trials", str(2**16), "--seed", "1", "--json")
    _, out, _ = run(capsys, *words)
    both = json.loads(out)["mechanisms"]
    status, out, _ = run(capsys, *words, "--name", "bad")
    (alone,) = json.loads(out)["mechanisms"]
    # Draws do not depend on which others are audited.
    assert status == 0
    assert {**alone, "seconds": 0} == {**both[1], "seconds": 0}


@pytest.mark.slow
def test_standing_check() -> None:
    outcomes = list(standing.run(key=jax.random.key(5)))
    assert len(outcomes) == len(standing.OURS) + len(standing.BROKEN)
    assert all(outcome.as_expected for outcome in outcomes)
    assert sum(outcome.seconds for outcome in outcomes) < 180.0


def test_bad_key() -> None:
    with pytest.raises(ValueError, match="key must be one typed key"):
        next(standing.run(key=3))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--name", "nothing"), "name must be one of 'gaussian', 'gaussian, much noise', "),
        (("--trials", "100"), "trials must be a whole number >= 8000, got 100"),
        (("--trials", "1e15"), "trials must be at most 1e+09, got 1e+15"),
        (("--seed", "-1"), "seed must be a whole number >= 0, got -1"),
        (("--delta", "0"), "delta must be in (0, 1), got 0"),
        (("--confidence", "1"), "confidence must be in (0, 1), got 1"),
    ],
)
def test_refused(capsys: pytest.CaptureFixture[str], words: tuple[str, ...], message: str) -> None:
    status, out, err = run(capsys, *words)
    assert status == 2 and out == "" and message in err


def test_kind_is_needed(capsys: pytest.CaptureFixture[str]) -> None:
    for argv, message in ((["audit"], "required: kind"), (["audit", "magic"], "invalid choice: 'magic'")):
        with pytest.raises(SystemExit) as stopped:
            main.parser(argv).parse_args(argv)
        assert stopped.value.code == 2 and message in capsys.readouterr().err


def test_missing_package(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    found = builtins.__import__

    def without(name: str, *rest: Any) -> Any:
        if name == "exactdp.mechanisms":
            raise ModuleNotFoundError("No module named 'jax'", name="jax")
        return found(name, *rest)

    monkeypatch.setattr(builtins, "__import__", without)
    status, out, err = run(capsys)
    assert status == 1 and out == "" and "jax must be installed to audit" in err
