"""One-run audits: published value, validity and tightness on known mechanisms, bad input."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import special, stats

from exactdp.accounting.audit import one_run, one_run_fdp
from exactdp.accounting.fdp.curve import PiecewiseLinearTradeoff, from_epsilon_delta
from exactdp.accounting.fdp.gaussian import GaussianTradeoff
from exactdp.accounting.threat import Adjacency, Coins, ThreatModel

MODEL = ThreatModel(Adjacency.ADD_REMOVE, Coins.NONE, "one output")


def test_published_value() -> None:
    # arXiv 2305.08846, Appendix D.
    found = one_run.epsilon_lower(delta=1e-4, num_canaries=1000, guesses=100, correct=75)
    assert found == pytest.approx(0.673, abs=5e-4)


def test_p_value_by_definition() -> None:
    m, r, v, epsilon, delta = 40, 12, 9, 0.8, 1e-3
    pmf = stats.binom.pmf(np.arange(r + 1), r, special.expit(epsilon))
    alpha = max(pmf[v - i : v].sum() / i for i in range(1, v + 1))
    expected = pmf[v:].sum() + 2 * m * delta * alpha
    found = one_run.p_value(epsilon, delta=delta, num_canaries=m, guesses=r, correct=v)
    assert found == pytest.approx(expected, rel=1e-12)
    pure = one_run.p_value(epsilon, delta=0.0, num_canaries=m, guesses=r, correct=v)
    assert pure == pytest.approx(pmf[v:].sum(), rel=1e-12)


def randomised_response(m: int, epsilon: float, delta: float, generator: np.random.Generator) -> int:
    """Correct guesses of m canaries: a bit is shown with probability delta, else kept as epsilon allows."""
    right = generator.random(m) < delta + (1.0 - delta) * special.expit(epsilon)
    return int(right.sum())


@pytest.mark.parametrize("delta", [0.0, 0.01])
def test_coverage_on_randomised_response(delta: float) -> None:
    m, epsilon, repeats = 200, 1.0, 1500
    generator = np.random.default_rng(1)
    correct = [randomised_response(m, epsilon, delta, generator) for _ in range(repeats)]
    for module in (one_run, one_run_fdp):
        bounds = {
            v: module.epsilon_lower(delta=delta, num_canaries=m, guesses=m, correct=v, confidence=0.9)
            for v in set(correct)
        }
        failures = sum(bounds[v] > epsilon for v in correct)
        assert failures <= stats.binom.isf(1e-4, repeats, 0.1)
        assert np.mean([bounds[v] for v in correct]) > 0.3


def shared_failure(m: int, delta: float, generator: np.random.Generator) -> int:
    """All bits are shown at once with probability delta, else nothing is: (0, delta)-DP for each bit."""
    return m if generator.random() < delta else int(generator.binomial(m, 0.5))


def test_coverage_when_all_canaries_fail_together() -> None:
    m, delta, repeats = 50, 0.04, 3000
    generator = np.random.default_rng(2)
    correct = [shared_failure(m, delta, generator) for _ in range(repeats)]
    for module in (one_run, one_run_fdp):
        bounds = {
            v: module.epsilon_lower(delta=delta, num_canaries=m, guesses=m, correct=v, confidence=0.95)
            for v in set(correct)
        }
        failures = sum(bounds[v] > 0.0 for v in correct)
        assert failures <= stats.binom.isf(1e-4, repeats, 0.05)


@pytest.mark.parametrize(("guesses", "mu"), [(100, 1.0), (200, 2.0)])
def test_gaussian_canaries(guesses: int, mu: float) -> None:
    # Each canary has a coordinate of its own: the scores are independent N(+-mu/2, 1).
    m, repeats = 1000, 600
    generator = np.random.default_rng(3)
    truth = GaussianTradeoff(mu)
    failures, mus, epsilons = 0, [], []
    known: dict[int, tuple[float, float, float]] = {}
    for _ in range(repeats):
        included = generator.random(m) < 0.5
        scores = generator.standard_normal(m) + mu * included
        v = one_run.correct_guesses(
            scores, included, positive_guesses=guesses // 2, negative_guesses=guesses // 2
        )
        if v not in known:
            sizes = {"num_canaries": m, "guesses": guesses, "correct": v, "confidence": 0.9}
            known[v] = (
                one_run_fdp.mu_lower(**sizes),
                one_run_fdp.epsilon_lower(delta=1e-2, **sizes),
                one_run.epsilon_lower(delta=1e-2, **sizes),
            )
        failures += known[v][0] > mu or max(known[v][1:]) > truth.epsilon(1e-2)
        mus.append(known[v][0])
        epsilons.append(known[v])
    assert failures <= stats.binom.isf(1e-4, repeats, 0.1)
    assert np.mean(mus) > 0.55 * mu
    # The curve tells more than one of its points.
    assert truth.epsilon(1e-2) >= GaussianTradeoff(float(np.mean(mus))).epsilon(1e-2)
    assert GaussianTradeoff(float(np.mean(mus))).epsilon(1e-2) > np.mean([e[2] for e in epsilons])


def test_few_sure_guesses_tell_more_than_many() -> None:
    # With all canaries guessed, a mechanism that tells a lot about all of them now and then has the same
    # curve, and as many correct guesses with probability 5 %; the bound allows for it.
    m, mu = 100_000, 1.0
    generator = np.random.default_rng(4)
    included = generator.random(m) < 0.5
    scores = generator.standard_normal(m) + mu * included
    found: list[float] = []
    for guesses in (2000, m):
        v = one_run.correct_guesses(
            scores, included, positive_guesses=guesses // 2, negative_guesses=guesses // 2
        )
        found.append(one_run_fdp.mu_lower(num_canaries=m, guesses=guesses, correct=v))
    assert 0.75 * mu < found[0] <= mu
    assert found[1] < 0.5 * mu


@pytest.mark.parametrize("epsilon", [0.0, 0.5, 2.0])
@pytest.mark.parametrize("correct", [30, 45, 60])
def test_recursion_is_above_the_attained_probability(epsilon: float, correct: int) -> None:
    # Randomised response attains the binomial tail, so no valid bound is below it.
    tail = stats.binom.sf(correct - 1, 60, special.expit(epsilon))
    bound = one_run_fdp.p_value(from_epsilon_delta(epsilon), num_canaries=60, guesses=60, correct=correct)
    assert tail <= bound * (1.0 + 1e-9)
    assert bound >= 1e-12
    if 1e-10 < tail < 1e-3:
        assert bound <= 1.3 * tail


def test_recursion_against_all_laws_of_few_guesses() -> None:
    # The largest Pr[N >= v] over all laws that satisfy the inequalities, by a search over a fine grid.
    m = r = 2
    v, curve = 2, from_epsilon_delta(1.0, delta=0.05)
    grid = np.linspace(0.0, 1.0, 1001)
    best = 0.0
    for p2 in grid:
        p1 = grid[grid <= 1.0 - p2 + 1e-12]
        p0 = 1.0 - p2 - p1
        second = 1.0 - np.interp((p1 + 0.0 * p2) / m, curve.fpr_knots, curve.fnr_knots) >= 2.0 * p2 / m
        first = (
            1.0 - np.interp(np.minimum((2.0 * p0 + p1) / m, 1.0), curve.fpr_knots, curve.fnr_knots)
            >= (2.0 * p2 + p1) / m
        )
        if np.any(second & first):
            best = p2
    found = one_run_fdp.p_value(curve, num_canaries=m, guesses=r, correct=v)
    assert found == pytest.approx(best, abs=2e-3)


def test_f_dp_beats_the_general_bound_at_positive_delta() -> None:
    for v in (75, 90, 99):
        sizes = {"num_canaries": 1000, "guesses": 100, "correct": v}
        assert one_run_fdp.epsilon_lower(delta=1e-3, **sizes) > one_run.epsilon_lower(delta=1e-3, **sizes)


def test_extremes() -> None:
    for module in (one_run, one_run_fdp):
        assert module.epsilon_lower(delta=0.0, num_canaries=10, guesses=0, correct=0) == 0.0
        assert (
            module.epsilon_lower(delta=0.0, num_canaries=10, guesses=4, correct=4) == 0.0
        )  # too few to tell
        assert module.epsilon_lower(delta=0.0, num_canaries=10, guesses=10, correct=0) == 0.0
        all_right = module.epsilon_lower(delta=0.0, num_canaries=1000, guesses=1000, correct=1000)
        assert all_right == pytest.approx(-math.log(0.05 ** (-1 / 1000) - 1.0), abs=0.02)
    assert one_run.p_value(0.0, delta=1.0, num_canaries=5, guesses=5, correct=5) <= 1.0
    assert one_run_fdp.p_value(GaussianTradeoff(0.0), num_canaries=5, guesses=5, correct=0) == 1.0


def test_correct_guesses() -> None:
    scores = [0.1, 5.0, -2.0, 3.0, 0.0]
    included = [True, True, False, False, True]
    assert one_run.correct_guesses(scores, included, positive_guesses=2, negative_guesses=1) == 2
    assert one_run.correct_guesses(scores, included, positive_guesses=0, negative_guesses=0) == 0
    assert one_run.correct_guesses(scores, included, positive_guesses=5, negative_guesses=0) == 3
    with pytest.raises(ValueError, match="guesses must be at most the 5 canaries"):
        one_run.correct_guesses(scores, included, positive_guesses=4, negative_guesses=2)
    with pytest.raises(ValueError, match="scores must not hold NaN"):
        one_run.correct_guesses([math.nan], [True], positive_guesses=1, negative_guesses=0)
    with pytest.raises(ValueError, match="scores and included must be"):
        one_run.correct_guesses(scores, [1, 1, 0, 0, 1], positive_guesses=1, negative_guesses=0)


def test_results() -> None:
    sizes = {"num_canaries": 500, "guesses": 500, "correct": 400}
    first = one_run.result(delta=1e-5, threat_model=MODEL, **sizes)
    second = one_run_fdp.result(delta=1e-5, threat_model=MODEL, **sizes)
    third = one_run_fdp.result(delta=1e-5, threat_model=MODEL, gaussian=True, **sizes)
    assert first.epsilon_lower == one_run.epsilon_lower(delta=1e-5, **sizes)
    assert second.assumption == "" and third.assumption != ""
    assert third.mu_lower == second.mu_lower
    assert third.epsilon_lower > second.epsilon_lower > 0.9


def test_bad_input() -> None:
    with pytest.raises(ValueError, match="counts must be correct <= guesses <= num_canaries"):
        one_run.p_value(1.0, delta=0.0, num_canaries=5, guesses=4, correct=5)
    with pytest.raises(ValueError, match="epsilon must be at most 700"):
        one_run.p_value(701.0, delta=0.0, num_canaries=5, guesses=4, correct=3)
    with pytest.raises(ValueError, match="delta must be in"):
        one_run_fdp.epsilon_lower(delta=1.0, num_canaries=5, guesses=4, correct=3)
    with pytest.raises(ValueError, match="confidence must be in"):
        one_run.epsilon_lower(delta=0.0, num_canaries=5, guesses=4, correct=3, confidence=0.0)
    lopsided = PiecewiseLinearTradeoff((0.0, 0.5, 1.0), (0.6, 0.05, 0.0))
    with pytest.raises(ValueError, match="curve must be symmetric"):
        one_run_fdp.p_value(lopsided, num_canaries=5, guesses=4, correct=3)
    assert one_run_fdp.p_value(lopsided.symmetrised(), num_canaries=5, guesses=4, correct=3) <= 1.0
