"""`exactdp psi-audit` from end to end."""

from __future__ import annotations

import builtins
import json
from pathlib import Path
from typing import Any

import pytest

from exactdp.benchmarks.cli import main

BASE = ["psi-audit", "--dataset", "digits", "--records", "80", "--neighbours", "20"]


def run(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, str, str]:
    status = main.main(main.parser([*BASE, *words]).parse_args([*BASE, *words]))
    captured = capsys.readouterr()
    return status, captured.out, captured.err


def test_json(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    words = ("--public", "blur:sigma=2", "--epsilon", "8", "--delta", "1e-5", "--out", str(tmp_path / "a"))
    status, out, _ = run(capsys, *words, "--json")
    answer = json.loads(out)
    assert status == 0 and (answer["dataset"], answer["public"]) == ("digits", "blur:sigma=2")
    assert 0.0 <= answer["ball"]["lower"] <= answer["ball"]["upper"] <= 1.0
    assert answer["attribute_advantage"]["lower"] <= answer["attribute_advantage"]["upper"] <= 1.0
    assert answer["reidentification"]["candidates"] == 80
    assert answer["reidentification"]["chance"] == {"1": 1 / 80, "5": 5 / 80}
    assert len(answer["reidentification"]["attacks"]) == 12
    assert answer["verdict"] == "not safe to call public" and answer["reasons"]
    assert answer["attribute_inference"] == []
    assert answer["claim"] == {"epsilon": 8.0, "delta": 1e-5}
    assert [Path(path).name for path in answer["files"]] == [
        "psi_audit.csv",
        "psi_audit.pdf",
        "psi_audit.png",
    ]


def test_text(capsys: pytest.CaptureFixture[str]) -> None:
    status, out, _ = run(capsys, "--public", "none", "--gaussian_mu", "0.5", "--distance", "perceptual")
    assert status == 0
    assert "digits, public: none" in out and "verdict: no attack of these succeeded" in out
    assert "Theorem 4" in out and "without the view" in out


def test_missing_package(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    found = builtins.__import__

    def without(name: str, *rest: Any) -> Any:
        if name.startswith("exactdp.benchmarks.psi_audit"):
            raise ModuleNotFoundError("No module named 'jax'", name="jax")
        return found(name, *rest)

    monkeypatch.setattr(builtins, "__import__", without)
    status, out, err = run(capsys, "--public", "none")
    assert status == 1 and out == "" and "jax must be installed to audit" in err and "exactdp[train]" in err


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--public", "sharpen"), "public must be one of the forms"),
        (("--public", "columns:0-3"), "columns must be of tabular records"),
        (("--public", "none", "--epsilon", "1"), "epsilon and delta must be given together"),
        (
            ("--public", "none", "--epsilon", "1", "--delta", "1e-5", "--gaussian_mu", "1"),
            "one claim must be given at most, got epsilon and gaussian_mu",
        ),
        (("--public", "none", "--gaussian_mu", "-1"), "gaussian_mu must be finite and > 0"),
        (("--public", "none", "--run", "nowhere"), "run must be the folder of a run"),
        (("--public", "none", "--attribute", "sex"), "attribute must be given with run, got sex without"),
        (("--public", "none", "--records", "5"), "records must be a whole number >= 40"),
        (("--public", "none", "--levels", "1"), "levels must be 0"),
        (("--public", "none", "--distance", "far"), "distance must be one of"),
        (("--public", "none", "--dataset", "nope"), "dataset must be one of"),
    ],
)
def test_refused(capsys: pytest.CaptureFixture[str], words: tuple[str, ...], message: str) -> None:
    status, out, err = run(capsys, *words)
    assert status == 2 and out == "" and message in err
