"""Exact curves against 60-digit closed forms and sums, orders next to 1 included."""

from __future__ import annotations

import math
import random

import mpmath
import numpy as np
import pytest

from exactdp.accounting.rdp import curves
from exactdp.accounting.rdp import dirichlet_draw as dirichlet

TOLERANCE = 1e-12


def _relative(found: float, exact: mpmath.mpf) -> float:
    return float(abs(found - exact) / abs(exact))


def _orders(generator: random.Random) -> float:
    return 1.0 + 10 ** generator.uniform(-8, 3)


def test_laplace_and_pure_dp():
    generator = random.Random(2)
    for _ in range(200):
        order = _orders(generator)
        scale, epsilon = 10 ** generator.uniform(-1.5, 3), 10 ** generator.uniform(-4, 1.5)
        with mpmath.workdps(60):
            lam = mpmath.mpf(order)
            a, t, eps = lam - 1, 1 / mpmath.mpf(scale), mpmath.mpf(epsilon)
            moment = lam / (2 * lam - 1) * mpmath.exp(a * t) + a / (2 * lam - 1) * mpmath.exp(-lam * t)
            pure = (mpmath.exp(lam * eps) + mpmath.exp(-a * eps)) / (1 + mpmath.exp(eps))
            exact_laplace, exact_pure = mpmath.log(moment) / a, mpmath.log(pure) / a
        assert _relative(curves.laplace(order, noise_multiplier=scale), exact_laplace) < TOLERANCE
        assert _relative(curves.pure_dp(order, epsilon=epsilon), exact_pure) < TOLERANCE


def test_gaussian():
    assert curves.gaussian(3.0, noise_multiplier=2.0, sensitivity=1.5) == 1.5 * (1.5 / 2.0) ** 2


@pytest.mark.parametrize("sensitivity", [1, 2, 5])
def test_discrete_gaussian(sensitivity: int):
    generator = random.Random(3)
    for _ in range(40):
        order, sigma = _orders(generator), 10 ** generator.uniform(-1.3, 1)
        with mpmath.workdps(60):
            lam, s = mpmath.mpf(order), mpmath.mpf(sigma)
            width = int(14 * sigma + 8)

            def theta(c: mpmath.mpf, s: mpmath.mpf = s, width: int = width) -> mpmath.mpf:
                terms = [mpmath.exp(-((x + c) ** 2) / (2 * s * s)) for x in range(-width, width + 1)]
                return mpmath.fsum(terms)

            ratio = theta(mpmath.frac((lam - 1) * sensitivity)) / theta(mpmath.mpf(0))
            exact = lam * sensitivity**2 / (2 * s * s) + mpmath.log(ratio) / (lam - 1)
        found = curves.discrete_gaussian(order, noise_multiplier=sigma, sensitivity=sensitivity)
        assert _relative(found, exact) < TOLERANCE
        continuous = curves.gaussian(order, noise_multiplier=sigma, sensitivity=sensitivity)
        assert found <= continuous * (1 + 1e-15)


@pytest.mark.parametrize("sensitivity", [1, 2, 7])
def test_discrete_laplace(sensitivity: int):
    generator = random.Random(4)
    for _ in range(60):
        order, scale = _orders(generator), 10 ** generator.uniform(-1.5, 3)
        with mpmath.workdps(60):
            lam = mpmath.mpf(order)
            a, t = lam - 1, mpmath.exp(-1 / mpmath.mpf(scale))
            inner = mpmath.fsum(t ** (lam * x - a * (sensitivity - x)) for x in range(1, sensitivity))
            tails = (t ** (-a * sensitivity) + t ** (lam * sensitivity)) / (1 - t)
            exact = mpmath.log((1 - t) / (1 + t) * (tails + inner)) / a
        found = curves.discrete_laplace(order, noise_multiplier=scale, sensitivity=sensitivity)
        assert _relative(found, exact) < TOLERANCE


def test_finite_against_60_digits():
    generator = np.random.default_rng(5)
    for _ in range(60):
        order = 1.0 + 10 ** generator.uniform(-6, 2)
        p, q = generator.dirichlet(np.ones(4)), generator.dirichlet(np.ones(4))
        with mpmath.workdps(60):
            first, second = [mpmath.mpf(float(v)) for v in p], [mpmath.mpf(float(v)) for v in q]
            first = [v / mpmath.fsum(first) for v in first]
            second = [v / mpmath.fsum(second) for v in second]
            lam = mpmath.mpf(order)
            total = mpmath.fsum(x**lam * y ** (1 - lam) for x, y in zip(first, second, strict=True))
            exact = mpmath.log(total) / (lam - 1)
        assert _relative(curves.finite(order, p=tuple(p), q=tuple(q)), exact) < 1e-11


def test_finite_supports():
    assert curves.finite(2.0, p=(0.5, 0.5), q=(1.0, 0.0)) == math.inf
    assert curves.finite(2.5, p=(0.5, 0.5, 0.0), q=(0.3, 0.3, 0.4)) == pytest.approx(
        math.log(5 / 3), rel=1e-14
    )
    assert curves.finite(2.0, p=(0.2, 0.8), q=(0.2, 0.8)) == 0.0


def test_finite_is_randomised_response():
    keep = 1 / (1 + math.exp(-0.8))
    found = curves.finite(7.5, p=(keep, 1 - keep), q=(1 - keep, keep))
    assert found == pytest.approx(curves.pure_dp(7.5, epsilon=0.8), rel=1e-13)


def test_dirichlet_against_60_digits_and_below_the_printed_bound():
    generator = random.Random(6)
    tested = 0
    while tested < 200:
        order = _orders(generator)
        alpha = 10 ** generator.uniform(-1, 2)
        r = alpha * 10 ** generator.uniform(-7, 1)
        if (order - 1) * r > 0.999 * alpha:
            continue
        tested += 1
        with mpmath.workdps(60):
            lam, scaling, offset = mpmath.mpf(order), mpmath.mpf(r), mpmath.mpf(alpha)
            exact = mpmath.loggamma(offset - (lam - 1) * scaling) + mpmath.loggamma(offset + lam * scaling)
            exact = (exact - mpmath.loggamma(offset) - mpmath.loggamma(offset + scaling)) / (lam - 1)
            printed = lam * scaling**2 * mpmath.polygamma(1, offset - (lam - 1) * scaling)
        found = dirichlet.dirichlet(order, scaling=r, offset=alpha)
        bound = dirichlet.dirichlet_printed(order, scaling=r, offset=alpha)
        assert _relative(found, exact) < 1e-11
        assert _relative(bound, printed) < 1e-11
        assert found <= bound * (1 + 1e-12)


def test_dirichlet_density_gives_the_same_number():
    # Quadrature over the density, an independent route: B ~ Beta(α+r, α) against Beta(α, α+r).
    r, alpha, order = 0.4, 1.7, 2.6
    with mpmath.workdps(30):
        norm = mpmath.beta(alpha + r, alpha)

        def integrand(x: mpmath.mpf) -> mpmath.mpf:
            first = x ** (alpha + r - 1) * (1 - x) ** (alpha - 1) / norm
            second = x ** (alpha - 1) * (1 - x) ** (alpha + r - 1) / norm
            return first**order * second ** (1 - order)

        exact = mpmath.log(mpmath.quad(integrand, [0, 0.01, 0.5, 0.99, 1])) / (order - 1)
    assert dirichlet.dirichlet(order, scaling=r, offset=alpha) == pytest.approx(float(exact), rel=1e-9)


def test_dirichlet_order_limit():
    assert dirichlet.order_limit(0.5, offset=2.0) == 5.0
    assert dirichlet.order_limit(0.0, offset=2.0) == math.inf
    for curve in (dirichlet.dirichlet, dirichlet.dirichlet_printed):
        assert curve(5.0, scaling=0.5, offset=2.0) == math.inf
        assert curve(4.999, scaling=0.5, offset=2.0) < math.inf
        assert curve(2.0, scaling=0.0, offset=2.0) == 0.0


def test_zero_sensitivity_is_zero():
    assert curves.gaussian(2.0, noise_multiplier=1.0, sensitivity=0.0) == 0.0
    assert curves.laplace(2.0, noise_multiplier=1.0, sensitivity=0.0) == 0.0
    assert curves.discrete_gaussian(2.0, noise_multiplier=1.0, sensitivity=0) == 0.0
    assert curves.discrete_laplace(2.0, noise_multiplier=1.0, sensitivity=0) == 0.0
    assert curves.pure_dp(2.0, epsilon=0.0) == 0.0


@pytest.mark.parametrize("order", [1.0, 0.0, -2.0, math.nan, math.inf, "two"])
def test_bad_order(order: object):
    for call in (
        lambda: curves.gaussian(order, noise_multiplier=1.0),
        lambda: curves.laplace(order, noise_multiplier=1.0),
        lambda: curves.pure_dp(order, epsilon=1.0),
        lambda: curves.finite(order, p=(1.0,), q=(1.0,)),
        lambda: curves.discrete_gaussian(order, noise_multiplier=1.0),
        lambda: curves.discrete_laplace(order, noise_multiplier=1.0),
        lambda: dirichlet.dirichlet(order, scaling=0.1, offset=1.0),
        lambda: dirichlet.dirichlet_printed(order, scaling=0.1, offset=1.0),
    ):
        with pytest.raises(ValueError, match="order must be"):
            call()


@pytest.mark.parametrize("bad", [-1.0, math.nan, math.inf])
def test_bad_parameters(bad: float):
    with pytest.raises(ValueError, match="noise_multiplier"):
        curves.gaussian(2.0, noise_multiplier=bad)
    with pytest.raises(ValueError, match="noise_multiplier"):
        curves.discrete_gaussian(2.0, noise_multiplier=bad)
    with pytest.raises(ValueError, match="sensitivity"):
        curves.laplace(2.0, noise_multiplier=1.0, sensitivity=bad)
    with pytest.raises(ValueError, match="sensitivity"):
        curves.discrete_laplace(2.0, noise_multiplier=1.0, sensitivity=bad)
    with pytest.raises(ValueError, match="scaling"):
        dirichlet.dirichlet(2.0, scaling=bad, offset=1.0)
    with pytest.raises(ValueError, match="offset"):
        dirichlet.dirichlet_printed(2.0, scaling=0.1, offset=bad)


def test_bad_finite():
    with pytest.raises(ValueError, match="one length"):
        curves.finite(2.0, p=(0.5, 0.5), q=(1.0,))
    with pytest.raises(ValueError, match="p must sum to 1"):
        curves.finite(2.0, p=(0.5, 0.4), q=(0.5, 0.5))
    with pytest.raises(ValueError, match="q must be in"):
        curves.finite(2.0, p=(0.5, 0.5), q=(1.5, -0.5))
    with pytest.raises(ValueError, match="sensitivity must be <="):
        curves.discrete_laplace(2.0, noise_multiplier=1.0, sensitivity=10**8)
