"""Conversions: closed forms, the joint range by brute force, safety and bad input."""

from __future__ import annotations

import math

import mpmath
import pytest
from hypothesis import given
from hypothesis import strategies as st

from exactdp.accounting.rdp import conversion

CASES = [
    (2.0, 1.0, 1e-5),
    (10.0, 0.3, 1e-5),
    (1.5, 1e-3, 1e-6),
    (3.0, 0.1, 0.01),
    (30.0, 0.05, 1e-10),
    (1.0 + 1e-8, 0.5, 1e-3),
    (5.0, 1e-6, 1e-9),
    (2.0, 3.0, 0.4),
    (1.05, 0.01, 0.02),
    (60.0, 2.0, 1e-300),
]


def _brute_force(order: float, renyi: float, delta: float) -> mpmath.mpf:
    """sup log((p−δ)/q) over binary pairs: golden section over p, bisection for q, 40 digits."""
    with mpmath.workdps(40):
        lam, rho, dlt = mpmath.mpf(order), mpmath.mpf(renyi), mpmath.mpf(delta)
        a = lam - 1
        target = mpmath.expm1(a * rho)

        def log_q(p: mpmath.mpf) -> mpmath.mpf:
            low, high = mpmath.log(p) * lam / a - rho - 1, mpmath.log(p)
            for _ in range(75):
                middle = (low + high) / 2
                q = mpmath.exp(middle)
                moment = p * mpmath.expm1(a * mpmath.log(p / q))
                moment += (1 - p) * mpmath.expm1(a * mpmath.log((1 - p) / (1 - q)))
                low, high = (middle, high) if moment > target else (low, middle)
            return high

        def value(log_p: mpmath.mpf) -> mpmath.mpf:
            p = mpmath.exp(log_p)
            return mpmath.log(p - dlt) - log_q(p)

        low, high = mpmath.log(dlt) + mpmath.mpf(10) ** -15, -(mpmath.mpf(10) ** -15)
        ratio = (mpmath.sqrt(5) - 1) / 2
        left, right = high - ratio * (high - low), low + ratio * (high - low)
        at_left, at_right = value(left), value(right)
        for _ in range(48):
            if at_left > at_right:
                high, right, at_right = right, left, at_left
                left = high - ratio * (high - low)
                at_left = value(left)
            else:
                low, left, at_left = left, right, at_right
                right = low + ratio * (high - low)
                at_right = value(right)
        return max(at_left, at_right)


@pytest.mark.parametrize(("order", "renyi", "delta"), CASES)
def test_optimal_is_the_joint_range(order: float, renyi: float, delta: float):
    exact = _brute_force(order, renyi, delta)
    found = conversion.epsilon(order, renyi=renyi, delta=delta)
    assert exact <= found <= exact * (1 + 1e-11) + 1e-11


@pytest.mark.parametrize(("order", "renyi", "delta"), CASES)
def test_closed_forms_against_50_digits(order: float, renyi: float, delta: float):
    with mpmath.workdps(50):
        lam, rho, log_delta = mpmath.mpf(order), mpmath.mpf(renyi), mpmath.log(mpmath.mpf(delta))
        mironov = rho - log_delta / (lam - 1)
        balle = max(rho + mpmath.log((lam - 1) / lam) - (log_delta + mpmath.log(lam)) / (lam - 1), 0)
    for name, exact in (("mironov", mironov), ("balle", balle)):
        found = conversion.epsilon(order, renyi=renyi, delta=delta, conversion=name)
        assert found == pytest.approx(float(exact), rel=1e-13)


@given(
    log_a=st.floats(-8, 4),
    log_renyi=st.floats(-8, 2),
    log_delta=st.floats(-300, -0.01),
)
def test_never_worse_and_never_negative(log_a: float, log_renyi: float, log_delta: float):
    order, renyi, delta = 1.0 + 10**log_a, 10**log_renyi, 10**log_delta
    found = [
        conversion.epsilon(order, renyi=renyi, delta=delta, conversion=name)
        for name in ("optimal", "balle", "mironov")
    ]
    assert 0.0 <= found[0] <= found[1] <= found[2] * (1 + 1e-12) + 1e-12
    # The pair p = 1, q = e^{−ρ} meets the assumption, so that no valid answer is below its ε.
    assert found[0] >= (renyi + math.log1p(-delta)) * (1 - 1e-12)


@given(log_a=st.floats(-6, 3), log_renyi=st.floats(-6, 1.5), epsilon=st.floats(0, 30))
def test_delta_inverts_epsilon(log_a: float, log_renyi: float, epsilon: float):
    order, renyi = 1.0 + 10**log_a, 10**log_renyi
    values = [
        conversion.log_delta(order, renyi=renyi, epsilon=epsilon, conversion=name)
        for name in ("optimal", "balle", "mironov")
    ]
    assert values[0] <= values[1] + 1e-12 * abs(values[1])
    assert values[1] <= values[2] + 1e-12 * abs(values[2])
    if -600.0 < values[0] < -1e-6:
        back = conversion.epsilon(order, renyi=renyi, delta=math.exp(values[0]))
        assert back <= epsilon + 1e-9 * (1 + epsilon)
        if values[0] < -1e-3:  # the answer is not far above: a smaller δ does not hold
            smaller = conversion.epsilon(order, renyi=renyi, delta=math.exp(values[0]) * (1 - 1e-6))
            assert smaller >= epsilon - 1e-9 * (1 + epsilon)


@pytest.mark.parametrize("conversion_name", conversion.CONVERSIONS)
def test_epsilon_falls_with_delta_and_grows_with_renyi(conversion_name: str):
    deltas = [10.0**-k for k in (300, 100, 30, 10, 5, 2, 1)]
    epsilons = [conversion.epsilon(8.0, renyi=0.5, delta=d, conversion=conversion_name) for d in deltas]
    assert epsilons == sorted(epsilons, reverse=True)
    epsilons = [
        conversion.epsilon(8.0, renyi=r, delta=1e-6, conversion=conversion_name)
        for r in (0.0, 1e-9, 1e-3, 1.0, 1e3)
    ]
    assert epsilons == sorted(epsilons)


def test_large_delta_closed_form():
    # δ >= 1/λ: the supremum is at p = 1.
    assert conversion.epsilon(4.0, renyi=0.7, delta=0.3) == pytest.approx(0.7 + math.log1p(-0.3), rel=1e-11)


def test_limits():
    for name in conversion.CONVERSIONS:
        assert conversion.epsilon(2.0, renyi=math.inf, delta=1e-5, conversion=name) == math.inf
        assert conversion.delta(2.0, renyi=math.inf, epsilon=1.0, conversion=name) == 1.0
        assert conversion.delta(2.0, renyi=0.0, epsilon=1.0, conversion=name) == 0.0
    assert conversion.epsilon(2.0, renyi=0.0, delta=1e-5) == 0.0
    # Far below the smallest float: still not 0.
    assert conversion.delta(50.0, renyi=0.1, epsilon=1e4) > 0.0
    assert conversion.log_delta(50.0, renyi=0.1, epsilon=1e4) < -4e5


def test_an_order_next_to_one_is_not_zero():
    # ρ >= (1 − δ)-ish bounds hold with room: ε = 0 would need δ >= the total variation, here about 0.35.
    assert conversion.epsilon(1.0 + 1e-8, renyi=0.3, delta=1e-3) > 0.3


@pytest.mark.parametrize(
    "bad",
    [
        {"order": 1.0},
        {"order": 0.5},
        {"order": math.nan},
        {"order": math.inf},
        {"renyi": -1e-300},
        {"renyi": math.nan},
        {"delta": 0.0},
        {"delta": 1.0},
        {"delta": math.nan},
        {"conversion": "best"},
    ],
)
def test_bad_input_names_the_argument(bad: dict[str, object]):
    arguments = {"order": 2.0, "renyi": 1.0, "delta": 1e-5, "conversion": "optimal"} | bad
    order = arguments.pop("order")
    with pytest.raises(ValueError, match=next(iter(bad))):
        conversion.epsilon(order, **arguments)


@pytest.mark.parametrize("bad", [-1.0, math.nan, math.inf])
def test_bad_epsilon(bad: float):
    with pytest.raises(ValueError, match="epsilon"):
        conversion.delta(2.0, renyi=1.0, epsilon=bad)
