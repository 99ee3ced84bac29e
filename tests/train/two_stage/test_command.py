"""`exactdp train two_stage` from end to end; its programs are those of the other runs in this folder."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from exactdp.benchmarks.cli import main
from exactdp.train.two_stage import pipeline
from tests.train.two_stage import tables


def run(*argv: str) -> int:
    return main.main(main.parser(argv).parse_args(argv))


def test_from_end_to_end(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Interrupted while rows are drawn, and gone on with by the command that is printed."""
    tables.files(tmp_path)
    out = tmp_path / "run"
    words = ["train", "two_stage", "--csv", str(tmp_path / "private.csv")]
    words += ["--schema", str(tmp_path / "schema.json"), "--epsilon", "4", "--delta", "1e-4"]
    words += [
        "--batch_size",
        "32",
        "--first_steps",
        "6",
        "--num_steps",
        "6",
        "--rows",
        "40",
    ]  # as tables.SHORT
    words += ["--vocabulary", "300", "--seed", "5", "--out", str(out), "--json"]

    def interrupted(*_: object, **__: object) -> None:
        raise KeyboardInterrupt("interrupted here")

    with monkeypatch.context() as patch:
        patch.setattr(pipeline.sampling, "draw", interrupted)
        assert run(*words) == 130
    said = capsys.readouterr().err
    assert "interrupted here; go on with:" in said
    again = said.split("go on with:\n")[1].split()
    assert again[-1] == "--resume"
    assert "--seed" not in again
    assert run(*again[1:]) == 0
    found = capsys.readouterr()
    answer = json.loads(found.out)
    assert answer["rows"] == 40
    assert answer["validity"] == 1.0
    assert answer["epsilon"]["upper"] <= 4.0
    assert answer["end_to_end"] is True
    assert answer["leaks"] == []
    assert answer["run"] == str(out)
    assert (out / "report" / "report.html").is_file()
    assert "not covered" in (out / "report" / "report.html").read_text()
    assert "statistics alone: epsilon <=" in said
