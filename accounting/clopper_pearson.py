"""Clopper and Pearson's bounds: what a count of successes says about a probability."""

from __future__ import annotations

from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import special

from exactdp.accounting import validate
from exactdp.accounting.interval import Interval

Array = NDArray[np.float64]

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
    low = float(lower(k, trials=n, error=miss)) if side != "upper" and n > 0 else 0.0
    high = float(upper(k, trials=n, error=miss)) if side != "lower" and n > 0 else 1.0
    return Interval(low, high, "Clopper-Pearson")


def upper(successes: ArrayLike, *, trials: int, error: ArrayLike) -> Array:
    """The p at which at most `successes` of `trials` happen with probability `error`.

        Pr[Bin(n, p) <= k] = error, so p is the (1 - error)-quantile of Beta(k + 1, n - k); 1 at k = n.

    For a count k ~ Bin(n, p*) the result is below p* with probability at most `error`, whatever p* is. The
    same holds where k counts how many of n independent draws lie strictly beyond their own (k + 1)-th largest
    value: the probability of what lies beyond is then at most Beta(k + 1, n - k) in distribution, with
    equality for a continuous law.

    Args:
      successes: k, whole numbers from 0 to `trials`, any shape.
      trials: n >= 1.
      error: in (0, 1), how often the bound may fail; broadcasts against `successes`.

    Returns:
      Upper bounds in (0, 1], of the broadcast shape.

    Raises:
      ValueError: an argument is out of range.

    Source: Clopper and Pearson 1934, "The use of confidence or fiducial limits illustrated in the case of the
    binomial", Biometrika 26.
    """
    k, n, alpha = _checked(successes, trials, error)
    inner = k < n
    found = special.betainccinv(np.where(inner, k + 1.0, 1.0), np.where(inner, n - k, 1.0), alpha)
    return np.where(inner, found, 1.0)


def lower(successes: ArrayLike, *, trials: int, error: ArrayLike) -> Array:
    """The p at which at least `successes` of `trials` happen with probability `error`; 0 at k = 0.

    Args:
      successes: as in `upper`.
      trials: as in `upper`.
      error: as in `upper`.

    Returns:
      Lower bounds in [0, 1), above the true p with probability at most `error`.

    Raises:
      ValueError: an argument is out of range.

    Source: as in `upper`.
    """
    k, n, alpha = _checked(successes, trials, error)
    inner = k > 0
    found = special.betaincinv(np.where(inner, k, 1.0), np.where(inner, n - k + 1.0, 1.0), alpha)
    return np.where(inner, found, 0.0)


def _checked(successes: ArrayLike, trials: int, error: ArrayLike) -> tuple[Array, int, Array]:
    n = validate.count("trials", trials, minimum=1)
    k = np.asarray(successes, dtype=np.float64)
    alpha = np.asarray(error, dtype=np.float64)
    if not np.all((k >= 0.0) & (k <= n) & (k == np.floor(k))):
        raise ValueError(f"successes must be whole numbers in [0, trials = {n}], got {successes}")
    if not np.all((alpha > 0.0) & (alpha < 1.0)):
        raise ValueError(f"error must be in (0, 1), got {error}")
    return k, n, alpha
