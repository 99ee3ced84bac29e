"""Rényi curves of subsampled mechanisms of which only the Rényi curve is known.

Three bounds, at integer orders, from the curve ε(ℓ) of the release itself:

    zhu_wang  Poisson sampling, hidden coins, add or remove one record
    wang_balle_kasiviswanathan  fixed-size sampling without replacement, replace one record
    visible_coins  Poisson sampling whose coins the adversary sees: exact, real orders

**When the factor 3 of Zhu and Wang may be dropped.** Their theorem has two parts. For any mechanism the
terms ℓ >= 3 carry a factor 3. Without it the same expression is still an upper bound whenever, for every
pair of neighbours, E_Q[(P/Q − 1)^ℓ] >= 0 for all odd ℓ from 3 to λ; the Gaussian and the Laplace mechanism
are their examples.

A sufficient condition that is easy to check: the mechanism has a *symmetric dominating pair* (P, Q), that
is, some involution of the outcomes swaps P and Q. Given |L| = x, such a pair is randomised response with
ε = x, for which E_Q[(P/Q−1)^ℓ] = (e^x−1)^ℓ·(1 − e^{−(ℓ−1)x})/(1+e^x) >= 0 at odd ℓ, and the pair is a mixture
of those. Directly: without the 3, and with the pair's exact curve, the expression is the binomial expansion
of D_λ((1−q)Q + qP‖Q), hence not a bound but the value; the other direction is at most that for a symmetric
pair (Mironov, Talwar, Zhang 2019, arXiv 1908.10530); and subsampling keeps domination. So the 3 may be
dropped for Gaussian, Laplace, their discrete versions, randomised response and any pure-ε mechanism, and
for the Dirichlet mechanism as far as its vertex pair dominates. A mechanism known by its Rényi curve alone
keeps it.

Every excess over 1 is summed from positive terms in the log domain: no cancellation at small q.

Sources: Zhu and Wang 2019 (ICML, "Poisson Subsampled Rényi Differential Privacy"); Wang, Balle,
Kasiviswanathan 2019 (arXiv 1808.00087, Theorem 9); domination under subsampling: Zhu, Dong, Wang 2022
(arXiv 2106.08567). The sufficient condition is derived above.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from scipy import special

from exactdp.accounting import validate
from exactdp.accounting.rdp.bound import check_integer_order, check_order, check_renyi
from exactdp.accounting.rdp.moments import Array, log_sum, renyi_of_log_excess

Curve = Callable[[float], float]


def log_binomial(n: int, k: Array) -> Array:
    """Log of C(n, k)."""
    return np.asarray(special.gammaln(n + 1.0) - special.gammaln(k + 1.0) - special.gammaln(n - k + 1.0))


def _log_expm1(x: Array) -> Array:
    """log(e^x − 1) for x >= 0."""
    with np.errstate(divide="ignore"):
        return np.where(
            x > 30.0, x + np.log1p(-np.exp(-np.maximum(x, 30.0))), np.log(np.expm1(np.minimum(x, 30.0)))
        )


def _scaled_curve(curve: Curve, orders: Array) -> Array:
    """(ℓ − 1)·ε(ℓ)."""
    return (orders - 1.0) * np.array([check_renyi(curve(float(order))) for order in orders])


def zhu_wang(order: int, *, curve: Curve, sampling_probability: float, factor_three: bool = True) -> float:
    """Poisson subsampling of any mechanism, hidden coins, add or remove one record.

    (1/(λ−1))·log{(1−q)^{λ−1}(λq−q+1) + C(λ,2)q²(1−q)^{λ−2}e^{ε(2)} + c·Σ_{ℓ>=3} C(λ,ℓ)(1−q)^{λ−ℓ}q^ℓ
    e^{(ℓ−1)ε(ℓ)}} with c = 3, or c = 1 under the condition at the top of this module.

    Arguments:
      order: λ, a whole number >= 2.
      curve: ε(ℓ) of the release, called at ℓ = 2, …, λ; must bound both directions.
      sampling_probability: q in [0, 1].
      factor_three: whether c = 3. Pass False only when the condition holds: it is not checked.

    Returns:
      an upper bound on the divergence of order λ in both directions; infinite where the curve is.

    Raises:
      ValueError: an argument is outside its range.

    Source: Zhu and Wang 2019 (ICML).
    """
    n = check_integer_order(order)
    q = validate.probability("sampling_probability", sampling_probability)
    if q == 0.0:
        return 0.0
    ell = np.arange(2.0, n + 1.0)
    growth = _scaled_curve(curve, ell)
    return zhu_wang_from_values(n, growth=growth, sampling_probability=q, factor_three=factor_three)


def zhu_wang_from_values(
    order: int, *, growth: Array, sampling_probability: float, factor_three: bool = True
) -> float:
    """`zhu_wang` from an array of (ℓ−1)·ε(ℓ) for ℓ = 2, …, λ (or more: the rest is not read).

    Raises:
      ValueError: an argument is outside its range, or the array is too short.
    """
    n = check_integer_order(order)
    q = validate.probability("sampling_probability", sampling_probability)
    if growth.size < n - 1:
        raise ValueError(f"growth must hold the orders 2 to {n}, got {growth.size} values")
    if q == 0.0:
        return 0.0
    ell = np.arange(2.0, n + 1.0)
    growth = growth[: n - 1]
    if bool(np.any(np.isinf(growth))):
        return math.inf
    # Without the e^{(ℓ−1)ε(ℓ)} and the 3 the sum would be 1, so the excess is a sum of e^x − 1 or 3e^x − 1.
    excess = _log_expm1(growth)
    if factor_three:
        excess[1:] = growth[1:] + np.log(3.0 - np.exp(-growth[1:]))
    if q == 1.0:
        return renyi_of_log_excess(float(excess[-1]), n - 1.0)
    weights = log_binomial(n, ell) + (n - ell) * math.log1p(-q) + ell * math.log(q)
    return renyi_of_log_excess(log_sum(weights + excess), n - 1.0)


def wang_balle_kasiviswanathan(
    order: int, *, curve: Curve, sampling_probability: float, pure_epsilon: float = math.inf
) -> float:
    """Sampling a fixed number of records without replacement, replace one record.

    (1/(λ−1))·log{1 + q²C(λ,2)·min[4(e^{ε(2)}−1), e^{ε(2)}·min(2, (e^{ε(∞)}−1)²)]
                  + Σ_{ℓ>=3} q^ℓ C(λ,ℓ)·e^{(ℓ−1)ε(ℓ)}·min(2, (e^{ε(∞)}−1)^ℓ)}

    Arguments:
      order: λ, a whole number >= 2.
      curve: ε(ℓ) of the release under replacement of one record, called at ℓ = 2, …, λ.
      sampling_probability: q, sample size over number of records, in [0, 1].
      pure_epsilon: ε(∞) of the release where it is pure DP; infinite otherwise.

    Returns:
      an upper bound on the divergence of order λ; infinite where the curve is.

    Raises:
      ValueError: an argument is outside its range.

    Source: Wang, Balle, Kasiviswanathan 2019 (arXiv 1808.00087, Theorem 9).
    """
    n = check_integer_order(order)
    q = validate.probability("sampling_probability", sampling_probability)
    pure = check_renyi(pure_epsilon)
    if q == 0.0 or pure == 0.0:
        return 0.0
    ell = np.arange(2.0, n + 1.0)
    growth = _scaled_curve(curve, ell)
    if bool(np.any(np.isinf(growth))):
        return math.inf
    log_gap = math.inf if math.isinf(pure) else float(_log_expm1(np.array([pure]))[0])
    terms = growth + np.minimum(math.log(2.0), ell * log_gap)
    terms[0] = min(float(terms[0]), math.log(4.0) + float(_log_expm1(growth[:1])[0]))
    bound = renyi_of_log_excess(log_sum(log_binomial(n, ell) + ell * math.log(q) + terms), n - 1.0)
    return min(
        bound, curve(float(n))
    )  # a sampled replacement is a mixture of releases: joint quasi-convexity


def visible_coins(order: float, *, curve: Curve, sampling_probability: float) -> float:
    """Poisson subsampling when the adversary sees which records were sampled.

    The release is nothing with probability 1 − q and the unsampled release otherwise:
    (1/(λ−1))·log[1 + q·(e^{(λ−1)ε(λ)} − 1)]. Exact for an exact curve; the sampling gains a factor q, never
    q².

    Arguments:
      order: λ > 1, real.
      curve: ε(λ) of the release, in the direction wanted.
      sampling_probability: q in [0, 1].

    Returns:
      the divergence of order λ in that direction.

    Raises:
      ValueError: an argument is outside its range.
    """
    order = check_order(order)
    q = validate.probability("sampling_probability", sampling_probability)
    if q == 0.0:
        return 0.0
    growth = (order - 1.0) * check_renyi(curve(order))
    if math.isinf(growth):
        return math.inf
    return renyi_of_log_excess(math.log(q) + float(_log_expm1(np.array([growth]))[0]), order - 1.0)
