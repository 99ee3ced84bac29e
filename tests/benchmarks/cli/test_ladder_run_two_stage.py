"""`exactdp ladder two_stage --run`: the rungs of a synthetic table's run, from its ledger."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from exactdp.accounting.interval import Interval
from exactdp.accounting.ladder.rung import find
from exactdp.accounting.ledger import Ledger
from exactdp.accounting.printed import two_stage as printed
from exactdp.benchmarks.cli import main
from exactdp.benchmarks.curves import two_stage_run
from exactdp.train import folder, reservation
from exactdp.train.reservation import Blocks, Reservation
from exactdp.train.two_stage import plan as plans
from exactdp.train.two_stage.settings import TwoStageSettings

STEPS, DELTA = 20, 1e-5


def announced(out: Path, *, steps: int = STEPS, **given: Any) -> plans.Plan:
    """The folder of a run that was stopped after so many of its steps."""
    asked: dict[str, Any] = {"epsilon": 2.0, "batch_size": 20, "num_steps": STEPS, **given}
    settings = TwoStageSettings(**asked)
    found = plans.plan(settings, num_rows=400, num_columns=4, num_undeclared=2)
    described = {
        "run": "0123",
        "method": "two_stage",
        "options": {"delta": DELTA},
        "settings": settings.as_dict(),
    }
    folder.create(out, described)
    with Ledger(out / folder.LEDGER, threat_model=found.certificate.threat_model) as ledger:
        reservation.announce(ledger, found.certificate)
        if steps:
            blocks = Reservation(
                ledger, certificate=found.certificate, blocks=Blocks(STEPS, 5), title="two_stage 0123"
            )
            blocks.cover(steps - 1)
    return found


def run(*argv: str) -> int:
    return main.main(main.parser(argv).parse_args(argv))


def test_one_budget(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "run"
    plan = announced(out)
    assert run("ladder", "two_stage", "--run", str(out), "--json") == 0
    answer = json.loads(capsys.readouterr().out)
    rungs = {rung["name"]: rung for rung in answer["rungs"]}
    assert answer["certified_by"] == "statistics and stage 2, one budget"
    whole = rungs[answer["certified_by"]]
    own = Ledger.load(out / folder.LEDGER).epsilon(delta=DELTA)
    assert isinstance(own, Interval)
    assert whole["epsilon"] == answer["epsilon"] == {"lower": own.lower, "upper": own.upper}
    assert 1.99 < own.upper <= 2.0
    assert plan.budget is not None
    spent = plan.budget.interval()
    assert rungs["statistics"]["epsilon"] == {"lower": spent.lower, "upper": spent.upper}
    parts = rungs["statistics"]["epsilon"]["upper"] + rungs["exact"]["epsilon"]["upper"]
    assert rungs["exact"]["epsilon"]["upper"] < own.upper < parts
    assert answer["parameters"]["noise_multiplier"] == plan.noise
    bound = printed.epsilon(plan.noise or 0.0, sampling_probability=0.05, num_steps=STEPS, delta=DELTA)
    assert rungs["printed"]["epsilon"] == bound.value
    assert bound.value > rungs["exact"]["epsilon"]["upper"]


def test_as_published_has_no_certificate_end_to_end(tmp_path: Path) -> None:
    announced(tmp_path / "run", as_published=True)
    found = two_stage_run.of_run(tmp_path / "run")
    assert found.certified_by == "exact"
    whole = find(found.rungs, "end to end")
    assert whole.epsilon is None
    assert "without noise" in whole.reason
    assert find(found.rungs, "exact").epsilon == found.epsilon


def test_an_interrupted_run_has_the_steps_of_its_ledger(tmp_path: Path) -> None:
    announced(tmp_path / "cut", steps=7)
    found = two_stage_run.of_run(tmp_path / "cut")
    assert found.parameters["num_steps"] == 10  # blocks of five


def test_what_is_no_such_run_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(ValueError, match=r"without run\.json"):
        two_stage_run.of_run(tmp_path)
    announced(tmp_path / "begun", steps=0)
    with pytest.raises(ValueError, match="announced a step"):
        two_stage_run.of_run(tmp_path / "begun")
    announced(tmp_path / "plain", epsilon=None)
    with pytest.raises(ValueError, match="private one"):
        two_stage_run.of_run(tmp_path / "plain")
    assert run("ladder", "dirichlet", "--run", str(tmp_path / "plain")) == 2
    assert "run must be left out for dirichlet" in capsys.readouterr().err
    assert run("ladder", "feature", "--run", str(tmp_path / "plain")) == 2
    assert run("ladder", "two_stage", "--dataset", "adult", "--run", str(tmp_path / "plain")) == 2
