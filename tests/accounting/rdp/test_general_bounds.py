"""Bounds from a Rényi curve alone: exact sums, the factor 3, symmetric pairs, limits."""

from __future__ import annotations

import functools
import math
import random

import mpmath
import numpy as np
import pytest

from exactdp.accounting.rdp import curves
from exactdp.accounting.rdp import dirichlet_draw as dirichlet
from exactdp.accounting.rdp.general_bounds import visible_coins, wang_balle_kasiviswanathan, zhu_wang
from exactdp.accounting.rdp.poisson_gaussian import subsampled_gaussian

GAUSSIAN = functools.partial(curves.gaussian, noise_multiplier=1.3)


def _zhu_wang_printed(order: int, curve, q: float, factor: int) -> mpmath.mpf:
    """The theorem as written, at 60 digits, from exact ε(ℓ)."""
    with mpmath.workdps(60):
        rate = mpmath.mpf(q)
        total = (1 - rate) ** (order - 1) * (order * rate - rate + 1)
        for ell in range(2, order + 1):
            weight = mpmath.binomial(order, ell) * (1 - rate) ** (order - ell) * rate**ell
            total += weight * mpmath.exp((ell - 1) * curve(ell)) * (factor if ell >= 3 else 1)
        return mpmath.log(total) / (order - 1)


@pytest.mark.parametrize("factor", [1, 3])
def test_zhu_wang_is_the_printed_formula(factor: int):
    def exact_curve(ell: int) -> mpmath.mpf:
        return ell / (2 * mpmath.mpf(1.3) ** 2)

    generator = random.Random(11)
    for order in (2, 3, 4, 7, 30, 120):
        for _ in range(4):
            q = 10 ** generator.uniform(-7, -0.05)
            found = zhu_wang(order, curve=GAUSSIAN, sampling_probability=q, factor_three=factor == 3)
            exact = _zhu_wang_printed(order, exact_curve, q, factor)
            assert float(abs(found - exact) / exact) < 1e-12


@pytest.mark.parametrize("order", [2, 3, 8, 40, 200])
@pytest.mark.parametrize("q", [1e-4, 0.01, 0.3])
def test_without_three_it_is_the_exact_gaussian(order: int, q: float):
    exact = subsampled_gaussian(order, noise_multiplier=1.3, sampling_probability=q)
    bound = zhu_wang(order, curve=GAUSSIAN, sampling_probability=q, factor_three=False)
    loose = zhu_wang(order, curve=GAUSSIAN, sampling_probability=q)
    assert bound == pytest.approx(exact, rel=1e-12)
    assert loose == pytest.approx(exact, rel=1e-12) if order == 2 else loose > exact
    assert loose <= exact + math.log(3.0) / (order - 1) + 1e-12


def _both_directions(order: int, p: np.ndarray, q: np.ndarray, rate: float) -> tuple[float, float]:
    mixture = (1 - rate) * q + rate * p
    remove = curves.finite(order, p=tuple(mixture), q=tuple(q))
    add = curves.finite(order, p=tuple(q), q=tuple(mixture))
    return remove, add


def test_symmetric_pairs_need_no_three():
    # A mixture of randomised responses: outcome pairs (i, i') swapped by the involution.
    generator = np.random.default_rng(12)
    for _ in range(40):
        weights = generator.dirichlet(np.ones(3))
        keep = 1 / (1 + np.exp(-generator.uniform(0.01, 3, 3)))
        p = np.concatenate([weights * keep, weights * (1 - keep)])
        q = np.concatenate([weights * (1 - keep), weights * keep])
        curve = functools.partial(curves.finite, p=tuple(p), q=tuple(q))
        rate, order = float(generator.uniform(0.01, 0.9)), int(generator.integers(2, 12))
        remove, add = _both_directions(order, p, q, rate)
        bound = zhu_wang(order, curve=curve, sampling_probability=rate, factor_three=False)
        assert bound == pytest.approx(remove, rel=1e-11)
        assert add <= remove * (1 + 1e-11)


def test_an_asymmetric_pair_can_break_it_and_the_three_restores_it():
    # One rare outcome under P alone is much likelier than under Q: "add" then exceeds the sum without the 3.
    generator = np.random.default_rng(13)
    for _ in range(200):
        p, q = generator.dirichlet(np.ones(3)), generator.dirichlet(np.ones(3))
        rate, order = float(generator.uniform(0.05, 0.95)), int(generator.integers(2, 9))

        def curve(ell: float, p: np.ndarray = p, q: np.ndarray = q) -> float:
            return max(curves.finite(ell, p=tuple(p), q=tuple(q)), curves.finite(ell, p=tuple(q), q=tuple(p)))

        bound = zhu_wang(order, curve=curve, sampling_probability=rate)
        assert max(_both_directions(order, p, q, rate)) <= bound * (1 + 1e-12)


def test_wang_balle_kasiviswanathan_is_the_printed_formula():
    with mpmath.workdps(50):
        for order, q in ((2, 0.01), (3, 0.1), (9, 0.003), (40, 1e-4)):
            total = mpmath.mpf(1)
            for ell in range(2, order + 1):
                growth = mpmath.exp((ell - 1) * ell / (2 * mpmath.mpf(1.3) ** 2))
                factor = min(4 * (growth - 1), 2 * growth) if ell == 2 else 2 * growth
                total += mpmath.mpf(q) ** ell * mpmath.binomial(order, ell) * factor
            exact = min(mpmath.log(total) / (order - 1), mpmath.mpf(GAUSSIAN(order)))
            found = wang_balle_kasiviswanathan(order, curve=GAUSSIAN, sampling_probability=q)
            assert float(abs(found - exact) / exact) < 1e-12


def test_wang_balle_kasiviswanathan_with_pure_dp():
    curve = functools.partial(curves.pure_dp, epsilon=0.2)
    plain = wang_balle_kasiviswanathan(8, curve=curve, sampling_probability=0.1)
    sharper = wang_balle_kasiviswanathan(8, curve=curve, sampling_probability=0.1, pure_epsilon=0.2)
    assert 0.0 < sharper < plain
    # Fixed-size sampling of randomised response between two neighbours: the mixture of two pairs.
    keep = 1 / (1 + math.exp(-0.2))
    p, q = np.array([keep, 1 - keep]), np.array([1 - keep, keep])
    for other in (p, q, np.array([0.5, 0.5])):
        first, second = 0.9 * other + 0.1 * p, 0.9 * other + 0.1 * q
        assert curves.finite(8, p=tuple(first), q=tuple(second)) <= sharper


def test_wang_balle_kasiviswanathan_against_dp_accounting():
    dp_accounting = pytest.importorskip("dp_accounting")
    rdp = pytest.importorskip("dp_accounting.rdp")
    accountant = rdp.RdpAccountant([4, 16], dp_accounting.NeighboringRelation.REPLACE_ONE)
    event = dp_accounting.SampledWithoutReplacementDpEvent(1000, 10, dp_accounting.GaussianDpEvent(2.0))
    accountant.compose(event)
    curve = functools.partial(curves.gaussian, noise_multiplier=2.0)
    for order, theirs in zip((4, 16), accountant._rdp, strict=True):
        ours = wang_balle_kasiviswanathan(order, curve=curve, sampling_probability=0.01)
        assert float(theirs) <= ours * (1 + 1e-9)  # theirs adds a Gaussian-only refinement


def test_visible_coins():
    for order, q in ((1.5, 0.01), (3.0, 1e-6), (40.0, 0.2)):
        with mpmath.workdps(50):
            lam = mpmath.mpf(order)
            growth = (lam - 1) * lam / (2 * mpmath.mpf(1.3) ** 2)
            exact = mpmath.log(1 + mpmath.mpf(q) * mpmath.expm1(growth)) / (lam - 1)
        found = visible_coins(order, curve=GAUSSIAN, sampling_probability=q)
        assert found == pytest.approx(float(exact), rel=1e-12)
        assert found > subsampled_gaussian(order, noise_multiplier=1.3, sampling_probability=q)


def test_limits():
    for bound in (zhu_wang, wang_balle_kasiviswanathan, visible_coins):
        assert bound(4, curve=GAUSSIAN, sampling_probability=0.0) == 0.0
        infinite = functools.partial(dirichlet.dirichlet, scaling=1.0, offset=2.0)
        assert bound(4, curve=infinite, sampling_probability=0.1) == math.inf
    plain = GAUSSIAN(4)
    assert zhu_wang(4, curve=GAUSSIAN, sampling_probability=1.0, factor_three=False) == pytest.approx(plain)
    assert zhu_wang(4, curve=GAUSSIAN, sampling_probability=1.0) == pytest.approx(plain + math.log(3) / 3)
    assert wang_balle_kasiviswanathan(4, curve=GAUSSIAN, sampling_probability=1.0) == plain
    assert visible_coins(4, curve=GAUSSIAN, sampling_probability=1.0) == pytest.approx(plain, rel=1e-13)


def test_bad_input():
    for bound in (zhu_wang, wang_balle_kasiviswanathan):
        for order in (1, 2.5, math.nan, math.inf):
            with pytest.raises(ValueError, match="order"):
                bound(order, curve=GAUSSIAN, sampling_probability=0.1)
    for bound in (zhu_wang, wang_balle_kasiviswanathan, visible_coins):
        for q in (-0.1, 1.1, math.nan):
            with pytest.raises(ValueError, match="sampling_probability"):
                bound(3, curve=GAUSSIAN, sampling_probability=q)
        with pytest.raises(ValueError, match="renyi"):
            bound(3, curve=lambda order: -1.0, sampling_probability=0.1)
