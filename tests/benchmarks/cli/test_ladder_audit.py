"""`exactdp ladder --audit`: the audited rung from a stored result, and what is refused."""

from __future__ import annotations

import json
import pathlib

import pytest

from exactdp.accounting.audit.result import AuditResult
from exactdp.accounting.ladder import dirichlet
from exactdp.accounting.threat import Adjacency, Coins, ThreatModel
from exactdp.benchmarks.cli import main

OTHER = ThreatModel(Adjacency.ADD_REMOVE, Coins.HIDDEN, "all noisy sums")


def make(threat_model: ThreatModel, delta: float = 1e-5) -> AuditResult:
    return AuditResult(7.5, 0.95, delta, 1000, "by hand", threat_model)


def run(*argv: str) -> int:
    return main.main(main.parser(argv).parse_args(argv))


def test_ladder_with_an_audit(tmp_path: pathlib.Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "audit.json"
    # No steps: what is exact takes no time.
    command = ("ladder", "dirichlet", "--num_steps", "0", "--audit", str(path))
    make(dirichlet.REPLACE_WEIGHTS).save(path)
    assert run(*command, "--json") == 0
    rungs = {record["name"]: record for record in json.loads(capsys.readouterr().out)["rungs"]}
    assert rungs["audited"]["epsilon"] == {"lower": 7.5, "upper": "inf"}
    assert run(*command) == 0
    assert "[7.5, inf]" in capsys.readouterr().out
    make(OTHER).save(path)
    assert run(*command) == 2
    assert "threat_model of the audit must be the claim's" in capsys.readouterr().err
    make(dirichlet.REPLACE_WEIGHTS, delta=1e-9).save(path)
    assert run(*command) == 2
    assert "delta must be at most the audit's" in capsys.readouterr().err
    assert run("ladder", "dirichlet", "--audit", str(tmp_path / "none.json")) == 2
    assert "audit must be a file that can be read" in capsys.readouterr().err
