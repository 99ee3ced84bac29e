"""Private range of a column of numbers."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from exactdp.accounting.pairs.discrete_gaussian import DiscreteGaussian
from exactdp.accounting.pairs.discrete_laplace import DiscreteLaplace
from exactdp.mechanisms.statistics import bounds
from exactdp.mechanisms.statistics.bounds import Bounds

NOISE = DiscreteGaussian(20.0)
CODE = st.integers(-(2**63) + 1, 2**63 - 1)


def test_buckets_and_ends_agree() -> None:
    for bucket in range(-bounds.BITS, bounds.BITS + 1):
        low, high = bounds.ends(bucket)
        assert bounds.buckets(np.array([low, high])).tolist() == [bucket, bucket]
        if bucket < bounds.BITS:
            assert bounds.ends(bucket + 1)[0] == high + 1


def test_far_codes_are_in_the_outermost_buckets() -> None:
    far = np.array([2**50, 2**62, 2**63 - 1, -(2**50), -(2**63) + 1])
    assert bounds.buckets(far).tolist() == [50, 50, 50, -50, -50]


@given(st.lists(CODE, max_size=6), CODE)
def test_a_record_changes_one_count_by_one(codes: list[int], more: int) -> None:
    change = bounds.histogram(np.array([*codes, more], np.int64)) - bounds.histogram(
        np.array(codes, np.int64)
    )
    assert sorted(change) == [0] * (bounds.NUM_BUCKETS - 1) + [1]


@pytest.mark.parametrize(
    ("codes", "first", "last"),
    [
        (np.arange(17, 91).repeat(60), 5, 7),
        (np.append(np.zeros(5000, int), np.full(400, 7298)), 0, 13),
        (np.full(5000, -3), -2, -2),
        (np.arange(-1000, 1000).repeat(5), -10, 10),
        (np.full(5000, 10**15), 50, 50),
        (np.append(np.full(5000, 20), [10**12] * 3), 5, 5),
    ],
)
def test_ranges(codes: np.ndarray, first: int, last: int) -> None:
    found = bounds.release(codes, noise=NOISE, failure=1e-6)
    assert (found.first, found.last) == (first, last)
    exact = bounds.histogram(codes)[first + bounds.BITS : last + bounds.BITS + 1]
    assert np.all(np.abs(np.array(found.noisy) - exact) < 200)
    assert (found.minimum, found.maximum) == (bounds.ends(first)[0], bounds.ends(last)[1])


@pytest.mark.parametrize("noise", [NOISE, DiscreteLaplace(15.0)], ids=str)
def test_noise_alone_widens_a_range_as_seldom_as_promised(noise: DiscreteGaussian | DiscreteLaplace) -> None:
    codes = np.full(2000, 20)
    wider = sum(len(bounds.release(codes, noise=noise, failure=0.2).noisy) > 1 for _ in range(200))
    # At most 20 %, and the bound is nearly met: 75 of 200 would be 6 deviations above, 6 of 200 below.
    assert 6 < wider < 75


def test_no_rows_give_some_bucket() -> None:
    found = bounds.release(np.empty(0, np.int64), noise=NOISE)
    assert isinstance(found, Bounds)
    assert found.minimum <= found.maximum


def test_choose_without_a_clear_bucket_takes_the_largest() -> None:
    noisy = np.zeros(bounds.NUM_BUCKETS, np.int64)
    noisy[bounds.BITS + 4] = 3
    assert bounds.choose(noisy, noise=NOISE) == Bounds(4, (3,))


def test_bad_input() -> None:
    with pytest.raises(ValueError, match="failure"):
        bounds.choose(np.zeros(bounds.NUM_BUCKETS, np.int64), noise=NOISE, failure=1.0)
    with pytest.raises(ValueError, match="101 counts"):
        bounds.choose(np.zeros(3, np.int64), noise=NOISE)
