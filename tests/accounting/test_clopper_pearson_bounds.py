"""Clopper-Pearson bounds: definition, edges, large counts, bad input."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from exactdp.accounting import clopper_pearson


@pytest.mark.parametrize("error", [1e-9, 0.025, 0.5])
@pytest.mark.parametrize("trials", [1, 7, 1000, 10**8])
def test_definition(trials: int, error: float) -> None:
    counts = np.unique([0, trials // 3, trials // 2])
    high = clopper_pearson.upper(counts, trials=trials, error=error)
    assert stats.binom.cdf(counts, trials, high) == pytest.approx(np.full(len(counts), error), rel=1e-6)
    counts = np.unique([1, (trials + 1) // 2, trials])
    low = clopper_pearson.lower(counts, trials=trials, error=error)
    assert stats.binom.sf(counts - 1, trials, low) == pytest.approx(np.full(len(counts), error), rel=1e-6)


def test_edges() -> None:
    assert clopper_pearson.upper(5, trials=5, error=0.05) == 1.0
    assert clopper_pearson.lower(0, trials=5, error=0.05) == 0.0
    assert clopper_pearson.upper(0, trials=100, error=0.05) == pytest.approx(1.0 - 0.05**0.01, rel=1e-12)
    assert clopper_pearson.lower(100, trials=100, error=0.05) == pytest.approx(0.05**0.01, rel=1e-12)
    assert clopper_pearson.upper([0, 3], trials=9, error=[0.1, 0.2]).shape == (2,)


@pytest.mark.parametrize("p", [0.003, 0.2, 0.97])
def test_coverage_is_exact(p: float) -> None:
    n, error = 60, 0.05
    k = np.arange(n + 1)
    missed = stats.binom.pmf(k, n, p)
    assert missed[clopper_pearson.upper(k, trials=n, error=error) < p].sum() <= error
    assert missed[clopper_pearson.lower(k, trials=n, error=error) > p].sum() <= error


def test_bad_input() -> None:
    for counts in (-1, 6, 2.5, [0, np.nan]):
        with pytest.raises(ValueError, match="successes must be whole numbers"):
            clopper_pearson.upper(counts, trials=5, error=0.05)
    for error in (0.0, 1.0, np.nan):
        with pytest.raises(ValueError, match="error must be in"):
            clopper_pearson.lower(1, trials=5, error=error)
    with pytest.raises(ValueError, match="trials must be a whole number >= 1"):
        clopper_pearson.upper(0, trials=0, error=0.05)
