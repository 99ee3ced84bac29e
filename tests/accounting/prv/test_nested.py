"""Two steps summed directly: the sums themselves, and against closed forms in every regime."""

from __future__ import annotations

import math

import mpmath as mp
import numpy as np
import pytest

from exactdp.accounting import prv
from exactdp.accounting.interval import Interval
from exactdp.accounting.pairs.base import Pair, Unsuitable
from exactdp.accounting.pairs.dirichlet import Dirichlet
from exactdp.accounting.pairs.gaussian import Gaussian
from exactdp.accounting.pairs.laplace import Laplace
from exactdp.accounting.pairs.pure import PureDP
from exactdp.accounting.prv import closed, nested, saddle
from exactdp.accounting.prv.discretise import Grid
from exactdp.accounting.sampling.hidden import PoissonHidden


def _grid(loss: list[float], p: list[float]) -> Grid:
    return Grid(np.array(loss), np.array(p), 0.0, 0.0, 0.0, 0.0, None)


@pytest.mark.parametrize("reach", [1.0, 60.0, 400.0])
def test_step_against_the_sum(reach: float) -> None:
    random = np.random.default_rng(1)
    loss = np.sort(random.uniform(-reach, reach, 200))
    p = random.uniform(size=200) ** 8
    step = nested.Step(_grid(list(loss), list(p)))
    at = np.concatenate([loss[::7], random.uniform(-1.2 * reach, 1.2 * reach, 40)])
    value, fall = step.delta(at)
    for e, found, slope in zip(at, value, fall, strict=True):
        above = [(mp.mpf(x), mp.mpf(m)) for x, m in zip(loss, p, strict=True) if x > e]
        with mp.workdps(60):
            truth = mp.fsum(m * (1 - mp.exp(mp.mpf(e) - x)) for x, m in above)
            steep = mp.fsum(m * mp.exp(mp.mpf(e) - x) for x, m in above)
        # A threshold is rounded by a few units of the losses' size.
        assert found == pytest.approx(float(truth), rel=1e-12, abs=4e-16 * reach * float(steep))
        assert slope == pytest.approx(float(steep), rel=1e-12 * reach)


def test_nothing_grows_where_masses_underflow() -> None:
    step = nested.Step(_grid([0.0, 300.0, 400.0], [1.0, 1e-307, 1e-307]))
    value, _ = step.delta(np.array([299.0]))
    assert value[0] == pytest.approx(1e-307 * (1.0 - math.exp(-1.0)) + 1e-307, rel=1e-9)


@pytest.mark.parametrize("delta", [0.3, 1e-5, 1e-30, 1e-200])
@pytest.mark.parametrize("noise", [(1.0, 1.0), (0.7, 3.0), (30.0, 20.0)])
def test_gaussians(noise: tuple[float, float], delta: float) -> None:
    mu = math.sqrt(sum(1.0 / sigma**2 for sigma in noise))
    truth = prv.epsilon([(Gaussian(1.0 / mu), 1)], delta=delta)
    found = _directly([Gaussian(sigma) for sigma in noise], delta)
    assert found.lower <= truth.lower and truth.upper <= found.upper
    assert found.width <= 3e-6 * max(found.upper, 0.01)


@pytest.mark.parametrize("delta", [0.3, 1e-5, 1e-12])
def test_randomised_response(delta: float) -> None:
    pair = PureDP(1.5)
    truth = prv.epsilon([(pair, 2)], delta=delta, engine="closed form")
    found = _directly([pair, pair], delta)
    assert found.lower <= truth.upper and truth.lower <= found.upper
    assert found.width <= 1e-6


def _directly(pairs: list[Pair], delta: float) -> Interval:
    laws = [laws[0] for pair in pairs if (laws := pair.directions()) is not None]
    components = [(law, 1) for law in laws]
    start = max(closed.one_step(law).invert(delta).upper for law in laws)
    log_delta = math.log(delta)
    for _ in range(3):
        curve = nested.Nested(components, epsilon=start, log_delta=log_delta, cells=2**15)
        lower, start = (saddle.invert(curve, log_delta, start=start, upper=side) for side in (False, True))
    return Interval(lower, start, "lattice")


@pytest.mark.parametrize("delta", [1e-5, 1e-40, 1e-300])
@pytest.mark.parametrize(
    "pair", [PoissonHidden(Dirichlet(0.235, 3.0), 0.005), PoissonHidden(Gaussian(0.6), 0.02), Laplace(1.0)]
)
def test_back_and_forth(pair, delta: float) -> None:
    found = prv.epsilon([(pair, 2)], delta=delta)
    assert found.width <= 1e-5 * max(found.upper, 0.01)
    above, below = (prv.delta([(pair, 2)], epsilon=e) for e in (found.upper, found.lower))
    assert above.lower <= delta <= below.upper


def test_a_curve_serves_many_epsilons() -> None:
    steps = [(PoissonHidden(Gaussian(0.8), 0.2), 2)]
    points = [0.25 * k for k in range(20)]
    curve = prv.delta_curve(steps, epsilons=points)
    for epsilon, found in list(zip(points, curve, strict=True))[::4]:
        alone = prv.delta(steps, epsilon=epsilon)
        assert found.lower <= alone.upper and alone.lower <= found.upper
        assert found.width <= 1e-4 * found.upper


def test_two_steps_only() -> None:
    laws = Gaussian(1.0).directions()
    assert laws is not None
    for count in (1, 3):
        with pytest.raises(Unsuitable, match="two steps"):
            nested.Nested([(laws[0], count)], epsilon=1.0, log_delta=-10.0, cells=64)
