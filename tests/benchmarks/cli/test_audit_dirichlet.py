"""`exactdp audit dirichlet` from end to end, on short runs."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("jax")

from exactdp.accounting.audit.result import AuditResult
from exactdp.accounting.ladder.dirichlet_setting import CELL, REPLACE_WEIGHTS
from exactdp.benchmarks.cli import main
from exactdp.benchmarks.curves import marks, store, style
from exactdp.benchmarks.dirichlet_audit import audit, report
from exactdp.benchmarks.dirichlet_audit.claimed import claimed
from exactdp.benchmarks.dirichlet_audit.options import Options

STEPS = ("--num_steps", "40", "--sampling_probability", "0.2")
SHORT = (*STEPS, "--records", "4", "--trials", "64", "--seed", "3")


def run(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, str, str]:
    argv = list(words)
    status = main.main(main.parser(argv).parse_args(argv))
    captured = capsys.readouterr()
    return status, captured.out, captured.err


def test_json_files_and_ladder(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(report, "_GRID", (1e-6, 1.0, 3))
    out = tmp_path / "audit"
    status, text, _ = run(
        capsys, "audit", "dirichlet", *SHORT, "--scaling", "1e-6", "--out", str(out), "--json"
    )
    answer: dict[str, Any] = json.loads(text)
    assert status == 0 and text.count("\n") == 1
    assert (answer["trials"], answer["delta"], answer["confidence"]) == (64, 1e-5, 0.95)
    # 8 runs with the feature and 56 without it, no error: both rates at most what 2.5 % allows.
    assert (answer["missed"], answer["false"]) == (0, 0)
    fnr, fpr = (1.0 - 0.025 ** (1.0 / runs) for runs in (8, 56))
    assert answer["epsilon_lower"] == pytest.approx(math.log((1.0 - 1e-5 - fnr) / fpr))
    assert answer["readings"]["weights after every step"]["epsilon_lower"] == answer["epsilon_lower"]
    assert answer["claimed"]["exact"]["upper"] < 1e-3 and answer["claimed"]["table_7"] is None
    assert answer["claimed"]["threat_model"]["adjacency"] == "replace_label_public"
    assert set(answer["exceeded"]) >= {"exact", "exact_hidden"} and answer["verdict"].startswith(
        "the weights exceed"
    )
    names = ["weights_r1e-06.json", "dirichlet_audit.csv", "dirichlet_audit.pdf", "dirichlet_audit.png"]
    assert [Path(path).name for path in answer["files"]] == names
    assert all((out / name).stat().st_size > 0 for name in names)
    result = AuditResult.load(out / names[0])
    assert result.threat_model == REPLACE_WEIGHTS and result.epsilon_lower == answer["epsilon_lower"]
    assert "4 records of digits" in result.note
    assert result.parameters == {
        "scaling": 1e-6,
        "offset": 3.0,
        "sampling_probability": 0.2,
        "num_steps": 40,
    }
    assert result.parameters.items() <= answer["parameters"].items()
    header, rows = store.read_csv(out / names[1])
    assert header["scalings"] == [1e-6] and header["num_steps"] == 40
    (audited,) = [row for row in rows if row["series"] == "audited"]
    assert float(audited["lower"]) == result.epsilon_lower and audited["upper"] == ""
    assert {row["series"] for row in rows} == {"printed", "repaired", "exact", "exact_hidden", "audited"}
    status, text, _ = run(
        capsys, "ladder", "dirichlet", *STEPS, "--scaling", "1e-6", "--audit", str(out / names[0]), "--json"
    )
    rungs = {rung["name"]: rung for rung in json.loads(text)["rungs"]}
    assert status == 0 and rungs["audited"]["epsilon"] == {"lower": result.epsilon_lower, "upper": "inf"}
    status, _, error = run(
        capsys, "ladder", "dirichlet", *STEPS, "--scaling", "1e-5", "--audit", str(out / names[0])
    )
    assert status == 2 and "parameters of the audit must be the ladder's, got scaling = 1e-06" in error


def test_text(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    def made(scaling: float, options: Options) -> audit.Audited:
        claims = claimed(
            scaling, offset=options.offset, sampling_probability=0.005, num_steps=20_000, delta=options.delta
        )
        w, b, u = (AuditResult(eps, 0.95, 1e-5, 1000, "by hand", REPLACE_WEIGHTS) for eps in (5.5, 5.0, 6.0))
        return audit.Audited(scaling, 13.0, w, b, u, 1, 2, 0.75, claims, 3.0)

    monkeypatch.setattr(
        audit, "prepare", lambda scalings, options: lambda: [made(one, options) for one in scalings]
    )
    status, out, _ = run(capsys, "audit", "dirichlet")
    lines = out.splitlines()
    assert status == 0 and lines[0].endswith("of 20000 steps at delta = 1e-05")
    assert lines[3] == "r = 0.235: epsilon >= 5.5 with confidence 0.95, from 1000 runs (3 s)"
    assert lines[4] == "  verdict: the weights exceed some epsilons claimed for the draws"
    assert lines[5].startswith("  claimed for the draws: table_7 1, printed 4.243, repaired 1.001,")
    assert lines[6:9] == [
        "  final and initial weights: epsilon >= 5.5",
        "  final weights alone: epsilon >= 5",
        "  weights after every step: epsilon >= 6",
    ]
    assert lines[9] == (
        "  1 of 125 runs with the feature did not show it, 2 of 875 without it did; test accuracy 75.0 %"
    )
    assert lines[12] == "  verdict: the weights exceed every epsilon claimed for the draws"


def test_claims_are_the_ladders() -> None:
    found = claimed(
        CELL.scaling,
        offset=CELL.offset,
        sampling_probability=CELL.sampling_probability,
        num_steps=CELL.num_steps,
        delta=CELL.delta,
    )
    assert found.table_7 == 1.0 and found.repaired == pytest.approx(1.0014, abs=1e-4)
    assert found.printed == pytest.approx(4.2432, abs=1e-4)
    assert found.exact is not None and found.exact.upper == pytest.approx(10.6468, abs=1e-3)
    assert found.exceeded(5.0) == ["table_7", "printed", "repaired", "exact_hidden"]
    assert found.exceeded(0.0) == [] and len(found.exceeded(11.0)) == 5


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--scaling", "0"), "scaling must be finite and > 0, got 0"),
        (("--scaling", "nan"), "scaling must be a number, got nan"),
        (("--scaling", "0.1,0.2,0.1"), "scaling must have no value twice in six digits, got [0.1, 0.2, 0.1]"),
        (("--scaling", "0.1,0.10000001"), "scaling must have no value twice"),
        (("--offset", "-1"), "offset must be finite and > 0, got -1"),
        (("--sampling_probability", "0"), "sampling_probability must be > 0, got 0"),
        (("--sampling_probability", "1e-10"), "sampling_probability must be 0 or at least 2^-32"),
        (("--num_steps", "0"), "num_steps must be a whole number >= 1, got 0"),
        (("--num_steps", "1e9"), "num_steps must be at most 1e+07, got 1e+09"),
        (("--delta", "1"), "delta must be in (0, 1), got 1"),
        (("--records", "0"), "records must be a whole number >= 1, got 0"),
        (("--records", "5000"), "records must be at most 1442, those of digits, got 5000"),
        (("--dataset", "nope"), "dataset must be one of"),
        (("--model", "cnn"), "model must be one of linear, mlp, got 'cnn'"),
        (("--records", "1e6"), "records must be at most 1442, those of digits, got 1000000"),
        (("--trials", "15"), "trials must be a whole number >= 16, got 15"),
        (("--trials", "1e15"), "trials must be at most 1e+08, got 1e+15"),
        (("--confidence", "0"), "confidence must be in (0, 1), got 0"),
        (("--effective_learning_rate", "0"), "effective_learning_rate must be finite and > 0, got 0"),
        (("--effective_learning_rate", "1e300"), "learning_rate must be at most 1e+30"),
        (("--seed", "-1"), "seed must be a whole number >= 0, got -1"),
    ],
)
def test_refused_before_a_folder_is_made(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, words: tuple[str, ...], message: str
) -> None:
    folder = tmp_path / "made"
    status, out, err = run(capsys, "audit", "dirichlet", *words, "--out", str(folder))
    assert status == 2 and out == "" and message in err
    assert not folder.exists()


def test_a_bound_of_zero_is_seen(tmp_path: Path) -> None:
    axes = style.new_figure(style.COLUMN, 2.0).subplots()
    axes.set_yscale("log")
    axes.set_ylim(1e-3, 10.0)
    marks.lower_bounds(axes, [0.1, 0.2], [0.0, 2.0], label="audited")
    hollow = [line for line in axes.get_lines() if line.get_label() == "audited, no bound above 0"]
    assert [line.get_xydata().tolist() for line in hollow] == [[[0.1, 1e-3]]]
