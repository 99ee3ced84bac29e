"""Clopper and Pearson's interval: what a count of successes says about a probability."""

from __future__ import annotations

from typing import Literal

from scipy import special

from exactdp.accounting import validate
from exactdp.accounting.interval import Interval

SIDES = ("both", "lower", "upper")


def clopper_pearson(
    successes: int, *, trials: int, confidence: float, side: Literal["both", "lower", "upper"] = "both"
) -> Interval:
    """An interval that holds the success probability p with at least the given confidence, whatever p is.

    Its ends solve Pr[Bin(n, lower) >= k] = a and Pr[Bin(n, upper) <= k] = a, with a = 1 - confidence for one
    side and half of it for each of both; by quantiles of the beta law.

    Args:
      successes: k in 0 ... n.
      trials: n >= 0, independent; 0 gives [0, 1].
      confidence: in (0, 1).
      side: "both", or "lower" (the upper end is 1), or "upper" (the lower end is 0).

    Raises:
      ValueError: an argument is out of range.

    Source: Clopper and Pearson, Biometrika 26, 1934.
    """
    n = validate.count("trials", trials)
    k = validate.count("successes", successes)
    if k > n:
        raise ValueError(f"successes must be at most trials, got {k} of {n}")
    miss = 1.0 - validate.open_probability("confidence", confidence)
    if validate.one_of("side", side, SIDES) == "both":
        miss /= 2.0
    low = float(special.betaincinv(k, n - k + 1, miss)) if side != "upper" and k > 0 else 0.0
    high = float(special.betainccinv(k + 1, n - k, miss)) if side != "lower" and k < n else 1.0
    return Interval(low, high, "Clopper-Pearson")
