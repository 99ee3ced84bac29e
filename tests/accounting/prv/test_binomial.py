"""Binomial tails against 40 digits, and a composition that they once got wrong."""

from __future__ import annotations

import math

import mpmath as mp
import pytest

from exactdp.accounting import prv
from exactdp.accounting.pairs.pure import PureDP
from exactdp.accounting.prv import binomial
from exactdp.accounting.sampling.hidden import PoissonHidden


def _log_mass(count: int, j: int, p: float) -> mp.mpf:
    log_choose = mp.loggamma(count + 1) - mp.loggamma(j + 1) - mp.loggamma(count - j + 1)
    return log_choose + j * mp.log(mp.mpf(p)) + (count - j) * mp.log1p(-mp.mpf(p))


@pytest.mark.parametrize("p", [1e-9, 1e-4, 0.03, 0.5, 0.500001, 0.97])
@pytest.mark.parametrize("count", [1, 2, 17, 1000, 40_000])
@pytest.mark.parametrize("deviation", [-3.0, 0.0, 4.0, 25.0])
@pytest.mark.parametrize("gap", [1e-5, 0.3, 8.0])
def test_tail(count: int, p: float, deviation: float, gap: float) -> None:
    with mp.workdps(40):
        q = float(1 - mp.mpf(p))
        k = min(max(round(count * p + deviation * math.sqrt(count * p * q)), 0), count)
        found = binomial.tail(count, p, q, gap, k)
        term, odds = mp.e ** _log_mass(count, k, p), mp.mpf(p) / (1 - mp.mpf(p))
        beyond = scaled = mp.mpf(0)
        for j in range(k, min(count, k + 6000) + 1):
            fall = mp.e ** (-mp.mpf(gap) * (j - k))
            beyond, scaled = beyond + term * (1 - fall), scaled + term * fall
            term *= odds * (count - j) / (j + 1)
        scale = mp.e ** mp.mpf(found.log_mass)
        for value, truth in ((found.beyond, beyond), (found.scaled, scaled)):
            assert abs(value * scale - truth) <= (found.error * value + found.left_out) * scale
        assert found.error <= 1e-9


@pytest.mark.parametrize("count", [10**6, 10**9])
@pytest.mark.parametrize("p", [1e-7, 0.2659, 0.5])
def test_the_largest_term(count: int, p: float) -> None:
    with mp.workdps(40):
        k = round(count * p + 13 * math.sqrt(count * p * (1 - p)))
        found = binomial.tail(count, p, 1 - p, 1e-5, k)
        assert abs(found.log_mass - _log_mass(count, k, p)) <= found.error <= 1e-8


def test_many_steps_of_a_small_loss() -> None:
    # Truth to 20 digits by exact summation (benchmarks/soundness).
    steps = [(PoissonHidden(PureDP(1.6890020387621884e-05), 0.26599941433457686), 1_526_193)]
    found = prv.epsilon(steps, delta=8.23e-42)
    assert found.engine == "closed form"
    assert found.lower <= 0.071677405712609669565 <= found.upper
    assert found.width <= 1e-12


@pytest.mark.parametrize(
    ("pure", "q", "count", "delta", "truth"),
    [
        # Where delta is this small, epsilon lies at the largest sum of losses; by the sum at 60 digits.
        (4.507, 0.06971204611213228, 2, 1.2895833165252596e-24, "0.142869595383836280761"),
        (7.941, 0.8515, 2, 1e-24, "3.810263901503783256"),
        (6.858, 0.9811, 3, 1e-20, "11.7464143788867168"),
        (5.387, 0.1623, 100, 1e-300, "17.62091164787292911"),
    ],
)
def test_at_the_largest_sum(pure: float, q: float, count: int, delta: float, truth: str) -> None:
    steps = [(PoissonHidden(PureDP(pure), q), count)]
    found = prv.epsilon(steps, delta=delta, direction="add")
    assert mp.mpf(found.lower) <= mp.mpf(truth) <= mp.mpf(found.upper)
    assert found.width <= 1e-11
    assert prv.delta(steps, epsilon=found.lower, direction="add").upper >= delta


def _delta(pure: float, q: float, count: int, epsilon: str) -> mp.mpf:
    """delta of Poisson-sampled randomised response, removal, by its binomial at 50 digits."""
    e, rate = mp.mpf(pure), mp.mpf(q)
    large = 1 / (1 + mp.e**-e)
    ratio_high = 1 - rate + rate * mp.e**e  # e^loss
    p_high = (1 - large) * ratio_high
    high, low = mp.log(ratio_high), mp.log(1 - rate + rate * mp.e**-e)
    at = mp.mpf(epsilon)
    k = int(mp.floor((at - count * low) / (high - low))) + 1
    log_choose = mp.loggamma(count + 1) - mp.loggamma(k + 1) - mp.loggamma(count - k + 1)
    term = mp.e ** (log_choose + k * mp.log(p_high) + (count - k) * mp.log1p(-p_high))
    total = mp.mpf(0)
    while True:
        gain = term * (1 - mp.e ** (at - k * high - (count - k) * low))
        total += gain
        term *= mp.mpf(count - k) / (k + 1) * p_high / (1 - p_high)
        k += 1
        if term < total * mp.mpf(10) ** -25:
            return total


@pytest.mark.parametrize(
    "pure, q, count, delta, truth",
    [
        (0.0004021167720686455, 1.0, 6_379_823, "3.07e-43", "14.269668555226372961"),
        (9.670332123344424e-05, 0.2135858135714374, 424_602, "1.38e-3", "0.012004408854267113847"),
        (0.0008852822892639475, 1.0, 9_998_749, "6.36e-71", "53.339707310869253153"),
        (0.0010225742033557453, 0.2671973849727764, 1_438_489, "4.32e-48", "4.7267020311349841474"),
    ],
)
def test_the_probabilities_rounding_is_not_raised_to_the_count(
    pure: float, q: float, count: int, delta: str, truth: str
) -> None:
    pair = PureDP(pure)
    found = prv.epsilon([(PoissonHidden(pair, q) if q < 1.0 else pair, count)], delta=float(delta))
    with mp.workdps(50):
        assert mp.mpf(found.lower) <= mp.mpf(truth) <= mp.mpf(found.upper)
        # The truth is the soundness reference's; its delta, by another route:
        assert abs(_delta(pure, q, count, truth) / mp.mpf(delta) - 1) < 1e-11
    assert found.width <= 1e-9 * found.upper
