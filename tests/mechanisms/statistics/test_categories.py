"""Private list of categories: its (epsilon, delta) by exact sums, and what it keeps."""

from __future__ import annotations

import math

import numpy as np
import pyarrow as pa
import pytest

from exactdp.accounting import prv
from exactdp.accounting.pairs.approximate import ApproximateDP
from exactdp.accounting.pairs.discrete_gaussian import DiscreteGaussian
from exactdp.accounting.pairs.discrete_laplace import DiscreteLaplace
from exactdp.mechanisms.statistics import categories
from exactdp.mechanisms.statistics.counts import Noise

NOISES: list[Noise] = [DiscreteLaplace(2.0), DiscreteGaussian(3.0)]
DELTA = 0.01
_REACH = 150


def law(noise: Noise, count: int, threshold: int) -> np.ndarray:
    """Probabilities of what is released of a value: nothing, or one of the counts from `threshold` on."""
    x, scale = np.arange(-_REACH, _REACH + 1.0) - count, float(noise.noise_multiplier)
    weight = np.exp(-np.abs(x) / scale if isinstance(noise, DiscreteLaplace) else -0.5 * (x / scale) ** 2)
    weight /= weight.sum()
    seen = np.arange(-_REACH, _REACH + 1) >= threshold
    if count == 0:  # not present: never released
        return np.concatenate([[1.0], np.zeros(seen.sum())])
    return np.concatenate([[weight[~seen].sum()], weight[seen]])


def worst(noise: Noise, threshold: int, epsilon: float) -> float:
    """The largest hockey-stick divergence when a value's count goes from c to c + 1 or back."""
    found = 0.0
    for count in range(40):
        p, q = law(noise, count, threshold), law(noise, count + 1, threshold)
        for a, b in ((p, q), (q, p)):
            found = max(found, float(np.maximum(a - math.exp(epsilon) * b, 0.0).sum()))
    return found


@pytest.mark.parametrize("epsilon", [0.0, 0.2, 0.5, 1.0])
@pytest.mark.parametrize("noise", NOISES, ids=str)
def test_exact_delta_is_within_the_pairs(noise: Noise, epsilon: float) -> None:
    threshold = categories.threshold(noise, delta=DELTA)
    claimed = prv.delta([(pair, 1) for pair in categories.pairs(noise, delta=DELTA)], epsilon=epsilon).upper
    assert worst(noise, threshold, epsilon) <= claimed + 1e-12


def test_laplace_is_within_epsilon_and_delta() -> None:
    noise = DiscreteLaplace(2.0)
    threshold = categories.threshold(noise, delta=DELTA)
    claimed = prv.delta([(ApproximateDP(0.5, DELTA), 1)], epsilon=0.5).upper
    assert worst(noise, threshold, 0.5) <= claimed + 1e-12
    # The bound is met to within one step of the threshold.
    assert worst(noise, threshold - 1, 0.5) > claimed


@pytest.mark.parametrize("noise", NOISES, ids=str)
def test_broken_variants_are_caught(noise: Noise) -> None:
    threshold = categories.threshold(noise, delta=DELTA)
    claimed = prv.delta([(pair, 1) for pair in categories.pairs(noise, delta=DELTA)], epsilon=0.1).upper
    half = type(noise)(noise.noise_multiplier / 2.0)
    assert worst(half, categories.threshold(half, delta=DELTA), 0.1) > claimed
    # A value of one record passes a threshold that was meant for none.
    q = law(noise, 1, threshold - 1)
    assert 1.0 - q[0] > DELTA


@pytest.mark.parametrize("noise", NOISES, ids=str)
def test_a_value_of_one_record_is_released_as_often_as_the_sum_says(noise: Noise) -> None:
    texts, delta, runs = pa.array([f"v{i}" for i in range(5000)]), 0.2, 5000
    threshold = categories.threshold(noise, delta=delta)
    wanted = 1.0 - law(noise, 1, threshold)[0]
    seen = len(categories.release(texts, noise=noise, delta=delta, limit=10_000))
    assert wanted <= delta
    # 6 standard deviations.
    assert abs(seen - runs * wanted) < 6.0 * math.sqrt(runs * wanted * (1.0 - wanted))


def test_order_limit_and_spaces() -> None:
    column = pa.chunked_array(
        [["b"] * 300 + [" a"] * 500 + [""] * 900, [None] * 900 + ["c,d "] * 400 + ["e"]]
    )
    noise = DiscreteGaussian(5.0)
    assert list(categories.release(column, noise=noise, delta=1e-9, limit=10)) == ["a", "c,d", "b"]
    assert list(categories.release(column, noise=noise, delta=1e-9, limit=2)) == ["a", "c,d"]
    assert categories.release(column, noise=noise, delta=1e-9, limit=0) == {}
    assert categories.present(column) == {"b": 300, "a": 500, "c,d": 400, "e": 1}


def test_nothing_of_an_empty_column() -> None:
    for column in (pa.array([], pa.string()), pa.array(["", None, " "], pa.string())):
        assert categories.release(column, noise=NOISES[1], delta=0.5, limit=5) == {}


def test_bad_input() -> None:
    with pytest.raises(ValueError, match="limit"):
        categories.release(pa.array(["a"]), noise=NOISES[0], delta=0.1, limit=-1)
    with pytest.raises(ValueError, match="probability"):
        categories.threshold(NOISES[0], delta=0.0)
    with pytest.raises(ValueError, match="delta"):
        categories.pairs(NOISES[0], delta=1.0)
