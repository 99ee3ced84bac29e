"""Where the vertex pair is proved to be the worst of all pairs on the simplex.

The mechanism is rho ~ Dir(r p + α 1), p on the simplex of K classes; the vertex pair is p = e_1, p' = e_2.
"Dominates" means: its hockey-stick divergence is the largest at every ε, in both directions, and hence so is
every f-divergence, alone and after composition and sampling.

Theorem. The vertex pair dominates if K = 2, or if α >= 1/2, or if W(r) >= 0, where

    W(r) = r - r ψ(α+r) + lnΓ(α+r) - lnΓ(α),

that is, if KL(Gamma(α+r) || Gamma(α)) <= r. For α >= 1/2 the last holds for all r; for α < 1/2 it holds up
to exactly one r*(α). At fixed order λ > 1 the vertex pair's Rényi divergence is the largest also where
λ r <= 2.162 α.

The proof has three steps; docs/accountants/worst_pair.md has it in full.

1. The best test of (p, p') is increasing in the coordinates with p_i > p'_i and decreasing in the others, and
   gamma variables increase with their shape. So making the supports of p and p' disjoint only helps. (K = 2
   ends here.)
2. For disjoint supports the loss is a sum of independent losses, and it is enough that Gamma(α+r) against
   Gamma(α) dominates the product over i of Gamma(α+r p_i) against Gamma(α).
3. The log-likelihood ratio of the former is infinitely divisible with Lévy density k(x/r)/x on loss jumps -x,
   k(y) = exp(-αy)/(1-exp(-y)). For α >= 1/2, y k(y) decreases, so the Lévy measures of the parts add up to no
   more than that of the whole: the whole is the parts times an independent factor of mean one, and Jensen's
   inequality ends the proof. W(r) >= 0 is what is left to ask when only integrals of the measures compare.

α = 1/2 is the threshold: for every α < 1/2 and K >= 3 there are r where another pair has a larger divergence.
"""

from __future__ import annotations

import math

from scipy import special

from exactdp.accounting import validate

RENYI_RATIO = 2.162
"""Below the positive zero 2.16258... of x²/(1+x)² + x/(1+x) - log(1+x)."""

_EPS = 2.0**-52


def _excess(scaling: float, offset: float) -> tuple[float, float]:
    """W(r) and an allowance for its rounding."""
    r, alpha = scaling, offset
    terms = (
        r,
        -r * float(special.psi(alpha + r)),
        float(special.gammaln(alpha + r)),
        -float(special.gammaln(alpha)),
    )
    # An argument α + r that is rounded moves ψ and lnΓ by ψ' and ψ times that.
    moved = r * float(special.polygamma(1, alpha + r)) * (alpha + r)
    return math.fsum(terms), 16.0 * _EPS * (math.fsum(abs(t) for t in terms) + moved)


def _parameters(scaling: float, offset: float, num_classes: int) -> tuple[float, float, int]:
    return (
        validate.positive("scaling", scaling),
        validate.positive("offset", offset),
        validate.count("num_classes", num_classes, minimum=2),
    )


def loss_dominance_proved(*, scaling: float, offset: float, num_classes: int) -> str | None:
    """Which part of the theorem says that the vertex pair dominates every pair, or None where it is silent.

    Args:
      scaling: r > 0.
      offset: α > 0.
      num_classes: K >= 2.

    Returns:
      `"K = 2"`, `"offset >= 1/2"`, `"KL(Gamma(offset + scaling) || Gamma(offset)) <= scaling"`, or
      None (which does not mean that another pair is worse).

    Raises:
      ValueError: an argument is outside its range.
    """
    r, alpha, classes = _parameters(scaling, offset, num_classes)
    if classes == 2:
        return "K = 2"
    if alpha >= 0.5:
        return "offset >= 1/2"
    value, allowance = _excess(r, alpha)
    # For small r the allowance, which does not shrink with W ~ r, would hide a clear case: W starts at 0 with
    # slope 1 - ρψ'(α+ρ), which is positive for every ρ <= r where rψ'(α) <= 1.
    if value >= allowance or r * float(special.polygamma(1, alpha)) <= 0.999:
        return "KL(Gamma(offset + scaling) || Gamma(offset)) <= scaling"
    return None


def renyi_dominance_proved(order: float, *, scaling: float, offset: float, num_classes: int) -> str | None:
    """Which proof says that the vertex pair has the largest Rényi divergence of this order, or None.

    Args:
      order: λ > 1.
      scaling: r > 0.
      offset: α > 0.
      num_classes: K >= 2.

    Returns:
      As `loss_dominance_proved`, or `"order * scaling <= 2.162 offset"`, or None.

    Raises:
      ValueError: an argument is outside its range.
    """
    order = validate.finite("order", order)
    if order <= 1.0:
        raise ValueError(f"order must be > 1, got {order}")
    proof = loss_dominance_proved(scaling=scaling, offset=offset, num_classes=num_classes)
    if proof is None and order * scaling <= RENYI_RATIO * offset:
        proof = f"order * scaling <= {RENYI_RATIO} offset"
    return proof


def largest_proved_scaling(*, offset: float) -> float:
    """r*(α): for every r up to it the vertex pair dominates, whatever the number of classes.

    The unique zero of W for α < 1/2, rounded down; infinite for α >= 1/2.

    Args:
      offset: α > 0.

    Raises:
      ValueError: `offset` is outside its range.
    """
    alpha = validate.positive("offset", offset)
    if alpha >= 0.5:
        return math.inf

    def proved(r: float) -> bool:
        return loss_dominance_proved(scaling=r, offset=alpha, num_classes=3) is not None

    low = high = 0.99 / float(special.polygamma(1, alpha))
    while proved(high):
        low, high = high, 2.0 * high
        if high > 1e300:
            return low
    while high - low > 1e-9 * low:
        middle = 0.5 * (low + high)
        low, high = (middle, high) if proved(middle) else (low, middle)
    return low
