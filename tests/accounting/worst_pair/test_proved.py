"""The theorem's conditions, each step of its proof by an independent computation, and its sharpness."""

from __future__ import annotations

import math

import mpmath as mp
import numpy as np
import pytest

from exactdp.accounting import worst_pair
from exactdp.accounting.worst_pair import proved

mp.mp.dps = 30


def excess(r, alpha):
    r, alpha = mp.mpf(r), mp.mpf(alpha)
    return r - r * mp.psi(0, alpha + r) + mp.loggamma(alpha + r) - mp.loggamma(alpha)


def test_two_classes_and_half_offset_are_proved():
    assert worst_pair.loss_dominance_proved(scaling=50.0, offset=0.01, num_classes=2) == "K = 2"
    for scaling in (1e-9, 0.235, 1e6):
        assert worst_pair.loss_dominance_proved(scaling=scaling, offset=0.5, num_classes=7) == "offset >= 1/2"
    assert worst_pair.largest_proved_scaling(offset=0.5) == math.inf


@pytest.mark.parametrize("alpha", [1e-3, 0.05, 0.1, 0.25, 0.4, 0.45])
def test_largest_proved_scaling_is_the_zero(alpha):
    r = worst_pair.largest_proved_scaling(offset=alpha)
    assert excess(r, alpha) >= 0
    assert excess(r * (1 + 1e-6), alpha) < 0
    # No sign change below: W is positive on a grid down to zero.
    assert all(excess(r * x, alpha) > 0 for x in np.geomspace(1e-6, 0.99, 15))
    assert worst_pair.loss_dominance_proved(scaling=r, offset=alpha, num_classes=3) is not None
    assert worst_pair.loss_dominance_proved(scaling=r * 1.00001, offset=alpha, num_classes=3) is None


@pytest.mark.parametrize(("alpha", "rho"), [(0.3, 0.6), (0.3, 2.0), (0.1, 0.02), (2.0, 1.0)])
def test_excess_is_the_integral_of_the_proof(alpha, rho):
    # W(ρ) = ρ ∫ e^{-ρy} D(y) dy with D(y) = k(y) - ∫_y^∞ k(u)/u du, over s = log y.
    s = np.linspace(-28.0, 7.0, 200_001)
    y, h = np.exp(s), s[1] - s[0]
    k = np.exp(-alpha * y) / -np.expm1(-y)
    tail = np.concatenate([np.cumsum((0.5 * h * (k[1:] + k[:-1]))[::-1])[::-1], [0.0]])
    integral = float((np.exp(-rho * y) * (k - tail) * y).sum() * h * rho)
    assert integral == pytest.approx(float(excess(rho, alpha)), abs=1e-6)


@pytest.mark.parametrize("alpha", [0.5, 0.7, 3.0])
def test_levy_measures_of_the_parts_add_up_to_less(alpha):
    x = np.geomspace(1e-4, 100, 200)

    def density(r):
        return np.exp(-alpha * x / r) / -np.expm1(-x / r)

    for parts in ([0.5, 0.5], [0.9, 0.1], [0.2, 0.3, 0.5]):
        assert np.all(sum(density(2.0 * part) for part in parts) <= density(2.0) * (1 + 1e-12))


def test_levy_measures_need_half():
    # The pointwise comparison, not the theorem's second condition, fails below 1/2.
    x, alpha = 1e-2, 0.3

    def density(r):
        return math.exp(-alpha * x / r) / -math.expm1(-x / r)

    assert 2 * density(0.5) > density(1.0)


def test_renyi_ratio_is_below_the_zero():
    zero = mp.findroot(lambda x: x**2 / (1 + x) ** 2 + x / (1 + x) - mp.log1p(x), 2.1)
    assert proved.RENYI_RATIO < zero < proved.RENYI_RATIO + 0.001


@pytest.mark.parametrize("alpha", [0.01, 0.2, 0.45])
@pytest.mark.parametrize("order", [1.001, 1.4, 3.0])
def test_renyi_is_dominated_up_to_the_boundary_of_its_condition(alpha, order):
    r = proved.RENYI_RATIO * alpha / order * (1 - 1e-12)
    r = min(r, 0.999 * alpha / (order - 1.0))
    proof = worst_pair.renyi_dominance_proved(order, scaling=r, offset=alpha, num_classes=5)
    assert proof is not None
    rng = np.random.default_rng(1)
    p, q = rng.dirichlet(np.full(5, 0.3), 400), rng.dirichlet(np.full(5, 0.3), 400)
    uniform = np.array([[0.5, 0.5, 0, 0, 0], [0.25, 0.25, 0.25, 0.25, 0], [0.3, 0.7, 0, 0, 0]])
    p = np.concatenate([p, uniform, np.tile(np.eye(5)[4], (3, 1))])
    q = np.concatenate([q, np.tile(np.eye(5)[4], (3, 1)), uniform])
    values = worst_pair.renyi(p, q, order=order, scaling=r, offset=alpha)
    vertex = worst_pair.renyi(np.eye(5)[0], np.eye(5)[1], order=order, scaling=r, offset=alpha)[0]
    assert np.all(values <= vertex * (1 + 1e-10))


def test_renyi_proof_is_silent_where_another_pair_is_worse():
    alpha, r, order = 0.1, 1.0, 1.01
    assert worst_pair.renyi_dominance_proved(order, scaling=r, offset=alpha, num_classes=3) is None
    spread = worst_pair.renyi([0.5, 0.5, 0], [0, 0, 1], order=order, scaling=r, offset=alpha)[0]
    vertex = worst_pair.renyi([1, 0, 0], [0, 0, 1], order=order, scaling=r, offset=alpha)[0]
    assert spread > 1.01 * vertex


@pytest.mark.parametrize("alpha", [0.1, 0.3, 0.4])
def test_half_is_the_threshold(alpha):
    # KL of two halves against a vertex exceeds the vertex pair's once r is large.
    def kl(x):
        return x * mp.psi(0, alpha + x) - mp.loggamma(alpha + x) + mp.loggamma(alpha)

    assert 2 * kl(mp.mpf(1e4) / 2) > kl(mp.mpf(1e4))
    assert 2 * kl(mp.mpf(0.01) * alpha / 2) < kl(mp.mpf(0.01) * alpha)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"scaling": 0.0, "offset": 1.0, "num_classes": 3}, "scaling"),
        ({"scaling": 1.0, "offset": -1.0, "num_classes": 3}, "offset"),
        ({"scaling": 1.0, "offset": math.nan, "num_classes": 3}, "offset"),
        ({"scaling": 1.0, "offset": 1.0, "num_classes": 1}, "num_classes"),
        ({"scaling": 1.0, "offset": 1.0, "num_classes": 2.5}, "num_classes"),
    ],
)
def test_bad_arguments(arguments, message):
    with pytest.raises(ValueError, match=message):
        worst_pair.loss_dominance_proved(**arguments)
    with pytest.raises(ValueError, match="order"):
        worst_pair.renyi_dominance_proved(1.0, scaling=1.0, offset=1.0, num_classes=3)
