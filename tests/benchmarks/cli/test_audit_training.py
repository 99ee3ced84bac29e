"""`exactdp audit dpsgd` and `exactdp audit feature` from end to end, on short runs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("jax")

from exactdp.accounting.audit.result import AuditResult
from exactdp.benchmarks.cli import main
from exactdp.benchmarks.curves import store

SHORT = ("--num_steps", "3", "--sampling_probability", "0.5", "--trials", "400", "--seed", "1")


def run(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, str]:
    argv = list(words)
    status = main.main(main.parser(argv).parse_args(argv))
    return status, capsys.readouterr().out


def test_dpsgd(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    status, text = run(capsys, "audit", "dpsgd", *SHORT, "--out", str(tmp_path), "--json")
    answer: dict[str, Any] = json.loads(text)
    assert status == 0 and text.count("\n") == 1
    assert answer["verdict"] == "not refuted" and answer["certified"] == "exact"
    exact = answer["claimed"]["exact"]
    assert exact["threat_model"] == answer["threat_model"]
    assert all(one["epsilon_lower"] <= exact["epsilon"]["upper"] for one in answer["readings"].values())
    assert answer["parameters"]["num_steps"] == 3 and answer["trials"] == 400
    names = ["dpsgd_many_runs.json", "dpsgd_many_runs.csv", "dpsgd_many_runs.pdf", "dpsgd_many_runs.png"]
    assert [Path(path).name for path in answer["files"]] == names
    assert all((tmp_path / name).stat().st_size > 0 for name in names)
    assert AuditResult.load(tmp_path / names[0]).epsilon_lower == answer["epsilon_lower"]
    header, rows = store.read_csv(tmp_path / names[1])
    assert header["source"] == "1607.00133" and header["num_steps"] == 3
    assert {row["kind"] for row in rows} == {"exact", "audited"}
    again = json.loads(run(capsys, "audit", "dpsgd", *SHORT, "--json")[1])
    assert again["epsilon_lower"] == answer["epsilon_lower"]


def test_one_run(capsys: pytest.CaptureFixture[str]) -> None:
    status, text = run(capsys, "audit", "dpsgd", "--design", "one_run", *SHORT)
    assert status == 0 and "one run, f-DP" in text and "not refuted" in text


def test_feature_goes_on_the_ladder(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    status, text = run(capsys, "audit", "feature", *SHORT, "--out", str(tmp_path))
    assert status == 0 and "replace_features_public" in text and "wrote" in text
    file = tmp_path / "feature_two.json"
    status, text = run(
        capsys,
        "ladder",
        "feature",
        "--num_steps",
        "3",
        "--sampling_probability",
        "0.5",
        "--audit",
        str(file),
        "--json",
    )
    rung = json.loads(text)["rungs"][-1]
    assert rung["kind"] == "audited" and rung["epsilon"]["lower"] == AuditResult.load(file).epsilon_lower


@pytest.mark.parametrize(
    ("words", "name"),
    [
        (("dpsgd", "--trials", "5"), "trials"),
        (("dpsgd", "--trials", "17"), "trials"),
        (("dpsgd", "--trials", "1e15"), "trials"),
        (("dpsgd", "--design", "one_run", "--trials", "1e6"), "trials"),
        (("dpsgd", "--num_steps", "1e12"), "num_steps"),
        (("dpsgd", "--dataset", "digits"), "dataset"),
        (("dpsgd", "--design", "one_run", "--learning_rate", "3"), "learning_rate"),
        (("dpsgd", "--canary", "random"), "canary"),
        (("dpsgd", "--noise_multiplier", "0"), "noise_multiplier"),
        (("dpsgd", "--design", "one_run", "--canary", "random", "--dataset", "nothing"), "dataset"),
        (("dpsgd", "--design", "one_run", "--canary", "random", "--model", "nothing"), "model"),
        (
            ("dpsgd", "--num_steps", "5", "--noise_multiplier", "1e-9"),
            "noise_multiplier must be large enough",
        ),
        (("feature", "--num_steps", "5", "--noise_multiplier", "1e-9"), "noise_multiplier must be large eno"),
        (("feature", "--delta", "2"), "delta"),
        (("feature", "--sampling_probability", "0"), "sampling_probability"),
    ],
)
def test_bad_input(
    words: tuple[str, ...], name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    argv = ["audit", *words, "--out", str(tmp_path / "new")]
    assert main.main(main.parser(argv).parse_args(argv)) == 2
    assert name in capsys.readouterr().err
    assert not (tmp_path / "new").exists()
