"""`exactdp ladder feature --run`: the ladder of a training run, and what is refused."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from exactdp.accounting.audit.result import AuditResult
from exactdp.accounting.interval import Interval
from exactdp.accounting.ladder import feature as ladder
from exactdp.accounting.ladder.feature_setting import Setting
from exactdp.accounting.ladder.rung import find
from exactdp.accounting.ledger import Ledger
from exactdp.benchmarks.cli import main
from exactdp.benchmarks.curves import run_ladder
from exactdp.train import folder
from exactdp.train.feature_settings import FeatureSettings
from tests.train import runs

STEPS = 6
VARIANTS = {
    ("replace", "two"): "replacement",
    ("add_remove", "two"): "both directions",
    ("replace", "single"): "naive single batch, replacement",
    ("add_remove", "single"): "naive single batch",
}
# What `variant` runs: noise 2, a fifth of 120 records, 4 steps, delta 1e-5.
SETTING = Setting(2.0, 0.2, 4, 1e-5, 120, 1.0, 1.0, 1.0, 1, 1.0, 1e-6)


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("ladder") / "run"
    asked = FeatureSettings("blur:sigma=0.8+label")
    runs.run(out, runs.prepare("feature", feature=asked, num_steps=STEPS), checkpoint_every=2)
    return out


def interrupted(trained: Path, out: Path, *, lines: int) -> Path:
    """The folder as it is where a run was stopped, so many lines of the ledger being written."""
    out.mkdir()
    shutil.copy(trained / folder.RUN, out)
    kept = (trained / folder.LEDGER).read_text().splitlines(keepends=True)[:lines]
    (out / folder.LEDGER).write_text("".join(kept))
    return out


def variant(trained: Path, out: Path, adjacency: str, batches: str) -> Path:
    """A run of another variant that was stopped after its first block."""
    prepared = runs.prepare("feature", feature=FeatureSettings("label", adjacency, batches))
    certificate = prepared.task.certificate
    described = json.loads((trained / folder.RUN).read_text())
    described["certificate"]["rung"] = certificate.rung
    folder.create(out, described)
    with Ledger(out / folder.LEDGER, threat_model=certificate.threat_model) as ledger:
        for mechanism in certificate.mechanisms:
            ledger.append(mechanism, count=4)
    return out


def run(*argv: str) -> int:
    return main.main(main.parser(argv).parse_args(argv))


def test_the_certifying_rung_is_marked_and_has_the_epsilon_of_the_ledger(
    trained: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("ladder", "feature", "--run", str(trained), "--json") == 0
    answer = json.loads(capsys.readouterr().out)
    result = json.loads((trained / folder.RESULT).read_text())
    assert answer["certified_by"] == "replacement" and answer["run"] == str(trained)
    marked = {rung["name"]: rung for rung in answer["rungs"]}["replacement"]
    assert marked["epsilon"] == answer["epsilon"] == result["epsilon"]
    assert marked["threat_model"] == result["threat_model"]
    assert answer["parameters"] == {
        "noise_multiplier": 2.0,
        "sampling_probability": 0.2,
        "num_steps": STEPS,
        "delta": 1e-5,
        "num_records": 120,
        "epsilon": result["epsilon"]["upper"],
    }
    assert "excess risk" not in {rung["name"] for rung in answer["rungs"]}
    assert run("ladder", "feature", "--run", str(trained)) == 0
    shown = capsys.readouterr().out
    assert f"run {trained} is certified by the rung with a star, replacement" in shown
    assert [line.split("  ")[0] for line in shown.splitlines() if " *" in line] == ["replacement *"]


@pytest.mark.parametrize(("adjacency", "batches"), VARIANTS)
def test_the_ladder_computed_apart_agrees_with_the_ledger(
    adjacency: str, batches: str, trained: Path, tmp_path: Path
) -> None:
    out = variant(trained, tmp_path / "run", adjacency, batches)
    found = run_ladder.of_run(out)
    assert found.certified_by == VARIANTS[adjacency, batches]
    own = Ledger.load(out / folder.LEDGER).epsilon(delta=1e-5)
    assert isinstance(own, Interval)
    assert find(found.rungs, found.certified_by).epsilon == found.epsilon == own
    apart = ladder.BUILDERS[found.certified_by](SETTING).epsilon
    assert isinstance(apart, Interval)
    # Batches of 120 records that may overflow cost less than the last digits shown.
    assert apart.lower <= own.upper and own.lower <= apart.upper + 1e-6


def test_an_interrupted_run_has_the_steps_of_its_ledger(trained: Path, tmp_path: Path) -> None:
    each = len(Ledger.load(trained / folder.LEDGER).composition())
    out = interrupted(trained, tmp_path / "run", lines=1 + each)
    found = run_ladder.of_run(out)
    assert found.parameters["num_steps"] == 2
    assert found.epsilon == Ledger.load(out / folder.LEDGER).epsilon(delta=1e-5)
    assert found.epsilon.upper < run_ladder.of_run(trained).epsilon.lower


def test_an_audit_of_the_run_takes_its_place(
    trained: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    threat_model = Ledger.load(trained / folder.LEDGER).threat_model
    AuditResult(0.25, 0.95, 1e-5, 100, "by hand", threat_model).save(tmp_path / "audit.json")
    assert (
        run("ladder", "feature", "--run", str(trained), "--audit", str(tmp_path / "audit.json"), "--json")
        == 0
    )
    (audited,) = [r for r in json.loads(capsys.readouterr().out)["rungs"] if r["kind"] == "audited"]
    assert audited["epsilon"] == {"lower": 0.25, "upper": "inf"}
    assert audited["threat_model"] == threat_model.as_dict()


def test_what_is_no_feature_run_is_refused(
    trained: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def refused(*argv: str) -> str:
        assert run("ladder", *argv) == 2
        printed = capsys.readouterr()
        assert printed.out == ""
        return printed.err

    assert "run must be the folder of a run" in refused("feature", "--run", str(tmp_path))
    assert f"without {folder.RUN}" in refused("feature", "--run", str(tmp_path / "nowhere"))
    assert "run must be left out for dirichlet" in refused("dirichlet", "--run", str(trained))
    for flag in ("num_steps", "delta", "noise_multiplier", "epsilon"):
        message = refused("feature", "--run", str(trained), f"--{flag}", "1")
        assert f"{flag} must be left out beside run" in message

    empty = interrupted(trained, tmp_path / "empty", lines=1)
    assert "run must have announced a step" in refused("feature", "--run", str(empty))
    described = json.loads((trained / folder.RUN).read_text())
    for change, message in (
        ({"method": "dpsgd"}, f"run must be one of exactdp train feature, got {empty} of dpsgd"),
        ({"options": {}}, "run.json must hold certificate.rung, options.delta and num_records"),
        ({"num_records": "many"}, "run.json must hold certificate.rung, options.delta and num_records"),
        ({"certificate": {"rung": "mine"}}, "certificate.rung must be one of the feature ladder, got 'mine'"),
    ):
        (empty / folder.RUN).write_text(json.dumps(described | change))
        assert message in refused("feature", "--run", str(empty))
    other = interrupted(trained, tmp_path / "other", lines=5)
    (other / folder.RUN).write_text(json.dumps(described | {"certificate": {"rung": "both directions"}}))
    assert "ledger must hold what its run's certificate is about" in refused("feature", "--run", str(other))
