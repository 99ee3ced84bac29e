"""Audit results: what is refused, JSON round trip, and the audited rung of the papers' ladders."""

from __future__ import annotations

import json
import math
import pathlib

import pytest

from exactdp.accounting.audit import threshold
from exactdp.accounting.audit.result import AuditResult
from exactdp.accounting.interval import Interval
from exactdp.accounting.ladder import rung
from exactdp.accounting.ladder.rung import Rung
from exactdp.accounting.threat import Adjacency, Coins, ThreatModel

MODEL = ThreatModel(Adjacency.ADD_REMOVE, Coins.HIDDEN, "all noisy sums")
WEIGHTS = ThreatModel(Adjacency.ADD_REMOVE, Coins.HIDDEN, "the weights")


def make(**changes: object) -> AuditResult:
    values: dict[str, object] = {
        "epsilon_lower": 1.25,
        "confidence": 0.95,
        "delta": 1e-5,
        "trials": 1000,
        "method": "by hand",
        "threat_model": MODEL,
    }
    return AuditResult(**(values | changes))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"epsilon_lower": -0.1}, "epsilon_lower must be finite and >= 0"),
        ({"epsilon_lower": math.nan}, "epsilon_lower must be a number"),
        ({"confidence": 1.0}, "confidence must be in"),
        ({"delta": 1.0}, "delta must be in"),
        ({"trials": 0}, "trials must be a whole number >= 1"),
        ({"method": " "}, "method must not be empty"),
        ({"note": 5}, "note must be a text"),
        ({"assumption": None}, "assumption must be a text"),
        ({"certainty": "likely"}, "certainty must be one of"),
        ({"mu_lower": -1.0}, "mu_lower must be"),
        ({"tradeoff": ((0.1, 1.2),)}, "tradeoff must be in"),
        ({"parameters": {"num_steps": math.inf}}, r"parameters\['num_steps'\] must be finite"),
    ],
)
def test_bad_results(changes: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        make(**changes)


def test_round_trip(tmp_path: pathlib.Path) -> None:
    band = threshold.order_statistics([1.0, 2.0, 3.0] * 50, [0.0, 1.0, 2.0] * 50, seed=1)
    for result in (
        make(mu_lower=0.5, certainty="credible", assumption="it is Gaussian", note="a test"),
        band.result(delta=1e-5, threat_model=MODEL, gaussian=True),
        make(parameters={"scaling": 0.235, "num_steps": 20_000}),
    ):
        path = tmp_path / "audit.json"
        result.save(path)
        assert AuditResult.load(path) == result
        more = {**json.loads(path.read_text()), "claimed": {}, "verdict": "holds"}
        assert AuditResult.from_dict(more) == result


def test_bad_files(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "audit.json"
    record = make().as_dict()
    cases = [
        ("{", "audit must be a JSON file"),
        ("[1]", "audit must be a JSON object"),
        ("{}", "an audit result must have the fields epsilon_lower"),
        (json.dumps(record | {"threat_model": "x"}), "threat_model must have the fields adjacency, coins"),
        (json.dumps(record | {"threat_model": {"adjacency": "add_remove"}}), "threat_model must have the fi"),
        (json.dumps(record | {"threat_model": MODEL.as_dict() | {"released": 3}}), "released must be a text"),
        (json.dumps(record | {"threat_model": MODEL.as_dict() | {"coins": []}}), "coins must be one of"),
        (json.dumps(record | {"confidence": "high"}), "confidence must be a real number"),
        (json.dumps(record | {"tradeoff": 3}), "tradeoff must be a list of pairs"),
        (json.dumps(record | {"tradeoff": [[0.1, 0.2, 0.3]]}), "tradeoff must be a list of pairs"),
        (json.dumps(record | {"tradeoff": [[0.1, "x"]]}), "tradeoff must be a real number"),
        (json.dumps(record | {"parameters": 3}), "parameters must be an object of numbers"),
        (
            json.dumps(record | {"parameters": {"num_steps": "50"}}),
            r"parameters\['num_steps'\] must be a num",
        ),
        (
            json.dumps(record | {"parameters": {"num_steps": [50]}}),
            r"parameters\['num_steps'\] must be a num",
        ),
        (json.dumps(record | {"parameters": {"scaling": "x"}}), r"parameters\['scaling'\] must be a number"),
        (json.dumps(record | {"parameters": {"offset": None}}), r"parameters\['offset'\] must be a number"),
        (json.dumps(record | {"method": None}), "method must be a text"),
    ]
    for text, message in cases:
        path.write_text(text)
        with pytest.raises(ValueError, match=message) as found:
            AuditResult.load(path)
        # The file is named once, and nothing speaks of Python's types.
        assert str(found.value).count(str(path)) == 1
        assert not any(word in str(found.value) for word in ("NoneType", "argument", "object is not"))


def test_a_file_that_cannot_be_read_is_bad_input(tmp_path: pathlib.Path) -> None:
    for path in (tmp_path / "none.json", tmp_path):
        with pytest.raises(ValueError, match="audit must be a file that can be read"):
            AuditResult.load(path)
    with pytest.raises(ValueError, match=r"audit must be a file that can be read, got '\.?'"):
        AuditResult.load("")
    path = tmp_path / "bytes.json"
    path.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(ValueError, match="audit must be a JSON file"):
        AuditResult.load(path)


def test_files_without_parameters_are_read() -> None:
    record = make().as_dict()
    del record["parameters"]
    assert AuditResult.from_dict(record) == make()
    mixed = {"num_steps": 10, "seed": None, "model": "mlp", "private": True}
    assert AuditResult.from_dict(record | {"parameters": mixed}).parameters == {"num_steps": 10}
    assert hash(make(parameters={"num_steps": 10})) == hash(make())


def test_refutes_claims_of_its_own_threat_model_only() -> None:
    result = make()
    assert result.refutes(1.0, delta=1e-5, threat_model=MODEL)
    assert result.refutes(1.0, delta=1e-6, threat_model=MODEL)
    assert not result.refutes(1.25, delta=1e-5, threat_model=MODEL)
    assert not result.refutes(math.inf, delta=1e-5, threat_model=MODEL)
    with pytest.raises(ValueError, match="threat_model of the audit must be the claim's"):
        result.refutes(1.0, delta=1e-5, threat_model=WEIGHTS)
    with pytest.raises(ValueError, match="delta must be at most the audit's"):
        result.refutes(1.0, delta=1e-4, threat_model=MODEL)
    with pytest.raises(ValueError, match="epsilon must be >= 0"):
        result.refutes(math.nan, delta=1e-5, threat_model=MODEL)


def ladder(threat_model: ThreatModel = MODEL) -> list[Rung]:
    exact = Rung(
        name="exact", kind="exact", threat_model=threat_model, epsilon=Interval(2.0, 2.1), source="derived"
    )
    return [exact, rung.open_audit(threat_model, command="exactdp ladder x")]


def test_the_open_rung_is_filled() -> None:
    filled = make().placed(ladder(), delta=1e-5)
    assert filled[1].epsilon == Interval(1.25, math.inf, "by hand")
    assert filled[1].command == "exactdp ladder x"
    assert "95 % confidence" in filled[1].note
    assert filled[0].bounds(filled[1])
    assert not filled[0].bounds(make(epsilon_lower=3.0).rung())
    with pytest.raises(ValueError, match="threat_model of the audit must be"):
        make().placed(ladder(WEIGHTS), delta=1e-5)
    with pytest.raises(ValueError, match="delta must be at most"):
        make().placed(ladder(), delta=1e-4)
    with pytest.raises(ValueError, match="ladder must hold an audited rung"):
        make().placed(filled, delta=1e-5)


def test_a_ladder_at_other_parameters_is_refused() -> None:
    known = make(parameters={"scaling": 0.235, "num_steps": 20})
    same = {"scaling": 0.235, "num_steps": 20.0, "offset": 3.0}
    assert known.differing(same) == {}
    assert known.differing({"scaling": None, "dataset": "adult"}) == {}
    assert known.placed(ladder(), delta=1e-5, parameters=same)[1].epsilon == Interval(
        1.25, math.inf, "by hand"
    )
    with pytest.raises(ValueError, match="must be the ladder's, got scaling = 0.235 beside 1"):
        known.placed(ladder(), delta=1e-5, parameters=same | {"scaling": 1.0})
    make().placed(ladder(), delta=1e-5, parameters=same)


def test_rung_says_what_it_rests_on() -> None:
    assert "takes for granted that it is Gaussian" in make(assumption="it is Gaussian").rung().note
    assert "credible" in make(certainty="credible").rung().note
    names = [quantity.name for quantity in make(mu_lower=0.5).rung().quantities]
    assert names == ["confidence", "delta", "trials", "mu_lower"]
    assert make(parameters={"num_steps": 7}).rung().quantities[-1] == rung.Quantity("num_steps", 7.0, "1")
