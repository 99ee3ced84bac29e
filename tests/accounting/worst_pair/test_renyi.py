"""Rényi divergences of general pairs against 40 digits."""

from __future__ import annotations

import math

import mpmath as mp
import numpy as np
import pytest

from exactdp.accounting import rdp, worst_pair


def reference(p, q, order, r, alpha):
    with mp.workdps(40):
        total = mp.mpf(0)
        for x, y in zip(p, q, strict=True):
            a, b = mp.mpf(alpha) + mp.mpf(r) * mp.mpf(x), mp.mpf(alpha) + mp.mpf(r) * mp.mpf(y)
            total += mp.loggamma(order * a - (mp.mpf(order) - 1) * b)
            total += (mp.mpf(order) - 1) * mp.loggamma(b) - order * mp.loggamma(a)
        return float(total / (mp.mpf(order) - 1))


@pytest.mark.parametrize(
    ("r", "alpha", "order"),
    [
        (0.235, 3.0, 1.0001),
        (0.235, 3.0, 7.0),
        (0.235, 3.0, 13.0),
        (1e-6, 3.0, 100.0),
        (5.0, 0.3, 1.03),
        (40.0, 2.0, 1.01),
    ],
)
def test_against_forty_digits(r, alpha, order):
    # Dyadic inputs: their sums are exactly one, so that nothing is normalised.
    p, q = [0.5, 0.375, 0.125, 0.0], [0.0, 0.25, 0.125, 0.625]
    for first, second in ((p, q), (q, p), ([1, 0, 0, 0], [0, 1, 0, 0]), ([1, 0, 0, 0], [0.25] * 4)):
        value = worst_pair.renyi(first, second, order=order, scaling=r, offset=alpha)[0]
        assert value == pytest.approx(reference(first, second, order, r, alpha), rel=1e-10)


def test_vertex_pair_is_the_accountants_curve():
    for order in (1.5, 4.0, 12.0):
        value = worst_pair.renyi([1, 0, 0], [0, 0, 1], order=order, scaling=0.235, offset=3.0)[0]
        assert value == pytest.approx(rdp.dirichlet(order, scaling=0.235, offset=3.0), rel=1e-12)


def test_order_limits():
    arguments = {"scaling": 0.5, "offset": 2.0}
    limits = worst_pair.order_limits(
        [[1, 0], [0.5, 0.5], [0.5, 0.5]], [[0, 1], [0.25, 0.75], [0.5, 0.5]], **arguments
    )
    assert limits.tolist() == [5.0, 1.0 + 2.25 / 0.125, math.inf]
    assert worst_pair.renyi([1, 0], [0, 1], order=5.0, **arguments)[0] == math.inf
    assert worst_pair.renyi([0.5, 0.5], [0.5, 0.5], order=50.0, **arguments)[0] == 0.0
    assert np.isfinite(worst_pair.renyi([1, 0], [0, 1], order=4.999, **arguments)[0])


def test_bad_order():
    for order in (1.0, 0.5, math.nan, math.inf):
        with pytest.raises(ValueError, match="order"):
            worst_pair.renyi([1, 0], [0, 1], order=order, scaling=0.5, offset=2.0)
