"""One-run audits from scores: the choice of the number of guesses is paid for, and pays."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from exactdp.accounting.audit import canaries, one_run_fdp
from exactdp.accounting.audit.canaries import Bound
from exactdp.accounting.fdp.gaussian import GaussianTradeoff
from exactdp.accounting.threat import Adjacency, Coins, ThreatModel

MODEL = ThreatModel(Adjacency.ADD_REMOVE, Coins.NONE, "one output")


def draw(m: int, mu: float, generator: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    included = generator.random(m) < 0.5
    return generator.standard_normal(m) + mu * included, included


@pytest.mark.parametrize("bound", canaries.BOUNDS)
def test_coverage(bound: Bound) -> None:
    truth, repeats, delta = GaussianTradeoff(0.5).epsilon(1e-2), 60, 1e-2
    generator = np.random.default_rng(1)
    failures = 0
    for _ in range(repeats):
        found = canaries.result(
            *draw(200, 0.5, generator), delta=delta, threat_model=MODEL, bound=bound, confidence=0.8
        )
        failures += found.epsilon_lower > truth or (found.mu_lower or 0.0) > 0.5
    assert failures <= stats.binom.isf(1e-4, repeats, 0.2)


def test_searching_pays() -> None:
    scores, included = draw(20_000, 2.0, np.random.default_rng(2))
    found = canaries.result(scores, included, delta=1e-5, threat_model=MODEL, bound="gaussian")
    assert found.confidence == 0.95 and found.trials == 20_000
    assert "numbers of guesses" in found.method and found.assumption
    everything = canaries.result(
        scores, included, delta=1e-5, threat_model=MODEL, bound="gaussian", guesses=[(10_000, 10_000)]
    )
    exact = GaussianTradeoff(2.0).epsilon(1e-5)
    assert everything.epsilon_lower < found.epsilon_lower
    assert 0.55 * exact < found.epsilon_lower < exact
    assert found.mu_lower is not None and found.epsilon_lower == GaussianTradeoff(found.mu_lower).epsilon(
        1e-5
    )
    free = canaries.result(scores, included, delta=1e-5, threat_model=MODEL)
    assert free.assumption == "" and 0.0 < free.epsilon_lower < found.epsilon_lower


def test_one_choice_is_the_plain_bound() -> None:
    scores, included = draw(500, 1.0, np.random.default_rng(3))
    found = canaries.result(scores, included, delta=1e-3, threat_model=MODEL, guesses=[(50, 0)])
    correct = int(included[np.argsort(scores)[-50:]].sum())
    assert found.epsilon_lower == one_run_fdp.epsilon_lower(
        delta=1e-3, num_canaries=500, guesses=50, correct=correct
    )


def test_default_guesses() -> None:
    assert canaries.default_guesses(1000) == [(500, 500), (125, 125), (31, 31), (8, 7)]
    assert canaries.default_guesses(3) == [(2, 1)]


def test_bad_input() -> None:
    with pytest.raises(ValueError, match="bound must be one of dp, f-dp, gaussian"):
        canaries.result([1.0], [True], delta=0.0, threat_model=MODEL, bound="rdp")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="scores must be a list"):
        canaries.result([], [], delta=0.0, threat_model=MODEL)
    with pytest.raises(ValueError, match="guesses must hold at least one"):
        canaries.result([1.0], [True], delta=0.0, threat_model=MODEL, guesses=[])
    with pytest.raises(ValueError, match="guesses must be at most the 1 canaries"):
        canaries.result([1.0], [True], delta=0.0, threat_model=MODEL, guesses=[(1, 1)])
    with pytest.raises(ValueError, match="delta must be in"):
        canaries.result([1.0], [True], delta=0.0, threat_model=MODEL, bound="gaussian")
