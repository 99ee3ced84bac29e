"""A synthetic table from end to end, on small tables."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from exactdp.accounting.ledger import Ledger
from exactdp.benchmarks.cli import main
from exactdp.train import checkpoints
from exactdp.train import folder as folders
from exactdp.train.gpt2 import weights as gpt2_weights
from exactdp.train.state import State
from exactdp.train.tables import csv_file, statistics
from exactdp.train.two_stage import pipeline
from exactdp.train.two_stage.outcome import Outcome
from tests.train.two_stage import tables


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Outcome:
    """One run of the defaults but for its size."""
    folder = tmp_path_factory.mktemp("made")
    return tables.run(folder, folder / "run")


def synthetic(outcome: Outcome) -> list[dict[str, str]]:
    with (outcome.run / "synthetic.csv").open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def test_every_row_is_of_the_declared_domain(made: Outcome) -> None:
    rows = synthetic(made)
    assert len(rows) == made.rows == 40
    assert made.validity.rate == 1.0
    for row in rows:
        assert list(row) == ["bought", "age", "city, is it"]
        assert row["bought"] in ("yes", "no")
        assert 18 <= int(row["age"]) <= 90
        assert row["city, is it"] in ("Rome", "Bern, CH", "Paris", "")
    assert {row["bought"] for row in rows} == {"yes", "no"}


def test_one_ledger_composes_statistics_and_stage_2(made: Outcome) -> None:
    ledger = Ledger.load(made.run / folders.LEDGER)
    epsilon = ledger.epsilon(delta=1e-4)
    assert made.epsilon is not None
    assert (epsilon.lower, epsilon.upper) == (made.epsilon.lower, made.epsilon.upper)  # type: ignore[union-attr]
    assert 3.9 < made.epsilon.lower <= made.epsilon.upper <= 4.0
    notes = [entry.note for entry in ledger.entries]
    assert "table of label by column" in notes[0]
    assert all("two_stage" in note and "steps" in note for note in notes[1:])
    assert sum(entry.count for entry in ledger.entries[1:]) % 6 == 0
    assert made.end_to_end
    assert not made.leaks


def test_the_first_stage_costs_nothing(made: Outcome) -> None:
    ledger = Ledger.load(made.run / "stage_1" / folders.LEDGER)
    assert ledger.epsilon(delta=1e-12).upper == 0.0  # type: ignore[union-attr]


def test_json_and_files(made: Outcome) -> None:
    found = made.as_dict()
    assert {"rows", "validity", "epsilon", "end_to_end", "leaks", "f1", "hist", "run"} <= set(found)
    assert 0.0 <= found["f1"] <= 1.0
    assert 0.0 < found["hist"] <= 1.0
    kept = json.loads((made.run / "two_stage_result.json").read_text())
    assert kept["rows"] == 40
    perplexity = json.loads((made.run / "metrics.json").read_text())["perplexity"]
    assert set(perplexity["value"]) == {"key", "value", "other"}
    assert all(value > 1.0 for value in perplexity["value"].values())
    assert (made.run / "key.json").stat().st_mode & 0o077 == 0
    assert made.run.stat().st_mode & 0o077 == 0
    loaded = gpt2_weights.load(made.run / "model")
    assert loaded.config.width == 128


def test_a_run_that_is_stopped_in_every_phase_goes_on(
    made: Outcome, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Stopped after the announcement, in stage 1, in stage 2, and while rows are drawn."""
    folder, out = made.run.parent, tmp_path / "cut"

    class Stop(Exception):
        pass

    def stopped(*_: object, **__: object) -> None:
        raise Stop

    def stop_at(target: object, name: str, *, resume: bool) -> None:
        with monkeypatch.context() as patch, pytest.raises(Stop):
            patch.setattr(target, name, stopped)
            tables.run(folder, out, seed=5 if not resume else None, resume=resume)

    stop_at(pipeline.table_statistics, "measure", resume=False)
    announced = Ledger.load(out / folders.LEDGER).entries
    assert len(announced) == 1
    assert not (out / "statistics.json").exists()
    (out / "statistics.json").write_bytes((made.run / "statistics.json").read_bytes())
    saves = checkpoints.Checkpoints.save
    for in_first in (True, False):

        def save(
            self: checkpoints.Checkpoints, state: State, *, first: bool = in_first, **record: Any
        ) -> None:
            folder_name = str(self._folder)  # pyright: ignore[reportPrivateUsage]
            if int(state.step) > 1 and ("stage_1" in folder_name) == first:
                raise Stop
            saves(self, state, **record)

        with monkeypatch.context() as patch, pytest.raises(Stop):
            patch.setattr(checkpoints.Checkpoints, "save", save)
            tables.run(folder, out, seed=None, resume=True)
        assert (out / folders.RUN).exists() == (not in_first)
    stop_at(pipeline.sampling, "draw", resume=True)
    assert not (out / "synthetic.csv").exists()
    found = tables.run(folder, out, seed=None, resume=True)
    assert (out / "synthetic.csv").read_bytes() == (made.run / "synthetic.csv").read_bytes()
    entries = Ledger.load(out / folders.LEDGER).entries
    assert entries[0] == announced[0]
    assert len(entries) == len(Ledger.load(made.run / folders.LEDGER).entries)
    assert found.epsilon == made.epsilon


def test_a_finished_run_is_resumed_without_change(made: Outcome) -> None:
    before = (made.run / "synthetic.csv").read_bytes(), (made.run / folders.LEDGER).read_bytes()
    again = tables.run(made.run.parent, made.run, seed=None, resume=True)
    assert before == ((made.run / "synthetic.csv").read_bytes(), (made.run / folders.LEDGER).read_bytes())
    assert again.as_dict() | {"seconds": 0} == made.as_dict() | {"seconds": 0}


def test_resuming_with_another_table_setting_or_seed_is_refused(made: Outcome, tmp_path: Path) -> None:
    folder = made.run.parent
    with pytest.raises(ValueError, match=r"^epsilon must be what the run"):
        tables.run(folder, made.run, resume=True, epsilon=5.0)
    with pytest.raises(ValueError, match=r"^seed must be the one"):
        tables.run(folder, made.run, seed=6, resume=True)
    tables.write(tmp_path, seed=9)
    with pytest.raises(ValueError, match=r"^the private table must be what"):
        tables.run(tmp_path, made.run, resume=True)
    with pytest.raises(ValueError, match="out must be a folder without a run"):
        tables.run(folder, made.run)


def test_held_out_rows_are_not_trained_on(made: Outcome) -> None:
    ready = tables.prepared(made.run.parent)
    raw = csv_file.read(made.run.parent / "private.csv")
    assert ready.inputs.test is not None
    assert ready.inputs.private.num_rows + ready.inputs.test.num_rows == raw.num_rows
    assert 20 <= ready.inputs.test.num_rows <= 60
    assert statistics.read(made.run / "statistics.json").num_rows == ready.inputs.private.num_rows


@pytest.mark.slow
def test_undeclared_domains_are_released_privately(tmp_path: Path) -> None:
    tables.write(tmp_path, rows=3000)
    made = tables.run(
        tmp_path, tmp_path / "run", declared=False, epsilon=20.0, holdout=0.0, statistics_share=0.9
    )
    assert made.comparison is None
    assert made.as_dict()["f1"] is None
    found = statistics.read(made.run / "statistics.json")
    assert found.private
    assert found.schema.column("bought").values == ("no", "yes")
    assert found.schema.column("age").kind == "integer"
    assert found.schema.column("age").low <= 30
    assert found.schema.column("age").high >= 80
    assert set(found.schema.column("city, is it").values) == {"Rome", "Bern, CH", "Paris"}
    assert made.end_to_end


@pytest.mark.slow
def test_as_published_names_what_it_leaks(tmp_path: Path) -> None:
    made = tables.run(tmp_path, tmp_path / "run", declared=False, as_published=True, decoder="rejection")
    assert not made.end_to_end
    assert any("age" in leak and "range" in leak for leak in made.leaks)
    assert any("frequencies" in leak for leak in made.leaks)
    assert made.epsilon is not None
    assert made.epsilon.upper <= 4.0
    assert "Not DP end to end" in made.statement
    # Hardly trained, it writes few valid rows or none, and says so.
    assert made.rows <= 40
    assert made.validity.asked >= 40
    assert (made.validity.rate or 0.0) <= 1.0
    assert (made.comparison is None) == (made.rows == 0)
    assert (made.run / "synthetic.csv").read_text().startswith('bought,age,"city, is it"')


@pytest.mark.slow
def test_without_privacy(tmp_path: Path) -> None:
    made = tables.run(tmp_path, tmp_path / "run", declared=False, epsilon=None)
    assert made.epsilon is None
    assert not made.end_to_end
    assert made.leaks
    assert made.as_dict()["epsilon"] is None


@pytest.mark.slow
def test_a_public_table_first(tmp_path: Path) -> None:
    other = tmp_path / "public.csv"
    other.write_text("kind,size\n" + "".join(f"{'ab'[i % 2]},{i}\n" for i in range(60)))
    made = tables.run(tmp_path, tmp_path / "run", first_stage="table", first_csv=other)
    assert made.rows == 40
    assert made.end_to_end


@pytest.mark.slow
def test_low_rank_updates(tmp_path: Path) -> None:
    made = tables.run(tmp_path, tmp_path / "run", lora_rank=2, first_stage="none")
    with np.load(made.run / folders.WEIGHTS) as file:
        assert all("first" in name or "second" in name for name in file.files)
    assert gpt2_weights.load(made.run / "model").config.layers == 2
    assert made.rows == 40


@pytest.mark.slow
def test_no_label(tmp_path: Path) -> None:
    made = tables.run(tmp_path, tmp_path / "run", declared=False, label=None, epsilon=50.0)
    assert made.rows == 40
    assert made.as_dict()["f1"] is None
    assert made.as_dict()["hist"] is not None


@pytest.mark.slow
def test_a_table_of_nothing_but_its_label(tmp_path: Path) -> None:
    (tmp_path / "private.csv").write_text("bought\n" + "yes\nno\n" * 100)
    made = tables.run(tmp_path, tmp_path / "run", declared=False, epsilon=20.0)
    assert made.rows == 40
    assert {row["bought"] for row in synthetic(made)} <= {"yes", "no"}


def command(*argv: str) -> int:
    return main.main(main.parser(argv).parse_args(argv))


def test_the_command_from_end_to_end(
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
        assert command(*words) == 130
    said = capsys.readouterr().err
    assert "interrupted here; go on with:" in said
    again = said.split("go on with:\n")[1].split()
    assert again[-1] == "--resume"
    assert "--seed" not in again
    assert command(*again[1:]) == 0
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
