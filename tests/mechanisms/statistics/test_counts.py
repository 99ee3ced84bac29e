"""Noisy counts: the samplers' law, and the privacy of a release by exact sums.

The samplers take their randomness from the operating system: tests of their law may fail by chance, once in a
billion runs.
"""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from exactdp.accounting.pairs.discrete_gaussian import DiscreteGaussian
from exactdp.accounting.pairs.discrete_laplace import DiscreteLaplace
from exactdp.mechanisms.statistics import counts
from exactdp.mechanisms.statistics.counts import Noise

NOISES: list[Noise] = [
    DiscreteLaplace(0.7),
    DiscreteLaplace(4.0),
    DiscreteGaussian(0.6),
    DiscreteGaussian(3.3),
]
_CHANCE = 1e-9


def law(noise: Noise, reach: int) -> np.ndarray:
    """Exact probabilities of -reach ... reach, from the definition."""
    x, scale = np.arange(-reach, reach + 1.0), float(noise.noise_multiplier)
    weight = np.exp(-np.abs(x) / scale if isinstance(noise, DiscreteLaplace) else -0.5 * (x / scale) ** 2)
    return weight / weight.sum()


def p_value(draws: np.ndarray, noise: Noise) -> float:
    """Of a chi-square test against the exact law, cells of few expected draws joined at the ends."""
    reach = int(60 * noise.noise_multiplier) + 5
    expected = law(noise, reach) * draws.size
    inner = np.flatnonzero(expected >= 10.0)
    places = np.clip(draws + reach, inner[0], inner[-1])
    seen = np.bincount(places, minlength=expected.size)[inner[0] : inner[-1] + 1]
    joined = expected[inner].copy()
    joined[0], joined[-1] = expected[: inner[0] + 1].sum(), expected[inner[-1] :].sum()
    return float(stats.chisquare(seen, joined, sum_check=False).pvalue)


def half(noise: Noise) -> Noise:
    return type(noise)(noise.noise_multiplier / 2.0)


@pytest.mark.parametrize("noise", NOISES, ids=str)
def test_the_sampler_has_the_pairs_law(noise: Noise) -> None:
    draws = counts.noisy(np.full(20_000, 1000), noise=noise) - 1000
    assert p_value(draws, noise) > _CHANCE
    broken = counts.noisy(np.full(20_000, 1000), noise=half(noise)) - 1000
    assert p_value(broken, noise) < _CHANCE


@pytest.mark.parametrize("noise", NOISES, ids=str)
def test_noises_are_independent(noise: Noise) -> None:
    draws = counts.noisy(np.zeros((10_000, 2), np.int64), noise=noise).astype(float)
    # Of 10 000 independent pairs, the correlation has the standard deviation 1/100.
    assert abs(np.corrcoef(draws.T)[0, 1]) < 0.07
    assert abs(np.corrcoef(draws[1:, 0], draws[:-1, 0])[0, 1]) < 0.07


def hockey_stick(p: np.ndarray, q: np.ndarray, epsilon: float) -> float:
    return float(np.maximum(p - math.exp(epsilon) * q, 0.0).sum())


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("noise", NOISES, ids=str)
def test_one_record_more_or_less_costs_what_the_pair_says(noise: Noise, reverse: bool) -> None:
    reach = int(60 * noise.noise_multiplier) + 5
    here, more = law(noise, reach), np.roll(law(noise, reach), 1)
    p, q = (here, more) if reverse else (more, here)
    for epsilon in (0.0, 0.1, 0.5, 1.3):
        value, error = noise.hockey_stick(epsilon, reverse=reverse)
        assert hockey_stick(p, q, epsilon) == pytest.approx(value, abs=error + 1e-12)


@pytest.mark.parametrize("noise", NOISES, ids=str)
def test_half_the_noise_costs_more_than_the_pair_says(noise: Noise) -> None:
    reach = int(60 * noise.noise_multiplier) + 5
    here = law(half(noise), reach)
    value, error = noise.hockey_stick(0.1)
    assert hockey_stick(np.roll(here, 1), here, 0.1) > value + error + 1e-3


@pytest.mark.parametrize("noise", [*NOISES, DiscreteGaussian(70.0)], ids=str)
def test_tail_and_quantile(noise: Noise) -> None:
    reach = int(60 * noise.noise_multiplier) + 5
    exact = law(noise, reach)
    for least in (1, 2, 7, 20):
        wanted = float(exact[reach + least :].sum())
        assert wanted * (1.0 - 1e-9) <= counts.tail(noise, least) <= wanted * (1.0 + 1e-9) + 1e-300
    for probability in (0.3, 0.01, 1e-7, 1e-14):
        t = counts.quantile(noise, probability)
        assert counts.tail(noise, t) <= probability
        assert t == 1 or counts.tail(noise, t - 1) > probability


def test_quantile_of_the_largest_noise() -> None:
    noise = DiscreteGaussian(1e8)
    assert counts.quantile(noise, 1e-7) == pytest.approx(-1e8 * stats.norm.ppf(1e-7), rel=1e-6)


def test_shapes_and_ends() -> None:
    assert counts.noisy(np.empty(0, np.int64), noise=NOISES[0]).shape == (0,)
    shaped = counts.noisy(np.full((2, 3), 2**53), noise=NOISES[2])
    assert shaped.shape == (2, 3)
    assert shaped.dtype == np.int64
    assert np.all(np.abs(shaped - 2**53) < 100)


@pytest.mark.parametrize(
    ("values", "noise", "message"),
    [
        ([0.5], NOISES[0], "whole numbers"),
        ([-1], NOISES[0], "counts must be in"),
        ([2**53 + 1], NOISES[0], "counts must be in"),
        ([1], DiscreteLaplace(1.0, 2), "sensitivity 1"),
        ([1], DiscreteLaplace(1e9), "noise multiplier"),
        ([1], 1.0, "DiscreteLaplace or a DiscreteGaussian"),
    ],
)
def test_bad_input(values: list[float], noise: Noise, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        counts.noisy(np.array(values), noise=noise)


def test_tail_refuses_zero() -> None:
    with pytest.raises(ValueError, match="least"):
        counts.tail(NOISES[0], 0)
    with pytest.raises(ValueError, match="probability"):
        counts.quantile(NOISES[0], 0.0)
