"""The certified intervals against the 40-digit truths of benchmarks/soundness/truths.json."""

from __future__ import annotations

import fractions
import json
import math
import pathlib

import pytest

from exactdp.accounting import prv
from exactdp.benchmarks import soundness
from exactdp.benchmarks.soundness.compare import composition, contains

PATH = pathlib.Path(soundness.__file__).parent / "truths.json"
ENTRIES = json.loads(PATH.read_text(encoding="utf-8"))["configurations"]
PUBLISHED = [e for e in ENTRIES if not e["name"].startswith("random")]
RANDOM = [e for e in ENTRIES if e["name"].startswith("random")]


def _check(entry: dict) -> None:
    interval = prv.epsilon(composition(entry["mechanisms"]), delta=float(entry["delta"]))
    assert contains(interval.lower, interval.upper, entry["epsilon"], 10.0 ** -entry["digits"]), (
        entry,
        interval,
    )
    assert interval.width <= 1e-3 * max(interval.upper, 0.01)


@pytest.mark.parametrize("entry", PUBLISHED, ids=lambda e: e["name"])
def test_published_inputs(entry: dict) -> None:
    _check(entry)


@pytest.mark.slow
@pytest.mark.parametrize("entry", RANDOM, ids=lambda e: e["name"])
def test_random_inputs(entry: dict) -> None:
    _check(entry)


def test_the_file_is_consistent() -> None:
    assert len(ENTRIES) >= 300
    assert PATH.stat().st_size < 600_000
    for entry in ENTRIES:
        assert 0 < fractions.Fraction(entry["delta"]) < 1
        assert 15 <= entry["digits"] <= 40
        ends = [float(entry[key]) for key in ("epsilon_remove", "epsilon_add")]
        assert math.isclose(float(entry["epsilon"]), max(0.0, *ends), rel_tol=1e-15)


def test_one_step_gaussian_truths_satisfy_the_closed_form() -> None:
    import mpmath

    checked = 0
    for entry in ENTRIES:
        mechanisms = entry["mechanisms"]
        if entry["method"] != "gaussian closed form" or len(mechanisms) > 1 or "adjacency" in mechanisms[0]:
            continue
        with mpmath.workdps(60 + int(2 * float(entry["epsilon"]))):
            mu = mpmath.sqrt(mechanisms[0]["count"]) / mpmath.mpf(mechanisms[0]["noise_multiplier"])
            epsilon = mpmath.mpf(entry["epsilon"])
            if epsilon == 0:
                continue
            delta = mpmath.ncdf(mu / 2 - epsilon / mu) - mpmath.exp(epsilon) * mpmath.ncdf(
                -mu / 2 - epsilon / mu
            )
            # an error of 1e-39 in epsilon moves log delta by about epsilon^2 / mu^2 times as much
            assert abs(delta / mpmath.mpf(entry["delta"]) - 1) < 1e-30
        checked += 1
    assert checked >= 5


def test_contains_is_exact_at_the_ends() -> None:
    third = "0.3333333333333333333333333333333333333333"
    assert contains(0.333, 0.334, third, 0.0)
    assert not contains(float.fromhex("0x1.5555555555556p-2"), 0.334, third, 0.0)
    assert contains(float.fromhex("0x1.5555555555556p-2"), 0.334, third, 1e-15)
    assert contains(1.0, math.inf, "inf", 0.0)
    assert not contains(1.0, 2.0, "inf", 0.0)
    assert not contains(math.inf, math.inf, "2", 0.0)
