"""Mechanism audits: ours pass, each broken one is caught, false alarms are rare, bad input is refused."""

from __future__ import annotations

import dataclasses
import json

import jax
import jax.numpy as jnp
import pytest
from scipy import stats

from exactdp.accounting.audit import threshold
from exactdp.accounting.audit.result import AuditResult
from exactdp.accounting.pairs.gaussian import Gaussian
from exactdp.mechanisms.audit import broken, targets
from exactdp.mechanisms.audit.check import check, hold
from exactdp.mechanisms.audit.target import Target

SIGMA = {"noise_multiplier": 1.0}
OFTEN = {"noise_multiplier": 1.0, "sampling_probability": 0.2}
DIRICHLET = {"scaling": 2.0, "offset": 1.0, "num_classes": 3}

OURS = {
    "gaussian": (targets.gaussian(**SIGMA), 0.75),
    "clipped": (targets.clipped(**SIGMA), 0.75),
    "subsampled": (targets.subsampled(**OFTEN), 0.5),
    "dirichlet": (targets.dirichlet(**DIRICHLET), 0.35),
}
BROKEN = {
    "half noise": broken.half_noise(**SIGMA),
    "reused key": broken.reused_key(**SIGMA),
    "forgotten clip": broken.forgotten_clip(**SIGMA),
    "padding leak": broken.padding_leak(**OFTEN),
    "sampled too often": broken.sampled_too_often(**OFTEN),
    "sharp Dirichlet": broken.sharp_dirichlet(**DIRICHLET),
}


@pytest.mark.parametrize("name", OURS)
def test_ours_pass_and_the_bound_is_near(name: str) -> None:
    target, share = OURS[name]
    verdict = check(target, key=jax.random.key(1), trials=2**17, delta=1e-2, confidence=0.999, chunk=2**14)
    assert not verdict.refuted
    assert share * verdict.certified.lower <= verdict.result.epsilon_lower <= verdict.certified.upper
    # What is found at the epsilon nearest to a refutation is most of what is certified there.
    assert 0.7 * verdict.delta_certified <= verdict.delta_lower <= verdict.delta_certified


@pytest.mark.parametrize("name", BROKEN)
def test_broken_ones_are_caught(name: str) -> None:
    verdict = check(BROKEN[name], key=jax.random.key(2), trials=2**16, confidence=0.999999, chunk=2**14)
    assert verdict.refuted
    assert verdict.delta_lower > verdict.delta_certified


@pytest.mark.parametrize(("errors", "refuted"), [(500, False), (200, True)])
def test_counts_of_one_test_are_held_against_the_whole_profile(errors: int, refuted: bool) -> None:
    """A Gaussian at mu = 1 has errors of 31 % at the middle: 50 % show nothing, 20 % refute it."""
    band = threshold.from_counts(
        false_positives=[errors], negatives=1000, false_negatives=[errors], positives=1000, thresholds=[0.5]
    )
    model = targets.gaussian(noise_multiplier=1.0).threat_model
    found = hold(band, [(Gaussian(1.0), 1)], delta=1e-5, threat_model=model, note="one test", points=5)
    assert found.refuted is refuted and found.result.note == "one test"
    assert found.epsilon == 0.0 or refuted
    certified = stats.norm.cdf(0.5) - stats.norm.cdf(-0.5)
    if not refuted:
        assert found.delta_certified == pytest.approx(certified, abs=1e-6) and found.delta_lower == 0.0
    with pytest.raises(ValueError, match="points must be a whole number >= 1, got 0"):
        hold(band, [(Gaussian(1.0), 1)], delta=1e-5, threat_model=model, points=0)


def noisy_sum(std: float) -> Target:
    """A target that compiles at once, with its own noise."""

    def scores(key: jax.Array, present: jax.Array, size: int) -> jax.Array:
        return jax.random.normal(key, (size,)) * std + present

    model = targets.clipped(noise_multiplier=1.0).threat_model
    return Target("noisy sum", scores, [(Gaussian(1.0), 1)], model)


@pytest.mark.parametrize("repeats", [100, pytest.param(1000, marks=pytest.mark.slow, id="many")])
def test_false_alarms(repeats: int) -> None:
    confidence = 0.8
    target = noisy_sum(1.0)
    alarms = sum(
        check(target, key=jax.random.key(seed), trials=4096, confidence=confidence, chunk=2048).refuted
        for seed in range(repeats)
    )
    assert alarms <= stats.binom.isf(1e-4, repeats, 1.0 - confidence)
    close = noisy_sum(0.8)
    assert check(close, key=jax.random.key(0), trials=2**16, confidence=confidence, chunk=2048).refuted


def test_the_number_of_chunks_does_not_matter_to_the_counts() -> None:
    target = noisy_sum(1.0)
    verdict = check(target, key=jax.random.key(3), trials=10_001, chunk=999)
    assert verdict.result.trials == 2 * (5000 - 625)
    assert verdict == check(target, key=jax.random.key(3), trials=10_001, chunk=999)
    assert verdict != check(target, key=jax.random.key(4), trials=10_001, chunk=999)
    record = json.loads(json.dumps(verdict.as_dict(), allow_nan=False))
    assert record["verdict"] == "not refuted"
    assert record["claimed"]["epsilon"]["upper"] == verdict.certified.upper
    assert AuditResult.from_dict(record) == verdict.result


def test_bad_input() -> None:
    target, key = noisy_sum(1.0), jax.random.key(0)
    with pytest.raises(ValueError, match="trials must be a whole number >= 1000"):
        check(target, key=key, trials=999)
    with pytest.raises(ValueError, match="chunk must be"):
        check(target, key=key, trials=1000, chunk=0)
    with pytest.raises(ValueError, match="delta must be in"):
        check(target, key=key, trials=1000, delta=0.0)
    with pytest.raises(ValueError, match="confidence must be in"):
        check(target, key=key, trials=1000, confidence=1.0)
    with pytest.raises(ValueError, match="key must be one typed key"):
        check(target, key=jnp.zeros(2), trials=1000)  # type: ignore[arg-type]
    bad = dataclasses.replace(target, scores=lambda key, present, size: jnp.full(size, jnp.nan))
    with pytest.raises(ValueError, match="must not hold NaN"):
        check(bad, key=key, trials=1000)
    with pytest.raises(ValueError, match="noise_multiplier must be"):
        targets.gaussian(noise_multiplier=0.0)
    with pytest.raises(ValueError, match="clip_norm must be at most 1"):
        targets.clipped(noise_multiplier=1.0, clip_norm=2.0)
    with pytest.raises(ValueError, match="num_classes must be"):
        targets.dirichlet(scaling=1.0, offset=1.0, num_classes=1)
