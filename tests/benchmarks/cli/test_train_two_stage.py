"""`exactdp train two_stage`: what it refuses before anything is touched."""

from __future__ import annotations

from pathlib import Path

import pytest

from exactdp.benchmarks.cli import main, train_two_stage


def run(*argv: str) -> int:
    return main.main(main.parser(argv).parse_args(argv))


SECRET = "Zaphod-7713"
BAD: list[tuple[str, list[str], str]] = [
    ("", ["--epsilon", "1"], "csv must be a file"),
    ("", [], "epsilon must be given, or nonprivate set"),
    ("a,b\n1,2\n", ["--epsilon", "1", "--nonprivate"], "not both, got both"),
    ("a,b\n1,2\n", ["--epsilon", "-1"], "epsilon must be"),
    ("", ["--epsilon", "1"], "must have a header and rows, it is empty"),
    ("a,b\n", ["--epsilon", "1"], "row"),
    (f"a,b\n1,2\n1,2,{SECRET}\n", ["--epsilon", "1"], "row 2"),
    (f"a,a\n{SECRET},2\n", ["--epsilon", "1"], "name"),
    (f"a,\n{SECRET},2\n", ["--epsilon", "1"], "name"),
    (f"a,b\n{SECRET},2\n" * 2, ["--epsilon", "1", "--label", "c"], "label must be a column"),
    (f"a,b\n{SECRET},2\n", ["--epsilon", "1", "--holdout", "0"], "rows at least"),
    (f"a,b\n{SECRET},2\n" * 8, ["--epsilon", "1", "--drop", "c"], "drop must be columns"),
    (f"a,b\n{SECRET},2\n" * 8, ["--epsilon", "1", "--drop", "a,b"], "drop must leave a column"),
    (f"a,b\n{SECRET},2\n" * 8, ["--epsilon", "1", "--first_stage", "table"], "first_csv must be given"),
    (f"a,b\n{SECRET},2\n" * 8, ["--epsilon", "1", "--first_csv", "x.csv"], "first_csv must be left out"),
    (f"a,b\n{SECRET},2\n" * 8, ["--epsilon", "1", "--schema", "none.json"], "schema must be a file"),
    (f"a,b\n{SECRET},2\n" * 8, ["--epsilon", "1", "--test", "none.csv"], "must be a file"),
    (f"a,b\n{SECRET},2\n" * 8, ["--epsilon", "1", "--seed", "1e30"], "seed must be"),
    (f"a,b\n{SECRET},2\n" * 8, ["--epsilon", "1", "--resume"], "out must be given when resume is set"),
    (f"a,b\n{SECRET},2\n" * 8, ["--epsilon", "1", "--devices", "99"], "devices must be at most"),
]


@pytest.mark.parametrize(("content", "flags", "message"), BAD)
def test_bad_input_is_refused_and_no_cell_is_told(
    content: str,
    flags: list[str],
    message: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    path = tmp_path / ("none.csv" if message == "csv must be a file" else "table.csv")
    if message != "csv must be a file":
        path.write_text(content)
    out = [] if "--resume" in flags else ["--out", "made"]
    assert run("train", "two_stage", "--csv", str(path), *flags, *out) == 2
    found = capsys.readouterr()
    assert message.lower() in found.err.lower()
    assert SECRET not in found.err + found.out
    assert not found.out
    assert not (tmp_path / "made").exists()
    assert not (tmp_path / "runs").exists()


def test_a_table_that_is_not_utf_8(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "table.csv"
    path.write_bytes(f"a,b\n{SECRET},caf\xe9\n".encode("latin-1"))
    assert run("train", "two_stage", "--csv", str(path), "--epsilon", "1") == 2
    found = capsys.readouterr().err
    assert "UTF-8" in found
    assert SECRET not in found


def test_names_of_columns_may_hold_commas() -> None:
    assert train_two_stage._names('a,"b, c" , d') == ("a", "b, c ", "d")
    assert train_two_stage._names(None) == ()
