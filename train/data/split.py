"""A fixed split into training and test records, for data sets that come as one file."""

from __future__ import annotations

import numpy as np
from jaxtyping import Int

_TEST_SHARE = 5


def fixed(num_records: int) -> tuple[Int[np.ndarray, " n"], Int[np.ndarray, " m"]]:
    """Places of the training records (four fifths) and of the test records (one fifth, rounded down).

    The places 0 ... num_records - 1 are ordered by SplitMix64 of the place, and the first fifth of that order
    is the test set; both are returned in ascending order. The split is a function of the number of records
    alone: it is public, and the same on every machine and with every version of NumPy.

    Source: Steele, Lea and Flood, Fast splittable pseudorandom number generators, OOPSLA 2014, for the hash.
    """
    state = (np.arange(num_records, dtype=np.uint64) + np.uint64(1)) * np.uint64(0x9E3779B97F4A7C15)
    state = (state ^ (state >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    state = (state ^ (state >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    order = np.argsort(state ^ (state >> np.uint64(31)), kind="stable")
    num_test = num_records // _TEST_SHARE
    return np.sort(order[num_test:]), np.sort(order[:num_test])
