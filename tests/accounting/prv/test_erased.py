"""Gaussian steps with visible coins in closed form: mpmath's sum, the other engines, edges."""

from __future__ import annotations

import math

import mpmath
import pytest

from exactdp.accounting import prv
from exactdp.accounting.pairs.gaussian import Gaussian
from exactdp.accounting.prv import erased
from exactdp.accounting.sampling.visible import PoissonVisible

CASES = [
    (2.0, 0.01, 100, 0.5),
    (2.0, 0.01, 100, 23.0),
    (0.1, 0.02, 2000, 3.0),
    (1.0, 0.5, 10, 0.0),
    (1.0, 0.999, 7, 2.0),
    (0.25, 1e-3, 5000, 20.0),
    (1.0, 0.01, 300, 200.0),
    (1e-3, 0.3, 50, 0.01),
]


def truth(mu: float, q: float, count: int, epsilon: float) -> mpmath.mpf:
    """The sum over the number of sampled steps, at 50 digits."""
    with mpmath.workdps(50):
        total, m, p, e = mpmath.mpf(0), mpmath.mpf(mu), mpmath.mpf(q), mpmath.mpf(epsilon)
        for k in range(1, count + 1):
            weight = mpmath.binomial(count, k) * p**k * (1 - p) ** (count - k)
            size = m * mpmath.sqrt(k)
            first, second = size / 2 - e / size, -size / 2 - e / size
            total += weight * (mpmath.ncdf(first) - mpmath.exp(e) * mpmath.ncdf(second))
        return total


def steps(mu: float, q: float, count: int) -> list[tuple[PoissonVisible, int]]:
    return [(PoissonVisible(Gaussian(1.0 / mu), q), count)]


@pytest.mark.parametrize(("mu", "q", "count", "epsilon"), CASES)
def test_against_fifty_digits(mu: float, q: float, count: int, epsilon: float) -> None:
    expected = truth(1.0 / (1.0 / mu), q, count, epsilon)
    found = prv.delta(steps(mu, q, count), epsilon=epsilon)
    assert found.engine == "closed form"
    assert found.lower <= expected <= found.upper
    assert found.width <= 1e-9 * found.upper
    back = prv.epsilon(steps(mu, q, count), delta=float(expected))
    assert back.lower <= epsilon * (1 + 1e-12) + 1e-15 and back.upper >= epsilon * (1 - 1e-12) - 1e-15
    assert back.width <= 1e-9 * max(epsilon, 1.0)


@pytest.mark.parametrize(("mu", "q", "count", "delta"), [(0.02, 0.02, 2000, 1e-5), (1.0, 0.1, 30, 1e-8)])
def test_the_lattice_agrees(mu: float, q: float, count: int, delta: float) -> None:
    closed = prv.epsilon(steps(mu, q, count), delta=delta)
    other = prv.epsilon(steps(mu, q, count), delta=delta, engine="lattice")
    assert max(closed.lower, other.lower) <= min(closed.upper, other.upper)
    assert closed.width < other.width


def test_both_directions_and_extremes() -> None:
    composition = steps(0.02, 0.02, 2000)
    ends = [prv.epsilon(composition, delta=1e-300, direction=direction) for direction in ("remove", "add")]
    assert ends[0] == ends[1] and ends[0].width <= 1e-6 * ends[0].upper
    # More steps than are summed one by one: the other engines answer.
    assert erased.hockey_stick(1.0, 0.5, 2**40) is None
    many = prv.epsilon(steps(1e-3, 0.01, 10**8), delta=1e-5)
    assert many.engine == "closed form" and many.width <= 1e-6 * many.upper
    # Nearly all of a million sampled steps is a Gaussian of mu sqrt(q n), up to the spread of their number.
    near = prv.epsilon([(Gaussian(1e3), 10**6)], delta=1e-5)
    assert many.upper == pytest.approx(near.upper, rel=5e-3)


def test_delta_falls_in_epsilon_and_starts_at_total_variation() -> None:
    values = prv.delta_curve(steps(1.0, 0.2, 5), epsilons=[0.0, 0.5, 1.0, 4.0, 30.0, 700.0])
    uppers = [value.upper for value in values]
    assert uppers == sorted(uppers, reverse=True) and 0.0 < uppers[0] < 1.0 and uppers[-1] < 1e-300
    sampled = math.fsum(
        math.comb(5, k) * 0.2**k * 0.8 ** (5 - k) * math.erf(0.5 * math.sqrt(k) / math.sqrt(2.0))
        for k in range(1, 6)
    )
    assert values[0].lower <= sampled * (1 + 1e-12) and sampled * (1 - 1e-12) <= values[0].upper
