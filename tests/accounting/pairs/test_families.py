"""What is special to one family: bad input, limits, and the contour engine on closed forms."""

from __future__ import annotations

import math

import mpmath as mp
import numpy as np
import pytest

from exactdp.accounting import prv
from exactdp.accounting.pairs import (
    approximate,
    custom,
    dirichlet,
    discrete_gaussian,
    discrete_laplace,
    finite,
    laplace,
    panels,
    pure,
)
from tests.accounting.pairs import families


@pytest.mark.parametrize(
    "make",
    [
        lambda: laplace.Laplace(0.0),
        lambda: laplace.Laplace(math.nan),
        lambda: laplace.Laplace(1.0, sensitivity=-1.0),
        lambda: dirichlet.Dirichlet(0.0, 1.0),
        lambda: dirichlet.Dirichlet(1.0, math.inf),
        lambda: pure.PureDP(-0.1),
        lambda: pure.randomised_response(1.0),
        lambda: pure.randomised_response(0.5, categories=1),
        lambda: approximate.ApproximateDP(1.0, 1.0),
        lambda: approximate.ApproximateDP(1.0, -1e-9),
        lambda: finite.Finite(p=(0.5, 0.5), q=(1.0,)),
        lambda: finite.Finite(p=(0.5, 0.6), q=(0.5, 0.5)),
        lambda: finite.Finite(p=(1.5, -0.5), q=(0.5, 0.5)),
        lambda: finite.Finite(p=(1.0, 0.0), q=(0.0, 1.0)),
        lambda: finite.Finite(p=(), q=()),
        lambda: discrete_gaussian.DiscreteGaussian(1.0, 0),
        lambda: discrete_gaussian.DiscreteGaussian(1e-9),
        lambda: discrete_laplace.DiscreteLaplace(1.0, 1.5),
        lambda: custom.from_cdf(lambda x: x / 2, lambda x: x, loss=lambda x: x, outcomes=(0.0, 1.0)),
        lambda: custom.from_density(lambda x: -x * x, lambda x: -x * x, loss=lambda x: x),
        # A loss that loses its digits far out: log((1 + e^-x) / (1 + e^-(x - 1))) by differences.
        lambda: custom.from_cdf(
            lambda x: 1 / (1 + np.exp(-np.clip(x - 1, -700, 700))),
            lambda x: 1 / (1 + np.exp(-np.clip(x, -700, 700))),
            loss=lambda x: 1 + 2 * (np.logaddexp(0, -x) - np.logaddexp(0, 1 - x)),
            loss_support=(-1.0, 1.0),
        ),
    ],
)
def test_bad_input(make) -> None:
    with pytest.raises(ValueError, match="must"):
        make()


def test_gauss_nodes() -> None:
    """Weights to 4 units: every certificate of a panel rests on them."""
    degree = 47
    nodes, log_weight = panels.gauss(degree)
    for x, w in zip(nodes[::5], log_weight[::5], strict=True):
        z = mp.findroot(lambda t: mp.legendre(degree, t), mp.mpf(x))
        slope = degree * (z * mp.legendre(degree, z) - mp.legendre(degree - 1, z)) / (z * z - 1)
        assert abs(mp.exp(mp.mpf(w)) * (1 - z * z) * slope**2 / 2 - 1) < 1e-15
        assert abs(z - x) < 2e-16


def test_randomised_response_epsilon() -> None:
    pair = pure.randomised_response(0.7, categories=4)
    assert pair.support[1] == pytest.approx(math.log(0.7 * 3 / 0.3), rel=1e-14)
    assert len(pair.atoms.u) == 3 and pair.symmetric
    assert len(pure.randomised_response(0.7).atoms.u) == 2


def test_finite_merges_and_splits() -> None:
    pair = families.PAIRS["finite"]
    assert pair.infinity_mass == pytest.approx(0.1) and pair.missing_mass == pytest.approx(0.35)
    assert len(pair.atoms.u) == 2  # 0.5/0.25 and 0.2/0.1 are one loss
    assert not pair.symmetric


def test_atom_on_an_edge_belongs_below() -> None:
    m = pure.PureDP(0.5).masses(np.array([-0.5, 0.0, 0.5]))
    assert m.p[0] > 0 and m.p[1] == 0 and m.p[2] > 0 and m.p[3] == 0


def test_discrete_gaussian_listed_and_summed_agree(monkeypatch: pytest.MonkeyPatch) -> None:
    pair = discrete_gaussian.DiscreteGaussian(4000.0, 900)
    edges = np.linspace(-0.7, 0.7, 57)
    listed, value = pair.masses(edges), pair.hockey_stick(0.3)
    monkeypatch.setattr(discrete_gaussian, "_DIRECT", 1.0)
    summed, other = pair.masses(edges), pair.hockey_stick(0.3)
    assert np.all(np.abs(listed.p - summed.p) <= listed.p_error + summed.p_error)
    assert np.all(np.abs(listed.q - summed.q) <= listed.q_error + summed.q_error)
    assert abs(value[0] - other[0]) <= value[1] + other[1]
    assert other[1] < 1e-13


@pytest.mark.parametrize(("scaling", "offset"), [(1e3, 1e-2), (1e-6, 1e4), (1e3, 1e4), (0.3, 1e-2)])
def test_dirichlet_extremes(scaling: float, offset: float) -> None:
    """Total masses, and H(1) = 1 - 2 Q(u > 0) by symmetry, where mpmath's beta function is too slow."""
    pair = dirichlet.Dirichlet(scaling, offset)
    m = pair.masses(np.array([0.0]))
    assert math.fsum(m.p) == pytest.approx(1.0, abs=m.p_error.sum())
    value, error = pair.hockey_stick(0.0)
    assert value == pytest.approx(1.0 - 2.0 * m.q[1], abs=error + 2 * m.q_error[1] + 1e-15)
    assert m.p[1] == pytest.approx(m.q[0], abs=m.p_error[1] + m.q_error[0])


def _check(pair, count: int, epsilon: float, truth: mp.mpf, engine: str) -> None:
    interval = prv.delta([(pair, count)], epsilon=epsilon, engine=engine)
    assert interval.lower <= truth <= interval.upper
    assert interval.width <= 1e-3 * interval.upper


def _by_contour(moment, count: int, order: float) -> tuple[float, mp.mpf]:
    """An epsilon whose saddle point is about `order`, and delta(epsilon) for `count` steps.

    delta = (1 / pi) int Re M(z)^count e^(-z eps) / (z (z + 1)) dy on Re z = order, M in closed form.
    """
    epsilon = round(float(count * mp.diff(lambda t: mp.log(moment(t)), order)))
    spread = count * mp.diff(lambda t: mp.log(moment(t)), order, 2)

    def integrand(y: mp.mpf) -> mp.mpf:
        z = mp.mpc(order, y)
        return mp.re(moment(z) ** count * mp.exp(-z * epsilon) / (z * (z + 1)))

    reach = 10 / mp.sqrt(spread)
    assert abs(integrand(reach)) < 1e-14 * integrand(mp.mpf(0))
    return float(epsilon), mp.quad(integrand, mp.linspace(0, reach, 17)) / mp.pi


@pytest.mark.parametrize(("count", "order"), [(40, 0.7), (200, 1.3)])
def test_composed_dirichlet(count: int, order: float) -> None:
    """Composed Dirichlet draws: the moments are quotients of Gamma functions."""
    r, a = mp.mpf(0.6), mp.mpf(2)
    g = mp.loggamma
    with mp.workdps(20):
        norm = g(a) + g(a + r)
        epsilon, truth = _by_contour(lambda z: mp.exp(g(a + r + r * z) + g(a - r * z) - norm), count, order)
    for engine in ("contour", "lattice") if count < 100 else ("contour",):
        _check(dirichlet.Dirichlet(0.6, 2.0), count, epsilon, truth, engine)


def test_contour_laplace() -> None:
    """300 Laplace releases: enough that the atoms at the ends no longer matter."""
    c = mp.mpf(4)

    def moment(z: mp.mpc) -> mp.mpc:
        return (
            mp.exp(c * z) / 2
            + mp.exp(-c * (1 + z)) / 2
            + mp.exp(-c / 2) * mp.sinh(c * (z + 0.5)) / (2 * z + 1)
        )

    with mp.workdps(20):
        epsilon, truth = _by_contour(moment, 300, 0.02)
    _check(laplace.Laplace(0.25), 300, epsilon, truth, "auto")


def test_lattice_laplace() -> None:
    """A composition of 12 Laplace releases, by expanding the law of the loss.

    One loss is c with probability 1/2, -c with e^-c / 2, else of density e^((u - c) / 2) / 4: the sum of
    k densities is a polynomial spline times an exponential (Irwin-Hall), integrated exactly.
    """
    count, c, epsilon = 12, mp.mpf(2), mp.mpf(14)
    with mp.workdps(60):
        truth = mp.mpf(0)
        for k in range(count + 1):
            for up in range(count - k + 1):
                down = count - k - up
                p = mp.mpf(math.comb(count, k) * math.comb(count - k, up)) / mp.mpf(2) ** (up + down)
                p *= mp.exp(-c * down)
                start = c * (up - down)
                truth += p * _spline(k, c, epsilon - start)
    _check(laplace.Laplace(0.5), count, float(epsilon), truth, "lattice")


def _spline(k: int, c: mp.mpf, threshold: mp.mpf) -> mp.mpf:
    """E[(1 - e^(threshold - S))_+] for S a sum of k draws of density e^((u - c) / 2) / 4 on [-c, c]."""
    if k == 0:
        return max(mp.mpf(0), 1 - mp.exp(threshold))
    # S = -k c + 2 c X, X Irwin-Hall of k: density sum_j (-1)^j C(k, j) (x - j)_+^(k-1) / (k-1)!.
    # The weight is (c / 2)^k e^(-k c) e^(c X); payoff 1 - e^(threshold + k c - 2 c X).
    floor = (threshold + k * c) / (2 * c)
    if floor >= k:
        return mp.mpf(0)
    scale = (c / 2) ** k * mp.exp(-k * c)
    total = mp.mpf(0)
    low = max(floor, mp.mpf(0))
    for j in range(k):
        start = max(low, mp.mpf(j))
        if start < k:
            part = _power(k - 1, j, start, mp.mpf(k), c) - mp.exp(2 * c * floor) * _power(
                k - 1, j, start, mp.mpf(k), -c
            )
            total += (-1) ** j * math.comb(k, j) * part
    return scale * total


def _power(n: int, j: int, start: mp.mpf, end: mp.mpf, rate: mp.mpf) -> mp.mpf:
    """int_start^end (x - j)^n / n! e^(rate x) dx by repeated partial integration."""

    def primitive(x: mp.mpf) -> mp.mpf:
        total = mp.mpf(0)
        for m in range(n + 1):
            total += (-1) ** (n - m) * (x - j) ** m / mp.factorial(m) / rate ** (n - m + 1)
        return total * mp.exp(rate * x)

    return primitive(end) - primitive(start)


@pytest.mark.parametrize(("epsilon", "order"), [(2.0, 0.8), (5.0, 3.0)])
def test_lattice_custom(epsilon: float, order: float) -> None:
    """Ten releases with logistic noise, against a contour integral of the moments in float64."""
    b, count = math.tanh(0.9 / 4), 10
    # E_P[e^(zL)] over v = tanh((x - d/2) / 2): e^L = ((1 + b v) / (1 - b v))^2, and the logistic density at
    # x - d is (1 - w^2) / 4 with w = tanh((x - d) / 2) = (v - b) / (1 - b v); dx = 2 dv / (1 - v^2).
    v, log_weight = panels.gauss(60)
    w = (v - b) / (1 - b * v)
    p = np.exp(log_weight) * (1 - w * w) / (1 - v * v) / 2
    loss = 2 * np.log((1 + b * v) / (1 - b * v))
    x, log_weight = panels.gauss(80)
    reach, parts = 400.0, 800
    y = ((np.arange(parts)[:, None] + 0.5 * (1 + x)) * (reach / parts)).ravel()
    z = order + 1j * y
    moment = (np.exp(np.outer(z, loss)) @ p) ** count
    integrand = (moment * np.exp(-z * epsilon) / (z * (z + 1))).real
    truth = float(integrand @ np.tile(np.exp(log_weight), parts)) * reach / (2 * parts) / math.pi
    assert abs(integrand[-1]) * reach < 1e-9 * truth
    interval = prv.delta([(families.PAIRS["logistic"], count)], epsilon=epsilon, engine="lattice")
    assert interval.lower * (1 - 1e-8) <= truth <= interval.upper * (1 + 1e-8)
    assert interval.width <= 1e-3 * interval.upper
