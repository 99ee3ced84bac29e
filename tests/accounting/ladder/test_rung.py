"""Rungs as data: what is refused, the JSON form, the open audit."""

from __future__ import annotations

import dataclasses
import json
import math

import pytest

from exactdp.accounting.interval import Interval
from exactdp.accounting.ladder import rung as base
from exactdp.accounting.ladder.rung import Quantity, Rung
from exactdp.accounting.pairs.gaussian import Gaussian
from exactdp.accounting.threat import Adjacency, Coins, ThreatModel

HIDDEN = ThreatModel(Adjacency.ADD_REMOVE, Coins.HIDDEN, "all noisy sums")
VISIBLE = ThreatModel(Adjacency.ADD_REMOVE, Coins.VISIBLE, "all noisy sums")
ELSEWHERE = ThreatModel(Adjacency.ADD_REMOVE, Coins.HIDDEN, "the weights")


def make(**changes: object) -> Rung:
    values: dict[str, object] = {
        "name": "exact",
        "kind": "exact",
        "threat_model": HIDDEN,
        "epsilon": Interval(0.5, 0.6),
        "source": "derived",
    }
    return Rung(**(values | changes))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"kind": "approximate"}, "kind must be one of"),
        ({"name": " "}, "name must not be empty"),
        ({"source": ""}, "source must not be empty"),
        ({"epsilon": None}, "reason must be given"),
        ({"reason": "none"}, "reason must be given"),
        ({"epsilon": math.nan}, "epsilon must be a number"),
        ({"epsilon": -0.1}, "epsilon must be >= 0"),
        ({"epsilon": Interval(-0.1, 0.1)}, "epsilon must be >= 0"),
    ],
)
def test_bad_rungs(changes: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        make(**changes)


def test_bad_quantities() -> None:
    for name, value, unit in (("", 1.0, "nats"), ("order", 1.0, ""), ("order", math.nan, "1")):
        with pytest.raises(ValueError, match="must"):
            Quantity(name, value, unit)


def test_json_form() -> None:
    record = make(quantities=(Quantity("order", 12.0, "1"),)).as_dict()
    assert json.loads(json.dumps(record, allow_nan=False)) == record
    assert record["epsilon"] == {"lower": 0.5, "upper": 0.6}
    assert record["threat_model"] == HIDDEN.as_dict()
    assert record["quantities"] == [{"name": "order", "value": 12.0, "unit": "1"}]
    assert "reason" not in record
    assert make(epsilon=math.inf).as_dict()["epsilon"] == "inf"
    assert make(epsilon=Interval(1.0, math.inf)).as_dict()["epsilon"] == {"lower": 1.0, "upper": "inf"}
    nothing = make(epsilon=None, reason="no bound").as_dict()
    assert nothing["epsilon"] is None
    assert nothing["reason"] == "no bound"


def test_only_one_threat_model_is_compared() -> None:
    assert make(epsilon=0.55).bounds(make())
    assert not make(epsilon=0.4).bounds(make())
    assert make(epsilon=0.7).upper == 0.7
    assert make().upper == 0.6
    for model in (VISIBLE, ELSEWHERE):
        with pytest.raises(ValueError, match="threat_model must be the same"):
            make().bounds(make(threat_model=model))
    with pytest.raises(ValueError, match="epsilon must be known"):
        make().bounds(make(epsilon=None, reason="no bound"))


def test_open_audit_is_filled_once() -> None:
    ladder = [make(), base.open_audit(HIDDEN, command="exactdp ladder dirichlet")]
    assert ladder[1].reason == base.OPEN_AUDIT
    result = make(name="audited", kind="audited", epsilon=Interval(0.1, math.inf))
    filled = base.with_audit(ladder, result)
    assert filled == [ladder[0], result]
    assert ladder[1].epsilon is None
    with pytest.raises(ValueError, match="ladder must hold an audited rung"):
        base.with_audit(filled, result)
    with pytest.raises(ValueError, match="audited must be an audited rung"):
        base.with_audit(ladder, make())
    with pytest.raises(ValueError, match="threat_model must be the same"):
        base.with_audit(ladder, dataclasses.replace(result, threat_model=VISIBLE))


def test_a_failed_certificate_is_a_reason() -> None:
    interval, reason = base.exact(((Gaussian(1.0), 1),), delta=1e-5, tolerance=None)
    assert interval is not None and interval.lower <= 4.37718 <= interval.upper + 1e-4
    assert reason == ""


def test_find_and_command() -> None:
    assert base.find([make()], "exact") == make()
    with pytest.raises(ValueError, match="name must be one of exact"):
        base.find([make()], "printed")
    assert base.command("two_stage", {"dataset": "adult", "num_steps": None, "delta": 1e-5}) == (
        "exactdp ladder two_stage --dataset adult --delta 1e-05 --json"
    )
