"""The law of a replaced, Poisson-sampled record, against 50-digit arithmetic."""

from __future__ import annotations

import math

import mpmath
import numpy as np
import pytest

from exactdp.accounting.laws.law import tilt
from exactdp.accounting.laws.replace import ReplaceLaw

CASES = [(1.0, 0.01), (0.3, 0.9), (5.0, 0.5), (40.0, 1e-4), (0.5, 0.999999)]


class Reference:
    """The pair by its definition."""

    def __init__(self, noise_multiplier: float, sampling_probability: float) -> None:
        self.s, self.q = mpmath.mpf(noise_multiplier), mpmath.mpf(sampling_probability)

    def p_tail(self, x: mpmath.mpf, shift: int) -> mpmath.mpf:
        """Mass above x of (1-q) N(0, s^2) + q N(shift, s^2)."""
        return (1 - self.q) * mpmath.ncdf(-x / self.s) + self.q * mpmath.ncdf((shift - x) / self.s)

    def loss(self, x: mpmath.mpf) -> mpmath.mpf:
        one, two = (
            (1 - self.q) + self.q * mpmath.exp((2 * sign * x - 1) / (2 * self.s**2)) for sign in (1, -1)
        )
        return mpmath.log(one / two)

    def place(self, epsilon: float) -> mpmath.mpf:
        """x with loss(x) = epsilon, by bisection."""
        low, high = mpmath.mpf(-1), mpmath.mpf(1)
        while self.loss(low) > epsilon:
            low *= 2
        while self.loss(high) < epsilon:
            high *= 2
        for _ in range(220):
            middle = (low + high) / 2
            low, high = (middle, high) if self.loss(middle) < epsilon else (low, middle)
        return low

    def hockey_stick(self, epsilon: float) -> mpmath.mpf:
        x = self.place(epsilon)
        return self.p_tail(x, 1) - mpmath.exp(epsilon) * self.p_tail(x, -1)


@pytest.mark.parametrize("case", CASES)
def test_hockey_stick_against_50_digits(case: tuple[float, float]) -> None:
    law, reference = ReplaceLaw(*case), Reference(*case)
    seen = []
    with mpmath.workdps(60):
        for epsilon in (-3.0, -0.1, 0.0, 1e-6, 0.01, 0.3, 2.0, 9.0, 25.0):
            truth = reference.hockey_stick(epsilon)
            value, error = law.hockey_stick(epsilon)
            assert abs(value - truth) <= error
            if truth > 1e-290:
                seen.append(float(truth))
                assert error <= 1e-9 * truth
    assert len(seen) >= 4


def test_hockey_stick_is_relatively_accurate_down_to_1e_290() -> None:
    law, reference = ReplaceLaw(1.0, 0.01), Reference(1.0, 0.01)
    with mpmath.workdps(330):
        truth = reference.hockey_stick(31.0)
        value, error = law.hockey_stick(31.0)
        assert 1e-300 < truth < 1e-200
        assert abs(value - truth) <= error <= 1e-9 * value


@pytest.mark.parametrize("case", [*CASES, (0.02, 0.1), (0.1, 1e-9)])
def test_preimage_inverts_the_loss(case: tuple[float, float]) -> None:
    law = ReplaceLaw(*case)
    loss = np.concatenate([-np.geomspace(1e3, 1e-12, 60), [0.0], np.geomspace(1e-12, 1e3, 60)])
    v, slip = law.preimage(loss)
    assert np.all(np.diff(v) > 0)
    # A displacement of v moves the loss by at most twice as much.
    assert np.all(np.abs(law.loss(v) - loss) <= 2.0 * slip + 1e-14 * np.abs(loss))


@pytest.mark.parametrize("case", CASES)
def test_masses_against_50_digits(case: tuple[float, float]) -> None:
    law, reference = ReplaceLaw(*case), Reference(*case)
    edges = np.array([-8.0, -2.0, -1e-3, 0.0, 1e-5, 0.02, 0.5, 4.0, 20.0])
    masses = law.masses(edges)
    with mpmath.workdps(120):
        places = [reference.place(float(e)) for e in edges]
        for mass, error, shift in ((masses.p, masses.p_error, 1), (masses.q, masses.q_error, -1)):
            tails = [mpmath.mpf(1), *(reference.p_tail(x, shift) for x in places), mpmath.mpf(0)]
            for i, got in enumerate(mass):
                assert abs(got - (tails[i] - tails[i + 1])) <= error[i] + 1e-60


@pytest.mark.parametrize("case", CASES)
def test_masses_sum_to_one_and_keep_the_ratio_of_their_cell(case: tuple[float, float]) -> None:
    law = ReplaceLaw(*case)
    edges = np.linspace(-3.0, 3.0, 601)
    masses = law.masses(edges)
    assert masses.p.sum() == pytest.approx(1.0, abs=1e-13)
    assert masses.q.sum() == pytest.approx(1.0, abs=1e-13)
    np.testing.assert_allclose(masses.p, masses.q[::-1], rtol=0, atol=1e-14)
    p, q = masses.p[1:-1], masses.q[1:-1]
    slack = masses.p_error[1:-1] + masses.q_error[1:-1] * np.exp(edges[1:])
    assert np.all(p >= q * np.exp(edges[:-1]) - slack)
    assert np.all(p <= q * np.exp(edges[1:]) + slack)


def moment(case: tuple[float, float], z: mpmath.mpc) -> mpmath.mpc:
    """E_P[e^{zL}] by a fine trapezoid rule over x, at the working precision."""
    reference = Reference(*case)
    s = reference.s
    step, total = s / 24, mpmath.mpc(0)
    last = int(24 * (14 + (2 + 2 * z.real) / s))
    for k in range(-24 * 16 - int(24 / s), last):
        x = k * step
        density = (1 - reference.q) * mpmath.npdf(x, 0, s) + reference.q * mpmath.npdf(x, 1, s)
        total += density * mpmath.exp(z * reference.loss(x))
    return total * step


@pytest.mark.parametrize(
    ("case", "order", "frequency"),
    [((1.0, 0.01), 6.0, 0.0), ((1.0, 0.01), 6.0, 25.0), ((0.5, 0.9), 2.0, 4.0), ((4.0, 0.3), 30.0, 9.0)],
)
def test_nodes_reproduce_the_characteristic_function(
    case: tuple[float, float], order: float, frequency: float
) -> None:
    law = ReplaceLaw(*case)
    nodes = law.nodes(order=order, frequency=frequency, count=1000)
    tilted = tilt(law, nodes, order)
    got = complex(np.sum(tilted.weight * np.exp(1j * frequency * tilted.deviation)))
    with mpmath.workdps(25):
        whole = moment(case, mpmath.mpc(order, 0)).real
        assert abs(tilted.log_moment - mpmath.log(whole)) <= tilted.log_moment_error
        turned = moment(case, mpmath.mpc(order, frequency))
        truth = complex(turned / whole * mpmath.exp(mpmath.mpc(0, -frequency * tilted.mean)))
    assert abs(got - truth) <= 1e-13
    p = np.exp(nodes.log_p)
    assert p.sum() == pytest.approx(1.0, abs=1e-13)
    assert (p * np.exp(-nodes.loss)).sum() == pytest.approx(1.0, abs=1e-13)


@pytest.mark.parametrize(
    ("case", "order"), [((1.0, 0.01), 5.0), ((1.0, 0.01), 0.3), ((0.4, 0.5), 2.0), ((3.0, 0.99), 9.0)]
)
def test_decay_bounds_the_characteristic_function(case: tuple[float, float], order: float) -> None:
    law = ReplaceLaw(*case)
    y = np.geomspace(0.1, 400.0, 120)
    tilted = tilt(law, law.nodes(order=order, frequency=400.0, count=10), order)
    phi = np.abs(np.exp(1j * np.outer(y, tilted.deviation)) @ tilted.weight)
    decay = law.decay(order=order, log_moment=tilted.log_moment)
    bound = decay.bound(y, y)
    assert np.all(phi <= bound + 1e-12)
    # On an interval the bound must hold at every frequency inside, where the characteristic function returns.
    whole = decay.bound(y[:-8], y[8:])
    assert all(np.all(phi[k : k + 9] <= whole[k] + 1e-12) for k in range(len(whole)))
    assert bound[-1] < 0.5
    # The two families of bounds separately: every set of losses must give a true one.
    each = 1.0 - decay.mass[:, None] + decay.variation[:, None] / y
    assert np.all(phi <= each.min(axis=0) + 1e-12)


def test_as_the_sampling_probability_nears_one_the_loss_is_that_of_two_shifts() -> None:
    law = ReplaceLaw(1.0, 1.0 - 1e-13)
    v = np.array([-0.7, 0.3, 2.0])
    np.testing.assert_allclose(law.loss(v), 2.0 * v, rtol=1e-11)
    assert math.isinf(law.order_limit)
    assert law.anchor == 0.0
