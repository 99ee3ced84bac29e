"""Contours by layers of the largest loss, against one contour, the lattice, and 30-digit moments."""

from __future__ import annotations

import math

import mpmath
import numpy as np
import pytest

from exactdp.accounting import prv
from exactdp.accounting.laws import mapped
from exactdp.accounting.laws.law import Law, Moments, tilt
from exactdp.accounting.pairs.base import Pair, Unsuitable
from exactdp.accounting.pairs.dirichlet import Dirichlet
from exactdp.accounting.pairs.gaussian import Gaussian
from exactdp.accounting.pairs.laplace import Laplace
from exactdp.accounting.prv import contour, split
from exactdp.accounting.sampling.hidden import PoissonHidden

CUTS = (-math.inf, 0.2, 0.4, 1.5, math.inf)
K = 7  # of the weights: P(Bin(power + K, p) <= K)


def _law(pair: Pair, q: float) -> Law:
    return mapped.MappedLaw(pair, q, add=False)


def _layer(law: Law, low: float, high: float, power: int) -> Moments:
    found = law.layer(low, high, power=power)
    assert found is not None
    return found


@pytest.mark.parametrize("power", [24, 61, 400])
@pytest.mark.parametrize(
    "pair, q",
    [
        (Gaussian(0.74), 2.4e-5),
        (Gaussian(2.0), 0.3),
        (Dirichlet(scaling=0.235, offset=3.0), 0.005),
        (Laplace(0.2), 0.01),
    ],
    ids=["gaussian", "wide gaussian", "dirichlet", "laplace"],
)
def test_layers_add_up_to_the_whole_law(pair: Pair, q: float, power: int) -> None:
    law = _law(pair, q)
    layers = [_layer(law, a, b, power) for a, b in zip(CUTS[:-1], CUTS[1:], strict=True)]
    mass = math.fsum(1.0 - layer.infinity_mass for layer in layers)
    assert abs(mass - 1.0) <= 1e-15 + sum(layer.mass_error for layer in layers)
    for order in (0.5, 4.0, 9.0):
        whole = tilt(law, law.nodes(order=order, frequency=3.0, count=1000), order)
        parts = [tilt(m, m.nodes(order=order, frequency=3.0, count=1000), order) for m in layers]
        total = math.fsum(math.exp(t.log_moment - whole.log_moment) for t in parts)
        error = whole.log_moment_error + sum(
            t.log_moment_error * math.exp(t.log_moment - whole.log_moment) for t in parts
        )
        assert abs(total - 1.0) <= error + 1e-15
        assert error < 1e-11


def _moment(z: float, sigma: float, q: float, cuts: tuple[float, float], power: int) -> mpmath.mpf:
    """E_P[exp(z L) weight] of a sampled Gaussian by mpmath; the cuts are those of u."""
    variance, rate = mpmath.mpf(sigma) ** -2, mpmath.mpf(q)

    def below(u: mpmath.mpf, cut: float) -> mpmath.mpf:
        if math.isinf(cut):
            return mpmath.mpf(1 if cut > 0 else 0)
        p = 1 / (1 + mpmath.exp(mpmath.mpf(cut) - u))
        n = power + K
        return mpmath.fsum(mpmath.binomial(n, j) * p**j * (1 - p) ** (n - j) for j in range(K + 1))

    def integrand(u: mpmath.mpf) -> mpmath.mpf:
        density = mpmath.npdf(u, -variance / 2, mpmath.sqrt(variance))
        weight = below(u, cuts[1]) - below(u, cuts[0])
        return density * (1 - rate + rate * mpmath.exp(u)) ** (1 + z) * weight

    # The trapezoid rule converges like e^{-2 pi a / h} for an integrand analytic in |Im u| < a, a near pi.
    step = mpmath.mpf(1) / 8
    return step * mpmath.fsum(integrand(-18 + step * k) for k in range(8 * 70))


@pytest.mark.parametrize("low, high", [(-math.inf, 0.2), (0.2, 0.4), (2.0, math.inf)])
def test_moments_of_a_layer_to_thirty_digits(low: float, high: float) -> None:
    sigma, q, power = 0.74, 2.4e-5, 32
    law = mapped.MappedLaw(Gaussian(sigma), q, add=False)
    shift = math.log(power / (K + 1.0))
    cuts = tuple(x if math.isinf(x) else float(law.inverse(np.array([x]))[0]) + shift for x in (low, high))
    layer = _layer(law, low, high, power)
    with mpmath.workdps(55):  # of which 1 - s loses up to 40
        for order in (0.5, 6.4, 20.0):
            found = tilt(layer, layer.nodes(order=order, frequency=0.0, count=1000), order)
            truth = mpmath.log(_moment(order, sigma, q, (cuts[0], cuts[1]), power))
            assert abs(truth - found.log_moment) <= found.log_moment_error
            assert found.log_moment_error < 1e-11


@pytest.mark.parametrize(
    "pair, q, count, epsilon",
    [
        (Gaussian(1.0), 0.01, 1000, 1.8),
        (Gaussian(0.7), 0.001, 50_000, 2.5),
        (Dirichlet(scaling=0.5, offset=3.0), 0.2, 500, 3.0),
        (Laplace(0.8), 0.002, 10_000, 1.0),
    ],
    ids=["A", "many", "dirichlet", "laplace"],
)
def test_layers_agree_with_one_contour(pair: Pair, q: float, count: int, epsilon: float) -> None:
    components = [(_law(pair, q), count)]
    at = contour.find(components, epsilon=epsilon)
    whole = contour.whole(components, at, epsilon=epsilon, log_tolerance=math.log(1e-11))
    layered = split.split(components, epsilon=epsilon, log_delta=None, log_tolerance=math.log(1e-11))
    (low, slope), (high, _) = (layered.log_delta(epsilon, upper=side) for side in (False, True))
    whole_low, whole_high = (whole.log_delta(epsilon, upper=side)[0] for side in (False, True))
    assert low <= high <= low + 1e-7
    assert low <= whole_high and whole_low <= high
    assert slope == pytest.approx(whole.log_delta(epsilon, upper=True)[1], rel=1e-6)


def test_layers_of_a_heterogeneous_composition_agree_with_one_contour() -> None:
    components = [(_law(Gaussian(1.0), 0.01), 500), (_law(Gaussian(0.8), 0.002), 2000)]
    at = contour.find(components, epsilon=1.5)
    whole = contour.whole(components, at, epsilon=1.5, log_tolerance=math.log(1e-11))
    layered = split.split(components, epsilon=1.5, log_delta=None, log_tolerance=math.log(1e-11))
    low, high = (layered.log_delta(1.5, upper=side)[0] for side in (False, True))
    assert low <= whole.log_delta(1.5, upper=True)[0] and whole.log_delta(1.5, upper=False)[0] <= high


PAPER = PoissonHidden(Dirichlet(scaling=0.235, offset=3.0), 0.005)
ONE_LARGE_LOSS = [
    # sigma, q, count, delta, and what the lattice by layers certified
    (1.55, 8e-4, 9000, 5e-24, 0.5516957737489884, 0.5516961163794362),
    (0.7412119757218738, 2.380087889049383e-05, 24_681_609, 2.27e-15, 2.1003395299616, 2.1003831008557),
    (1.090120210320811, 5.0014605525699914e-05, 176_681_352, 6.45e-91, 15.602706479386, 15.603057810025),
    (1.5, 1e-5, 10**9, 1e-50, 3.495299028945, 3.495300513283),
]


@pytest.mark.parametrize("sigma, q, count, delta, low, high", ONE_LARGE_LOSS)
def test_one_large_loss_decides(
    sigma: float, q: float, count: int, delta: float, low: float, high: float
) -> None:
    found = prv.epsilon([(PoissonHidden(Gaussian(sigma), q), count)], delta=delta, direction="remove")
    assert found.engine == "contour"
    assert found.width <= 1e-7 * found.upper
    assert low <= found.upper and found.lower <= high


@pytest.mark.parametrize(
    "delta, low, high",
    [
        (1e-30, 1.6456857375393, 1.6456864173541),
        (1e-100, 13.235746507607, 13.235749133718),
        (1e-300, 49.307861969591, 49.311307111086),
    ],
)
def test_dirichlet_far_out(delta: float, low: float, high: float) -> None:
    found = prv.epsilon([(PAPER, 20_000)], delta=delta, direction="remove")
    assert found.width <= 1e-6 * found.upper
    assert low <= found.upper and found.lower <= high


def test_delta_far_out_inverts_epsilon() -> None:
    steps = [(PoissonHidden(Gaussian(1.5), 1e-5), 10**9)]
    found = prv.delta(steps, epsilon=3.4953, direction="remove")
    assert found.engine == "contour"
    assert found.width <= 1e-5 * found.upper
    back = prv.epsilon(steps, delta=found.upper, direction="remove")
    assert back.lower <= 3.4953 <= back.upper + 1e-6


def test_what_has_no_layers() -> None:
    law = mapped.MappedLaw(Gaussian(1.0), 0.01, add=True)
    assert law.layer(-math.inf, 0.1, power=24) is None
    with pytest.raises(Unsuitable, match="no layers"):
        split.split([(law, 100)], epsilon=1.0, log_delta=-20.0, log_tolerance=-20.0)
    with pytest.raises(Unsuitable, match="epsilon = 0"):
        split.split([(_law(Gaussian(1.0), 0.01), 99)], epsilon=0.0, log_delta=-20.0, log_tolerance=-20.0)
    with pytest.raises(Unsuitable, match="few steps"):
        split.split([(_law(Gaussian(1.0), 0.01), 10)], epsilon=1.0, log_delta=-20.0, log_tolerance=-20.0)


@pytest.mark.parametrize("noise", [0.04, 0.06])
def test_likelihood_ratios_beyond_every_float(noise: float) -> None:
    """Warnings are errors here: a layer's mass must not be taken as zero times infinity."""
    composition = [(PoissonHidden(Gaussian(noise), 0.1), 12)]
    found = prv.epsilon(composition, delta=1e-5)
    other = prv.epsilon(composition, delta=1e-5, engine="lattice")
    assert max(found.lower, other.lower) <= min(found.upper, other.upper)
