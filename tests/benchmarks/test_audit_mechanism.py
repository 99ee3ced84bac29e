"""The standing check as a script: what it prints, and its exit status."""

from __future__ import annotations

import json

import pytest
from absl import flags

pytest.importorskip("jax")

import jax

from exactdp.benchmarks import audit_mechanism
from exactdp.mechanisms.audit import broken, standing, targets


def test_outcomes_and_exit_status(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    good = {"good": lambda: targets.gaussian(noise_multiplier=1.0)}
    bad = {"bad": lambda: broken.half_noise(noise_multiplier=1.0)}
    values = flags.FlagValues()
    flags.DEFINE_integer("trials", 2**16, "", flag_values=values)
    flags.DEFINE_float("delta", 1e-3, "", flag_values=values)
    flags.DEFINE_float("confidence", 0.9999, "", flag_values=values)
    flags.DEFINE_integer("seed", 1, "", flag_values=values)
    flags.DEFINE_bool("json", False, "", flag_values=values)
    values(["audit_mechanism"])
    monkeypatch.setattr(flags, "FLAGS", values)
    monkeypatch.setattr(standing, "OURS", good)
    monkeypatch.setattr(standing, "BROKEN", bad)
    assert audit_mechanism.main(["audit_mechanism"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 2 and all(", as expected (" in line for line in lines)
    monkeypatch.setattr(standing, "OURS", bad)
    monkeypatch.setattr(standing, "BROKEN", good)
    values.json = True
    assert audit_mechanism.main(["audit_mechanism"]) == 1
    records = json.loads(capsys.readouterr().out)
    assert [record["verdict"] for record in records] == ["refuted", "not refuted"]
    assert not any(record["as_expected"] for record in records)


@pytest.mark.slow
def test_standing_check() -> None:
    outcomes = list(standing.run(key=jax.random.key(5)))
    assert len(outcomes) == len(standing.OURS) + len(standing.BROKEN)
    assert all(outcome.as_expected for outcome in outcomes)
    assert sum(outcome.seconds for outcome in outcomes) < 180.0


def test_bad_input() -> None:
    with pytest.raises(ValueError, match="key must be one typed key"):
        next(standing.run(key=3))  # type: ignore[arg-type]
