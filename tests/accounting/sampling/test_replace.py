"""Replacement of a Poisson-sampled record: dominance, attainment, composition."""

from __future__ import annotations

import math

import mpmath
import numpy as np
import pytest

from exactdp.accounting.laws.law import Law
from exactdp.accounting.pairs.gaussian import Gaussian
from exactdp.accounting.prv import account
from exactdp.accounting.sampling.hidden import PoissonHidden
from exactdp.accounting.sampling.replace import PoissonReplaceGaussian


def law_of(noise_multiplier: float, q: float) -> Law:
    both = PoissonReplaceGaussian(noise_multiplier, q).directions()
    assert both is not None
    assert both[0] is both[1]
    return both[0]


def plane_hockey_stick(
    noise_multiplier: float, q: float, v: np.ndarray, w: np.ndarray, factors: np.ndarray
) -> np.ndarray:
    """H_a of (1-q)N(0)+qN(v) against (1-q)N(0)+qN(w) in the plane, by the midpoint rule."""
    reach, count = 1.0 + 7.0 * noise_multiplier, 400
    step = 2.0 * reach / count
    axis = -reach + step * (np.arange(count) + 0.5)
    x = np.stack(np.meshgrid(axis, axis), axis=-1)

    def density(mean: np.ndarray) -> np.ndarray:
        square = ((x - mean) ** 2).sum(axis=-1) / (2.0 * noise_multiplier**2)
        return np.exp(-square) / (2.0 * math.pi * noise_multiplier**2)

    rest = (1.0 - q) * density(np.zeros(2))
    p, r = rest + q * density(v), rest + q * density(w)
    return np.array([np.maximum(p - a * r, 0.0).sum() * step**2 for a in factors])


@pytest.mark.parametrize(("noise_multiplier", "q"), [(1.0, 0.3), (0.5, 0.05), (3.0, 0.9)])
def test_no_pair_of_vectors_in_the_ball_exceeds_it_and_opposite_ones_attain_it(
    noise_multiplier: float, q: float
) -> None:
    rng = np.random.default_rng(7)
    law = law_of(noise_multiplier, q)
    factors = np.array([0.2, 0.8, 1.0, 1.1, 1.5, 4.0])
    candidate = np.array([law.hockey_stick(math.log(a))[0] for a in factors])
    tolerance = 1e-4
    for trial in range(12):
        v, w = rng.normal(size=(2, 2))
        # Half of the trials on the sphere, half inside.
        v, w = (x / np.linalg.norm(x) * (1.0 if trial % 2 else rng.uniform() ** 0.5) for x in (v, w))
        assert np.all(plane_hockey_stick(noise_multiplier, q, v, w, factors) <= candidate + tolerance)
    angle = np.array([math.cos(1.0), math.sin(1.0)])
    attained = plane_hockey_stick(noise_multiplier, q, angle, -angle, factors)
    np.testing.assert_allclose(attained, candidate, rtol=0, atol=tolerance)


def composed_truth(noise_multiplier: float, q: float, count: int, epsilon: float, order: float) -> mpmath.mpf:
    """delta by the contour integral at order + iy, moments by the trapezoid rule in x, all at 30 digits."""
    s, q_ = mpmath.mpf(noise_multiplier), mpmath.mpf(q)
    step = s / 10
    x = [k * step for k in range(int(-13 * 10 - 10 / s), int(13 * 10 + 10 * (1 + 2 * order) / s))]

    def log_w(t: mpmath.mpf) -> mpmath.mpf:
        return mpmath.log(1 - q_ + q_ * mpmath.exp((2 * t - 1) / (2 * s * s)))

    pairs = [(t, log_w(t), log_w(t) - log_w(-t)) for t in x]
    terms = [(mpmath.npdf(t, 0, s) * step * mpmath.exp(a + order * b), b) for t, a, b in pairs]
    least = mpmath.fsum(term for term, _ in terms) * mpmath.mpf(10) ** -28
    base, loss = zip(*[(term, b) for term, b in terms if term > least], strict=True)
    width = mpmath.mpf(2) * mpmath.pi / 50
    turn = [mpmath.expj(width * b) for b in loss]
    total, current = mpmath.mpf(0), list(base)
    for k in range(100_000):
        z = mpmath.mpc(order, k * width)
        term = mpmath.fsum(current) ** count * mpmath.exp(-z * epsilon) / (z * (z + 1))
        total += term.real * (mpmath.mpf(0.5) if k == 0 else 1)
        if abs(term) < abs(total) * mpmath.mpf(10) ** -18:
            return total * width / mpmath.pi
        current = [c * t for c, t in zip(current, turn, strict=True)]
    raise AssertionError("the reference did not converge")


@pytest.mark.parametrize(
    ("noise_multiplier", "q", "count", "epsilon", "order"),
    [(1.0, 0.01, 1000, 2.843, 6.0), (5.0, 0.5, 100, 9.9, 4.0)],
)
def test_composition_against_a_30_digit_contour(
    noise_multiplier: float, q: float, count: int, epsilon: float, order: float
) -> None:
    with mpmath.workdps(30):
        truth = composed_truth(noise_multiplier, q, count, epsilon, order)
        composition = [(PoissonReplaceGaussian(noise_multiplier, q), count)]
        for engine, width in (("contour", 1e-9), ("lattice", 1e-4)):
            found = account.delta(composition, epsilon=epsilon, engine=engine)  # type: ignore[arg-type]
            assert found.width <= width * found.upper
            assert mpmath.mpf(found.lower) <= truth <= mpmath.mpf(found.upper)


def test_composition_against_simulation() -> None:
    noise_multiplier, q, count, epsilon, trials = 0.8, 0.2, 12, 1.5, 200_000
    rng = np.random.default_rng(3)
    x = noise_multiplier * rng.standard_normal((trials, count)) + (rng.random((trials, count)) < q)
    variance = 2.0 * noise_multiplier**2
    one, two = (np.log1p(q * np.expm1((2.0 * sign * x - 1.0) / variance)) for sign in (1, -1))
    payoff = np.maximum(-np.expm1(epsilon - (one - two).sum(axis=1)), 0.0)
    spread = 5.0 * payoff.std() / math.sqrt(trials)
    found = account.delta([(PoissonReplaceGaussian(noise_multiplier, q), count)], epsilon=epsilon)
    assert found.lower - spread <= payoff.mean() <= found.upper + spread
    assert spread < 0.02 * found.upper


def test_it_lies_between_add_remove_and_the_group_of_two() -> None:
    alone = account.epsilon([(PoissonHidden(Gaussian(1.0), 0.01), 1000)], delta=1e-5)
    replaced = account.epsilon([(PoissonReplaceGaussian(1.0, 0.01), 1000)], delta=1e-5)
    doubled = account.epsilon([(PoissonHidden(Gaussian(1.0, sensitivity=2.0), 0.01), 1000)], delta=1e-5)
    assert alone.upper < replaced.lower
    assert replaced.upper < doubled.lower


def test_limits_of_the_sampling_probability() -> None:
    assert PoissonReplaceGaussian(1.0, 0.0).directions() is None
    for epsilon in (-1.0, 0.0, 0.5, 3.0):
        expected = Gaussian(2.0, sensitivity=2.0).hockey_stick(epsilon)[0]
        assert law_of(2.0, 1.0).hockey_stick(epsilon)[0] == expected
        assert law_of(2.0, 1.0 - 1e-12).hockey_stick(epsilon)[0] == pytest.approx(expected, rel=1e-11)
        none = max(-math.expm1(epsilon), 0.0)
        assert law_of(2.0, 1e-12).hockey_stick(epsilon)[0] == pytest.approx(none, abs=1e-11)


def test_one_step_at_epsilon_zero_is_the_total_variation() -> None:
    # The densities cross at 0: q (Phi(1/s) - Phi(-1/s)).
    value, error = law_of(0.7, 0.3).hockey_stick(0.0)
    assert abs(value - 0.3 * math.erf(1.0 / (0.7 * math.sqrt(2.0)))) <= error + 1e-16


@pytest.mark.parametrize("noise_multiplier", [0.0, -1.0, math.nan, math.inf, 1e-200, 1e200])
def test_a_bad_noise_multiplier_is_refused(noise_multiplier: float) -> None:
    with pytest.raises(ValueError, match="noise_multiplier"):
        PoissonReplaceGaussian(noise_multiplier, 0.1)


@pytest.mark.parametrize("q", [-0.1, 1.1, math.nan])
def test_a_bad_probability_is_refused(q: float) -> None:
    with pytest.raises(ValueError, match="sampling_probability"):
        PoissonReplaceGaussian(1.0, q)
