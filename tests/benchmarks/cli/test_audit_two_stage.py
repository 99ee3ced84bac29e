"""`exactdp audit two_stage` from end to end, on few runs."""

from __future__ import annotations

import dataclasses
import json
import math
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("jax")

from exactdp.accounting.audit.result import AuditResult
from exactdp.accounting.ladder.two_stage_setting import END_TO_END, STAGE_2
from exactdp.benchmarks.cli import main
from exactdp.benchmarks.curves import store
from exactdp.benchmarks.two_stage_audit import audit, leak

SHORT = ("--trials", "64", "--draws", "4000", "--first_steps", "4000", "--rows", "60", "--seed", "3")
SECRET = ("Wolfratshausen", "8123", "3.875")


def run(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, str, str]:
    argv = list(words)
    status = main.main(main.parser(argv).parse_args(argv))
    captured = capsys.readouterr()
    return status, captured.out, captured.err


@pytest.fixture(autouse=True)
def _one_length(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(audit, "RATIOS", (30,))


def test_json_files_and_ladder(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    out = tmp_path / "audit"
    status, text, _ = run(capsys, "audit", "two_stage", *SHORT, "--out", str(out), "--json")
    answer: dict[str, Any] = json.loads(text)
    assert status == 0 and text.count("\n") == 1 and answer["sound"]
    assert (answer["trials"], answer["delta"], answer["confidence"]) == (64, 1e-5, 0.95)
    fnr, fpr = (1.0 - 0.025 ** (1.0 / runs) for runs in (8, 56))
    assert answer["epsilon_lower"] == pytest.approx(math.log((1.0 - 1e-5 - fnr) / fpr))
    assert answer["reading"] == "statistics: rare category"
    assert answer["claimed"]["stage 2, printed"] < 1.0 < answer["epsilon_lower"]
    assert answer["exceeded"] == list(answer["claimed"])
    assert answer["verdict"].startswith(
        "what is taken from the table as published exceeds every epsilon claimed for stage 2"
    ) and answer["verdict"].endswith("not refuted")
    assert set(answer["readings"]) == {"as published", "repaired"}
    assert answer["check"]["verdict"] == "not refuted"
    losses = answer["coupling"]["losses"]
    assert list(losses) == ["means over the batch, 30 : 1", "means over the row, 30 : 1"]
    released, ours = losses.values()
    assert released["moved"] > 13.0 and ours["moved"] <= 1.0 + 1e-5
    # So few first steps hardly draw the long row.
    assert released["first"]["epsilon_lower"] == ours["first"]["epsilon_lower"] == 0.0
    assert released["first"]["trials"] == 4_000 and "does not exceed" in answer["verdict"]
    assert ours["first_integrated"] < answer["coupling"]["claimed"]["stage 2, printed"]
    assert answer["coupling"]["claimed"]["stage 2, printed"] < released["first_integrated"]
    assert released["step"]["epsilon_lower"] > released["step_claimed"]["epsilon"]["upper"]
    assert ours["step"]["epsilon_lower"] <= ours["step_claimed"]["epsilon"]["upper"]
    names = [Path(path).name for path in answer["files"]]
    assert names[0] == "as_published_statistics_rare_category.json"
    assert names[-3:] == ["two_stage_audit.csv", "two_stage_audit.pdf", "two_stage_audit.png"]
    assert len(set(names)) == len(names) == 6 + 7 + 2 * 3 + 3
    assert all((out / name).stat().st_size > 0 for name in names)
    result = AuditResult.load(out / names[0])
    assert result.threat_model == END_TO_END and "fixed before any run" in result.note
    assert AuditResult.load(out / "means_over_the_batch_30_1_stage.json").threat_model == STAGE_2
    header, rows = store.read_csv(out / "two_stage_audit.csv")
    assert header["trials"] == 64 and header["csv"] is None
    parts = {row["part"] for row in rows}
    assert parts == {
        "claim",
        "as published",
        "repaired",
        "stage 2",
        "one step",
        "first",
        "first, integrated",
        "step",
        "stage",
        "move",
        "move, derived",
    }
    bounds = {row["series"]: float(row["lower"]) for row in rows if row["part"] == "as published"}
    assert bounds["statistics: rare category"] == result.epsilon_lower
    status, text, _ = run(capsys, "ladder", "two_stage", "--audit", str(out / names[0]), "--json")
    rungs = {rung["name"]: rung for rung in json.loads(text)["rungs"]}
    assert status == 0 and rungs["audited"]["epsilon"] == {"lower": result.epsilon_lower, "upper": "inf"}


def test_a_table_of_ones_own_shows_no_cell(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(audit, "RATIOS", (300,))
    path, out = tmp_path / "own.csv", tmp_path / "out"
    lines = ["home,pay,score,kind", f"{SECRET[0]},{SECRET[1]},{SECRET[2]},good"]
    lines += [f"town {i % 3},{100 + i},{i % 7}.5,{'good' if i % 2 else 'bad'}" for i in range(40)]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    words = ("audit", "two_stage", *SHORT, "--csv", str(path), "--label", "kind", "--mode", "as_published")
    status, text, err = run(capsys, *words, "--first_steps", "400000", "--out", str(out))
    assert status == 0 and err == ""
    first = text.splitlines()
    assert first[0].endswith(
        "(rare category in 'home', extreme value in 'pay', missing cell in 'score', "
        "label frequency in 'kind')"
    )
    assert first[3].startswith("statistics: rare category: epsilon >= ") and "repaired:" not in first
    assert "on a crafted table the first noisy sum of the released loss exceeds stage 2's printed" in text
    written = [file.read_text("utf-8") for file in out.iterdir() if file.suffix in (".json", ".csv")]
    assert len(written) == 6 + 3 + 1
    # Nor the extreme value that was made of the table's, which would give its largest away.
    for cell in (*SECRET, str(2 * 8123 - 100 + 1)):
        assert not any(cell in one for one in (text, *written))


def test_repaired_alone_and_refuted(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    known: list[Any] = []
    attack = leak.repaired

    def kept(*arguments: Any, **named: Any) -> Any:
        known.append(attack(*arguments, **named))
        return known[-1]

    monkeypatch.setattr(leak, "repaired", kept)
    status, text, _ = run(capsys, "audit", "two_stage", *SHORT, "--mode", "repaired", "--json")
    answer = json.loads(text)
    assert status == 0 and answer["reading"] == "statistics: likelihood ratio"
    assert list(answer["readings"]) == ["repaired"] and answer["trials"] == 32
    assert answer["verdict"] == "private statistics and the loss of each row are not refuted"
    assert list(answer["coupling"]["losses"]) == ["means over the row, 30 : 1"]
    readings, verdict = known[0]
    monkeypatch.setattr(
        leak, "repaired", lambda *_, **__: (readings, dataclasses.replace(verdict, refuted=True))
    )
    status, text, _ = run(capsys, "audit", "two_stage", *SHORT, "--mode", "repaired")
    assert status == 1 and "verdict: private statistics and the loss of each row are refuted" in text


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--label", "income"), "label must be left out without csv, got 'income'"),
        (("--csv", "none.csv"), "CSV must be a file, none.csv is none"),
        (("--mode", "all"), "mode must be one of"),
        (("--rows", "3"), "rows must be a whole number >= 4, got 3"),
        (("--csv", "short.csv"), "csv must have at least 4 rows, got 2 in short.csv"),
        (("--csv", "good.csv", "--label", "b"), "label must be"),
        (("--epsilon", "0"), "epsilon must be finite and > 0, got 0"),
        (("--epsilon", "1001"), "epsilon must be at most 1000, got 1001"),
        (("--delta", "1"), "delta must be in (0, 1), got 1"),
        (("--trials", "15"), "trials must be a whole number >= 16, got 15"),
        (("--trials", "1e15"), "trials must be at most 1e+07, got 1e+15"),
        (("--draws", "1e15"), "draws must be at most 1e+09, got 1e+15"),
        (("--first_steps", "1e15"), "first_steps must be at most 1e+09, got 1e+15"),
        (("--draws", "15"), "draws must be a whole number >= 16, got 15"),
        (("--first_steps", "15"), "first_steps must be a whole number >= 16, got 15"),
        (("--confidence", "1"), "confidence must be in (0, 1), got 1"),
        (("--seed", "-1"), "seed must be a whole number >= 0, got -1"),
    ],
)
def test_refused_before_a_folder_is_made(
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    words: tuple[str, ...],
    message: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("short.csv").write_text("a\n1\n2\n", encoding="utf-8")
    Path("good.csv").write_text("a\n" + "1\n2\n" * 4, encoding="utf-8")
    status, out, err = run(capsys, "audit", "two_stage", *words, "--out", "made")
    assert status == 2 and out == "" and message in err
    assert not Path("made").exists()
