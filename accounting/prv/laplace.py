"""delta(epsilon) of equal Laplace releases in closed form.

With c the largest loss of a step, M(z) = E_P[e^{zL}] at z = s - 1/2 is

    e^{-c/2} / 2 * (e^{sc} (1 + 1 / 2s) + e^{-sc} (1 - 1 / 2s)),

so that the contour integral of M(z)^n e^{-z eps} / (z (z + 1)) splits by the binomial theorem into

    delta(eps) = 2^-n e^{-(nc - eps)/2} sum_m C(n, m) R_m(x_m),    x_m = (n - 2m) c - eps,

over the m with x_m > 0, where the residues are R_m(x) = sum_k b_k 2^-k x^{k+1} / (k+1)! with the integers
b_k = [w^k] (1 + w)^{n-m-1} (1 - w)^{m-1}. The terms cancel: the sum is taken in integers, to a precision that
makes its error a rounding of the float64 result.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator
from fractions import Fraction

_EPS = 2.0**-52
_MOST_STEPS = 100
_MOST_LOSS = 500.0  # of the composition: beyond it the series is long and the factors leave float64
_GUARD = 64  # bits of the sum beyond its error
_MOST_BITS = 1200  # by which the terms may exceed the sum: then delta is below 1e-300


def hockey_stick(width: Fraction, count: int) -> Callable[[float], tuple[float, float]] | None:
    """epsilon -> (delta, bound of its absolute error) of `count` releases; None where it would be slow.

    Args:
      width: c, the largest loss of one release, > 0.
      count: n >= 1.
    """
    if count > _MOST_STEPS or count * width > _MOST_LOSS:
        return None
    top = count * width
    rows, extra = _Rows(count), 0

    def value(epsilon: float) -> tuple[float, float]:
        nonlocal extra
        if epsilon >= top:
            return 0.0, 0.0
        x = float(top - Fraction(epsilon))
        if x > 2.0 * _MOST_LOSS:
            # Every loss is above epsilon: delta = 1 - e^epsilon.
            return -math.expm1(epsilon), 4 * _EPS
        # Each R_m errs by what x (2 units), the products (2 each) and the end of the series (1) do.
        log2_error = count + 0.5 * x / math.log(2.0) + math.log2(2.0 ** (count + 1) + 2.0 * x + 3.0)
        while True:
            bits = math.ceil(log2_error) + _GUARD + extra
            total = _sum(width, rows, epsilon, bits)
            short = _GUARD - (total.bit_length() - math.ceil(log2_error)) if total > 0 else 128
            if short <= 4:
                break
            if extra > _MOST_BITS:
                return 0.0, math.ulp(0.0)
            extra += short
        shift = max(total.bit_length() - 64, 0)
        delta = math.ldexp((total >> shift) * math.exp(-0.5 * x), shift - bits - count)
        return delta, delta * _EPS * (4.0 + x) + math.ulp(0.0)

    return value


def _sum(width: Fraction, rows: _Rows, epsilon: float, bits: int) -> int:
    """sum_m C(n, m) R_m(x_m) in units of 2^-bits."""
    count = rows.count
    numerator, denominator = epsilon.as_integer_ratio()
    shift = (numerator << bits) // denominator
    total, choose = 0, 1
    for m in range(count + 1):
        x = ((count - 2 * m) * width.numerator << bits) // width.denominator - shift
        if x <= 0:
            break
        acc = 0
        for k, b in rows.backwards(m, x / (1 << bits), bits):
            acc = (b << bits) + (acc * x >> bits) // (2 * (k + 2))
        total += choose * (acc * x >> bits)
        choose = choose * (count - m) // (m + 1)
    return total


class _Rows:
    """The b_k of each R_m, computed as far as they are asked for."""

    def __init__(self, count: int) -> None:
        self.count = count
        self._finite: list[list[int]] = []
        self._more = _coefficients(count)
        self._series = [(_endless(count, sign), list[int]()) for sign in (1, -1)]

    def backwards(self, m: int, x: float, bits: int) -> Iterator[tuple[int, int]]:
        """(k, b_k) of R_m, the largest k first; an endless series ends where its rest is below a unit."""
        if 0 < m < self.count:
            while len(self._finite) < m:
                self._finite.append(next(self._more))
            row, terms = self._finite[m - 1], self.count - 1
        else:
            more, row = self._series[m // self.count]
            terms = _terms(x, self.count, bits)
            row.extend(itertools.islice(more, max(0, terms - len(row))))
        return ((k, row[k]) for k in range(terms - 1, -1, -1))


def _terms(x: float, count: int, bits: int) -> int:
    """How many terms leave a rest sum_k 2^{n-1} (x/2)^k 2 / k! below 2^-bits."""
    half, log2_term, k = 0.5 * x, float(count + 1), 0
    while log2_term > -bits or k < 2.0 * half:
        k += 1
        log2_term += math.log2(half / k)
    return k + 1


def _coefficients(count: int) -> Iterator[list[int]]:
    """The b_k of R_m for m = 1, 2, ..., n - 1: each polynomial from the one before."""
    b = [math.comb(count - 2, k) for k in range(count - 1)]
    while True:
        yield b
        b = b.copy()
        for k in range(count - 2, 0, -1):  # times 1 - w
            b[k] -= b[k - 1]
        for k in range(1, count - 1):  # by 1 + w
            b[k] -= b[k - 1]


def _endless(count: int, sign: int) -> Iterator[int]:
    """The b_k of R_0 (sign 1) and R_n (sign -1): (1 + sign w)^{n-1} / (1 - sign w)."""
    total = 0
    for k in itertools.count():
        total = sign * total + sign**k * math.comb(count - 1, k)
        yield total
