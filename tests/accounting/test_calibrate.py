"""Calibration: known values, certified neighbours, limits."""

from __future__ import annotations

import math

import pytest

from exactdp.accounting import calibrate, prv
from exactdp.accounting.pairs.gaussian import Gaussian
from exactdp.accounting.pairs.pure import PureDP
from exactdp.accounting.prv import routes
from exactdp.accounting.sampling.hidden import PoissonHidden


def gaussian(noise_multiplier, sampling_probability, num_steps):
    return [(PoissonHidden(Gaussian(noise_multiplier), sampling_probability), num_steps)]


@pytest.mark.parametrize(
    ("sampling_probability", "num_steps", "known"),
    [
        (0.01, 1000, 1.414619),
        (0.005, 20_000, 2.740870),
        (0.04, 5000, 10.597988),
        (0.001, 100_000, 1.364771),
        (1.0, 10, 11.797293),
    ],
)
def test_noise_multiplier_of_known_settings(sampling_probability, num_steps, known):
    def build(sigma):
        return gaussian(sigma, sampling_probability, num_steps)

    found = calibrate.noise_multiplier(build, epsilon=1.0, delta=1e-5)
    assert found.value == pytest.approx(known, abs=1.1e-6)
    assert found.epsilon.upper <= 1.0
    assert found.gap <= 1e-6
    assert found.calls <= 14
    assert prv.epsilon(build(found.value), delta=1e-5).upper <= 1.0
    assert prv.epsilon(build(found.rejected), delta=1e-5, tolerance=1e-9).lower > 1.0


@pytest.mark.parametrize("epsilon", [1e-4, 0.1, 1.0, 20.0, 1e4])
@pytest.mark.parametrize("delta", [1e-12, 1e-5, 0.1])
def test_one_gaussian_at_both_ends_of_the_scale(epsilon, delta):
    found = calibrate.noise_multiplier(
        lambda s: [(Gaussian(s), 1)], epsilon=epsilon, delta=delta, tolerance=1e-5
    )
    assert found.epsilon.upper <= epsilon
    assert found.gap <= 1e-5
    assert found.rejected < found.value
    assert prv.epsilon([(Gaussian(found.rejected), 1)], delta=delta).lower > epsilon


def test_sampling_probability_and_its_limit():
    found = calibrate.sampling_probability(lambda q: gaussian(1.0, q, 1), epsilon=1.0, delta=1e-5)
    assert found.epsilon.upper <= 1.0
    assert prv.epsilon(gaussian(1.0, found.rejected, 1), delta=1e-5).lower > 1.0
    everyone = calibrate.sampling_probability(lambda q: gaussian(10.0, q, 1), epsilon=1.0, delta=1e-5)
    assert (everyone.value, everyone.rejected, everyone.gap) == (1.0, None, 0.0)


def test_num_steps_is_exact():
    found = calibrate.num_steps(lambda n: [(Gaussian(30.0), n)], epsilon=1.0, delta=1e-5)
    assert found.rejected == found.value + 1
    assert prv.epsilon([(Gaussian(30.0), int(found.value))], delta=1e-5).upper <= 1.0
    assert prv.epsilon([(Gaussian(30.0), int(found.value) + 1)], delta=1e-5).lower > 1.0
    # Pure mechanisms at a tiny delta: basic composition is what remains.
    few = calibrate.num_steps(lambda n: [(PureDP(0.25), n)], epsilon=1.01, delta=1e-9, limits=(1, 64))
    assert (few.value, few.rejected) == (4, 5)


def test_unreachable_target_names_what_is_attained():
    with pytest.raises(
        ValueError, match=r"epsilon must be at least 1\.99\d* .*noise_multiplier = 2 reaches, got 1"
    ):
        calibrate.noise_multiplier(lambda s: [(Gaussian(s), 1)], epsilon=1.0, delta=1e-5, limits=(0.1, 2.0))
    # A fixed release beside the calibrated one sets a floor.
    with pytest.raises(ValueError, match="epsilon must be at least"):
        calibrate.noise_multiplier(
            lambda s: [(Gaussian(s), 1), (Gaussian(2.0), 1)], epsilon=1.0, delta=1e-5, limits=(0.5, 50.0)
        )
    with pytest.raises(ValueError, match="num_steps = 1 reaches"):
        calibrate.num_steps(lambda n: [(Gaussian(1.0), n)], epsilon=1.0, delta=1e-5)


def test_slack_target_stops_at_the_limit():
    found = calibrate.noise_multiplier(
        lambda s: [(Gaussian(s), 1)], epsilon=50.0, delta=1e-5, limits=(1.0, 10.0)
    )
    assert (found.value, found.rejected) == (1.0, None)


def test_epsilon_and_delta_are_upper_ends():
    composition = [(Gaussian(2.0), 1)]
    found = calibrate.epsilon(composition, delta=1e-5)
    assert found.value == prv.epsilon(composition, delta=1e-5).upper
    other = calibrate.delta(composition, epsilon=found.value)
    assert other.value == pytest.approx(1e-5, rel=1e-6)
    assert other.epsilon.lower == other.epsilon.upper == found.value


@pytest.mark.parametrize(
    ("change", "name"),
    [
        ({"epsilon": 0.0}, "epsilon"),
        ({"epsilon": math.nan}, "epsilon"),
        ({"delta": 0.0}, "delta"),
        ({"delta": 1.0}, "delta"),
        ({"tolerance": 0.5}, "tolerance"),
        ({"limits": (2.0, 1.0)}, "limits"),
        ({"limits": (0.0, 1.0)}, "limits"),
    ],
)
def test_bad_input_is_refused_before_any_work(change, name):
    def never(value):
        raise AssertionError("the accountant must not be asked")

    with pytest.raises(ValueError, match=name):
        calibrate.noise_multiplier(never, **({"epsilon": 1.0, "delta": 1e-5} | change))


@pytest.mark.parametrize("epsilon", [0.5, 1.0, 2.0, 3.0])
def test_few_whole_steps(epsilon: float) -> None:
    # The bracket is open while a proposed jump is below one step.
    mechanism = PoissonHidden(Gaussian(3.0), 256 / 1442)
    found = calibrate.num_steps(lambda steps: [(mechanism, steps)], epsilon=epsilon, delta=1e-5)
    assert prv.epsilon([(mechanism, int(found.value))], delta=1e-5).upper <= epsilon
    assert prv.epsilon([(mechanism, int(found.value) + 1)], delta=1e-5).lower > epsilon


@pytest.mark.parametrize("epsilon", [1e-9, 1e-10])
def test_tiny_targets_need_no_finer_engine(epsilon: float, monkeypatch: pytest.MonkeyPatch) -> None:
    """Such a target is nearly a total variation of delta; its epsilon has the digits that delta's has."""

    def refuse(*_: object, **__: object) -> None:
        raise AssertionError("the contour serves")

    monkeypatch.setattr(routes, "_by_lattice", refuse)
    monkeypatch.setattr(routes, "_by_split", refuse)
    found = calibrate.noise_multiplier(lambda s: gaussian(s, 0.01, 100), epsilon=epsilon, delta=1e-5)
    assert found.rejected is not None and found.gap <= 1e-7
    assert 0.9 * epsilon < found.epsilon.lower <= found.epsilon.upper <= epsilon
    monkeypatch.undo()
    for value, meets in ((found.value, True), (found.rejected, False)):
        there = prv.delta(gaussian(value, 0.01, 100), epsilon=epsilon)
        assert there.upper <= 1e-5 * (1.0 + 1e-10) if meets else there.lower > 1e-5 * (1.0 - 1e-10)
    # delta falls by no more than epsilon grows by.
    at_zero = prv.delta(gaussian(found.value, 0.01, 100), epsilon=0.0)
    assert 1e-5 * (1.0 - 1e-6) < at_zero.upper and at_zero.lower < 1e-5 + epsilon


def test_a_width_that_no_delta_gives_is_not_sought(monkeypatch: pytest.MonkeyPatch) -> None:
    steps = gaussian(3987.882331482042, 0.01, 100)
    wide = prv.epsilon(steps, delta=1e-5, tolerance=1e-16)

    def refuse(*_: object, **__: object) -> None:
        raise AssertionError("the contour serves")

    monkeypatch.setattr(routes, "_by_lattice", refuse)
    assert prv.epsilon(steps, delta=1e-5, tolerance=1e-30) == wide
    assert wide.width < 1e-15 < wide.lower
