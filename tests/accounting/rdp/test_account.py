"""Composition and the search over orders: closed forms, peers, truths, bad input."""

from __future__ import annotations

import functools
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import special

from exactdp.accounting import rdp
from exactdp.accounting.rdp import account
from exactdp.accounting.rdp.bound import UpperBound


def _step(sigma: float, q: float):
    return functools.partial(rdp.subsampled_gaussian, noise_multiplier=sigma, sampling_probability=q)


# (σ, q, T, exact ε at δ = 1e-5), 40-digit quadrature.
TRUTHS = [
    (1.0, 0.01, 1000, 1.828236667),
    (0.8, 0.005, 20_000, 6.621037987),
    (2.0, 0.04, 5_000, 7.172133470),
    (0.6, 0.001, 100_000, 6.112825184),
    (5.0, 1.0, 10, 2.594383381),
]


@pytest.mark.parametrize(("sigma", "q", "steps", "truth"), TRUTHS)
def test_bounds_lie_above_the_truth_and_in_order(sigma: float, q: float, steps: int, truth: float):
    composition = [(_step(sigma, q), steps)]
    optimal, balle, mironov = (
        rdp.epsilon(composition, delta=1e-5, conversion=name).value
        for name in ("optimal", "balle", "mironov")
    )
    grid = rdp.epsilon(composition, delta=1e-5, conversion="balle", orders=rdp.OPACUS_ORDERS).value
    assert truth < optimal <= balle <= grid < 1.17 * truth
    assert balle < mironov


def test_gaussian_mironov_closed_form():
    # min_λ T·λ/(2σ²) + log(1/δ)/(λ−1) = ρ + 2√(ρ log(1/δ)), ρ = T/(2σ²).
    rho = 50 / (2 * 7.0**2)
    found = rdp.epsilon(
        [(functools.partial(rdp.gaussian, noise_multiplier=7.0), 50)], delta=1e-8, conversion="mironov"
    )
    exact = rho + 2 * math.sqrt(rho * math.log(1e8))
    assert found.value == pytest.approx(exact, rel=1e-9)
    assert found.value >= exact
    assert found.order == pytest.approx(1 + math.sqrt(math.log(1e8) / rho), rel=1e-3)


def test_opacus_grid():
    assert len(rdp.OPACUS_ORDERS) == 99 + 52
    assert rdp.OPACUS_ORDERS[0] == 1.1
    assert rdp.OPACUS_ORDERS[98] == pytest.approx(10.9)
    assert rdp.OPACUS_ORDERS[99:101] == (12.0, 13.0)
    assert rdp.OPACUS_ORDERS[-1] == 63.0


@pytest.mark.parametrize(("sigma", "q", "steps", "truth"), TRUTHS[:3])
def test_against_dp_accounting_on_its_orders(sigma: float, q: float, steps: int, truth: float):
    dp_accounting = pytest.importorskip("dp_accounting")
    peer = pytest.importorskip("dp_accounting.rdp")
    orders = [1.5, 2, 3, 4, 5, 8, 12, 20, 40]
    accountant = peer.RdpAccountant(orders)
    accountant.compose(dp_accounting.PoissonSampledDpEvent(q, dp_accounting.GaussianDpEvent(sigma)), steps)
    ours = rdp.epsilon([(_step(sigma, q), steps)], delta=1e-5, conversion="balle", orders=orders)
    assert ours.value == pytest.approx(accountant.get_epsilon(1e-5), rel=1e-6)
    assert truth < ours.value


def test_heterogeneous_composition():
    laplace = functools.partial(rdp.laplace, noise_multiplier=10.0)
    parts = [(_step(1.0, 0.01), 1000), (_step(1.5, 0.02), 500), (_step(0.8, 0.002), 2000)]
    parts += [(_step(2.0, 0.05), 300), (_step(1.2, 0.005), 1500)]
    without = rdp.epsilon(parts, delta=1e-5).value
    everything = rdp.epsilon([*parts, (laplace, 20)], delta=1e-5).value
    assert 3.283823 < without < everything
    assert 3.812444 < everything < 1.2 * 3.812444
    assert rdp.epsilon([(laplace, 20), *reversed(parts)], delta=1e-5).value == pytest.approx(
        everything, rel=1e-9
    )


def test_counts_compose():
    step = _step(1.0, 0.01)
    once = rdp.epsilon([(step, 30)], delta=1e-6)
    split = rdp.epsilon([(step, 10), (step, 20), (rdp.gaussian, 0)], delta=1e-6)
    assert split.value == pytest.approx(once.value, rel=1e-12)
    assert rdp.compose([(step, 7)])(3.5) == pytest.approx(7 * step(3.5), rel=1e-15)


def test_nothing_composed_is_free():
    assert rdp.epsilon([(_step(1.0, 0.01), 0)], delta=1e-5).value == 0.0
    assert rdp.delta([(_step(1.0, 0.01), 0)], epsilon=0.0).value == 0.0


def test_delta_and_epsilon_agree():
    composition = [(_step(1.0, 0.01), 1000)]
    for target in (1e-5, 1e-30, 1e-300):
        bound = rdp.epsilon(composition, delta=target)
        back = rdp.delta(composition, epsilon=bound.value)
        assert back.value == pytest.approx(target, rel=1e-5)


def test_tiny_delta_is_finite_and_monotone():
    composition = [(_step(1.0, 0.01), 1000)]
    values = [rdp.epsilon(composition, delta=10.0**-k).value for k in (5, 10, 12, 14, 20, 30, 100, 300)]
    assert values == sorted(values)
    for value, truth in zip(
        values[:6], (1.828236667, 3.290444, 3.914298, 4.543702, 6.361700, 9.341896), strict=True
    ):
        assert truth < value < 1.2 * truth


def test_order_next_to_one_is_exact_not_zero():
    # One step with q = 0.00105, σ = 1. The total variation is q·(2Φ(1/2) − 1) = 4.02e-4: at δ = 1e-3 the true
    # ε is 0, at δ = 1e-4 it is not.
    step = _step(1.0, 0.00105)
    variation = 0.00105 * special.erf(0.5 / math.sqrt(2.0))
    assert 1e-4 < variation < 1e-3
    near_one = 1.0 + 1e-8
    assert step(near_one) == pytest.approx(9.4455e-7, rel=1e-3)
    assert rdp.epsilon([(step, 1)], delta=1e-4, orders=[near_one]).value > 0.0
    # Whatever the conversion says at that order, δ at ε = 0 is never below the total variation.
    assert rdp.delta([(step, 1)], epsilon=0.0, orders=[near_one]).value >= variation
    for name in ("balle", "mironov"):
        assert rdp.epsilon([(step, 1)], delta=1e-3, conversion=name, orders=[near_one]).value > 1e8


@given(
    sigma=st.floats(0.5, 20), q=st.floats(1e-4, 1), steps=st.integers(1, 10_000), log_delta=st.floats(-12, -1)
)
def test_real_orders_never_lose_to_a_grid(sigma: float, q: float, steps: int, log_delta: float):
    composition = [(_step(sigma, q), steps)]
    for name in ("balle", "mironov"):
        free = rdp.epsilon(composition, delta=10**log_delta, conversion=name)
        grid = rdp.epsilon(
            composition, delta=10**log_delta, conversion=name, orders=(1.5, 2, 4, 8, 16, 32, 64)
        )
        assert free.value <= grid.value * (1 + 1e-9)


def test_dirichlet_respects_its_order_limit():
    curve = functools.partial(rdp.dirichlet, scaling=2.0, offset=1e-3)
    found = rdp.epsilon([(curve, 1)], delta=1e-5)
    assert 1.0 < found.order < 1.0 + 1e-3 / 2.0
    assert math.isfinite(found.value)


def test_infinite_everywhere():
    assert rdp.epsilon([(lambda order: math.inf, 1)], delta=1e-5).value == math.inf
    assert rdp.delta([(lambda order: math.inf, 1)], epsilon=1.0).value == 1.0


def test_bad_input():
    step = _step(1.0, 0.01)
    with pytest.raises(ValueError, match="composition"):
        rdp.epsilon([], delta=1e-5)
    for count in (-1, 1.5, math.nan):
        with pytest.raises(ValueError, match="count"):
            rdp.epsilon([(step, count)], delta=1e-5)
    for bad in (0.0, 1.0, math.nan, -1.0):
        with pytest.raises(ValueError, match="delta"):
            rdp.epsilon([(step, 1)], delta=bad)
    for bad in (-1.0, math.inf, math.nan):
        with pytest.raises(ValueError, match="epsilon"):
            rdp.delta([(step, 1)], epsilon=bad)
    with pytest.raises(ValueError, match="conversion"):
        rdp.epsilon([(step, 1)], delta=1e-5, conversion="tight")
    with pytest.raises(ValueError, match="orders"):
        rdp.epsilon([(step, 1)], delta=1e-5, orders=[])
    with pytest.raises(ValueError, match="order"):
        rdp.epsilon([(step, 1)], delta=1e-5, orders=[1.0])
    with pytest.raises(ValueError, match="renyi"):
        rdp.epsilon([(lambda order: -1.0, 1)], delta=1e-5)
    with pytest.raises(ValueError, match="value"):
        UpperBound(-1.0, 2.0)
    with pytest.raises(ValueError, match="value"):
        UpperBound(math.nan, 2.0)
    assert account.OPACUS_ORDERS is rdp.OPACUS_ORDERS
