"""Private range of a column of numbers, from a noisy histogram over public geometric buckets.

Numbers are integer codes. The buckets are 0 and, on either side, powers of two:

    bucket 0: {0}    bucket k: 2^(k-1) ... 2^k - 1    bucket -k: -(2^k - 1) ... -2^(k-1)    k = 1 ... 50

101 counts, of which a record is in one; codes further out count as the outermost. The range goes from the
least to the largest bucket whose noisy count exceeds t, where noise alone exceeds t in some of the 101 empty
buckets with probability `failure` at most: t = quantile of the noise at failure / 101. So the range is, with
probability 1 - failure, no wider than the buckets that hold codes; and a bucket of 2 t codes is missed with
probability failure / 101 at most. If no bucket exceeds t, the one of the largest noisy count is taken.
"""

from __future__ import annotations

import dataclasses

import numpy as np
from jaxtyping import Int

from exactdp.accounting import validate
from exactdp.mechanisms.statistics import counts
from exactdp.mechanisms.statistics.counts import Noise

BITS = 50
NUM_BUCKETS = 2 * BITS + 1


@dataclasses.dataclass(frozen=True)
class Bounds:
    """A released range, in buckets.

    Attributes:
      first: bucket of the smallest codes, -50 to 50.
      noisy: noisy counts of the buckets `first` to `last`, at least one.
    """

    first: int
    noisy: tuple[int, ...]

    @property
    def last(self) -> int:
        """Bucket of the largest codes."""
        return self.first + len(self.noisy) - 1

    @property
    def minimum(self) -> int:
        """Smallest code of the range."""
        return ends(self.first)[0]

    @property
    def maximum(self) -> int:
        """Largest code of the range."""
        return ends(self.last)[1]


def ends(bucket: int) -> tuple[int, int]:
    """Smallest and largest code of a bucket."""
    if bucket == 0:
        return 0, 0
    low, high = 2 ** (abs(bucket) - 1), 2 ** abs(bucket) - 1
    return (low, high) if bucket > 0 else (-high, -low)


def buckets(codes: Int[np.ndarray, " rows"]) -> Int[np.ndarray, " rows"]:
    """The bucket of each code."""
    limit = 2**BITS - 1
    held = np.clip(np.asarray(codes, np.int64), -limit, limit)
    # The exponent of a float is the bit length of a whole number below 2^53.
    _, bits = np.frexp(np.abs(held).astype(np.float64))
    return np.sign(held) * bits.astype(np.int64)


def histogram(codes: Int[np.ndarray, " rows"]) -> Int[np.ndarray, " buckets"]:
    """How many codes are in each bucket, from bucket -50 on. Exact: private."""
    return np.bincount(buckets(codes) + BITS, minlength=NUM_BUCKETS).astype(np.int64)


def choose(noisy: Int[np.ndarray, " buckets"], *, noise: Noise, failure: float = 0.01) -> Bounds:
    """The range that a noisy histogram speaks for, by the rule above.

    Args:
      noisy: counts of all buckets with noise.
      noise: of each count.
      failure: probability that noise alone widens the range, in (0, 1).

    Raises:
      ValueError: bad input.
    """
    least = counts.quantile(noise, validate.open_probability("failure", failure) / NUM_BUCKETS)
    values = np.asarray(noisy)
    if values.shape != (NUM_BUCKETS,):
        raise ValueError(f"noisy must hold {NUM_BUCKETS} counts, got shape {values.shape}")
    places = np.flatnonzero(values > least)
    first, last = (places[0], places[-1]) if places.size else (np.argmax(values),) * 2
    return Bounds(int(first) - BITS, tuple(int(count) for count in values[first : last + 1]))


def release(codes: Int[np.ndarray, " rows"], *, noise: Noise, failure: float = 0.01) -> Bounds:
    """The range of a column of numbers, privately, with its noisy bucket counts.

    Guarantee: dominated by `noise` under add/remove of a record (pure epsilon-DP for discrete Laplace noise
    of scale 1/epsilon): a record is in one count, and the rest is post-processing. A record without a number
    is to be left out by the caller: it changes no count.

    Args:
      codes: of the cells that hold a number.
      noise: of each count.
      failure: as in `choose`.

    Raises:
      ValueError: bad input.
    """
    return choose(counts.noisy(histogram(codes), noise=noise), noise=noise, failure=failure)
