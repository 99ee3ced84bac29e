"""Hashes of integers, so that rows can be told apart without Python loops."""

from __future__ import annotations

import numpy as np
from jaxtyping import Int, UInt64

_STEP, _FIRST, _SECOND = (
    np.uint64(word) for word in (0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9, 0x94D049BB133111EB)
)


def mixed(x: UInt64[np.ndarray, " n"]) -> UInt64[np.ndarray, " n"]:
    """A bijection of 64 bits in which every bit of the input changes half of the output's.

    Source: SplitMix64's step and finaliser (Steele, Lea, Flood 2014).
    """
    x = x + _STEP
    x = (x ^ (x >> np.uint64(30))) * _FIRST
    x = (x ^ (x >> np.uint64(27))) * _SECOND
    return x ^ (x >> np.uint64(31))


def rows(codes: Int[np.ndarray, "rows columns"]) -> UInt64[np.ndarray, " rows"]:
    """One hash a row, of all its cells in their order; equal rows have equal ones.

    Of n and m different rows that know nothing of the hash, two collide with a chance of about n m / 2^64.
    """
    found = np.zeros(len(codes), np.uint64)
    for place in range(codes.shape[1]):
        # A bijection of what stands for the columns before, for each value of this one.
        found = mixed(found ^ mixed(codes[:, place].astype(np.int64).view(np.uint64)))
    return found
