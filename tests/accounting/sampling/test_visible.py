"""Poisson sampling with visible coins."""

from __future__ import annotations

import math

import mpmath
import pytest

from exactdp.accounting.pairs.gaussian import Gaussian
from exactdp.accounting.prv import account
from exactdp.accounting.sampling.hidden import PoissonHidden
from exactdp.accounting.sampling.visible import PoissonVisible


def truth(noise_multiplier: float, q: float, count: int, epsilon: float) -> mpmath.mpf:
    """A record pays for Binomial(count, q) Gaussian releases, which compose in closed form."""
    total = mpmath.mpf(0)
    for k in range(1, count + 1):
        weight = mpmath.binomial(count, k) * mpmath.mpf(q) ** k * (1 - mpmath.mpf(q)) ** (count - k)
        mu = mpmath.sqrt(k) / mpmath.mpf(noise_multiplier)
        upper = mpmath.ncdf(mu / 2 - epsilon / mu)
        total += weight * (upper - mpmath.exp(epsilon) * mpmath.ncdf(-mu / 2 - epsilon / mu))
    return total


@pytest.mark.parametrize(
    ("noise_multiplier", "q", "count", "epsilon"),
    [(1.0, 0.01, 1000, 23.0), (1.0, 0.01, 1000, 150.0), (5.0, 0.5, 100, 6.0), (2.0, 0.1, 300, 40.0)],
)
def test_composition_against_the_binomial_sum(
    noise_multiplier: float, q: float, count: int, epsilon: float
) -> None:
    composition = [(PoissonVisible(Gaussian(noise_multiplier), q), count)]
    found = account.delta(composition, epsilon=epsilon)
    with mpmath.workdps(40):
        value = truth(noise_multiplier, q, count, epsilon)
        assert mpmath.mpf(found.lower) <= value <= mpmath.mpf(found.upper)
    assert found.width <= 1e-5 * found.upper


def test_few_steps_by_the_lattice_engine() -> None:
    composition = [(PoissonVisible(Gaussian(1.0), 0.01), 10)]
    found = account.delta(composition, epsilon=4.0, engine="lattice")
    with mpmath.workdps(40):
        assert mpmath.mpf(found.lower) <= truth(1.0, 0.01, 10, 4.0) <= mpmath.mpf(found.upper)


def test_visible_coins_cost_more_than_hidden_ones() -> None:
    hidden = account.epsilon([(PoissonHidden(Gaussian(1.0), 0.01), 1000)], delta=1e-5)
    visible = account.epsilon([(PoissonVisible(Gaussian(1.0), 0.01), 1000)], delta=1e-5)
    assert visible.lower > 10.0 * hidden.upper


def test_limits_of_the_sampling_probability() -> None:
    pair = Gaussian(1.5)
    assert PoissonVisible(pair, 0.0).directions() is None
    whole = PoissonVisible(pair, 1.0).directions()
    assert whole is not None
    assert whole[0].hockey_stick(0.7) == pair.hockey_stick(0.7)
    near = PoissonVisible(pair, 1.0 - 1e-12).directions()
    assert near is not None
    assert near[0].hockey_stick(0.7)[0] == pytest.approx(pair.hockey_stick(0.7)[0], rel=1e-11)


def test_one_law_serves_both_directions_of_a_symmetric_pair() -> None:
    both = PoissonVisible(Gaussian(1.0), 0.5).directions()
    assert both is not None
    assert both[0] is both[1]


@pytest.mark.parametrize("q", [-0.1, 1.1, math.nan, math.inf])
def test_a_bad_probability_is_refused(q: float) -> None:
    with pytest.raises(ValueError, match="sampling_probability"):
        PoissonVisible(Gaussian(1.0), q)


def test_a_sampled_pair_is_refused() -> None:
    with pytest.raises(ValueError, match="pair must be a dominating pair"):
        PoissonVisible(PoissonHidden(Gaussian(1.0), 0.1), 0.1)  # type: ignore[arg-type]
