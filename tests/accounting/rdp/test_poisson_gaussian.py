"""The subsampled Gaussian against 36-digit quadrature, binomial sums, and dp-accounting."""

from __future__ import annotations

import math
import random

import mpmath
import numpy as np
import pytest

from exactdp.accounting.rdp import poisson_gaussian as module
from exactdp.accounting.rdp.poisson_gaussian import subsampled_gaussian

CASES = [
    # order, noise_multiplier, sampling_probability
    (1.0 + 1e-8, 1.0, 0.00105),
    (1.001, 0.8, 0.005),
    (1.5, 0.6, 0.001),
    (2.5, 2.0, 0.04),
    (7.3, 1.0, 0.01),
    (33.27, 1.9, 2.5e-6),
    (64.5, 5.0, 0.3),
    (15.2, 0.5, 0.999999),
    (3.7, 0.3, 0.1),
    (4.0, 1.0, 0.01),
    (63.0, 0.8, 0.005),
]


def _exact(order: float, sigma: float, q: float, direction: str) -> mpmath.mpf:
    """Adaptive Gauss-Legendre quadrature of the defining integral at 36 digits."""
    with mpmath.workdps(36):
        lam, s, rate = mpmath.mpf(order), mpmath.mpf(sigma), mpmath.mpf(q)
        power = lam if direction == "remove" else 1 - lam

        def integrand(y: mpmath.mpf) -> mpmath.mpf:
            t = 1 + rate * mpmath.expm1(y / s - 1 / (2 * s * s))
            return (t**power - 1 - power * (t - 1)) * mpmath.exp(-y * y / 2)

        low, high = -18 - (0 if direction == "remove" else 6), 18 + float(max(lam, 2) / s)
        pieces = max(12, int((high - low) / min(4.0, 4.0 * sigma)))
        points = [low + (high - low) * mpmath.mpf(k) / pieces for k in range(pieces + 1)]
        total = mpmath.quad(integrand, points, maxdegree=6)
        return mpmath.log1p(total / mpmath.sqrt(2 * mpmath.pi)) / (lam - 1)


@pytest.mark.parametrize("direction", ["remove", "add"])
@pytest.mark.parametrize(("order", "sigma", "q"), CASES)
def test_against_quadrature(order: float, sigma: float, q: float, direction: str):
    found = subsampled_gaussian(order, noise_multiplier=sigma, sampling_probability=q, direction=direction)
    exact = _exact(order, sigma, q, direction)
    assert float(abs(found - exact) / exact) < 1e-12


def test_integer_orders_by_both_routes():
    generator = random.Random(8)
    for _ in range(60):
        order = generator.randint(2, 300)
        sigma, q = 10 ** generator.uniform(-0.6, 1.3), 10 ** generator.uniform(-6, -0.01)
        summed = module._integer(order, sigma, q)
        integrated = module._real(float(order), sigma, q)
        assert integrated == pytest.approx(summed, rel=1e-12, abs=1e-12)


def test_remove_dominates_add():
    generator = random.Random(9)
    for _ in range(100):
        order = 1.0 + 10 ** generator.uniform(-6, 2)
        sigma, q = 10 ** generator.uniform(-0.6, 1.3), 10 ** generator.uniform(-6, -0.01)
        parameters = {"noise_multiplier": sigma, "sampling_probability": q}
        remove = subsampled_gaussian(order, **parameters)
        assert subsampled_gaussian(order, direction="add", **parameters) <= remove * (1 + 1e-13)


def test_monotone_in_the_order():
    orders = [1.0 + 10**x for x in np.linspace(-6, 4, 60)]
    values = [subsampled_gaussian(o, noise_multiplier=0.7, sampling_probability=0.01) for o in orders]
    assert all(low <= high * (1 + 1e-13) for low, high in zip(values, values[1:], strict=False))


def test_against_dp_accounting():
    dp_accounting = pytest.importorskip("dp_accounting")
    rdp = pytest.importorskip("dp_accounting.rdp")
    orders = [1.5, 2, 3.7, 8, 16.25, 32, 64]
    for sigma, q in ((1.0, 0.01), (0.8, 0.005), (2.0, 0.04), (5.0, 0.5)):
        accountant = rdp.RdpAccountant(orders)
        accountant.compose(dp_accounting.PoissonSampledDpEvent(q, dp_accounting.GaussianDpEvent(sigma)))
        for order, theirs in zip(orders, accountant._rdp, strict=True):
            ours = subsampled_gaussian(order, noise_multiplier=sigma, sampling_probability=q)
            if order == int(order):
                assert ours == pytest.approx(float(theirs), rel=1e-8)
            assert ours <= float(theirs) * (1 + 1e-8)  # theirs interpolates some orders, from above


def test_interpolation_where_quadrature_is_too_long(monkeypatch: pytest.MonkeyPatch):
    parameters = {"noise_multiplier": 0.8, "sampling_probability": 0.01}
    exact = [subsampled_gaussian(order, **parameters) for order in (1.4, 6.5)]
    add = subsampled_gaussian(6.5, direction="add", **parameters)
    monkeypatch.setattr(module, "_MAX_NODES", 1)
    bounds = [subsampled_gaussian(order, **parameters) for order in (1.4, 6.5)]
    plain = [order / (2 * 0.8**2) for order in (1.4, 6.5)]
    assert all(low < bound < high for low, bound, high in zip(exact, bounds, plain, strict=True))
    assert add <= subsampled_gaussian(6.5, direction="add", **parameters) == bounds[1]


def test_limits():
    assert subsampled_gaussian(3.0, noise_multiplier=1.0, sampling_probability=0.0) == 0.0
    assert subsampled_gaussian(3.0, noise_multiplier=2.0, sampling_probability=1.0) == 3.0 / 8.0
    assert subsampled_gaussian(1e7, noise_multiplier=2.0, sampling_probability=0.1) == 1e7 / 8.0
    large = subsampled_gaussian(10_000.5, noise_multiplier=0.3, sampling_probability=0.01)
    # E[t^λ] >= q^λ e^{λ(λ−1)/(2σ²)}.
    assert large >= 10_000.5 / 0.18 + math.log(0.01) * 10_000.5 / 9_999.5


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("noise_multiplier", 0.0),
        ("noise_multiplier", -1.0),
        ("noise_multiplier", math.nan),
        ("sampling_probability", -0.1),
        ("sampling_probability", 1.1),
        ("sampling_probability", math.nan),
        ("direction", "both"),
    ],
)
def test_bad_input(name: str, value: object):
    arguments = {"noise_multiplier": 1.0, "sampling_probability": 0.1} | {name: value}
    with pytest.raises(ValueError, match=name):
        subsampled_gaussian(2.0, **arguments)
    with pytest.raises(ValueError, match="order"):
        subsampled_gaussian(1.0, noise_multiplier=1.0, sampling_probability=0.1)
