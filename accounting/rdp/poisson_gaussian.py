"""Exact Rényi divergence of the Poisson-subsampled Gaussian with hidden coins, for real orders.

With base N(0, σ²), shifted N(1, σ²) and mixture M = (1−q)·N(0, σ²) + q·N(1, σ²),

    remove:  D_λ(M‖N(0, σ²)) = log A_λ/(λ−1),   A_λ = E_{z~N(0,σ²)}[t(z)^λ]
    add:     D_λ(N(0, σ²)‖M) = log B_λ/(λ−1),   B_λ = E_{z~N(0,σ²)}[t(z)^{1−λ}]

where t(z) = 1 − q + q·e^{(2z−1)/(2σ²)}. B_λ <= A_λ for every λ > 1, so "remove" alone is the Rényi
guarantee for add-or-remove-one neighbours.

**Integer orders** use the binomial sum Σ_k C(λ,k)(1−q)^{λ−k}q^k·(e^{k(k−1)/(2σ²)} − 1) = A_λ − 1, all of
whose terms are >= 0. **Other orders** use the trapezoid rule on A_λ − 1 = E[t·k(λ−1, log t)], again with a
positive integrand (see `moments`). The integrand is analytic for |Im z| < πσ², where the logarithm of t
branches, so that the rule with step h errs by about e^{−2πη/h} for a strip of half-width η inside; h is
chosen for e^{−45}. The window ends where the Gaussian factor has fallen by e^{−72} from a point inside it.

Numerical error: 1e-11 relative, checked against 50-digit quadrature from λ = 1 + 1e-8 to 1e4. Where an
order that is not whole would need more than 2 million nodes, log A is interpolated between the neighbouring
integers: it is convex in λ, so that the result is an upper bound there.

Source: Mironov, Talwar, Zhang 2019 (arXiv 1908.10530, section 3.3; the quadrature is ours).
"""

from __future__ import annotations

import math

import numpy as np
from scipy import special

from exactdp.accounting import validate
from exactdp.accounting.rdp.bound import check_order
from exactdp.accounting.rdp.curves import gaussian
from exactdp.accounting.rdp.moments import Array, log_excess, log_sum, renyi_of_log_excess

DIRECTIONS = ("remove", "add")

_MAX_NODES = 2_000_000
_MAX_INTEGER_ORDER = 5_000_000
_EXPONENT = 45.0  # the trapezoid rule's target, in powers of e
_MARGIN = 13.0  # standard deviations kept beyond the outermost peak


def subsampled_gaussian(
    order: float, *, noise_multiplier: float, sampling_probability: float, direction: str = "remove"
) -> float:
    """Rényi divergence of one subsampled Gaussian step (formulas at the top).

    Arguments:
      order: λ > 1, real.
      noise_multiplier: σ > 0, standard deviation of the noise over the sensitivity.
      sampling_probability: q in [0, 1].
      direction: "remove" (mixture against base; the larger) or "add" (base against mixture).

    Returns:
      the divergence; 0 for q = 0 and λ/(2σ²) for q = 1. Above order 5 million, λ/(2σ²), which is an upper
      bound for every q.

    Raises:
      ValueError: an argument is outside its range.

    Source: Mironov, Talwar, Zhang 2019 (arXiv 1908.10530).
    """
    order = check_order(order)
    sigma = validate.positive("noise_multiplier", noise_multiplier)
    q = validate.probability("sampling_probability", sampling_probability)
    validate.one_of("direction", direction, DIRECTIONS)
    if q == 0.0:
        return 0.0
    plain = gaussian(order, noise_multiplier=sigma)
    if q == 1.0 or order > _MAX_INTEGER_ORDER:
        return plain
    a = order - 1.0
    if direction == "add":
        log_s = _add(order, sigma, q)
        # B <= A: where the window is too long for quadrature, the other direction bounds this one.
        if log_s is None:
            return subsampled_gaussian(order, noise_multiplier=sigma, sampling_probability=q)
        return min(plain, renyi_of_log_excess(log_s, a))
    if order == math.floor(order):
        return min(plain, renyi_of_log_excess(_integer(int(order), sigma, q), a))
    log_s = _real(order, sigma, q)
    if log_s is None:
        low = math.floor(order)
        weight = order - low
        below = (low - 1.0) * renyi_of_log_excess(_integer(low, sigma, q), low - 1.0) if low > 1 else 0.0
        above = low * renyi_of_log_excess(_integer(low + 1, sigma, q), float(low))
        return min(plain, ((1.0 - weight) * below + weight * above) / a)
    return min(plain, renyi_of_log_excess(log_s, a))


def _integer(order: int, sigma: float, q: float) -> float:
    """log(A_λ − 1) by the binomial sum."""
    k = np.arange(2.0, order + 1.0)
    exponent = 0.5 * k * (k - 1.0) / (sigma * sigma)
    binomial = special.gammaln(order + 1.0) - special.gammaln(k + 1.0) - special.gammaln(order - k + 1.0)
    with np.errstate(over="ignore", under="ignore"):
        growth = np.where(exponent > 30.0, exponent, np.log(np.expm1(np.minimum(exponent, 30.0))))
    return log_sum(binomial + (order - k) * math.log1p(-q) + k * math.log(q) + growth)


def _log_ratio(y: Array, sigma: float, q: float) -> Array:
    """Log of t at z = σy."""
    shift = y / sigma - 0.5 / (sigma * sigma)
    with np.errstate(over="ignore", under="ignore"):
        value = np.log1p(q * np.expm1(np.minimum(shift, 300.0)))
        if q > 0.5:  # t may be next to 0: add positive terms instead
            value = np.where(shift < -1.0, np.log(1.0 - q + q * np.exp(np.minimum(shift, 0.0))), value)
        far = math.log(q) + shift + np.log1p((1.0 - q) / q * np.exp(-np.maximum(shift, 300.0)))
    return np.where(shift < 300.0, value, far)


def _real(order: float, sigma: float, q: float) -> float | None:
    """log(A_λ − 1) by the trapezoid rule in y = z/σ; None when it would need too many nodes."""
    a = order - 1.0
    step = min(0.6, 2.0 * math.pi * 0.9 * math.pi * sigma / _EXPONENT)
    low, high = -_MARGIN, max(order, 2.0) / sigma + _MARGIN
    if (high - low) / step > _MAX_NODES:
        return None
    y = np.arange(low, high + step, step)
    loss = _log_ratio(y, sigma, q)
    return log_sum(loss + log_excess(loss, a) - 0.5 * y * y) + math.log(step) - 0.5 * math.log(2.0 * math.pi)


def _add(order: float, sigma: float, q: float) -> float | None:
    """log(B_λ − 1) by the trapezoid rule; None when it would need too many nodes."""
    a = order - 1.0
    # |t| falls to t·cos(θ/2) at Im z = θσ², which a negative power turns into a factor e^{aθ²/8}.
    theta = min(0.5 * math.pi, math.sqrt(28.0 / a))
    step = min(0.6, 2.0 * math.pi * theta * sigma / (_EXPONENT + 5.0))
    low, high = -a / sigma - _MARGIN, 2.0 / sigma + _MARGIN
    # t >= 1 − q, so that the peak cannot lie further out than where t^{−a} could still pay for the Gaussian.
    low = max(low, -math.sqrt(2.0 * a * -math.log1p(-q)) - _MARGIN)
    if (high - low) / step > _MAX_NODES:
        return None
    y = np.arange(low, high + step, step)
    terms = log_excess(-_log_ratio(y, sigma, q), a)
    return log_sum(terms - 0.5 * y * y) + math.log(step) - 0.5 * math.log(2.0 * math.pi)
