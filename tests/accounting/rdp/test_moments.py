"""The cancellation-free moments against 60 digits."""

from __future__ import annotations

import random

import mpmath
import numpy as np
import pytest

from exactdp.accounting.rdp import moments


def _draws(count: int) -> list[tuple[float, float]]:
    generator = random.Random(1)
    return [
        (generator.choice([-1.0, 1.0]) * 10 ** generator.uniform(-8, 3), 10 ** generator.uniform(-9, 5))
        for _ in range(count)
    ]


def _reference(loss: float, a: float) -> mpmath.mpf:
    with mpmath.workdps(60):
        return mpmath.log(mpmath.expm1(mpmath.mpf(a) * loss) + a * mpmath.expm1(-mpmath.mpf(loss)))


def test_log_excess_against_60_digits():
    for loss, a in _draws(800):
        reference = _reference(loss, a)
        error = abs(moments.log_excess_scalar(loss, a) - reference) / (1 + abs(reference))
        assert error < 1e-14, (loss, a)


def test_scalar_and_array_agree():
    for loss, a in _draws(300):
        array = float(moments.log_excess(np.array([loss]), a)[0])
        assert array == pytest.approx(moments.log_excess_scalar(loss, a), rel=1e-14, abs=1e-14)


def test_zero_loss_has_no_excess():
    assert moments.log_excess_scalar(0.0, 2.0) == -np.inf
    assert float(moments.log_excess(0.0, 2.0)) == -np.inf


def test_second_remainder_against_50_digits():
    for x in (-600.0, -3.0, -0.7, -0.69, -1e-9, 0.0, 1e-12, 0.3, 0.7, 5.0, 600.0):
        with mpmath.workdps(60):
            exact = mpmath.mpf(0.5) if x == 0.0 else (mpmath.expm1(x) - x) / mpmath.mpf(x) ** 2
        assert float(moments.second_remainder(x)) == pytest.approx(float(exact), rel=4e-15)


def test_log_sum_of_nothing():
    assert moments.log_sum(np.array([])) == -np.inf
    assert moments.log_sum(np.array([-np.inf, -np.inf])) == -np.inf
    assert moments.log_sum(np.array([np.inf, 1.0])) == np.inf


@pytest.mark.parametrize("log_s", [-200.0, -1.0, 29.9, 30.1, 500.0])
def test_renyi_of_log_excess(log_s: float):
    with mpmath.workdps(60):
        exact = mpmath.log1p(mpmath.exp(log_s)) / 3
    assert moments.renyi_of_log_excess(log_s, 3.0) == pytest.approx(float(exact), rel=1e-15)
