"""The known mechanisms have the epsilon that they state."""

from __future__ import annotations

import numpy as np
import pytest

from exactdp.accounting.audit.known import Known, RandomisedResponse, Silent, SubsampledGaussian
from exactdp.accounting.fdp.gaussian import GaussianTradeoff


def test_stated_epsilons() -> None:
    assert SubsampledGaussian(1.0).epsilon(1e-5) == pytest.approx(
        GaussianTradeoff(1.0).epsilon(1e-5), rel=1e-6
    )
    assert RandomisedResponse(1.0).epsilon(1e-9) == pytest.approx(1.0, abs=1e-6)
    assert Silent().epsilon(0.5) == 0.0
    for bad in (0.0, -1.0):
        with pytest.raises(ValueError, match="mu must be"):
            SubsampledGaussian(bad)
    with pytest.raises(ValueError, match="sampling_probability must be"):
        SubsampledGaussian(1.0, 1.5)
    with pytest.raises(ValueError, match="epsilon0 must be"):
        RandomisedResponse(-0.1)


@pytest.mark.parametrize(
    "mechanism",
    [RandomisedResponse(1.0), SubsampledGaussian(1.5, 0.4), SubsampledGaussian(1.0), Silent()],
    ids=repr,
)
def test_draws_have_that_epsilon(mechanism: Known) -> None:
    # The best threshold test of many draws has the hockey-stick divergence that epsilon(delta) inverts.
    size = 400_000
    inside, outside = mechanism.draw(size, generator=np.random.default_rng(1))
    thresholds = np.linspace(-3.0, 5.0, 161)
    tpr = 1.0 - np.searchsorted(np.sort(inside), thresholds, side="right") / size
    fpr = 1.0 - np.searchsorted(np.sort(outside), thresholds, side="right") / size
    for delta in (0.02, 0.1):
        growth = np.exp(mechanism.epsilon(delta))
        found = max(np.max(tpr - growth * fpr), np.max((1.0 - fpr) - growth * (1.0 - tpr)))
        if mechanism.epsilon(delta) > 0.0:
            assert found == pytest.approx(delta, abs=0.01)
        assert found <= delta + 0.01


def test_canaries() -> None:
    mechanism = SubsampledGaussian(3.0)
    included = np.arange(10_000) % 2 == 0
    scores = mechanism.canaries(included, generator=np.random.default_rng(2))
    assert np.mean(scores[included]) == pytest.approx(3.0, abs=0.06)
    assert np.mean(scores[~included]) == pytest.approx(0.0, abs=0.06)
