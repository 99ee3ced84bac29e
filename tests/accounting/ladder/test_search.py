"""The search: both ends certified, either monotonicity, limits and bad input."""

from __future__ import annotations

import pytest

from exactdp.accounting import prv
from exactdp.accounting.ladder.search import least_private
from exactdp.accounting.pairs.gaussian import Gaussian
from exactdp.accounting.pairs.pure import PureDP


@pytest.mark.parametrize("start", [1e-3, 1.0, 3.8, 1e4])
def test_decreasing(start: float) -> None:
    found = least_private(
        lambda s: [(Gaussian(s), 1)], epsilon=1.0, delta=1e-5, start=start, increasing=False, tolerance=1e-4
    )
    # Balle and Wang's analytic Gaussian mechanism: 3.730632 at (1, 1e-5).
    assert found.missed < 3.7306316 < found.met <= found.missed * 1.0002
    assert found.epsilon.upper <= 1.0
    assert prv.epsilon([(Gaussian(found.missed), 1)], delta=1e-5).lower > 1.0


def test_increasing() -> None:
    found = least_private(
        lambda e: [(PureDP(e), 1)], epsilon=0.7, delta=1e-9, start=10.0, increasing=True, tolerance=1e-3
    )
    assert found.met <= 0.7000001 <= found.missed * 1.001
    assert found.missed <= found.met * 1.0011


def test_limits() -> None:
    free = least_private(
        lambda e: [(PureDP(1.0), 0)], epsilon=0.5, delta=1e-5, start=1.0, increasing=True, tolerance=0.1
    )
    assert free.missed == float("inf")
    with pytest.raises(ArithmeticError, match="no parameter"):
        least_private(lambda e: [(PureDP(1.0), 1)], epsilon=0.5, delta=1e-9, start=1.0, increasing=True)


@pytest.mark.parametrize(
    ("name", "value"), [("epsilon", 0.0), ("delta", 1.0), ("start", -1.0), ("tolerance", 0.2)]
)
def test_bad_input(name: str, value: float) -> None:
    arguments = {"epsilon": 1.0, "delta": 1e-5, "start": 1.0, "tolerance": 1e-3} | {name: value}
    with pytest.raises(ValueError, match=name):
        least_private(lambda s: [(Gaussian(s), 1)], increasing=False, **arguments)
