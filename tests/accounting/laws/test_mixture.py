"""Erasure mixtures."""

from __future__ import annotations

import math

import numpy as np
import pytest

from exactdp.accounting.laws.law import tilt
from exactdp.accounting.laws.mixture import ErasureLaw
from exactdp.accounting.pairs.base import Unsuitable
from exactdp.accounting.pairs.gaussian import Gaussian


def law(noise_multiplier: float = 1.0, sampling_probability: float = 0.2) -> ErasureLaw:
    return ErasureLaw(Gaussian(noise_multiplier).directions()[0], sampling_probability)


@pytest.mark.parametrize("edges", [[-1.0, -0.1, 0.4, 2.0], [-1.0, 0.0, 1.0], [0.5, 1.0], [-3.0, -2.0]])
def test_masses_place_the_atom_in_the_cell_of_zero(edges: list[float]) -> None:
    inner = Gaussian(1.0).masses(np.array(edges))
    masses = law().masses(np.array(edges))
    cells = zip([-np.inf, *edges], [*edges, np.inf], strict=True)
    home = [i for i, (low, high) in enumerate(cells) if low < 0 <= high]
    atom = np.zeros(len(edges) + 1)
    atom[home] = 0.8
    assert len(home) == 1
    np.testing.assert_allclose(masses.p, 0.2 * inner.p + atom, rtol=1e-14)
    np.testing.assert_allclose(masses.q, 0.2 * inner.q + atom, rtol=1e-14)
    assert np.all(np.abs(masses.p - (0.2 * inner.p + atom)) <= masses.p_error)


@pytest.mark.parametrize("epsilon", [0.0, 0.3, 4.0, 20.0])
def test_hockey_stick_is_scaled_above_zero_and_dual_below(epsilon: float) -> None:
    value, error = law().hockey_stick(epsilon)
    base, _ = Gaussian(1.0).hockey_stick(epsilon)
    assert abs(value - 0.2 * base) <= error
    below, below_error = law().hockey_stick(-epsilon)
    assert abs(below - (-math.expm1(-epsilon) + math.exp(-epsilon) * value)) <= below_error + error + 1e-16


@pytest.mark.parametrize("order", [0.5, 3.0, 20.0])
def test_moments_have_the_closed_form(order: float) -> None:
    mixture = law()
    tilted = tilt(mixture, mixture.nodes(order=order, frequency=5.0, count=100), order)
    truth = math.log(0.8 + 0.2 * math.exp(0.5 * order * (order + 1.0)))
    assert abs(tilted.log_moment - truth) <= tilted.log_moment_error + 1e-14 * abs(truth)


@pytest.mark.parametrize(("sampling_probability", "order"), [(0.2, 1.0), (0.9, 4.0), (1e-3, 3.0)])
def test_decay_bounds_the_characteristic_function(sampling_probability: float, order: float) -> None:
    mixture = law(0.7, sampling_probability)
    y = np.geomspace(0.05, 100.0, 100)
    tilted = tilt(mixture, mixture.nodes(order=order, frequency=100.0, count=10), order)
    phi = np.abs(np.exp(1j * np.outer(y, tilted.deviation)) @ tilted.weight)
    decay = mixture.decay(order=order, log_moment=tilted.log_moment)
    assert decay is not None
    bound = decay.bound(y, y)
    assert np.all(phi <= bound + 1e-12)
    # On an interval the bound must hold at every frequency inside, where the characteristic function returns.
    whole = decay.bound(y[:-8], y[8:])
    assert all(np.all(phi[k : k + 9] <= whole[k] + 1e-12) for k in range(len(whole)))
    assert bound.min() < 0.999


def test_infinite_and_missing_masses_are_scaled() -> None:
    class Leaking(Gaussian):
        infinity_mass = 0.25
        missing_mass = 0.125

    mixture = ErasureLaw(Leaking(1.0).directions()[0], 0.5)
    assert (mixture.infinity_mass, mixture.missing_mass) == (0.125, 0.0625)


def test_no_quadrature_where_the_inner_law_has_none() -> None:
    class Bare(Gaussian):
        def quadrature(self, **_: object):  # noqa: ANN202
            raise Unsuitable("none")

    with pytest.raises(Unsuitable):
        ErasureLaw(Bare(1.0).directions()[0], 0.5).nodes(order=1.0, frequency=0.0, count=1)
