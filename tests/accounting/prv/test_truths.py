"""Every interval contains the 40-digit truth of the soundness set."""

from __future__ import annotations

import json
import math
import pathlib
from typing import Any

import pytest

from exactdp.accounting import prv
from exactdp.benchmarks.soundness import compare

TRUTHS = pathlib.Path(compare.__file__).with_name("truths.json")
CONFIGURATIONS = [c for c in json.loads(TRUTHS.read_text())["configurations"] if "epsilon" in c]


def _error(digits: int) -> float:
    return 10.0 ** (1 - digits)


@pytest.mark.parametrize("configuration", CONFIGURATIONS, ids=lambda c: c["name"])
def test_epsilon_contains_the_truth(configuration: dict[str, Any]) -> None:
    composition = compare.composition(configuration["mechanisms"])
    found = prv.epsilon(composition, delta=float(configuration["delta"]), tolerance=None)
    assert compare.contains(
        found.lower, found.upper, configuration["epsilon"], _error(configuration["digits"])
    )
    truth = float(configuration["epsilon"])
    assert found.width <= 1e-3 * max(truth, 0.01)


@pytest.mark.parametrize(
    "configuration", [c for c in CONFIGURATIONS if "delta_at" in c], ids=lambda c: c["name"]
)
@pytest.mark.parametrize("direction", ["remove", "add"])
def test_delta_contains_the_truth(configuration: dict[str, Any], direction: str) -> None:
    at = configuration["delta_at"]
    if direction not in at:
        pytest.fail(f"the soundness set has no delta in direction {direction} for {configuration['name']}")
    composition = compare.composition(configuration["mechanisms"])
    # The decimal epsilon lies between two floats, and delta falls: near the largest loss by much.
    epsilon = float(at["epsilon"])
    around = [math.nextafter(epsilon, side) for side in (0.0, math.inf)]
    before, after = prv.delta_curve(composition, epsilons=around, direction=direction)
    assert compare.contains(after.lower, before.upper, at[direction], _error(at["digits"]) + 1e-13)
