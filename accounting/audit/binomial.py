"""Exact one-sided confidence bounds of a probability from counts (Clopper and Pearson)."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import special

from exactdp.accounting import validate

Array = NDArray[np.float64]


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
