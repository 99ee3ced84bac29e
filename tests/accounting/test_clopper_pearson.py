"""Clopper and Pearson's interval: tails of the binomial law, coverage, and what is refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy import stats

from exactdp.accounting.clopper_pearson import clopper_pearson


@pytest.mark.parametrize(("k", "n"), [(0, 10), (10, 10), (3, 17), (1, 1), (500, 1000), (7, 10**9)])
def test_ends_are_where_the_tails_are(k: int, n: int) -> None:
    both = clopper_pearson(k, trials=n, confidence=0.9)
    if k:
        assert stats.binom.sf(k - 1, n, both.lower) == pytest.approx(0.05, rel=1e-6)
    else:
        assert both.lower == 0.0
    if k < n:
        assert stats.binom.cdf(k, n, both.upper) == pytest.approx(0.05, rel=1e-6)
    else:
        assert both.upper == 1.0
    lower, upper = (clopper_pearson(k, trials=n, confidence=0.95, side=side) for side in ("lower", "upper"))
    assert (lower.lower, lower.upper) == pytest.approx((both.lower, 1.0), rel=1e-9)
    assert (upper.lower, upper.upper) == pytest.approx((0.0, both.upper), rel=1e-9)


def test_no_trials_say_nothing() -> None:
    nothing = clopper_pearson(0, trials=0, confidence=0.95)
    assert (nothing.lower, nothing.upper) == (0.0, 1.0)


@pytest.mark.parametrize("p", [0.001, 0.2, 0.5, 0.97])
def test_coverage_is_at_least_nominal(p: float) -> None:
    """Summed over the binomial law, so that there is no chance in it."""
    n = 60
    covered = sum(
        stats.binom.pmf(k, n, p) for k in range(n + 1) if p in clopper_pearson(k, trials=n, confidence=0.9)
    )
    assert covered >= 0.9


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"successes": -1}, "successes must be a whole number >= 0"),
        ({"successes": 11}, "successes must be at most trials, got 11 of 10"),
        ({"trials": 2.5}, "trials must be a whole number"),
        ({"confidence": 1.0}, "confidence must be in .0, 1."),
        ({"confidence": float("nan")}, "confidence must be a number"),
        ({"side": "left"}, "side must be one of both, lower, upper"),
    ],
)
def test_refused(arguments: dict[str, Any], message: str) -> None:
    good: dict[str, Any] = {"successes": 3, "trials": 10, "confidence": 0.95}
    given = good | arguments
    with pytest.raises(ValueError, match=message):
        clopper_pearson(given.pop("successes"), **given)


def test_ends_move_with_the_count() -> None:
    ends = [clopper_pearson(k, trials=30, confidence=0.99) for k in range(31)]
    assert (np.diff([e.lower for e in ends]) > 0).all() and (np.diff([e.upper for e in ends])[:-1] > 0).all()
