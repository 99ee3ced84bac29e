"""Poisson batches that may hold only so many records: what dropping the rest costs.

*The mechanism.* Each record of a data set is drawn with probability q; of more than C drawn, only C are kept,
by a rule that knows nothing but who was drawn (and coins of its own). C and q are public constants.

*The bound.* Let D' be D with a record x added, and S those drawn of D. Whether S has C or more is an event
of the same probability eta = P[Binomial(|D|, q) >= C] under D and D', for it does not concern x; let the
adversary know it.

- |S| < C: nothing is dropped, with or without x. Given S the releases are those of the untruncated
  mechanism, so that by joint convexity their profile is at most h, that of the Poisson-sampled pair.
- |S| >= C: with probability 1 - q, x is not drawn and the two data sets release the same. So the total
  variation is at most q, whatever the rule: the profile is at most that of telling everything with
  probability q, and else nothing.

So a step's profile is at most (1 - eta) h(a) + eta q for a >= 1, in both directions (for a < 1, exchange the
two). That is at most (1 - eta q) h(a) + eta q: the Poisson-sampled pair composed with the independent pair
that tells everything with probability eta q. Both dominate under adaptive composition (arXiv 2106.08567,
Theorem 10), hence

    where T untruncated steps are (epsilon, delta)-DP, the truncated ones are so with
    1 - (1 - eta q)^T (1 - delta) in place of delta,

an addition of at most T q eta. As eta grows with q and with the number of records, an upper bound of q will
do, and so will the number n of records in hand for a smaller neighbour. Under replacement x and x' share
their coin and the same holds, as it does with visible coins.

The published bound (Chua et al. 2024, arXiv 2411.04205) couples each data set with its untruncated self and
adds T (1 + e^epsilon) eta: more by the factor (1 + e^epsilon) / q, and it depends on epsilon.
"""

from __future__ import annotations

import math

import numpy as np
from scipy import special

from exactdp.accounting import validate
from exactdp.accounting.pairs.approximate import ApproximateDP

_EPS = float(np.finfo(np.float64).eps)
_TINY = float(np.finfo(np.float64).tiny)
_REACH = 40.0  # standard deviations: what lies beyond is bounded by a geometric series


def log_overflow(num_records: int, *, sampling_probability: float, capacity: int) -> float:
    """Upper bound of log eta = log P[Binomial(num_records, sampling_probability) >= capacity].

    The probability that the others fill a batch. 0 (so -inf) where capacity >= num_records: the mechanism is
    then taken to be the one that drops nothing at any size of data set.

    Args:
      num_records: number of records, >= 1.
      sampling_probability: q in [0, 1].
      capacity: C >= 1.

    Guarantee: an upper bound, float64 rounding included; the relative excess is about 1e-15 num_records
    log(num_records) above 1e-12.

    Raises:
      ValueError: an argument is out of its range.
    """
    n = validate.count("num_records", num_records, minimum=1)
    q = validate.probability("sampling_probability", sampling_probability)
    c = validate.count("capacity", capacity, minimum=1)
    if c >= n or q == 0.0:
        return -math.inf
    spread = _REACH * math.sqrt(n * q * (1.0 - q)) + _REACH
    if q == 1.0 or c < n * q - spread:
        return 0.0
    last = min(n, math.ceil(max(c, n * q) + spread))
    k = np.arange(c, last + 1, dtype=np.float64)
    parts = [
        np.full_like(k, special.gammaln(n + 1.0)),
        -special.gammaln(k + 1.0),
        -special.gammaln(n - k + 1.0),
        k * math.log(q),
        (n - k) * math.log1p(-q),
    ]
    error = 16.0 * _EPS * float(np.max(np.sum(np.abs(parts), axis=0)))
    log_mass = np.sum(parts, axis=0)
    total = float(special.logsumexp(log_mass))
    if last < n:
        ratio = (n - last) * q / ((last + 1.0) * (1.0 - q))
        total = float(np.logaddexp(total, log_mass[-1] + math.log(ratio) - math.log1p(-ratio)))
    return min(0.0, total + error + 1e-12)


def overflow_probability(num_records: int, *, sampling_probability: float, capacity: int) -> float:
    """Upper bound of eta, the probability that the others fill a batch: see `log_overflow`.

    Raises:
      ValueError: an argument is out of its range.
    """
    return _upwards(log_overflow(num_records, sampling_probability=sampling_probability, capacity=capacity))


def failure(num_records: int, *, sampling_probability: float, capacity: int) -> ApproximateDP | None:
    """What a truncated step releases beyond the Poisson-sampled pair: all, with probability q eta.

    Compose it with the sampled pair, step by step; both go into a ledger. None where nothing is dropped.

    Raises:
      ValueError: an argument is out of its range, or all records are drawn and do not fit.
    """
    log_eta = log_overflow(num_records, sampling_probability=sampling_probability, capacity=capacity)
    if log_eta == -math.inf:
        return None
    if sampling_probability == 1.0:
        raise ValueError(f"capacity must be at least num_records where all are drawn, got {capacity}")
    return ApproximateDP(0.0, _upwards(log_eta + math.log(sampling_probability)))


def charged_delta(
    delta: float, *, num_records: int, sampling_probability: float, capacity: int, num_steps: int
) -> float:
    """The delta of `num_steps` truncated steps, at the epsilon where the untruncated ones have `delta`.

    1 - (1 - q eta)^T (1 - delta), rounded upwards. An interval of epsilon computed for the untruncated steps
    at `delta` has its upper end certified for the truncated ones at the value returned.

    Raises:
      ValueError: an argument is out of its range.
    """
    validate.probability("delta", delta)
    steps = validate.count("num_steps", num_steps)
    failing = failure(num_records, sampling_probability=sampling_probability, capacity=capacity)
    if failing is None:
        return float(delta)
    charge = -math.expm1(steps * math.log1p(-failing.delta))
    return min(1.0, (delta + (1.0 - delta) * charge) * (1.0 + 8.0 * _EPS))


def capacity_for(
    num_records: int,
    *,
    sampling_probability: float,
    num_steps: int,
    log10_overflow: float,
    multiple: int = 8,
) -> int:
    """The smallest capacity whose truncation adds at most 10^log10_overflow to delta over a whole run.

    Args:
      num_records: n.
      sampling_probability: q in [0, 1].
      num_steps: T >= 1.
      log10_overflow: log10 of the part of delta to spend, <= 0: for delta = 1e-5 and a thousandth of it, -8.
      multiple: the capacity is a multiple of it (whole vectors, devices, micro-batches).

    Returns:
      C with T q eta(C) <= 10^log10_overflow. Where no smaller one serves: n, rounded up, which drops nothing.

    Raises:
      ValueError: an argument is out of its range.
    """
    n = validate.count("num_records", num_records, minimum=1)
    q = validate.probability("sampling_probability", sampling_probability)
    steps = validate.count("num_steps", num_steps, minimum=1)
    unit = validate.count("multiple", multiple, minimum=1)
    if validate.finite("log10_overflow", log10_overflow) > 0.0:
        raise ValueError(f"log10_overflow must be <= 0, got {log10_overflow}")
    # A little less than allowed: the logarithms below are rounded.
    allowed = log10_overflow * math.log(10.0) - math.log(steps) - 1e-12
    low, high = 0, -(-n // unit)  # in units; `high` serves, as nothing is dropped there
    while high - low > 1:
        middle = (low + high) // 2
        log_eta = log_overflow(n, sampling_probability=q, capacity=middle * unit)
        serves = log_eta == -math.inf or log_eta + math.log(q) <= allowed
        low, high = (low, middle) if serves else (middle, high)
    return high * unit


def _upwards(log_value: float) -> float:
    if log_value == -math.inf:
        return 0.0
    # At least the smallest normal float: nothing positive becomes 0.
    return min(1.0, max(_TINY, math.exp(log_value) * (1.0 + 4.0 * _EPS * (1.0 + abs(log_value)))))
