"""The claims file: every rule of the format, and what the entries become."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from exactdp.benchmarks.check import claims

GOOD: dict[str, Any] = {
    "name": "a",
    "source": "somewhere, Table 1",
    "mechanism": "gaussian",
    "noise_multiplier": 1.1,
    "sampling_probability": 0.01,
    "num_steps": 100,
    "adjacency": "add_remove",
    "coins": "hidden",
    "delta": 1e-5,
    "claimed": {"epsilon": 2.0},
    "rounding": 0.005,
}
NOISE: dict[str, Any] = {"noise_multiplier": ..., "claimed": {"noise_multiplier": 1.0, "epsilon": 2.0}}


def changed(**changes: Any) -> dict[str, Any]:
    entry = {**GOOD, **changes}
    return {key: value for key, value in entry.items() if value is not ...}


def parse(**changes: Any) -> claims.Claim:
    return claims.parse({"claim": [changed(**changes)]}, source="file")[0]


def test_epsilon() -> None:
    claim = parse()
    assert (claim.quantity, claim.value, claim.delta, claim.epsilon, claim.rounding) == (
        "epsilon",
        2.0,
        1e-5,
        None,
        0.005,
    )
    assert claim.setting is not None
    assert claim.setting.as_dict() == {
        "mechanism": "gaussian",
        "noise_multiplier": 1.1,
        "sensitivity": 1.0,
        "sampling_probability": 0.01,
        "num_steps": 100,
        "adjacency": "add_remove",
        "coins": "hidden",
    }


def test_delta() -> None:
    claim = parse(delta=..., epsilon=1.0, claimed={"delta": 1e-6}, rounding=...)
    assert (claim.quantity, claim.value, claim.delta, claim.epsilon) == ("delta", 1e-6, None, 1.0)


def test_noise_multiplier() -> None:
    claim = parse(**NOISE)
    assert (claim.quantity, claim.value, claim.delta, claim.epsilon) == ("noise_multiplier", 1.0, 1e-5, 2.0)
    assert claim.setting is not None and claim.setting.parameters["noise_multiplier"] == 1.0


def test_sizes_and_epochs() -> None:
    claim = parse(sampling_probability=..., num_steps=..., batch_size=256, dataset_size=60000, epochs=60)
    assert claim.setting is not None
    assert claim.setting.sampling_probability == 256 / 60000
    assert claim.setting.num_steps == 14063  # 60 * 60000 / 256 = 14062.5, rounded up
    exact = parse(sampling_probability=..., num_steps=..., batch_size=250, dataset_size=60000, epochs=0.1)
    assert exact.setting is not None and exact.setting.num_steps == 24  # 0.1 in decimal, not in binary


def test_no_sampling() -> None:
    claim = parse(sampling_probability=..., coins="none")
    assert claim.setting is not None
    assert not claim.setting.sampled
    assert str(claim.setting.threat_model().coins) == "none"


def test_what_cannot_be_accounted_for_is_kept_with_its_reason() -> None:
    claim = parse(mechanism="laplace", adjacency="replace")
    assert claim.setting is None
    assert "no dominating pair is known" in claim.reason


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"name": ...}, "name must be given"),
        ({"name": ""}, "name must be text that is not empty, got ''"),
        ({"name": "a\x1b[31mb"}, r"name must be printable, got 'a.x1b\[31mb'"),
        ({"name": "a\nb"}, "name must be printable, got 'a.nb'"),
        ({"source": 3}, "source must be text that is not empty, got 3"),
        ({"mechanism": "cauchy"}, "mechanism must be one of .*got 'cauchy'"),
        ({"mechansim": "gaussian"}, "mechansim must be a key of the format"),
        ({"noise_multiplier": -1.0}, "noise_multiplier must be finite and > 0, got -1"),
        (
            {"noise_multiplier": 10**400},
            r"noise_multiplier must be a number below 1.8e.308, got about 10\*\*400",
        ),
        ({"num_steps": -(10**400)}, r"num_steps must be a number below 1.8e.308, got about -10\*\*400"),
        ({"noise_multiplier": "1"}, "noise_multiplier must be a number, got '1'"),
        ({"noise_multiplier": ...}, "noise_multiplier must be given for gaussian"),
        ({"scaling": 1.0}, "scaling must be left out for gaussian"),
        ({"sampling_probability": 1.2}, r"sampling_probability must be in \[0, 1\], got 1.2"),
        ({"batch_size": 3}, "dataset_size must be given beside batch_size"),
        ({"dataset_size": 3}, "batch_size must be given beside dataset_size"),
        ({"batch_size": 3, "dataset_size": 9}, "sampling_probability must be left out"),
        (
            {"sampling_probability": ..., "batch_size": 9, "dataset_size": 3},
            r"batch_size must be <= dataset_size \(3\), got 9",
        ),
        ({"num_steps": 0}, "num_steps must be a whole number >= 1, got 0"),
        ({"epochs": 3}, "num_steps must be left out"),
        ({"num_steps": ..., "epochs": 3}, "epochs must go with batch_size and dataset_size, got 3"),
        ({"adjacency": "swap"}, "adjacency must be one of"),
        (
            {"coins": "none"},
            r"coins must be hidden or visible where there is sampling \(rate 0.01\), got none",
        ),
        ({"sampling_probability": ...}, "coins must be none where there is no sampling, got hidden"),
        ({"delta": 0.0}, r"delta must be in \(0, 1\), got 0"),
        ({"delta": ...}, "delta must be given beside claimed"),
        ({"epsilon": 1.0}, "epsilon must be left out"),
        ({"claimed": ...}, "claimed must be given"),
        ({"claimed": 1.0}, "claimed must be { epsilon }"),
        ({"claimed": {"sigma": 1.0}}, "claimed must be { epsilon }"),
        ({"claimed": {"epsilon": 0.0}}, "claimed.epsilon must be finite and > 0, got 0"),
        ({"claimed": {"epsilon": True}}, "claimed.epsilon must be a number, got True"),
        ({"claimed": {"delta": 1e-5}}, "delta must be left out"),
        (
            {"claimed": {"delta": 2.0}, "delta": ..., "epsilon": 1.0},
            r"claimed.delta must be in \(0, 1\), got 2",
        ),
        ({"claimed": {"delta": 1e-5}, "delta": ...}, "epsilon must be given beside claimed"),
        ({**NOISE, "noise_multiplier": 1.0}, "noise_multiplier must be left out"),
        (
            {**NOISE, "mechanism": "pure", "epsilon0": 1.0},
            "claimed.noise_multiplier must go with a noise mechanism",
        ),
        ({"rounding": -0.1}, "rounding must be finite and >= 0, got -0.1"),
        ({"rounding": 1.0}, r"rounding must be below half the claimed epsilon \(2.0\), got 1.0"),
        (
            {"claimed": {"delta": 1e-5}, "delta": ..., "epsilon": 1.0},
            r"rounding must be below half the claimed delta \(1e-05\), got 0.005",
        ),
        (
            {**NOISE, "rounding": 0.6},
            r"rounding must be below half the claimed noise_multiplier \(1.0\), got 0.6",
        ),
        ({"rounding": float("nan")}, "rounding must be a number, got nan"),
    ],
)
def test_bad_entries(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=rf"file: claim 1 .*: {message}"):
        parse(**changes)


def test_all_errors_are_reported_at_once() -> None:
    entries = [
        changed(name="one", delta=2.0),
        changed(name="two"),
        changed(name="two"),
        changed(name="four", num_steps=-1),
    ]
    with pytest.raises(ValueError) as caught:
        claims.parse({"claim": entries}, source="file")
    lines = str(caught.value).splitlines()
    assert len(lines) == 3
    assert "claim 1 ('one'): delta" in lines[0]
    assert "claim 3 ('two'): name must be unique" in lines[1]
    assert "claim 4 ('four'): num_steps" in lines[2]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "claim must be an array"),
        ("claim = 3", "claim must be an array"),
        ("other = 3", "top level must hold"),
        ("[[claim]", "must be valid TOML"),
        (f"a={'[' * 100_000}{']' * 100_000}", "claims.toml: .*nested"),
        (
            f"[[claim]]\n[[claim]]\nclaimed = {{ epsilon = 1{'0' * 5000} }}",
            "claims.toml: claim 2: epsilon must be a number below 1.8e.308, got one of 5001 digits",
        ),
    ],
)
def test_bad_files(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "claims.toml"
    path.write_text(text)
    with pytest.raises(ValueError, match=message):
        claims.load(path)


def test_missing_and_binary_files(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="must be readable text"):
        claims.load(tmp_path / "absent.toml")
    (tmp_path / "binary.toml").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(ValueError, match="must be readable text"):
        claims.load(tmp_path / "binary.toml")


@pytest.mark.parametrize("name", ["papers.toml", "published.toml"])
def test_the_gallery_is_well_formed(repository_root: Path, name: str) -> None:
    gallery = claims.load(repository_root / "benchmarks" / "claims" / name)
    assert len(gallery) >= 5
    assert all(claim.setting is not None or claim.reason for claim in gallery)
