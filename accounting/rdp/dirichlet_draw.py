"""Rényi divergence of one draw of the Dirichlet mechanism Dir(r·p + α·1) on the simplex.

For neighbouring inputs p = e₁ and p' = e₂ (two vertices; `exactdp.accounting.worst_pair` proves that no
pair of the simplex exceeds them for α ≥ 1/2; the other K − 2 coordinates cancel) the divergence is exactly

    D_λ = [lnΓ(α−(λ−1)r) + lnΓ(α+λr) − lnΓ(α) − lnΓ(α+r)]/(λ−1),   1 < λ < 1 + α/r,

the same in both directions, since swapping the two coordinates swaps the laws. The printed bound for any pair
is λ r² ψ'(α−(λ−1)r), ψ' the trigamma function; it is never below the exact curve, because

    (λ−1)·D_λ = ∫₀^{(λ−1)r} ∫₀^{λr} ψ'(α−(λ−1)r+s+t) ds dt

and ψ' decreases. The double integral is also how the exact curve keeps its digits as r -> 0.

Sources: bound: arXiv 2607.19580v1 and Ponnoprat 2023 (arXiv 2110.01984). The exact formula follows from the
normalising constant of the Dirichlet density.
"""

from __future__ import annotations

import math

import numpy as np
from scipy import special

from exactdp.accounting import validate
from exactdp.accounting.rdp.bound import check_order

_RULE = np.polynomial.legendre.leggauss(24)
_NODES, _WEIGHTS = 0.5 * (_RULE[0] + 1.0), 0.5 * _RULE[1]  # on [0, 1]


def order_limit(scaling: float, *, offset: float) -> float:
    """1 + α/r: the divergence is infinite from this order on.

    Arguments:
      scaling: r >= 0.
      offset: α > 0.

    Raises:
      ValueError: an argument is outside its range.
    """
    r = validate.non_negative("scaling", scaling)
    alpha = validate.positive("offset", offset)
    return math.inf if r == 0.0 else 1.0 + alpha / r


def _lowest(order: float, r: float, alpha: float) -> float:
    """α − (λ−1)r, rounded down: the divergence decreases in it."""
    return alpha - (order - 1.0) * r - 4.0 * np.finfo(float).eps * alpha


def dirichlet(order: float, *, scaling: float, offset: float) -> float:
    """Exact Rényi divergence of the vertex pair (formula at the top).

    Arguments:
      order: λ > 1.
      scaling: r >= 0.
      offset: α > 0.

    Returns:
      D_λ; infinite for λ >= 1 + α/r. Relative error 1e-11, except on the last 1e-3 of the orders, where
      α − (λ−1)r is rounded down, towards the larger divergence.

    Raises:
      ValueError: an argument is outside its range.
    """
    order = check_order(order)
    r = validate.non_negative("scaling", scaling)
    alpha = validate.positive("offset", offset)
    if r == 0.0:
        return 0.0
    a = order - 1.0
    x = _lowest(order, r, alpha)
    if x <= 0.0:
        return math.inf
    if a * r > 0.5 * x:
        total = special.gammaln(x) + special.gammaln(alpha + order * r)
        return float(total - special.gammaln(alpha) - special.gammaln(alpha + r)) / a
    # Outer integral over t by Gauss-Legendre: the nearest pole of the integrand is 2 interval lengths away.
    points = x + a * r * _NODES
    if order * r > 0.5 * x:
        inner = special.psi(points + order * r) - special.psi(points)
    else:
        inner = order * r * (special.polygamma(1, points[:, None] + order * r * _NODES[None, :]) @ _WEIGHTS)
    return float(r * (inner @ _WEIGHTS))


def dirichlet_printed(order: float, *, scaling: float, offset: float) -> float:
    """The printed bound λ r² ψ'(α−(λ−1)r) on one draw, for any pair of inputs on the simplex.

    Arguments:
      order: λ > 1.
      scaling: r >= 0.
      offset: α > 0.

    Returns:
      the bound; infinite for λ >= 1 + α/r.

    Raises:
      ValueError: an argument is outside its range.

    Source: arXiv 2607.19580v1, single-draw bound, with ‖p−p'‖₂² <= 2 and ‖p−p'‖_∞ <= 1.
    """
    order = check_order(order)
    r = validate.non_negative("scaling", scaling)
    alpha = validate.positive("offset", offset)
    if r == 0.0:
        return 0.0
    x = _lowest(order, r, alpha)
    return math.inf if x <= 0.0 else float(order * r * r * special.polygamma(1, x))
