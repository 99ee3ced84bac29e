"""Verdicts from injected numbers."""

from __future__ import annotations

import math

import pytest

from exactdp.benchmarks.check import verdict


@pytest.mark.parametrize(
    ("value", "rounding", "lower", "upper", "text"),
    [
        (1.0, 0.0, 0.999, 0.9991, "holds, tight"),
        (1.0, 0.0, 1.0, 1.0, "holds, tight"),
        (1.01, 0.0, 1.0, 1.0, "holds, tight"),
        (1.0101, 0.0, 1.0, 1.0, "holds, loose by 1.01"),
        (3.0, 0.0, 1.0, 2.0, "holds, loose by 1.50"),
        (1.0, 0.0, 1.0001, 1.0002, "violated"),
        (1.0, 0.0, 0.99999, 1.00001, "undecided"),
        # Rounding counts on both sides: it may be above by as much, and below by as much without being loose.
        (1.0, 0.05, 1.04, 1.041, "holds, tight"),
        (1.0, 0.05, 1.051, 1.06, "violated"),
        (1.0, 0.05, 1.04, 1.06, "undecided"),
        (0.1, 0.05, 0.06, 0.06, "holds, tight"),
        (0.1, 0.05, 0.04, 0.04, "holds, loose by 2.50"),
        (1.0, 0.0, 0.0, 0.0, "holds, loose by inf"),
        (1.0, 0.0, math.inf, math.inf, "violated"),
        (1.0, 0.0, 0.5, math.inf, "undecided"),
    ],
)
def test_of_loss(value: float, rounding: float, lower: float, upper: float, text: str) -> None:
    found = verdict.of_loss(value, rounding=rounding, lower=lower, upper=upper)
    assert found.text == text
    assert found.kind == text.split(",")[0]
    assert bool(found.reason) == (found.kind != "holds")


@pytest.mark.parametrize(
    ("value", "rounding", "lower", "upper", "needed", "text"),
    [
        (1.0, 0.0, 0.99, 0.9901, 0.995, "holds, tight"),
        (1.0, 0.0, 0.5, 0.5, 0.8, "holds, loose by 1.25"),
        (1.0, 0.0, 1.1, 1.1001, 1.05, "violated"),
        (1.0, 0.0, 0.999, 1.001, 1.0, "undecided"),
        (0.1, 0.02, 0.9, 0.9, 0.09, "holds, tight"),
        (1.0, 0.0, 0.9, 0.9, None, "holds"),
    ],
)
def test_of_noise(
    value: float, rounding: float, lower: float, upper: float, needed: float | None, text: str
) -> None:
    found = verdict.of_noise(value, rounding=rounding, epsilon=1.0, lower=lower, upper=upper, needed=needed)
    assert found.text == text


def test_reasons_carry_the_numbers() -> None:
    assert (
        "at least 2.5, 2.50 times the claim"
        in verdict.of_loss(1.0, rounding=0.0, lower=2.5, upper=2.6).reason
    )
    found = verdict.of_noise(1.0, rounding=0.0, epsilon=3.0, lower=3.5, upper=3.6, needed=1.25)
    assert "3.5" in found.reason and "1.25" in found.reason
