"""Exact Rényi divergences of single releases, as functions of a real order λ > 1.

Each function is D_λ(P‖Q) of the mechanism's dominating pair. All the pairs here except `finite` are symmetric
(some involution of the outcomes swaps P and Q), so that both directions have the same curve. Relative
numerical error: 1e-11 unless stated, orders next to 1 included.

The Dirichlet curve is in `exactdp.accounting.rdp.dirichlet_draw`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from exactdp.accounting import validate
from exactdp.accounting.rdp.bound import check_order
from exactdp.accounting.rdp.moments import (
    log_excess,
    log_excess_scalar,
    log_sum,
    renyi_of_log_excess,
    second_remainder,
)

_MAX_SENSITIVITY = 10_000_000


def gaussian(order: float, *, noise_multiplier: float, sensitivity: float = 1.0) -> float:
    """Gaussian noise: λΔ²/(2σ²).

    Arguments:
      order: λ > 1.
      noise_multiplier: σ, standard deviation of the noise for a sensitivity of 1, > 0.
      sensitivity: Δ, the shift between neighbours in the same unit, >= 0.

    Returns:
      D_λ(N(Δ, σ²)‖N(0, σ²)).

    Raises:
      ValueError: an argument is outside its range.

    Source: Mironov 2017 (arXiv 1702.07476, Proposition 7).
    """
    order = check_order(order)
    ratio = validate.non_negative("sensitivity", sensitivity) / validate.positive(
        "noise_multiplier", noise_multiplier
    )
    return 0.5 * order * ratio * ratio


def laplace(order: float, *, noise_multiplier: float, sensitivity: float = 1.0) -> float:
    """Laplace noise: (1/(λ−1))·log[λ/(2λ−1)·e^{(λ−1)t} + (λ−1)/(2λ−1)·e^{−λt}], t = Δ/b.

    Arguments:
      order: λ > 1.
      noise_multiplier: b, scale of the noise for a sensitivity of 1, > 0.
      sensitivity: Δ >= 0.

    Returns:
      D_λ(Lap(Δ, b)‖Lap(0, b)).

    Raises:
      ValueError: an argument is outside its range.

    Source: Mironov 2017 (arXiv 1702.07476, Proposition 6).
    """
    order = check_order(order)
    t = validate.non_negative("sensitivity", sensitivity) / validate.positive(
        "noise_multiplier", noise_multiplier
    )
    if t == 0.0:
        return 0.0
    a = order - 1.0
    if a * t > 30.0:
        return (
            t
            + (math.log(order / (2.0 * order - 1.0)) + math.log1p(a / order * math.exp(-(order + a) * t))) / a
        )
    # The linear terms of the two exponentials cancel; what is left is positive.
    inner = a * float(second_remainder(a * t)) + order * float(second_remainder(-order * t))
    return renyi_of_log_excess(math.log(order * a / (2.0 * order - 1.0) * inner) + 2.0 * math.log(t), a)


def pure_dp(order: float, *, epsilon: float) -> float:
    """Randomised response, the worst (ε, 0)-DP mechanism.

    (1/(λ−1))·log[(e^{λε} + e^{(1−λ)ε})/(1 + e^ε)]; the excess over 1 of the bracket is
    2 sinh²((λ−1)ε/2) + tanh(ε/2)·sinh((λ−1)ε), which is what is computed.

    Arguments:
      order: λ > 1.
      epsilon: ε >= 0 of the pure guarantee.

    Returns:
      the largest D_λ among (ε, 0)-indistinguishable pairs.

    Raises:
      ValueError: an argument is outside its range.

    Source: Mironov 2017 (arXiv 1702.07476), on randomised response.
    """
    order = check_order(order)
    epsilon = validate.non_negative("epsilon", epsilon)
    if epsilon == 0.0:
        return 0.0
    a = order - 1.0
    if a * epsilon > 30.0:
        shift = -math.log1p(math.exp(-epsilon)) + math.log1p(math.exp(-(order + a) * epsilon))
        return epsilon + shift / a
    sinh = math.sinh(0.5 * a * epsilon)
    return math.log1p(2.0 * sinh * sinh + math.tanh(0.5 * epsilon) * math.sinh(a * epsilon)) / a


def finite(order: float, *, p: Sequence[float], q: Sequence[float]) -> float:
    """Two probability vectors: (1/(λ−1))·log Σ pᵢ^λ qᵢ^{1−λ}, P against Q.

    Swap the arguments for the other direction.

    Arguments:
      order: λ > 1.
      p: probabilities of P, summing to 1 within 1e-9.
      q: probabilities of Q, as many, summing to 1 within 1e-9.

    Returns:
      D_λ(P‖Q); infinite where some pᵢ > 0 = qᵢ.

    Raises:
      ValueError: an argument is outside its range, or the lengths differ.
    """
    order = check_order(order)
    first = np.array([validate.probability("p", value) for value in p])
    second = np.array([validate.probability("q", value) for value in q])
    if first.size == 0 or first.size != second.size:
        raise ValueError(f"p and q must have one length >= 1, got {first.size} and {second.size}")
    for name, vector in (("p", first), ("q", second)):
        if abs(math.fsum(vector) - 1.0) > 1e-9:
            raise ValueError(f"{name} must sum to 1 within 1e-9, got {math.fsum(vector)}")
    if bool(np.any((second == 0.0) & (first > 0.0))):
        return math.inf
    a = order - 1.0
    kept = first > 0.0
    first = first / math.fsum(first)
    second = second / math.fsum(second)
    first_kept, second_kept = first[kept], second[kept]
    step = (first_kept - second_kept) / second_kept
    with np.errstate(divide="ignore"):
        loss = np.where(
            np.abs(step) < 0.5, np.log1p(np.maximum(step, -0.5)), np.log(first_kept) - np.log(second_kept)
        )
        terms = np.log(first_kept) + log_excess(loss, a)
    # Outcomes of Q alone: Σ_kept q = 1 − rest, so the identity E_P[e^{−L}] = 1 misses a·rest.
    rest = math.fsum(second[~kept])
    excess = log_sum(terms)
    if rest == 0.0 or excess > 30.0:
        return renyi_of_log_excess(excess, a)
    return max(0.0, math.log1p(math.exp(excess) + a * rest)) / a


def discrete_gaussian(order: float, *, noise_multiplier: float, sensitivity: int = 1) -> float:
    """Discrete Gaussian noise on the integers, weights e^{−x²/(2σ²)}, shifted by Δ.

    D_λ = λΔ²/(2σ²) + (1/(λ−1))·log[θ((λ−1)Δ)/θ(0)], θ(c) = Σ_x e^{−(x+c)²/(2σ²)}, of period 1.

    The weights are log-concave, so that every likelihood-ratio test is a threshold and a smaller integer
    shift is dominated by Δ. The sums stop where the terms left out are below 1e-40 of the first one: they
    fall at least geometrically there.

    Arguments:
      order: λ > 1.
      noise_multiplier: σ > 0 (the parameter; the variance is slightly smaller).
      sensitivity: Δ, a whole number >= 0.

    Returns:
      D_λ of the pair shifted by Δ; never above the continuous Gaussian's.

    Raises:
      ValueError: an argument is outside its range.

    Source: Canonne, Kamath, Steinke 2020 (arXiv 2004.00010).
    """
    order = check_order(order)
    sigma = validate.positive("noise_multiplier", noise_multiplier)
    shift = validate.count("sensitivity", sensitivity)
    if shift == 0:
        return 0.0
    a = order - 1.0
    fraction = math.fmod(a * shift, 1.0)
    return 0.5 * order * (shift / sigma) ** 2 + _log_theta_ratio(fraction, sigma) / a


def _log_theta_ratio(c: float, sigma: float) -> float:
    """log[θ(c)/θ(0)] <= 0, without cancellation as c -> 0."""
    c = abs(c - round(c))
    if c == 0.0:
        return 0.0
    if sigma >= 0.3:
        # Poisson summation: θ(c) ∝ 1 + 2Σ e^{−2π²σ²k²} cos(2πkc).
        k = np.arange(1.0, 2.0 + math.ceil(2.2 / sigma))
        weights = np.exp(-2.0 * (math.pi * sigma * k) ** 2)
        excess = -4.0 * np.sum(weights * np.sin(math.pi * k * c) ** 2)
        return math.log1p(float(excess / (1.0 + 2.0 * np.sum(weights))))
    x = np.arange(1.0, 7.0)  # σ < 0.3: e^{−36/(2·0.09)} is below 1e-86
    half = 0.5 / (sigma * sigma)
    with np.errstate(under="ignore"):
        weights = np.exp(-half * x * x)
        log_zero = math.log1p(2.0 * float(np.sum(weights)))
        if half * c > 0.5:
            return log_sum(-half * np.concatenate([[c], x - c, x + c]) ** 2) - log_zero
        pairs = weights * (
            4.0 * np.exp(-half * c * c) * np.sinh(half * c * x) ** 2 + 2.0 * math.expm1(-half * c * c)
        )
        return math.log1p(float(math.expm1(-half * c * c) + np.sum(pairs)) / math.exp(log_zero))


def discrete_laplace(order: float, *, noise_multiplier: float, sensitivity: int = 1) -> float:
    """Discrete Laplace (two-sided geometric) noise, weights e^{−|x|/b}, shifted by Δ.

    The loss is Δ/b on x <= 0, (Δ−2x)/b between 0 and Δ, −Δ/b from Δ on; the sum over it is finite and exact.

    Arguments:
      order: λ > 1.
      noise_multiplier: b > 0.
      sensitivity: Δ, a whole number from 0 to 10 000 000; the cost is linear in it.

    Returns:
      D_λ of the pair shifted by Δ.

    Raises:
      ValueError: an argument is outside its range.
    """
    order = check_order(order)
    b = validate.positive("noise_multiplier", noise_multiplier)
    shift = validate.count("sensitivity", sensitivity)
    if shift > _MAX_SENSITIVITY:
        raise ValueError(f"sensitivity must be <= {_MAX_SENSITIVITY}, got {sensitivity}")
    if shift == 0:
        return 0.0
    a = order - 1.0
    t = 1.0 / b
    # P(x) = (1−e^{−t})/(1+e^{−t})·e^{−t|x|}; the two tails sum to 1/(1+e^{−t}) and e^{−tΔ}/(1+e^{−t}).
    log_tail = -math.log1p(math.exp(-t))
    terms = [
        np.array(
            [
                log_tail + log_excess_scalar(shift * t, a),
                log_tail - shift * t + log_excess_scalar(-shift * t, a),
            ]
        )
    ]
    if shift > 1:
        x = np.arange(1.0, float(shift))
        terms.append(log_tail + math.log(-math.expm1(-t)) - t * x + log_excess((shift - 2.0 * x) * t, a))
    return renyi_of_log_excess(log_sum(np.concatenate(terms)), a)
