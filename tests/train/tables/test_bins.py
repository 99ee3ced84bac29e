"""The bins of a column."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from exactdp.mechanisms.statistics import bounds
from exactdp.mechanisms.statistics.bounds import Bounds
from exactdp.train.tables import bins
from exactdp.train.tables.bins import Bins
from exactdp.train.tables.schema import MISSING, Column

COLOUR = Column("colour", "category", values=("red", "blue"), missing=True)
NOTHING = Column("nothing", "category", missing=True)


def number(low: int, high: int, *, missing: bool = False) -> Column:
    return Column("n", "integer", minimum=low, maximum=high, missing=missing)


def test_categories() -> None:
    own = bins.of_category(COLOUR)
    assert (own.num_ranges, own.size) == (2, 3)
    assert own.of(np.array([1, MISSING, 0])).tolist() == [1, 2, 0]
    empty = bins.of_category(NOTHING)
    assert (empty.num_ranges, empty.size) == (0, 1)
    assert empty.of(np.array([MISSING])).tolist() == [0]
    assert empty.draw(np.zeros(3, int), rng=np.random.default_rng(0)).tolist() == [MISSING] * 3


def test_small_declared_ranges_have_a_bin_a_code() -> None:
    assert bins.of_declared(number(-2, 3), most=64).edges == (-2, -1, 0, 1, 2, 3, 4)


@given(st.integers(-(10**15), 10**15), st.integers(0, 10**15), st.integers(2, 64))
def test_declared_ranges(low: int, size: int, most: int) -> None:
    high = min(low + size, 10**15)
    own = bins.of_declared(number(low, high), most=most)
    assert own.num_ranges <= most + most // 2 + 2 * bounds.BITS + 2
    if low <= 0 <= high:
        zero = int(own.of(np.array([0]))[0])
        assert own.edges[zero : zero + 2] == (0, 1)


BUCKET = st.integers(-bounds.BITS, bounds.BITS)


@given(BUCKET, st.lists(st.integers(-100, 10**6), min_size=1, max_size=20), st.integers(8, 64))
def test_released_ranges(first: int, noisy: list[int], most: int) -> None:
    noisy = noisy[: bounds.BITS - first + 1]
    released = Bounds(first, tuple(noisy))
    column = number(max(released.minimum, -(10**15)), min(released.maximum, 10**15))
    own = bins.of_bounds(column, released, most=most)
    assert len(noisy) <= own.num_ranges <= max(most, len(noisy))
    for place in range(first, released.last):  # buckets are not mixed
        assert bounds.ends(place)[1] + 1 in own.edges


def test_bins_go_where_the_mass_is() -> None:
    # Capital gains: mostly 0, and a few thousands.
    released = Bounds(0, (30_000, 5, -3, 8, 0, 2, 1, 9, 4, 2, 6, 20, 700, 1500, 600))
    own = bins.of_bounds(number(0, 16383), released, most=64)
    inside = [
        int(np.sum((np.array(own.edges) >= low) & (np.array(own.edges) < 2 * low))) for low in (64, 4096)
    ]
    assert own.edges[:2] == (0, 1)
    assert inside[0] <= 2
    assert inside[1] >= 15


@given(st.data())
def test_draws_come_from_their_bins(data: st.DataObject) -> None:
    low = data.draw(st.integers(-1000, 1000))
    own = bins.of_declared(number(low, low + data.draw(st.integers(0, 10**6)), missing=True), most=16)
    drawn = np.array(data.draw(st.lists(st.integers(0, own.size - 1), min_size=1, max_size=20)))
    codes = own.draw(drawn, rng=np.random.default_rng(0))
    assert own.of(codes).tolist() == drawn.tolist()


def test_draws_are_even_within_a_bin() -> None:
    own = Bins(number(0, 9), (0, 1, 10))
    codes = own.draw(np.ones(90_000, int), rng=np.random.default_rng(1))
    assert np.abs(np.bincount(codes, minlength=10)[1:] - 10_000).max() < 600


def test_number_of_bins() -> None:
    assert bins.most_bins(10**6, noise=30.0, groups=2) == bins.MOST_BINS
    assert bins.most_bins(100, noise=30.0, groups=2) == bins.FEWEST_BINS
    assert bins.most_bins(4000, noise=25.0, groups=4) == 20


def test_json() -> None:
    own = bins.of_declared(number(-5, 10**6), most=16)
    assert bins.bins(list(own.edges), own.column) == own
    for bad in ("x", 3, [], ["a"], [0, 1], [-5, 3, 3, 10**6 + 1], [-5.5, 10**6 + 1]):
        with pytest.raises(ValueError, match="edges"):
            bins.bins(bad, own.column)


def test_codes_outside_are_refused_without_telling_them() -> None:
    for codes in ([11], [-1], [MISSING]):
        with pytest.raises(ValueError, match="'n': codes must be in the column's domain, some are not"):
            bins.of_declared(number(0, 10), most=16).of(np.array(codes))
