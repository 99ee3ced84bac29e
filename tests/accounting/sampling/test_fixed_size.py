"""Sampling without replacement: it dominates real data sets, is attained, and is below Rényi bounds."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from scipy import integrate, special

from exactdp.accounting.laws.law import Law
from exactdp.accounting.pairs.finite import Finite
from exactdp.accounting.pairs.gaussian import Gaussian
from exactdp.accounting.prv import account
from exactdp.accounting.sampling.fixed_size import FixedSize
from exactdp.accounting.sampling.hidden import PoissonHidden

FACTORS = np.array([0.1, 0.5, 0.9, 1.0, 1.1, 2.0, 5.0])


def law_of(noise_multiplier: float, q: float) -> Law:
    both = FixedSize(Gaussian(noise_multiplier, sensitivity=2.0), q).directions()
    assert both is not None
    assert both[0] is both[1]
    return both[0]


def release(records: np.ndarray, m: int, noise_multiplier: float, x: np.ndarray) -> np.ndarray:
    """Density at `x` of the noised sum of m records drawn without replacement."""
    sums = [sum(s) for s in itertools.combinations(records, m)]
    return np.mean([np.exp(-((x - s) ** 2) / (2 * noise_multiplier**2)) for s in sums], axis=0) / (
        noise_multiplier * math.sqrt(2 * math.pi)
    )


@pytest.mark.parametrize(("n", "m", "noise_multiplier"), [(4, 2, 1.0), (5, 1, 0.5), (5, 4, 2.0)])
def test_it_dominates_all_data_sets_and_is_attained(n: int, m: int, noise_multiplier: float) -> None:
    rng = np.random.default_rng(11)
    law = law_of(noise_multiplier, m / n)
    bound = np.array([law.hockey_stick(math.log(a))[0] for a in FACTORS])
    x, step = np.linspace(-n - 9 * noise_multiplier, n + 9 * noise_multiplier, 20_001, retstep=True)

    def profile(one: np.ndarray, two: np.ndarray) -> np.ndarray:
        p, q = (release(r, m, noise_multiplier, x) for r in (one, two))
        return np.array([np.maximum(p - a * q, 0.0).sum() * step for a in FACTORS])

    for trial in range(40):
        rest = rng.uniform(-1.0, 1.0, n - 1) if trial % 2 else rng.choice([-1.0, 1.0], n - 1)
        one, two = rng.uniform(-1.0, 1.0, 2) if trial % 4 > 1 else (1.0, -1.0)
        assert np.all(profile(np.append(rest, one), np.append(rest, two)) <= bound + 1e-6)
    low, high = -np.ones(n), np.append(-np.ones(n - 1), 1.0)
    above = FACTORS >= 1.0
    np.testing.assert_allclose(profile(high, low)[above], bound[above], atol=1e-6)
    np.testing.assert_allclose(profile(low, high)[~above], bound[~above], atol=1e-6)


def test_two_steps_against_quadrature() -> None:
    noise_multiplier, q, epsilon = 1.5, 0.3, 0.8
    law, mu = law_of(noise_multiplier, q), 2.0 / noise_multiplier

    def loss(t: float) -> float:
        return math.log1p(q * math.expm1(mu * t - 0.5 * mu * mu))

    def normal(t: float) -> float:
        return math.exp(-0.5 * t * t) / math.sqrt(2.0 * math.pi)

    def second(first_loss: float) -> float:
        return law.hockey_stick(epsilon - first_loss)[0]

    # t ~ (1-q) N(0, 1) + q N(mu, 1) or N(0, 1); losses are positive for t > mu / 2.
    start = 0.5 * mu

    def mixed(t: float) -> float:
        return (1 - q) * normal(t) + q * normal(t - mu)

    up = integrate.quad(lambda t: mixed(t) * second(loss(t)), start, 12.0, epsabs=1e-13)
    down = integrate.quad(lambda t: normal(t) * second(-loss(t)), start, 12.0, epsabs=1e-13)
    tail, shifted = special.ndtr(-start), special.ndtr(start)
    atom = 1.0 - ((1 - q) * tail + q * shifted) - tail
    truth = up[0] + down[0] + atom * second(0.0)
    found = account.delta([(FixedSize(Gaussian(noise_multiplier, sensitivity=2.0), q), 2)], epsilon=epsilon)
    assert found.lower - 1e-9 <= truth <= found.upper + 1e-9
    assert found.width <= 1e-4 * found.upper


@pytest.mark.parametrize(("noise_multiplier", "q"), [(2.0, 0.05), (4.0, 0.01), (3.0, 0.3)])
def test_its_moments_are_below_wang_balle_kasiviswanathan(noise_multiplier: float, q: float) -> None:
    """arXiv 1808.00087, Theorem 9, with the Rényi curve of a Gaussian of sensitivity 2 and eps(inf) = inf."""

    def curve(j: int) -> float:
        return 2.0 * j / noise_multiplier**2

    edges = np.linspace(-8.0, 40.0, 400_001)
    masses = law_of(noise_multiplier, q).masses(edges)
    upper = np.append(edges, 60.0)
    for order in (2, 3, 5, 8):
        exact = math.log(float(masses.p @ np.exp((order - 1) * upper))) / (order - 1)
        total = 1.0 + q**2 * math.comb(order, 2) * min(4 * math.expm1(curve(2)), 2 * math.exp(curve(2)))
        for j in range(3, order + 1):
            total += q**j * math.comb(order, j) * 2 * math.exp((j - 1) * curve(j))
        assert 0.0 < exact < math.log(total) / (order - 1)


def test_it_is_above_the_attained_lower_bound() -> None:
    pair = Gaussian(5.0, sensitivity=2.0)
    bound = account.epsilon([(FixedSize(pair, 0.1), 200)], delta=1e-6, tolerance=1e-3)
    attained = account.epsilon([(PoissonHidden(pair, 0.1), 200)], delta=1e-6)
    assert attained.lower < bound.upper
    assert bound.lower > 0.999 * attained.upper


def test_limits_of_the_sampling_probability() -> None:
    pair = Gaussian(2.0, sensitivity=2.0)
    assert FixedSize(pair, 0.0).directions() is None
    for epsilon in (-1.0, 0.0, 2.0):
        expected = pair.hockey_stick(epsilon)[0]
        assert law_of(2.0, 1.0).hockey_stick(epsilon)[0] == expected
        assert law_of(2.0, 1.0 - 1e-12).hockey_stick(epsilon)[0] == pytest.approx(expected, rel=1e-10)


@pytest.mark.parametrize("q", [-0.1, 1.1, math.nan])
def test_a_bad_probability_is_refused(q: float) -> None:
    with pytest.raises(ValueError, match="sampling_probability"):
        FixedSize(Gaussian(1.0, sensitivity=2.0), q)


def test_pairs_that_do_not_suit_are_refused() -> None:
    with pytest.raises(ValueError, match="pair must be symmetric"):
        FixedSize(Finite(p=(0.5, 0.5), q=(0.9, 0.1)), 0.1)
    with pytest.raises(ValueError, match="pair must be a dominating pair"):
        FixedSize(PoissonHidden(Gaussian(1.0), 0.1), 0.1)  # type: ignore[arg-type]
