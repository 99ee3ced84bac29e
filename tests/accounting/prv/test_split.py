"""Contours by layers of the largest loss, against one contour, the lattice, and 30-digit moments."""

from __future__ import annotations

import math

import mpmath
import numpy as np
import pytest

from exactdp.accounting import prv
from exactdp.accounting.laws import mapped
from exactdp.accounting.laws.law import Law, Moments, tilt
from exactdp.accounting.laws.replace import ReplaceLaw
from exactdp.accounting.pairs.base import Pair, Unsuitable
from exactdp.accounting.pairs.dirichlet import Dirichlet
from exactdp.accounting.pairs.gaussian import Gaussian
from exactdp.accounting.pairs.laplace import Laplace
from exactdp.accounting.prv import contour, split
from exactdp.accounting.sampling.hidden import PoissonHidden
from exactdp.accounting.sampling.replace import PoissonReplaceGaussian

CUTS = (-math.inf, 0.2, 0.4, 1.5, math.inf)
RISES = [8, 32, 256]  # k + 1 of the weights P(Bin(power + k, p) <= k)


def _law(pair: Pair, q: float) -> Law:
    return mapped.MappedLaw(pair, q, add=False)


def _layer(law: Law, low: float, high: float, power: int, rise: int) -> Moments:
    found = law.layer(low, high, power=power, rise=rise)
    assert found is not None
    return found


LAWS = {
    "gaussian": _law(Gaussian(0.74), 2.4e-5),
    "wide gaussian": _law(Gaussian(2.0), 0.3),
    "dirichlet": _law(Dirichlet(scaling=0.235, offset=3.0), 0.005),
    "laplace": _law(Laplace(0.2), 0.01),
    "replaced": ReplaceLaw(0.74, 2.4e-5),
    "replaced, wide": ReplaceLaw(2.0, 0.3),
}


@pytest.mark.parametrize("rise", RISES)
@pytest.mark.parametrize("power", [24, 61, 400])
@pytest.mark.parametrize("name", LAWS)
def test_layers_add_up_to_the_whole_law(name: str, power: int, rise: int) -> None:
    law = LAWS[name]
    layers = [_layer(law, a, b, power, rise) for a, b in zip(CUTS[:-1], CUTS[1:], strict=True)]
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


def _below(u: mpmath.mpf, cut: float, power: int, rise: int) -> mpmath.mpf:
    """The weight below a cut, P(Bin(power + rise - 1, p) < rise)."""
    if math.isinf(cut):
        return mpmath.mpf(1 if cut > 0 else 0)
    p = 1 / (1 + mpmath.exp(mpmath.mpf(cut) - u))
    n = power + rise - 1
    return mpmath.fsum(mpmath.binomial(n, j) * p**j * (1 - p) ** (n - j) for j in range(rise))


def _moment(z: float, sigma: float, q: float, cuts: tuple[float, float], power: int, rise: int) -> mpmath.mpf:
    """E_P[exp(z L) weight] of a sampled Gaussian by mpmath; the cuts are those of u."""
    variance, rate = mpmath.mpf(sigma) ** -2, mpmath.mpf(q)

    def integrand(u: mpmath.mpf) -> mpmath.mpf:
        density = mpmath.npdf(u, -variance / 2, mpmath.sqrt(variance))
        weight = _below(u, cuts[1], power, rise) - _below(u, cuts[0], power, rise)
        return density * (1 - rate + rate * mpmath.exp(u)) ** (1 + z) * weight

    # The trapezoid rule converges like e^{-2 pi a / h} for an integrand analytic in |Im u| < a, a near pi.
    step = mpmath.mpf(1) / 8
    return step * mpmath.fsum(integrand(-18 + step * k) for k in range(8 * 70))


@pytest.mark.parametrize("rise", [8, 20])
@pytest.mark.parametrize("low, high", [(-math.inf, 0.2), (0.2, 0.4), (2.0, math.inf)])
def test_moments_of_a_layer_to_thirty_digits(low: float, high: float, rise: int) -> None:
    sigma, q, power = 0.74, 2.4e-5, 32
    law = mapped.MappedLaw(Gaussian(sigma), q, add=False)
    shift = math.log(power / rise)
    cuts = tuple(x if math.isinf(x) else float(law.inverse(np.array([x]))[0]) + shift for x in (low, high))
    layer = _layer(law, low, high, power, rise)
    with mpmath.workdps(55 if rise == 8 else 110):  # of which 1 - s loses up to 40, or 90
        for order in (0.5, 6.4, 20.0):
            found = tilt(layer, layer.nodes(order=order, frequency=0.0, count=1000), order)
            truth = mpmath.log(_moment(order, sigma, q, (cuts[0], cuts[1]), power, rise))
            assert abs(truth - found.log_moment) <= found.log_moment_error
            assert found.log_moment_error < 1e-11


def _replaced_moment(
    z: float, sigma: float, q: float, cuts: tuple[float, float], power: int, rise: int
) -> mpmath.mpf:
    """As `_moment` for a record that is replaced by its opposite; the cuts are those of v."""
    variance, rate = mpmath.mpf(sigma) ** -2, mpmath.mpf(q)

    def w(v: mpmath.mpf) -> mpmath.mpf:
        return 1 - rate + rate * mpmath.exp(v - variance / 2)

    def integrand(v: mpmath.mpf) -> mpmath.mpf:
        density = mpmath.npdf(v, 0, mpmath.sqrt(variance)) * w(v) * (w(v) / w(-v)) ** z
        return density * (_below(v, cuts[1], power, rise) - _below(v, cuts[0], power, rise))

    step = mpmath.mpf(1) / 8
    return step * mpmath.fsum(integrand(-30 + step * k) for k in range(8 * 100))


@pytest.mark.parametrize("low, high", [(-math.inf, 0.2), (0.2, 0.4), (2.0, math.inf)])
def test_moments_of_a_layer_of_a_replaced_record_to_thirty_digits(low: float, high: float) -> None:
    sigma, q, power, rise = 0.74, 2.4e-5, 32, 8
    law = ReplaceLaw(sigma, q)
    shift = math.log(power / rise)
    cuts = tuple(x if math.isinf(x) else float(law.inverse(np.array([x]))[0]) + shift for x in (low, high))
    layer = _layer(law, low, high, power, rise)
    with mpmath.workdps(55):
        for order in (0.5, 6.4, 20.0):
            found = tilt(layer, layer.nodes(order=order, frequency=0.0, count=1000), order)
            truth = mpmath.log(_replaced_moment(order, sigma, q, (cuts[0], cuts[1]), power, rise))
            assert abs(truth - found.log_moment) <= found.log_moment_error
            assert found.log_moment_error < 1e-11


@pytest.mark.parametrize("order", [3.0, 40.0])
@pytest.mark.parametrize(
    "law",
    [
        _law(Gaussian(0.74), 0.003),
        _law(Dirichlet(scaling=0.5, offset=3.0), 0.01),
        ReplaceLaw(0.74, 0.003),
    ],
    ids=["gaussian", "dirichlet", "replaced"],
)
def test_decay_below_the_lowest_cut_bounds_the_characteristic_function(law: Law, order: float) -> None:
    """Beyond the bulk's width only the density says anything, and only without the weight's steep end."""
    measure = _layer(law, -math.inf, 0.2, 64, 32)
    y = np.geomspace(10.0, 8e3, 25)
    tilted = tilt(measure, measure.nodes(order=order, frequency=8e3, count=1), order)
    phi = np.array([abs(np.sum(tilted.weight * np.exp(1j * f * tilted.deviation))) for f in y])
    decay = measure.decay(order=order, log_moment=tilted.log_moment)
    assert decay is not None
    assert np.all(phi <= decay.bound(y, y) + 1e-9)
    assert decay.falling_bound(y)[-1] < 0.95


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
    steps = [(PoissonHidden(Gaussian(sigma), q), count)]
    found = prv.epsilon(steps, delta=delta, direction="remove", engine="contour")
    assert found.engine == "contour"
    assert found.width <= 1e-7 * found.upper
    assert low <= found.upper and found.lower <= high


ONCE_WIDE = {
    # steps, delta, and what one contour or the lattice by layers certified, both wider than 1e-6
    "bulk and one loss": (
        [(PoissonHidden(Gaussian(1.8122052119708214), 0.0002761301338861157), 68412)],
        1.98e-38,
        (0.5467462109839966, 0.5467468399315591),
    ),
    "sharp layers": (
        [(PoissonHidden(Gaussian(2.410034114392304), 0.00010930891803045027), 481924)],
        6.01e-86,
        (0.6389601836678899, 0.6389624812160601),
    ),
    "rare": (
        [(PoissonHidden(Gaussian(0.8119605720000075), 2.6195185840964666e-06), 30651059)],
        5.01e-15,
        (0.19229345113579957, 0.19231929036827597),
    ),
    "far out": (
        [(PoissonHidden(Gaussian(1.5696832620169279), 1.6087119213240913e-05), 201702445)],
        6.13e-97,
        (3.3492499896036843, 3.349489078242696),
    ),
    "dirichlet": (
        [
            (
                PoissonHidden(
                    Dirichlet(scaling=0.6755005023438723, offset=2.6888279797411188), 0.0009359586261232373
                ),
                5484,
            )
        ],
        1.20e-10,
        (0.4445940690438988, 0.4447092713625232),
    ),
    "replaced": (
        [(PoissonReplaceGaussian(0.7859237538326084, 1.0014313937860582e-05), 36014588)],
        3.63e-14,
        (1.3244994669464223, 1.3245303507745396),
    ),
    "replaced, far out": (
        [(PoissonReplaceGaussian(1.2172535038786692, 3.6907702739658725e-06), 523765659)],
        7.94e-85,
        (4.294335328054642, 4.2952079508755725),
    ),
    "no single tilt": (
        [
            (PoissonHidden(Gaussian(6.691685601003522), 0.006227851920600686), 1),
            (Laplace(1.3592503144630064), 9),
        ],
        4.64e-25,
        (6.6376702857367285, 6.638027779837134),
    ),
}


@pytest.mark.parametrize("name", ONCE_WIDE)
def test_widths_far_out(name: str) -> None:
    steps, delta, (low, high) = ONCE_WIDE[name]
    found = prv.epsilon(steps, delta=delta)
    assert found.width <= 1e-6 * max(found.upper, 0.01)
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
    assert law.layer(-math.inf, 0.1, power=24, rise=8) is None
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
