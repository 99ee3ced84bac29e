"""The Rényi divergence of the subsampled draw against 40-digit quadrature and against its binomial sum."""

from __future__ import annotations

import functools
import math

import mpmath
import pytest

from exactdp.accounting.ladder.subsampled_draw import subsampled_dirichlet
from exactdp.accounting.rdp.dirichlet_draw import dirichlet
from exactdp.accounting.rdp.general_bounds import zhu_wang


def reference(order: float, r: float, alpha: float, q: float) -> float:
    with mpmath.workdps(40):
        lam, r_, a, q_ = (mpmath.mpf(v) for v in (order, r, alpha, q))
        total = 2 * a + r_

        def integrand(x: mpmath.mpf) -> mpmath.mpf:
            return (
                (1 - q_ + q_ * mpmath.exp(r_ * x)) ** lam * mpmath.exp(a * x) * (1 + mpmath.exp(x)) ** -total
            )

        points = [-80, -40] + [mpmath.mpf(k) for k in range(-15, 16)] + [30, 60, 120, 300, 700]
        moment = mpmath.quad(integrand, points) / mpmath.beta(a, a + r_)
        return float(mpmath.log(moment) / (lam - 1))


@pytest.mark.parametrize(
    ("order", "r", "alpha", "q"),
    [(2.5, 0.235, 3.0, 0.005), (9.7, 0.235, 3.0, 0.005), (1.2, 2.0, 3.0, 0.05), (3.3, 5.0, 50.0, 0.01)],
)
def test_against_quadrature(order: float, r: float, alpha: float, q: float) -> None:
    found = subsampled_dirichlet(order, scaling=r, offset=alpha, sampling_probability=q)
    assert found == pytest.approx(reference(order, r, alpha, q), rel=1e-11)


def test_whole_orders_are_the_sum_without_the_factor() -> None:
    curve = functools.partial(dirichlet, scaling=0.235, offset=3.0)
    for order in (2, 3, 7, 12):
        found = subsampled_dirichlet(order, scaling=0.235, offset=3.0, sampling_probability=0.005)
        known = zhu_wang(order, curve=curve, sampling_probability=0.005, factor_three=False)
        assert found == pytest.approx(known, rel=1e-10)


def test_limits() -> None:
    draw = {"scaling": 0.5, "offset": 3.0}
    assert subsampled_dirichlet(3.0, **draw, sampling_probability=0.0) == 0.0
    assert subsampled_dirichlet(3.0, **draw, sampling_probability=1.0) == dirichlet(3.0, **draw)
    assert subsampled_dirichlet(7.0, **draw, sampling_probability=0.1) == math.inf
    near = subsampled_dirichlet(7.0 - 1e-9, **draw, sampling_probability=0.1)
    assert near == math.inf
    close = subsampled_dirichlet(7.0 - 1e-4, **draw, sampling_probability=0.1)
    assert 1.0 < close / subsampled_dirichlet(6.9, **draw, sampling_probability=0.1) < 10.0
    for bad in ({"scaling": 0.0}, {"offset": math.nan}, {"sampling_probability": 1.1}):
        with pytest.raises(ValueError, match="must"):
            subsampled_dirichlet(3.0, **({**draw, "sampling_probability": 0.1} | bad))
    with pytest.raises(ValueError, match="order must be > 1"):
        subsampled_dirichlet(1.0, **draw, sampling_probability=0.1)
