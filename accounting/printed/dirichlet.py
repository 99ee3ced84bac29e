"""Dirichlet softmax training, arXiv 2607.19580v1: the bound as printed and its repairs.

One step samples a Poisson batch at rate q and draws rho ~ Dir(r·softmax(f(x)) + α) per example. The printed
rule for T steps is, over whole orders λ from 2 to below 1 + α/r,

    ε_o(λ) = T·Z(λ) + C(λ),    ε = min_λ ε_o(λ)    (Theorem 10, Eq. 1),

with Z the bound of Zhu and Wang on the Poisson-subsampled draw, whose Rényi curve is λr²ψ'(α−(λ−1)r), and C
the conversion term of Lemma 13. r* of Table 7 is the largest r with ε <= the target.

What is computed here is the paper's rule and its variants; the exact values are computed by the exact
accountant.
None of them is a certificate for released weights: the weight update is not a function of rho alone.
"""

from __future__ import annotations

import dataclasses
import math

import numpy as np
from scipy import special

from exactdp.accounting import validate
from exactdp.accounting.printed.source import PrintedBound, Repair, Source
from exactdp.accounting.rdp import conversion as conversions
from exactdp.accounting.rdp.bound import UpperBound, check_order
from exactdp.accounting.rdp.dirichlet_draw import dirichlet, dirichlet_printed, order_limit
from exactdp.accounting.rdp.general_bounds import zhu_wang_from_values
from exactdp.accounting.rdp.moments import Array
from exactdp.accounting.threat import Adjacency, Coins, ThreatModel

CONVERSIONS = ("printed", *conversions.CONVERSIONS)
CURVES = {"printed": dirichlet_printed, "exact": dirichlet}

_DENSE = 512  # every whole order up to here; beyond, orders 1 % apart
_LARGEST_ORDER = 20_000
_SMALLEST_SCALING = 1e-6  # of the offset

_ARXIV, _VERSION = "2607.19580", 1
_ASSUMED = ThreatModel(
    Adjacency.REPLACE_LABEL_PUBLIC, Coins.HIDDEN, "the Dirichlet draws of the sampled examples, one per step"
)

PRINTED = PrintedBound(
    name="printed",
    source=Source(_ARXIV, _VERSION, "Theorem 10, Eq. (1), Lemma 13"),
    formula="T*Poisson(λ r² ψ'(α-(λ-1)r)) + [log(λ-1) - log δ + λ log λ]/(λ-1)",
    threat_model=_ASSUMED,
    note="Lemma 13 exceeds the conversion that it resembles: valid, but >= 3.90 at δ = 1e-5.",
)

REPAIRED_CONVERSION = Repair(
    name="repaired conversion",
    corrects=PRINTED.name,
    defect="Lemma 13 differs by two signs and a factor from the conversion that reproduces Table 7",
    formula="T*Poisson(λ r² ψ'(α-(λ-1)r)) + log((λ-1)/λ) - (log δ + log λ)/(λ-1)",
    threat_model=_ASSUMED,
    source=Source("1905.09982", 3, "Theorem 21"),
)

MIRONOV_CONVERSION = Repair(
    name="Mironov conversion",
    corrects=PRINTED.name,
    defect="tests the guess that the older conversion explains Table 7: it does not",
    formula="T*Poisson(λ r² ψ'(α-(λ-1)r)) + log(1/δ)/(λ-1)",
    threat_model=_ASSUMED,
    source=Source("1702.07476", 3, "Proposition 3"),
)

EXACT_RENYI = Repair(
    name="exact Rényi curve",
    corrects=REPAIRED_CONVERSION.name,
    defect="the trigamma bound and the factor 3 are loose for the vertex pair, which is symmetric",
    formula="T*log Σ C(λ,l)(1-q)^(λ-l) q^l Γ(α-(l-1)r)Γ(α+lr)/(Γ(α)Γ(α+r))/(λ-1), repaired conversion",
    threat_model=_ASSUMED,
    source=Source(_ARXIV, _VERSION, "single-draw bound, for the pair of two vertices", "derived"),
)

ENTRIES = (PRINTED, REPAIRED_CONVERSION, MIRONOV_CONVERSION, EXACT_RENYI)


@dataclasses.dataclass(frozen=True)
class Setting:
    """The one recovered cell of Table 7 (CIFAR-10, target ε = 1).

    Attributes:
      offset: α.
      sampling_probability: q.
      num_steps: T.
      delta: δ.
      epsilon: the target ε.
      scaling: r* as printed.
    """

    offset: float = 3.0
    sampling_probability: float = 0.005
    num_steps: int = 20_000
    delta: float = 1e-5
    epsilon: float = 1.0
    scaling: float = 0.235


TABLE_7_CIFAR10 = Setting()
TABLE_7_TARGETS = (0.5, 1.0, 2.0, 3.0, 4.0)


def conversion_term(order: float, *, delta: float, conversion: str = "printed") -> float:
    """C(λ), what the conversion to (ε, δ) adds to the Rényi divergence.

    printed (Lemma 13): [log(λ−1) − log δ + λ log λ]/(λ−1)
    balle: log((λ−1)/λ) − (log δ + log λ)/(λ−1)
    mironov: log(1/δ)/(λ−1)

    Arguments:
      order: λ > 1, real.
      delta: δ in (0, 1).
      conversion: "printed", "balle" or "mironov" ("optimal" is not a sum, so that it has no such term).

    Returns:
      C(λ), which may be negative for "balle".

    Raises:
      ValueError: an argument is outside its range.

    Source: arXiv 2607.19580v1, Lemma 13; see `exactdp.accounting.rdp.conversion` for the other two.
    """
    order = check_order(order)
    log_delta = math.log(validate.open_probability("delta", delta))
    validate.one_of("conversion", conversion, ("printed", "balle", "mironov"))
    a = order - 1.0
    if conversion == "printed":
        return (math.log(a) - log_delta + order * math.log(order)) / a
    if conversion == "balle":
        return math.log(a / order) - (log_delta + math.log(order)) / a
    return -log_delta / a


def least_printed_term(delta: float) -> UpperBound:
    """The least printed C(λ) over real λ >= 2: no ε below it can come out of the printed rule.

    Orders from 2 on, as in the paper's rule. There the printed term exceeds the Balle one, by
    [2λ log λ − (λ−2) log(λ−1)]/(λ−1) > 0, so that it is valid though loose. Towards λ = 1 it would fall
    without limit and be no bound at all.

    Arguments:
      delta: δ in (0, 1).

    Returns:
      the minimum and the order where it is attained; 0 where the term reaches 0 or less (δ close to 1).

    Raises:
      ValueError: `delta` is outside (0, 1).
    """
    validate.open_probability("delta", delta)

    def term(log_a: float) -> float:
        return conversion_term(1.0 + math.exp(log_a), delta=delta)

    grid = np.linspace(0.0, math.log(1e6), 400)
    best = int(np.argmin([term(float(point)) for point in grid]))
    low, high = float(grid[max(best - 1, 0)]), float(grid[min(best + 1, grid.size - 1)])
    ratio = 0.5 * (math.sqrt(5.0) - 1.0)
    while high - low > 1e-9:
        left, right = high - ratio * (high - low), low + ratio * (high - low)
        low, high = (low, right) if term(left) <= term(right) else (left, high)
    middle = 0.5 * (low + high)
    return UpperBound(max(0.0, term(middle)), 1.0 + math.exp(middle))


def epsilon(
    scaling: float,
    *,
    offset: float,
    sampling_probability: float,
    num_steps: int,
    delta: float,
    conversion: str = "printed",
    factor_three: bool = True,
    curve: str = "printed",
) -> UpperBound:
    """ε by the paper's rule: min over whole orders λ in [2, 1 + α/r) of T·Z(λ) + C(λ).

    Arguments:
      scaling: r > 0.
      offset: α > 0.
      sampling_probability: q in [0, 1].
      num_steps: T, whole, >= 0.
      delta: δ in (0, 1).
      conversion: "printed" (Lemma 13), "balle", "mironov" or "optimal".
      factor_three: whether Z keeps the factor 3 of Zhu and Wang's theorem for any mechanism. It may be
        dropped for
        the vertex pair, which is symmetric (see `exactdp.accounting.rdp.general_bounds`).
      curve: Rényi curve of one draw, "printed" (λr²ψ'(α−(λ−1)r)) or "exact" (vertex pair).

    Returns:
      the bound and its order; infinite with order NaN where r >= α, so that no whole order is allowed. Up
      to order 512 every order is tried, beyond it orders 1 % apart up to 20 000: any of them is a valid
      bound.

    Raises:
      ValueError: an argument is outside its range.

    Source: arXiv 2607.19580v1, Theorem 10 and Eq. (1). Numerical error: 1e-10 relative.
    """
    r = validate.positive("scaling", scaling)
    alpha = validate.positive("offset", offset)
    q = validate.probability("sampling_probability", sampling_probability)
    steps = validate.count("num_steps", num_steps)
    delta = validate.open_probability("delta", delta)
    validate.one_of("conversion", conversion, CONVERSIONS)
    validate.one_of("curve", curve, CURVES)
    renyi_curve = CURVES[curve]
    limit = order_limit(r, offset=alpha)
    best = UpperBound(math.inf, math.nan)
    growth: Array = np.empty(0)
    order = 2
    while order < limit and order <= _LARGEST_ORDER:
        if order - 1 > growth.size:
            last = min(2 * order + 64, _LARGEST_ORDER)
            more = np.arange(growth.size + 2.0, last + 1.0)
            values = [renyi_curve(float(ell), scaling=r, offset=alpha) for ell in more]
            growth = np.concatenate([growth, (more - 1.0) * np.array(values)])
        step = zhu_wang_from_values(order, growth=growth, sampling_probability=q, factor_three=factor_three)
        renyi = steps * step if steps else 0.0
        if math.isinf(renyi):
            break
        if conversion == "printed":
            value = max(0.0, renyi + conversion_term(float(order), delta=delta))
        else:
            value = conversions.epsilon(float(order), renyi=renyi, delta=delta, conversion=conversion)
        if value < best.value:
            best = UpperBound(value, float(order))
        # The Rényi sum grows with the order; every conversion returns at least it + log(1 − δ), and the
        # printed one at least it + log λ.
        if renyi + (math.log(order) if conversion == "printed" else math.log1p(-delta)) > best.value:
            break
        order += 1 if order < _DENSE else order // 100
    return best


def largest_scaling(
    epsilon: float,
    *,
    offset: float,
    sampling_probability: float,
    num_steps: int,
    delta: float,
    conversion: str = "printed",
    factor_three: bool = True,
    curve: str = "printed",
) -> float | None:
    """r*, the largest scaling whose ε by the paper's rule is at most the target.

    Arguments:
      epsilon: target ε > 0.
      offset: α > 0.
      sampling_probability: q in [0, 1].
      num_steps: T.
      delta: δ in (0, 1).
      conversion: as in `epsilon` of this module.
      factor_three: as there.
      curve: as there.

    Returns:
      r*, rounded down by at most 1e-9 of itself, so that the target holds there; None where no r >= 1e-6·α
      meets the target.

    Raises:
      ValueError: an argument is outside its range.

    Source: arXiv 2607.19580v1, Table 7.
    """
    target = validate.positive("epsilon", epsilon)
    alpha = validate.positive("offset", offset)

    def holds(r: float) -> bool:
        bound = _epsilon(
            r,
            offset=alpha,
            sampling_probability=sampling_probability,
            num_steps=num_steps,
            delta=delta,
            conversion=conversion,
            factor_three=factor_three,
            curve=curve,
        )
        return bound.value <= target

    smallest, high = _SMALLEST_SCALING * alpha, alpha  # at r = α no whole order is left
    low = 0.5 * high  # from the large end: small scalings allow long lists of orders
    while not holds(low):
        high, low = low, 0.5 * low
        if low < smallest:
            return None
    while high - low > 1e-9 * high:
        middle = 0.5 * (low + high)
        if holds(middle):
            low = middle
        else:
            high = middle
    return low


_epsilon = epsilon  # `largest_scaling` has an argument of that name


def kappa(scaling: float, *, offset: float, true_class_probability: float) -> float:
    """κ = r·s·ψ'(r·s + α), by which the expected gradient of the private loss shrinks the cross-entropy's.

    Arguments:
      scaling: r >= 0.
      offset: α > 0.
      true_class_probability: s, the softmax output at the label, in [0, 1]; the paper takes 0.9 as typical.

    Raises:
      ValueError: an argument is outside its range.

    Source: arXiv 2607.19580v1, Theorem 11 (for the gradient taken through the draw).
    """
    product = validate.non_negative("scaling", scaling) * validate.probability(
        "true_class_probability", true_class_probability
    )
    return product * float(special.polygamma(1, product + validate.positive("offset", offset)))


def effective_learning_rate(
    learning_rate: float, *, scaling: float, offset: float, true_class_probability: float = 0.9
) -> float:
    """γ_eff = γ·κ.

    Arguments:
      learning_rate: γ >= 0.
      scaling: r >= 0.
      offset: α > 0.
      true_class_probability: s in [0, 1].

    Raises:
      ValueError: an argument is outside its range.

    Source: arXiv 2607.19580v1, Theorem 11 and the figures drawn against γ_eff.
    """
    rate = validate.non_negative("learning_rate", learning_rate)
    return rate * kappa(scaling, offset=offset, true_class_probability=true_class_probability)
