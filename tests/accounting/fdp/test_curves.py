"""Operations on trade-off curves, Gaussian curves, approximations and attack bounds."""

from __future__ import annotations

import math

import hypothesis
import mpmath
import numpy as np
import pytest
from hypothesis import strategies as st
from scipy import stats

from exactdp.accounting.fdp import gaussian, risk
from exactdp.accounting.fdp.approximation import Approximation
from exactdp.accounting.fdp.curve import PiecewiseLinearTradeoff, from_epsilon_delta
from exactdp.accounting.interval import Interval

SKEW = PiecewiseLinearTradeoff((0.0, 0.2, 1.0), (0.9, 0.3, 0.0))


def test_epsilon_delta_round_trip():
    curve = from_epsilon_delta(1.3, delta=0.05)
    assert curve(0.0) == pytest.approx(0.95, abs=1e-15)
    assert curve(0.01) == pytest.approx(0.95 - math.exp(1.3) * 0.01)
    assert curve.delta(1.3) == pytest.approx(0.05, abs=1e-14)
    assert curve.epsilon(0.05 + 1e-12) == pytest.approx(1.3, abs=1e-8)
    assert curve.epsilon(0.04) == math.inf
    assert curve.inverse()(0.3) == pytest.approx(curve(0.3), abs=1e-14)


def test_inverse_of_inverse_and_direction_of_delta():
    back = SKEW.inverse().inverse()
    for x in np.linspace(0.0, 1.0, 21):
        assert back(x) == pytest.approx(SKEW(x), abs=1e-14)
    assert SKEW.inverse()(0.95) == 0.0
    # Exchanging the hypotheses: 1 - e^eps + e^eps delta_reverse(-eps) = delta(eps).
    for epsilon in [-0.5, 0.2, 0.9]:
        other = 1.0 - math.exp(epsilon) + math.exp(epsilon) * SKEW.inverse().delta(-epsilon)
        assert SKEW.delta(epsilon) == pytest.approx(other, abs=1e-14)


def test_symmetrised_is_the_largest_symmetric_convex_curve_below_both():
    both = SKEW.symmetrised()
    for x in np.linspace(0.0, 1.0, 41):
        assert both(x) <= min(SKEW(x), SKEW.inverse()(x)) + 1e-14
        assert both(x) == pytest.approx(both.inverse()(x), abs=1e-14)
    for epsilon in [0.0, 0.4, 1.2]:
        assert both.delta(epsilon) == pytest.approx(
            max(SKEW.delta(epsilon), SKEW.inverse().delta(epsilon)), abs=1e-14
        )


@hypothesis.given(st.lists(st.tuples(st.floats(0.0, 6.0), st.floats(0.0, 1.0)), min_size=1, max_size=6))
def test_profile_gives_back_no_more_than_was_put_in(points):
    curve = PiecewiseLinearTradeoff.from_profile(points)
    for epsilon, delta in points:
        assert curve.delta(epsilon) <= delta + 1e-12
        for x in [0.0, 0.01, 0.3, 0.9]:
            line = max(0.0, 1.0 - delta - math.exp(epsilon) * x, math.exp(-epsilon) * (1.0 - delta - x))
            assert curve(x) >= line - 1e-11


@pytest.mark.parametrize("mu", [0.0, 0.1, 1.0, 5.0])
def test_gaussian_against_mpmath(mu):
    curve = gaussian.GaussianTradeoff(mu)
    with mpmath.workdps(50):
        for x in [1e-6, 0.1, 0.5, 0.99]:
            quantile = mpmath.sqrt(2) * mpmath.erfinv(1 - 2 * mpmath.mpf(x))
            assert curve(x) == pytest.approx(float(mpmath.ncdf(quantile - mu)), rel=1e-12)
        if mu:
            for epsilon in [-1.0, 0.0, 2.0]:
                truth = mpmath.ncdf(mu / 2 - epsilon / mu) - mpmath.exp(epsilon) * mpmath.ncdf(
                    -mu / 2 - epsilon / mu
                )
                assert curve.delta(epsilon) == pytest.approx(float(truth), rel=1e-11)
    if mu:
        assert curve.delta(curve.epsilon(1e-7)) <= 1e-7
        assert curve.epsilon(0.0) == math.inf
    assert curve.epsilon(0.999) == 0.0
    assert curve.inverse() is curve
    assert curve.advantage == pytest.approx(math.erf(mu / math.sqrt(8.0)), abs=1e-15)


def test_gaussian_composition():
    assert gaussian.compose_gaussian([3.0, 4.0]).mu == 5.0
    assert gaussian.compose_gaussian([]).mu == 0.0


@pytest.mark.parametrize("sigma", [0.5, 1.0, 4.0, 900.0, 5e3, 1e6])
def test_clt_formulas(sigma):
    with mpmath.workdps(60):
        s = mpmath.mpf(sigma)
        poisson = mpmath.mpf("0.01") * 10 * mpmath.sqrt(mpmath.expm1(1 / s**2))
        inside = mpmath.exp(s**-2) * mpmath.ncdf(mpmath.mpf("1.5") / s) + 3 * mpmath.ncdf(-1 / (2 * s)) - 2
        uniform = mpmath.sqrt(2) * mpmath.mpf("0.1") * mpmath.sqrt(inside)
    arguments = {"sampling_probability": 0.01, "num_steps": 100}
    assert gaussian.poisson_clt(sigma, **arguments).value == pytest.approx(float(poisson), rel=1e-13)
    assert gaussian.uniform_clt(sigma, **arguments).value == pytest.approx(float(uniform), rel=1e-6)


def test_an_approximation_is_no_interval():
    value = gaussian.poisson_clt(1.0, sampling_probability=0.01, num_steps=100)
    assert type(value) is Approximation
    assert not isinstance(value, Interval)
    for end in ("lower", "upper"):
        assert not hasattr(value, end)
    with pytest.raises(TypeError):
        _ = value < 1.0  # type: ignore[operator]


def test_membership_bounds():
    curve = gaussian.GaussianTradeoff(1.0)
    assert risk.membership_tpr(curve, fpr=0.1) == pytest.approx(stats.norm.cdf(stats.norm.ppf(0.1) + 1.0))
    assert risk.membership_advantage(curve) == pytest.approx(2.0 * stats.norm.cdf(0.5) - 1.0)
    assert risk.membership_accuracy(curve, prior=0.5) == pytest.approx(stats.norm.cdf(0.5))
    assert risk.membership_accuracy(curve, prior=0.0) == 1.0
    # At a prior of .1 the best rule is the better of a threshold test and "absent".
    rates = np.linspace(1e-6, 0.5, 20_001)
    best = max(0.1 * (1.0 - curve(x)) + 0.9 * (1.0 - x) for x in rates.tolist())
    assert risk.membership_accuracy(curve, prior=0.1) == pytest.approx(best, abs=1e-8)
    tpr = risk.membership_tpr(curve, fpr=0.01)
    assert risk.membership_ppv(curve, fpr=0.01, prior=0.2) == pytest.approx(
        0.2 * tpr / (0.2 * tpr + 0.8 * 0.01)
    )
    assert risk.membership_ppv(curve, fpr=0.0, prior=0.2) == 1.0
    assert risk.membership_ppv(curve, fpr=0.5, prior=0.0) == 0.0


def test_attribute_and_reconstruction_bounds():
    private, none = from_epsilon_delta(0.0), gaussian.GaussianTradeoff(40.0)
    assert risk.attribute_advantage(private, ball=0.3) == pytest.approx(0.3)  # no better than the guess
    assert risk.attribute_advantage(none, ball=0.3) == pytest.approx(1.0)
    bounds = risk.attribute_advantage(
        gaussian.GaussianTradeoff(1.0), ball=Interval(0.1, 0.2, "0.95 confidence")
    )
    assert (
        bounds.lower
        < bounds.upper
        == risk.reconstruction_success(gaussian.GaussianTradeoff(1.0), prior_success=0.2)
    )


@pytest.mark.parametrize(
    ("fpr", "fnr"),
    [
        ((0.0, 1.0), (1.0, 0.1)),
        ((0.0, 0.5, 1.0), (1.0, 0.6, 0.0)),
        ((0.0, 0.5, 0.6, 1.0), (0.8, 0.4, 0.1, 0.0)),
        ((0.1, 1.0), (0.9, 0.0)),
        ((0.0,), (1.0,)),
        ((0.0, 1.0), (math.nan, 0.0)),
    ],
)
def test_what_is_no_tradeoff_curve_is_refused(fpr, fnr):
    with pytest.raises(ValueError, match=r"fpr|fnr"):
        PiecewiseLinearTradeoff(fpr, fnr)


def test_bad_input():
    for call, name in [
        (lambda: SKEW(1.2), "fpr"),
        (lambda: SKEW.epsilon(1.0), "delta"),
        (lambda: SKEW.delta(math.inf), "epsilon"),
        (lambda: gaussian.GaussianTradeoff(-1.0), "mu"),
        (lambda: from_epsilon_delta(-1.0), "epsilon"),
        (lambda: PiecewiseLinearTradeoff.from_profile([]), "points"),
        (lambda: PiecewiseLinearTradeoff.from_lines([1.0], [2.0]), "lines"),
        (lambda: PiecewiseLinearTradeoff.from_points([2.0], [0.0]), "fpr"),
        (lambda: gaussian.poisson_clt(0.0, sampling_probability=0.1, num_steps=1), "noise_multiplier"),
        (lambda: gaussian.uniform_clt(1.0, sampling_probability=1.1, num_steps=1), "sampling_probability"),
        (lambda: risk.membership_ppv(SKEW, fpr=0.1, prior=2.0), "prior"),
        (lambda: risk.attribute_advantage(SKEW, ball=-0.1), "ball"),
    ]:
        with pytest.raises(ValueError, match=name):
            call()
