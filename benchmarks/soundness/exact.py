"""Closed forms: the Gaussian, and the Laplace mechanism composed."""

from __future__ import annotations

import functools
import math

from flint import arb, ctx, fmpz_poly

LN2 = math.log(2.0)


def normal_tail(x: arb) -> arb:
    """P(N(0, 1) > x)."""
    return (x / arb(2).sqrt()).erfc() / 2


def gaussian_delta(mu: arb, epsilon: arb) -> arb:
    """Hockey-stick divergence of N(mu, 1) against N(0, 1)."""
    return normal_tail(epsilon / mu - mu / 2) - epsilon.exp() * normal_tail(epsilon / mu + mu / 2)


@functools.lru_cache(maxsize=4)
def _polynomials(count: int) -> list[list[int]]:
    """Coefficients of binom(T, m) (1 + t)^m (1 - t)^(T - m), m = 0, ..., T."""
    plus, minus = fmpz_poly([1, 1]), fmpz_poly([1, -1])
    return [
        [int(c) for c in (plus**m * minus ** (count - m) * math.comb(count, m)).coeffs()]
        for m in range(count + 1)
    ]


def laplace_delta(noise_multiplier: float, count: int, epsilon: arb) -> arb:
    """delta(epsilon) of `count` Laplace releases (both directions are equal).

    With t = 1/(1 + 2z), M(z) = (e^{z d} (1 + t) + e^{-(z + 1) d} (1 - t)) / 2, d = 1/b. The T-th power is a
    sum of e^{z c} t^k, whose contour integrals I_k(c) against 1/(z (z + 1)) = 4 t^2 / (1 - t^2) obey
    I_k - I_{k+2} = 2 e^{-c/2} (c/2)^{k+1} / (k+1)!, I_0 = 1 - e^{-c}, I_1 = (1 - e^{-c/2})^2.
    """
    if count == 0:
        return max(arb(0), 1 - epsilon.exp())
    before = ctx.prec
    ctx.prec = before + int(3.2 * count) + 64
    try:
        d = 1 / arb(noise_multiplier)
        total = arb(0)
        for m, coefficients in enumerate(_polynomials(count)):
            c = d * (2 * m - count) - epsilon
            if not c > 0:
                continue
            half = (-c / 2).exp()
            integrals = [1 - half * half, (1 - half) ** 2]
            term = half * c  # 2 e^{-c/2} (c/2)^{k+1} / (k+1)! at k = 0
            for k in range(count - 1):
                integrals.append(integrals[k] - term)
                term = term * c / (2 * (k + 2))
            inner = arb(0)
            for a, b in zip(coefficients, integrals, strict=False):
                inner += a * b
            total += inner * (-d * (count - m)).exp()
        total = total / arb(2) ** count
    finally:
        ctx.prec = before
    return +total


def visible_delta(base: list[arb] | object, count: int, q: float, terms: int) -> arb:
    """sum_k Binomial(T, q)(k) base(k), k = 1, ..., terms; `base(k)` is delta after k releases."""
    rate = arb(q)
    weight = (1 - rate) ** count
    total = arb(0)
    for k in range(1, min(count, terms) + 1):
        weight = weight * rate * (count - k + 1) / ((1 - rate) * k)
        total += weight * base(k)  # type: ignore[operator]
    return total
