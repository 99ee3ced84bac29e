"""Paper B's printed statements."""

from __future__ import annotations

import functools
import math

import mpmath
import pytest

from exactdp.accounting import rdp
from exactdp.accounting.printed import feature
from exactdp.accounting.printed.source import PrintedBound, Repair
from exactdp.accounting.threat import Coins


def test_theorem_5_and_the_averaged_gradient_differ_by_the_batch_size():
    common = {"lipschitz": 2.0, "sampling_probability": 0.01, "num_steps": 100}
    as_printed = feature.theorem_5(0.5, **common)
    averaged = feature.averaged_gradient(0.5, batch_size=256, **common)
    assert as_printed == feature.Step(0.25, 0.01, 100)
    assert averaged.noise_multiplier == pytest.approx(256 * as_printed.noise_multiplier)
    assert (averaged.sampling_probability, averaged.num_steps) == (0.01, 100)


def test_printed_noise_against_50_digits():
    with mpmath.workdps(50):
        delta, steps = mpmath.mpf(1e-5), 1000
        root = mpmath.sqrt(steps * mpmath.log(1 / delta) * mpmath.log(steps / delta))
        exact = 3 * mpmath.mpf(2) * 256 / (mpmath.mpf(0.5) * 50_000) * root
    found = feature.printed_noise(
        0.5, delta=1e-5, lipschitz=2.0, batch_size=256, num_records=50_000, num_steps=1000, constant=3.0
    )
    assert found == pytest.approx(float(exact), rel=1e-13)


def test_printed_noise_has_the_magnitude_of_noise_on_the_sum():
    # With c = 1 and σ read as noise on the sum the guarantee is inside ε; read on the mean, far inside.
    sigma = feature.printed_noise(
        1.0, delta=1e-5, lipschitz=1.0, batch_size=500, num_records=50_000, num_steps=2000, constant=1.0
    )
    step = feature.theorem_5(sigma, lipschitz=1.0, sampling_probability=0.01, num_steps=2000)
    curve = functools.partial(
        rdp.subsampled_gaussian,
        noise_multiplier=step.noise_multiplier,
        sampling_probability=step.sampling_probability,
    )
    assert 0.05 < rdp.epsilon([(curve, step.num_steps)], delta=1e-5).value < 1.0


def test_sampling_rates():
    mechanism, simulator = feature.sampling_rates(999, batch_size=10)
    assert mechanism == 0.01
    assert simulator == 10 / 999
    assert mechanism < simulator


def test_no_amplification():
    for q in (1e-6, 0.5, 1.0):
        assert feature.naive_epsilon(0.7, sampling_probability=q) == 0.7
        # The Rényi curve of the visible-coin step tends to ε as the order grows, whatever q.
        curve = functools.partial(rdp.pure_dp, epsilon=0.7)
        assert rdp.visible_coins(1e6, curve=curve, sampling_probability=q) == pytest.approx(0.7, rel=1e-4)
    assert feature.naive_epsilon(0.7, sampling_probability=0.0) == 0.0


def test_excess_risk_against_50_digits():
    with mpmath.workdps(50):
        scale = (2 + mpmath.log(400)) / mpmath.sqrt(400)
        exact = (mpmath.mpf(9) / 2 + 2 * mpmath.mpf(1.5) ** 2 + 2 * 10 * mpmath.mpf(0.25) ** 2) * scale
    found = feature.excess_risk(400, diameter=3.0, constant=2.0, lipschitz=1.5, dimension=10, noise=0.25)
    assert found == pytest.approx(float(exact), rel=1e-14)


def test_entries():
    names = [entry.name for entry in feature.ENTRIES]
    assert len(set(names)) == len(names)
    for entry in feature.ENTRIES:
        assert entry.source.arxiv == "2506.19836"
        assert isinstance(entry, PrintedBound) or (isinstance(entry, Repair) and entry.corrects in names)
    assert feature.NAIVE_BATCH.threat_model.coins is Coins.VISIBLE
    assert feature.THEOREM_5.threat_model.coins is Coins.HIDDEN


@pytest.mark.parametrize("bad", [0.0, -1.0, math.nan, math.inf])
def test_bad_input(bad: float):
    with pytest.raises(ValueError, match="noise"):
        feature.theorem_5(bad, lipschitz=1.0, sampling_probability=0.1, num_steps=1)
    with pytest.raises(ValueError, match="batch_size"):
        feature.averaged_gradient(1.0, lipschitz=1.0, batch_size=bad, sampling_probability=0.1, num_steps=1)
    with pytest.raises(ValueError, match="epsilon"):
        feature.printed_noise(
            bad, delta=0.1, lipschitz=1.0, batch_size=1, num_records=1, num_steps=1, constant=1.0
        )
    with pytest.raises(ValueError, match="diameter"):
        feature.excess_risk(1, diameter=bad, constant=1.0, lipschitz=1.0, dimension=1, noise=1.0)


def test_more_bad_input():
    with pytest.raises(ValueError, match="num_steps"):
        feature.theorem_5(1.0, lipschitz=1.0, sampling_probability=0.1, num_steps=-1)
    with pytest.raises(ValueError, match="sampling_probability"):
        feature.theorem_5(1.0, lipschitz=1.0, sampling_probability=1.1, num_steps=1)
    with pytest.raises(ValueError, match="batch_size must be <="):
        feature.sampling_rates(5, batch_size=6)
    with pytest.raises(ValueError, match="epsilon"):
        feature.naive_epsilon(-1.0, sampling_probability=0.1)
