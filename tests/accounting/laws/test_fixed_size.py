"""The law of sampling without replacement: mirrored halves and an atom."""

from __future__ import annotations

import math

import numpy as np
import pytest

from exactdp.accounting.laws.fixed_size import FixedSizeLaw
from exactdp.accounting.laws.mapped import MappedLaw
from exactdp.accounting.pairs.gaussian import Gaussian

PAIR = Gaussian(1.0, sensitivity=2.0)


@pytest.mark.parametrize("q", [0.01, 0.4, 0.99])
@pytest.mark.parametrize("shift", [0.0, 0.0005])
def test_masses_sum_to_one_mirror_and_keep_ratios(q: float, shift: float) -> None:
    law = FixedSizeLaw(PAIR, q)
    edges = np.linspace(-2.0, 2.0, 4001) + shift
    masses = law.masses(edges)
    assert len(masses.p) == len(masses.q) == len(edges) + 1
    assert masses.p.sum() == pytest.approx(1.0, abs=1e-13)
    assert masses.q.sum() == pytest.approx(1.0, abs=1e-13)
    p, q_mass = masses.p[1:-1], masses.q[1:-1]
    slack = 2.0 * (masses.p_error[1:-1] + masses.q_error[1:-1] * np.exp(edges[1:]))
    assert np.all(p >= q_mass * np.exp(edges[:-1]) - slack)
    assert np.all(p <= q_mass * np.exp(edges[1:]) + slack)
    mirrored = law.masses(-edges[::-1])
    # Where 0 is an edge its atom lies in the left cell of either grid, so those two cells are left out.
    keep = np.ones(len(masses.p), dtype=bool)
    keep[np.abs(np.append(edges, 9.0)) < 1e-9] = keep[np.abs(np.append(9.0, edges)) < 1e-9] = False
    np.testing.assert_allclose(masses.p[keep], mirrored.q[::-1][keep], rtol=1e-9, atol=1e-15)


@pytest.mark.parametrize("edges", [[-1.0, 0.5], [0.0], [0.5, 2.0], [-2.0, -0.5], [-1.0, 0.0, 1.0]])
def test_upper_half_is_the_remove_law_and_lower_half_its_mirror(edges: list[float]) -> None:
    law, upper = FixedSizeLaw(PAIR, 0.3), MappedLaw(PAIR, 0.3, add=False)
    got = law.masses(np.array(edges))
    for p_of, q_of, mass in ((upper, upper, got.p), (upper, upper, got.q)):
        under_p = mass is got.p
        for i, (low, high) in enumerate(zip([-40.0, *edges], [*edges, 40.0], strict=True)):
            expected = 0.0
            if high > 0:
                cell = p_of.masses(np.array([max(low, 0.0), high]))
                expected += float(cell.p[1] if under_p else cell.q[1])
            if low < 0:
                cell = q_of.masses(np.array([max(-high, 0.0), -low]))
                expected += float(cell.q[1] if under_p else cell.p[1])
            if low < 0 <= high:
                half = upper.masses(np.array([0.0]))
                expected += 1.0 - float(half.p[1] + half.q[1])
            assert mass[i] == pytest.approx(expected, rel=1e-12, abs=1e-15)


@pytest.mark.parametrize("epsilon", [-2.0, -0.2, 0.0, 0.1, 1.5, 6.0])
def test_hockey_stick_is_the_expectation_over_the_law(epsilon: float) -> None:
    law = FixedSizeLaw(PAIR, 0.3)
    edges = np.linspace(-8.0, 30.0, 200_001)
    masses = law.masses(edges)
    # (1 - e^{eps - L})_+ is increasing in L: both ends of each cell bracket it.
    low, high = (
        float(masses.p @ np.maximum(-np.expm1(epsilon - np.minimum(end, 500.0)), 0.0))
        for end in (np.append(-500.0, edges), np.append(edges, 500.0))
    )
    value, error = law.hockey_stick(epsilon)
    assert low - error - 1e-12 <= value <= high + error + 1e-12
    assert high - low < 1e-3


def test_the_atom_is_what_the_halves_leave() -> None:
    law = FixedSizeLaw(PAIR, 0.25)
    masses = law.masses(np.array([-1e-12, 1e-12]))
    # P(l > 0) + Q(l > 0) of the remove law, u > 0 being z > 1 for z ~ N(0, 1) under Q and N(2, 1) under P.
    phi = 0.5 * math.erfc(1.0 / math.sqrt(2.0))
    expected = 1.0 - (0.75 * phi + 0.25 * (1.0 - phi)) - phi
    assert masses.p[1] == pytest.approx(expected, abs=1e-11)
    assert masses.q[1] == pytest.approx(expected, abs=1e-11)
