"""Credible intervals: against sampling from the posterior, calibration under the prior, limits, bad input."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from scipy import integrate, stats

from exactdp.accounting.audit.bayesian import Posterior, Prior
from exactdp.accounting.threat import Adjacency, Coins, ThreatModel

MODEL = ThreatModel(Adjacency.ADD_REMOVE, Coins.NONE, "one draw")


def epsilon(fpr: np.ndarray, fnr: np.ndarray, delta: float) -> np.ndarray:
    with np.errstate(divide="ignore", invalid="ignore"):
        one = np.log(np.maximum(1.0 - delta - fnr, 0.0)) - np.log(fpr)
        other = np.log(np.maximum(1.0 - delta - fpr, 0.0)) - np.log(fnr)
    return np.maximum(np.maximum(one, other), 0.0)


@pytest.mark.parametrize("prior", ["jeffreys", "uniform"])
@pytest.mark.parametrize(
    "counts", [(5, 1000, 300, 1000), (0, 50, 0, 50), (40, 100, 45, 80), (60, 100, 50, 100)]
)
def test_against_samples(prior: Prior, counts: tuple[int, int, int, int]) -> None:
    fp, n0, fn, n1 = counts
    posterior = Posterior(fp, n0, fn, n1, prior)
    add = 0.5 if prior == "jeffreys" else 1.0
    generator = np.random.default_rng(5)
    size = 400_000
    fpr = generator.beta(fp + add, n0 - fp + add, size)
    fnr = generator.beta(fn + add, n1 - fn + add, size)
    for delta in (0.0, 1e-2):
        drawn = epsilon(fpr, fnr, delta)
        for e in (0.0, 0.2, 1.0, 4.0, 5.0):
            found = posterior.probability(e, delta=delta)
            assert found == pytest.approx(np.mean(drawn <= e), abs=4e-3)
        low = posterior.lower(delta=delta, confidence=0.9)
        assert low == pytest.approx(np.quantile(drawn, 0.1), rel=0.02, abs=0.01)


@pytest.mark.parametrize("counts", [(5, 1000, 300, 1000), (0, 50, 0, 50), (40, 100, 45, 80)])
@pytest.mark.parametrize("e", [0.0, 0.3, 1.0, 4.5])
def test_quadrature(counts: tuple[int, int, int, int], e: float) -> None:
    fp, n0, fn, n1 = counts
    a, b, delta = stats.beta(fp + 0.5, n0 - fp + 0.5), stats.beta(fn + 0.5, n1 - fn + 0.5), 1e-3
    crossing = (1.0 - delta) / (1.0 + math.exp(e))

    def inner(u: float) -> float:
        x = float(a.ppf(u))
        return float(b.sf(max(1.0 - delta - math.exp(e) * x, math.exp(-e) * (1.0 - delta - x))))

    parts = [0.0, *sorted({1e-6, 1e-3, 0.03, 0.2, 0.5, 0.8, 0.97, 1 - 1e-3, float(a.cdf(crossing))}), 1.0]
    expected = sum(integrate.quad(inner, u, v, epsabs=1e-11)[0] for u, v in itertools.pairwise(parts))
    found = Posterior(*counts).probability(e, delta=delta)
    assert found == pytest.approx(expected, abs=1e-7)


def test_calibration_under_the_prior() -> None:
    # The posterior distribution function at the truth is uniform when the truth comes from the prior.
    generator = np.random.default_rng(6)
    repeats, n = 500, 60
    rates = generator.random((repeats, 2))
    counts = generator.binomial(n, rates)
    truth = epsilon(rates[:, 0], rates[:, 1], 0.0)
    at = np.array(
        [
            Posterior(int(a), n, int(b), n, "uniform").probability(float(e), delta=0.0)
            for (a, b), e in zip(counts, truth, strict=True)
        ]
    )
    at *= np.where(truth == 0.0, generator.random(repeats), 1.0)  # an atom at 0 is spread out
    assert stats.kstest(at, "uniform").pvalue > 1e-3


def test_interval_and_result() -> None:
    posterior = Posterior(5, 1000, 300, 1000)
    interval = posterior.interval(delta=1e-5, confidence=0.9)
    assert interval.lower == pytest.approx(posterior.lower(delta=1e-5, confidence=0.95), abs=1e-6)
    assert interval.lower < math.log(0.7 / 0.005) < interval.upper
    result = posterior.result(delta=1e-5, threat_model=MODEL)
    assert result.certainty == "credible"
    assert "no confidence bound" in result.rung().note
    assert Posterior(50, 100, 50, 100).lower(delta=0.0) == 0.0


def test_bad_input() -> None:
    with pytest.raises(ValueError, match="false_positives must be at most negatives = 5"):
        Posterior(6, 5, 1, 5)
    with pytest.raises(ValueError, match="positives must be a whole number >= 1"):
        Posterior(0, 5, 0, 0)
    with pytest.raises(ValueError, match="prior must be one of"):
        Posterior(0, 5, 0, 5, "flat")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="delta must be in"):
        Posterior(0, 5, 0, 5).lower(delta=1.0)
    with pytest.raises(ValueError, match="epsilon must be at most 700"):
        Posterior(0, 5, 0, 5).probability(1e3, delta=0.0)
