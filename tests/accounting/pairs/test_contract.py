"""What every pair promises, checked for all families in both directions."""

from __future__ import annotations

import math

import mpmath as mp
import numpy as np
import pytest

from exactdp.accounting.laws.mapped import MappedLaw
from exactdp.accounting.pairs import base
from tests.accounting.pairs import families

NAMES = sorted(families.PAIRS)
WITH_MOMENT = [n for n in NAMES if families.moment(n, 1.0) is not None]


def _epsilons(pair: base.Pair) -> list[float]:
    low, high = pair.support
    spread = {True: 3.0, False: 0.0}[math.isinf(high)] or high
    if type(pair).__name__ == "Dirichlet":
        spread = 3.0 * pair.scaling / math.sqrt(pair.offset) * (1.0 + math.sqrt(pair.scaling / pair.offset))
    return [0.0] + [s * f * spread for f in (0.2, 0.45, 0.7, 0.97) for s in (-1.0, 1.0)]


@pytest.mark.parametrize("name", NAMES)
def test_masses(name: str) -> None:
    pair = families.PAIRS[name]
    span = max(_epsilons(pair))
    edges = np.sort(
        np.concatenate([np.linspace(-1.3 * span, 1.3 * span, 400), [1e-3 * span, 1e-3 * span * 1.01]])
    )
    m = pair.masses(edges)
    assert len(m.p) == len(m.q) == len(edges) + 1
    assert np.all(m.p >= 0) and np.all(m.q >= 0) and np.all(m.p_error >= 0) and np.all(m.q_error >= 0)
    assert math.fsum(m.p) == pytest.approx(1 - pair.infinity_mass, abs=2 * m.p_error.sum() + 1e-15)
    assert math.fsum(m.q) == pytest.approx(1 - pair.missing_mass, abs=2 * m.q_error.sum() + 1e-15)
    # P = e^u Q on each cell.
    low, high = edges[:-1], edges[1:]
    p, q, dp, dq = m.p[1:-1], m.q[1:-1], m.p_error[1:-1], m.q_error[1:-1]
    assert np.all(p + dp >= np.exp(np.minimum(low, 600.0)) * (q - dq) * (1 - 1e-14))
    assert np.all(p - dp <= np.exp(np.clip(high, -700.0, 700.0)) * (q + dq) * (1 + 1e-14))
    assert m.p_error.sum() < 1e-9 and m.q_error.sum() < 1e-9


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("name", NAMES)
def test_hockey_stick_against_reference(name: str, reverse: bool) -> None:
    pair = families.PAIRS[name]
    for epsilon in _epsilons(pair):
        value, error = pair.hockey_stick(epsilon, reverse=reverse)
        truth = families.hockey_stick(name, epsilon, reverse=reverse)
        assert abs(value - truth) <= error
        assert error <= 1e-9 * max(value, 1e-3)


@pytest.mark.parametrize("name", NAMES)
def test_hockey_stick_shape(name: str) -> None:
    pair = families.PAIRS[name]
    span = max(_epsilons(pair))
    for reverse in (False, True):
        grid = np.linspace(-1.2 * span, 1.2 * span, 41)
        values = [pair.hockey_stick(float(e), reverse=reverse) for e in grid]
        for (a, da), (b, db) in zip(values[:-1], values[1:], strict=True):
            assert b - db <= a + da
        far = -40.0 - 3.0 * abs(span)
        value, error = pair.hockey_stick(far, reverse=reverse)
        lost = pair.missing_mass if not reverse else pair.infinity_mass
        assert value == pytest.approx(1.0 - math.exp(far) * (1 - lost), abs=error + 1e-15)
        for e in (0.3 * span, -0.6 * span):
            (a, da), (b, db) = (
                pair.hockey_stick(e, reverse=reverse),
                pair.hockey_stick(-e, reverse=not reverse),
            )
            assert a == pytest.approx(1 - math.exp(e) + math.exp(e) * b, abs=da + math.exp(e) * db + 1e-14)
    if pair.symmetric:
        for e in (0.1 * span, -0.4 * span):
            a, b = pair.hockey_stick(e), pair.hockey_stick(e, reverse=True)
            assert a[0] == pytest.approx(b[0], abs=a[1] + b[1])


@pytest.mark.parametrize("name", NAMES)
def test_masses_bracket_hockey_stick(name: str) -> None:
    pair = families.PAIRS[name]
    span = max(_epsilons(pair))
    edges = np.linspace(-1.5 * span, 1.5 * span, 2001)
    m = pair.masses(edges)
    for k in (700, 1000, 1313):
        e = float(edges[k])
        value, error = pair.hockey_stick(e)
        scale = math.exp(e)
        above = m.p[k + 1 :].sum() - scale * m.q[k + 1 :].sum() + pair.infinity_mass
        slack = m.p_error.sum() + scale * m.q_error.sum() + error
        assert value == pytest.approx(above, abs=slack + 1e-13)


@pytest.mark.parametrize("name", WITH_MOMENT)
def test_quadrature_moments(name: str) -> None:
    pair = families.PAIRS[name]
    low, high = pair.slope_limits
    scale = 1.0 / max(_epsilons(pair))
    for real in (0.0, 1.0, 1.0 + 0.4 * min(high - 1.0, 6 * scale), max(0.5 * low, -2 * scale)):
        for y in (0.0, 1.7 * scale, 12.0 * scale):
            rule = pair.quadrature(
                slopes=(min(real, 0.0), max(real, 1.0)), frequency=y, cosine_power=0.0, log_target=44.0
            )
            size = families.moment(name, real).real
            tail_low, tail_high = rule.tails(real, real)
            terms = np.exp(rule.log_weight + (real + 1j * y) * rule.u)
            truth = families.moment(name, complex(real, y))
            rounding = 1e-14 * float(
                np.abs(terms) @ (4 + np.abs(rule.log_weight) + abs(complex(real, y)) * np.abs(rule.u))
            )
            allowed = math.exp(rule.log_alias) * size + tail_low * abs(terms[0]) + tail_high * abs(terms[-1])
            assert abs(terms.sum() - truth) <= allowed + rounding
            assert rounding + allowed < 1e-11 * size


@pytest.mark.parametrize("add", [False, True])
@pytest.mark.parametrize("q", [1.0, 0.3, 0.01])
@pytest.mark.parametrize("name", [n for n in WITH_MOMENT if n not in ("laplace_wide", "dirichlet_steep")])
def test_mapped_nodes(name: str, q: float, add: bool) -> None:
    """E_P[e^(zL)] of the sampled pair, against a rule of twice the accuracy and frequency."""
    pair = families.PAIRS[name]
    law = MappedLaw(pair, q, add=add)
    order = min(2.5, 0.4 * law.order_limit)
    y = 3.0 / max(_epsilons(pair))
    nodes = law.nodes(order=order, frequency=y, count=1)
    exact = law.nodes(order=order, frequency=4.0 * y, count=10**12)
    value, truth = (np.exp(n.log_p + (order + 1j * y) * n.loss).sum() for n in (nodes, exact))
    size = np.exp(exact.log_p + order * exact.loss).sum()
    assert abs(value - truth) <= 1e-12 * size
    for at, expected in ((0.0, 1 - law.infinity_mass), (-1.0, 1 - law.missing_mass)):
        assert np.exp(nodes.log_p + at * nodes.loss).sum() == pytest.approx(expected, rel=1e-13)


@pytest.mark.parametrize("add", [False, True])
@pytest.mark.parametrize("q", [1.0, 0.2])
@pytest.mark.parametrize(
    "name", ["gaussian", "laplace", "laplace_wide", "dirichlet", "dirichlet_steep", "dirichlet_narrow"]
)
def test_decay_bounds_the_characteristic_function(name: str, q: float, add: bool) -> None:
    law = MappedLaw(families.PAIRS[name], q, add=add)
    scale = 1.0 / max(_epsilons(families.PAIRS[name]))
    for order in (0.3 * min(law.order_limit, scale), 0.8 * min(law.order_limit, 5 * scale)):
        top = 40.0 * scale
        nodes = law.nodes(order=order, frequency=top, count=1)
        weight = np.exp(nodes.log_p + order * nodes.loss)
        decay = law.decay(order=order, log_moment=math.log(weight.sum()))
        assert decay is not None
        y = np.geomspace(0.05 * scale, top, 60)
        phi = np.abs(np.exp(1j * np.outer(y, nodes.loss)) @ weight) / weight.sum()
        assert np.all(phi <= decay.bound(y, y) + 1e-12)
        whole = decay.bound(y[:-8], y[8:])
        assert all(np.all(phi[k : k + 9] <= whole[k] + 1e-12) for k in range(len(whole)))


@pytest.mark.parametrize("name", ["gaussian", "dirichlet", "discrete_gaussian"])
def test_deep_tails(name: str) -> None:
    """Relative accuracy far beyond what differences of CDFs can give."""
    pair = families.PAIRS[name]
    for epsilon in {"gaussian": (8.0, 25.0), "dirichlet": (10.0, 50.0), "discrete_gaussian": (20.0, 45.0)}[
        name
    ]:
        with mp.workdps(320 if name == "gaussian" else 60):
            truth = families.hockey_stick(name, epsilon)
        value, error = pair.hockey_stick(epsilon)
        assert truth < 1e-12
        assert abs(value - truth) <= error <= 1e-9 * truth
