"""The inversion against closed forms, an independent quadrature, and simulation."""

from __future__ import annotations

import math

import mpmath as mp
import numpy as np
import pytest
from scipy import special

from exactdp.accounting import worst_pair
from exactdp.accounting.pairs.dirichlet import Dirichlet


def reference(p, q, *, scaling, offset, epsilon):
    """K = 3: stick breaking; a trapezoid over logit(V), the rest an incomplete beta function."""
    a, b = offset + scaling * np.asarray(p), offset + scaling * np.asarray(q)
    c = a - b
    constant = special.gammaln(b).sum() - special.gammaln(a).sum()
    y = np.linspace(-900.0, 900.0, 360_001)

    def tail(shape):
        # x_1 = B, x_2 = (1-B) V, x_3 = (1-B)(1-V); L = c_1 logit B + c_2 log V + c_3 log(1-V) + constant.
        density = shape[1] * special.log_expit(y) + shape[2] * special.log_expit(-y)
        weight = np.exp(density - special.betaln(shape[1], shape[2])) * (y[1] - y[0])
        cut = (epsilon - constant - c[1] * special.log_expit(y) - c[2] * special.log_expit(-y)) / c[0]
        if c[0] > 0.0:
            above = special.betainc(shape[1] + shape[2], shape[0], special.expit(-cut))
        else:
            above = special.betainc(shape[0], shape[1] + shape[2], special.expit(cut))
        return float((weight * above).sum())

    return tail(a) - math.exp(epsilon) * tail(b)


@pytest.mark.parametrize(
    ("scaling", "offset", "epsilon"),
    [
        (0.235, 3.0, 0.0),
        (0.235, 3.0, 0.3),
        (0.235, 3.0, 2.0),
        (0.235, 3.0, -0.4),
        (1e-5, 3.0, 3e-5),
        (5.0, 0.05, 40.0),
        (20.0, 3.0, 15.0),
        (2.9, 3.0, 5.0),
        (0.01, 200.0, 0.001),
    ],
)
def test_vertex_pair_against_the_closed_form(scaling, offset, epsilon):
    value, error = Dirichlet(scaling, offset).hockey_stick(epsilon)
    for p, q in (([0, 1, 0, 0], [0, 0, 0, 1]), ([1, 0], [0, 1])):
        interval = worst_pair.hockey_stick(p, q, scaling=scaling, offset=offset, epsilon=epsilon)[0]
        assert interval.lower <= value + error and value - error <= interval.upper
        assert interval.width <= 1e-10 * value


@pytest.mark.parametrize(
    ("p", "q"),
    [
        ([0.5, 0.5, 0.0], [0.0, 0.0, 1.0]),
        ([1.0, 0.0, 0.0], [0.0, 0.7, 0.3]),
        ([0.2, 0.5, 0.3], [0.6, 0.3, 0.1]),
        ([0.9, 0.05, 0.05], [0.1, 0.1, 0.8]),
    ],
)
@pytest.mark.parametrize(
    ("scaling", "offset", "epsilon"), [(0.235, 3.0, 0.02), (4.0, 1.5, 1.0), (1.0, 0.4, 0.5)]
)
def test_general_pairs_against_quadrature(p, q, scaling, offset, epsilon):
    for first, second in ((p, q), (q, p)):
        truth = reference(first, second, scaling=scaling, offset=offset, epsilon=epsilon)
        interval = worst_pair.hockey_stick(first, second, scaling=scaling, offset=offset, epsilon=epsilon)[0]
        assert interval.lower - 3e-12 <= truth <= interval.upper + 3e-12
        assert interval.width <= 1e-10 * truth


def test_against_25_digits_on_another_contour():
    # The same integral by mpmath, with another tilt and step.
    p, q, r, alpha, epsilon = [0.5, 0.5, 0.0], [0.0, 0.0, 1.0], 4, mp.mpf("1.5"), 1
    tilt, step, total = mp.mpf("0.25"), mp.mpf("0.02"), mp.mpf(0)
    with mp.workdps(25):
        a, b = [alpha + r * x for x in p], [alpha + r * x for x in q]
        constant = sum(mp.loggamma(y) - mp.loggamma(x) for x, y in zip(a, b, strict=True))
        for n in range(700):
            z = mp.mpc(tilt, n * step)
            value = z * (constant - epsilon) - mp.log(z * (1 + z))
            value += sum(mp.loggamma(x + z * (x - y)) - mp.loggamma(x) for x, y in zip(a, b, strict=True))
            total += (1 if n == 0 else 2) * mp.re(mp.exp(value))
        truth = float(total * step / (2 * mp.pi))
    interval = worst_pair.hockey_stick(p, q, scaling=4.0, offset=1.5, epsilon=1.0, tolerance=1e-13)[0]
    assert interval.lower <= truth <= interval.upper
    assert interval.width < 1e-12


def test_against_simulation():
    rng = np.random.default_rng(7)
    p, q, r, alpha, epsilon = rng.dirichlet(np.ones(6)), rng.dirichlet(np.ones(6)), 6.0, 0.8, 0.7
    a, b = alpha + r * p, alpha + r * q
    constant = special.gammaln(b).sum() - special.gammaln(a).sum()
    loss = np.log(rng.dirichlet(a, 400_000)) @ (a - b) + constant
    terms = -np.expm1(np.minimum(epsilon - loss, 0.0))
    interval = worst_pair.hockey_stick(p, q, scaling=r, offset=alpha, epsilon=epsilon)[0]
    assert abs(terms.mean() - interval.midpoint) < 5.0 * terms.std() / math.sqrt(terms.size)


def test_duality_and_many_pairs_at_once():
    # H_P,Q(e^-ε) = 1 - e^-ε + e^-ε H_Q,P(e^ε); and a batch answers as its members alone.
    rng = np.random.default_rng(3)
    p, q = rng.dirichlet(np.ones(4), 30), rng.dirichlet(np.full(4, 0.1), 30)
    epsilon, r, alpha = 0.21, 0.9, 1.3
    forward = worst_pair.hockey_stick(p, q, scaling=r, offset=alpha, epsilon=epsilon)
    backward = worst_pair.hockey_stick(q, p, scaling=r, offset=alpha, epsilon=-epsilon)
    for i, (one, other) in enumerate(zip(forward, backward, strict=True)):
        low = -math.expm1(-epsilon) + math.exp(-epsilon) * one.lower
        high = -math.expm1(-epsilon) + math.exp(-epsilon) * one.upper
        assert low - 1e-14 <= other.upper and other.lower <= high + 1e-14
        alone = worst_pair.hockey_stick(p[i], q[i], scaling=r, offset=alpha, epsilon=epsilon)[0]
        assert alone.lower <= one.upper and one.lower <= alone.upper


@pytest.mark.parametrize("tolerance", [1e-13, 1e-4, 0.1])
def test_coarse_intervals_contain_fine_ones(tolerance):
    fine = worst_pair.hockey_stick([0.7, 0.3, 0], [0, 0.1, 0.9], scaling=1.0, offset=0.6, epsilon=0.5)[0]
    arguments = {"scaling": 1.0, "offset": 0.6, "epsilon": 0.5, "tolerance": tolerance}
    coarse = worst_pair.hockey_stick([0.7, 0.3, 0], [0, 0.1, 0.9], **arguments)[0]
    assert coarse.lower <= fine.upper and fine.lower <= coarse.upper
    assert coarse.width <= max(tolerance, 1e-10) * fine.midpoint


def test_extremes():
    arguments = {"scaling": 0.235, "offset": 3.0}
    same = worst_pair.hockey_stick([0.2, 0.8], [0.2, 0.8], epsilon=0.1, **arguments)[0]
    assert (same.lower, same.upper) == (0.0, 0.0)
    same = worst_pair.hockey_stick([0.2, 0.8], [0.2, 0.8], epsilon=-0.1, **arguments)[0]
    assert -math.expm1(-0.1) in same and same.width < 1e-15
    near = worst_pair.hockey_stick([0.2, 0.8], [0.2 + 1e-14, 0.8 - 1e-14], epsilon=0.0, **arguments)[0]
    assert near.upper < 1e-13
    far = worst_pair.hockey_stick([1, 0], [0, 1], epsilon=80.0, **arguments)[0]
    assert far.upper < 1e-290
    small = worst_pair.hockey_stick([1, 0], [0, 1], epsilon=20.0, **arguments)[0]
    assert Dirichlet(0.235, 3.0).hockey_stick(20.0)[0] == pytest.approx(small.midpoint, rel=1e-10)


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"p": [0.5, 0.6, 0.0]}, "p must sum to 1"),
        ({"p": [-0.1, 1.1, 0.0]}, "p must have finite coordinates"),
        ({"p": [math.nan, 1.0, 0.0]}, "p must have finite coordinates"),
        ({"p": [1.0]}, "p must have shape"),
        ({"p_prime": [0.5, 0.5]}, "p_prime must have the shape of p"),
        ({"scaling": 0.0}, "scaling"),
        ({"offset": -1.0}, "offset"),
        ({"epsilon": math.inf}, "epsilon"),
        ({"tolerance": 0.5}, "tolerance"),
    ],
)
def test_bad_arguments(changed, message):
    arguments = {
        "p": [1.0, 0.0, 0.0],
        "p_prime": [0.0, 1.0, 0.0],
        "scaling": 1.0,
        "offset": 1.0,
        "epsilon": 0.1,
    }
    arguments |= changed
    with pytest.raises(ValueError, match=message):
        worst_pair.hockey_stick(arguments.pop("p"), arguments.pop("p_prime"), **arguments)
