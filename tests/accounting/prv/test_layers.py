"""Deltas that one large loss decides, beside almost all the mass at almost no loss."""

from __future__ import annotations

import math

import mpmath as mp
import numpy as np
import pytest

from exactdp.accounting import prv
from exactdp.accounting.laws.law import Law
from exactdp.accounting.pairs.approximate import ApproximateDP
from exactdp.accounting.pairs.dirichlet import Dirichlet
from exactdp.accounting.pairs.gaussian import Gaussian
from exactdp.accounting.prv import discretise, layers
from exactdp.accounting.prv.transform import Composition
from exactdp.accounting.sampling.hidden import PoissonHidden


def _law(noise_multiplier: float, sampling_probability: float) -> Law:
    laws = PoissonHidden(Gaussian(noise_multiplier), sampling_probability).directions()
    if laws is None:
        raise ValueError("no laws")
    return laws[0]


def _two_steps(noise_multiplier: float, sampling_probability: float, epsilon: float) -> mp.mpf:
    """delta of two steps at 40 digits: the hockey-stick divergence of one, averaged over the other."""
    with mp.workdps(40):
        s, q, e = mp.mpf(noise_multiplier), mp.mpf(sampling_probability), mp.mpf(epsilon)

        def density(x: mp.mpf) -> mp.mpf:
            return (1 - q) * mp.npdf(x, 0, s) + q * mp.npdf(x, 1, s)

        def loss(x: mp.mpf) -> mp.mpf:
            return mp.log(1 - q + q * mp.exp((x - mp.mpf(1) / 2) / s**2))

        def one(epsilon: mp.mpf) -> mp.mpf:
            w = (mp.exp(epsilon) - (1 - q)) / q
            if w <= 0:
                return 1 - mp.exp(epsilon)
            x = mp.mpf(1) / 2 + s**2 * mp.log(w)
            return (1 - q) * mp.ncdf(-x / s) + q * mp.ncdf(-(x - 1) / s) - mp.exp(epsilon) * mp.ncdf(-x / s)

        # Beyond this point the other step may have any loss.
        kink = mp.mpf(1) / 2 + s**2 * mp.log((mp.exp(e) / (1 - q) - (1 - q)) / q)
        points = sorted([k * s / 2 for k in range(-24, 48)] + [kink])
        return mp.quad(lambda x: density(x) * one(e - loss(x)), points)


@pytest.mark.parametrize(
    ("noise_multiplier", "sampling_probability", "delta"),
    [(1.0657395158218252, 0.0007910986103491364, 5.82e-16), (1.2, 1.3e-4, 5e-14)],
)
def test_two_steps(noise_multiplier: float, sampling_probability: float, delta: float) -> None:
    steps = [(PoissonHidden(Gaussian(noise_multiplier), sampling_probability), 2)]
    found = prv.epsilon(steps, delta=delta)
    assert _two_steps(noise_multiplier, sampling_probability, found.upper) <= delta * (1 + 1e-12)
    assert _two_steps(noise_multiplier, sampling_probability, found.lower) >= delta * (1 - 1e-12)
    assert found.width <= 1e-6 * max(found.upper, 0.01)


@pytest.mark.parametrize(
    ("steps", "delta", "truth"),
    [
        # 20 digits by an independent quadrature (benchmarks/soundness).
        (
            (PoissonHidden(Gaussian(1.2115332922291966), 0.0004279340357724889), 89232),
            5.68e-27,
            1.8281516169362980688,
        ),
        ((PoissonHidden(Dirichlet(0.235, 3.0), 0.005), 20000), 1e-30, None),
        ((PoissonHidden(Dirichlet(0.235, 3.0), 0.005), 20000), 1e-40, None),
        ((PoissonHidden(Dirichlet(0.235, 3.0), 0.005), 20000), 1e-100, None),
    ],
)
def test_many_steps(steps: tuple[PoissonHidden, int], delta: float, truth: float | None) -> None:
    found = prv.epsilon([steps], delta=delta)
    assert found.width <= 1e-6 * found.upper
    if truth is not None:
        assert found.lower <= truth <= found.upper


def test_delta_by_layers() -> None:
    steps = [(PoissonHidden(Dirichlet(0.235, 3.0), 0.005), 20000)]
    found = prv.epsilon(steps, delta=1e-100)
    above, below = (prv.delta(steps, epsilon=e) for e in (found.upper, found.lower))
    assert above.lower <= 1e-100 <= below.upper
    assert above.width <= 1e-3 * above.upper


def test_the_smallest_delta() -> None:
    # Masses under Q lie below every float there: the width is that of the cells.
    found = prv.epsilon([(PoissonHidden(Dirichlet(0.235, 3.0), 0.005), 20000)], delta=1e-300)
    assert found.width <= 1e-3 * found.upper


def test_the_layers_add_up_to_the_whole() -> None:
    law = _law(1.0, 0.01)
    edges = discretise.edges(law, low=-0.0099, high=3.0, cells=1000, tilts=[(0.0, math.inf)])
    grid = discretise.grids(law, edges, absorb=True)[0]
    cuts = layers.cuts(0.7, 3.0)
    parts = [part for part in layers.split([(grid, 7)], cuts) if part is not None]
    for order in (0.5, 3.0, 12.0):
        whole, _ = Composition([(grid, 7)]).saddle(order)
        logs = [part.saddle(order)[0].log_moment for part in parts]
        assert float(np.logaddexp.reduce(logs)) == pytest.approx(whole.log_moment, abs=1e-12)
        means = [part.saddle(order)[0].mean for part in parts]
        shares = np.exp(np.array(logs) - whole.log_moment)
        assert float(shares @ means) == pytest.approx(whole.mean, abs=1e-12)
        squares = [part.saddle(order)[0].variance + m**2 for part, m in zip(parts, means, strict=True)]
        assert float(shares @ squares) - whole.mean**2 == pytest.approx(whole.variance, rel=1e-9)


def test_a_layer_s_characteristic_function() -> None:
    law = _law(0.8, 0.05)
    edges = discretise.edges(law, low=-0.05, high=4.0, cells=300, tilts=[(0.0, math.inf)])
    grid = discretise.grids(law, edges, absorb=True)[0]
    low, high = 0.4, 0.9
    (layer,) = [part for part in layers.split([(grid, 5)], [low, high])[1:] if part is not None]
    order, size, step = 2.0, 4096, 0.005
    y = np.arange(size // 2 + 1) * (2.0 * math.pi / (size * step))
    nodes = layer.nodes(order, y, size=size, step=step, eta=2.0 * step)
    at, _ = layer.saddle(order)

    def moment(cut: float) -> np.ndarray:
        kept = grid.loss <= cut
        z = order + 1j * y[:, None]
        return (grid.p[kept] * np.exp(z * grid.loss[kept])).sum(axis=1) ** 5

    truth = (moment(high) - moment(low)) * np.exp(-at.log_moment - 1j * y * at.mean)
    near = y < 2.0 / step
    error = np.exp(nodes.bound) - np.exp(nodes.log_m.real) + 1e-13
    assert np.all(np.abs(np.exp(nodes.log_m) - truth)[near] <= error[near])
    assert abs(truth[0] - 1.0) <= 1e-12


def test_a_mechanism_that_only_fails() -> None:
    sampled = PoissonHidden(Gaussian(0.7), 0.3)
    alone = prv.delta([(sampled, 1)], epsilon=0.3)
    both = prv.delta([(sampled, 1), (ApproximateDP(0.0, 0.1), 1)], epsilon=0.3)
    assert both.lower <= 1 - 0.9 * (1 - alone.upper) and 1 - 0.9 * (1 - alone.lower) <= both.upper
    assert both.width <= 1e-6
