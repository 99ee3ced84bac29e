r"""Certified lower and upper envelopes of a trade-off curve from certified values of delta.

For a pair (P, Q), the null hypothesis Q and x >= 0 let

    C(x) = 1 - sup_A [P(A) - x Q(A)] = E min(dP, x dQ).

C is concave (a minimum of linear functions inside an expectation), non-decreasing, C(0) = 0,
C(x) <= 1 - (P-mass where Q has none) and C(x) <= x (1 - (Q-mass where P has none)). The trade-off curve is
its conjugate: the tests {dP/dQ > x} are optimal (Neyman-Pearson) and f is convex, so that

    f(fpr) = max_{x >= 0} C(x) - x fpr.                                                                    (*)

With delta of the two directions, C(x) = 1 - delta_PQ(log x) for x >= 1, and for x <= 1
C(x) = x (1 - delta_QP(-log x)): E min(dP, x dQ) = x E min(dQ, dP / x). Non-negative epsilons suffice, and C
keeps its relative accuracy where it is small.

*Lower envelope.* Every sampled x with C(x) >= low gives f(fpr) >= low - x fpr, by (*).

*Upper envelope.* Between neighbouring samples x_i < x_k, concavity puts C below the extension of any chord
from the left and from the right:

    C(x) <= A(x) = up_i + a (x - x_i),   a = min_{j < i} (up_i - low_j) / (x_i - x_j),
    C(x) <= B(x) = up_k - b (x_k - x),   b = max(0, max_{j > k} (low_j - up_k) / (x_j - x_k)).

Each a is valid: C(x) <= C_i + (x - x_i) (C_i - C_j) / (x_i - x_j) is increasing in C_i and decreasing in C_j.
Left of the first sample a = 1 - missing mass serves, right of the last one B = 1 - infinity mass. For *any* v
in [x_i, x_k] the polygon through (x_i, up_i), (v, max(A(v), B(v))), (x_k, up_k) lies above min(A, B): left of
v it lies above the chord of A, right of v above that of B. So a crossing point v that is only known roughly
costs sharpness, never validity. The maximum in (*) over a polygon is at a vertex.

Roundings: x = e^epsilon is good to one unit in the last place, and every operation below is widened by 4 to 8
units of its operands.
"""

from __future__ import annotations

import dataclasses

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

_UNIT = 8.0 * float(np.finfo(np.float64).eps)


@dataclasses.dataclass(frozen=True)
class Samples:
    """Certified values of C.

    Attributes:
      x: where C is known, increasing, > 0, shape [n], n >= 1.
      low: lower ends, shape [n].
      up: upper ends, shape [n].
      cap: upper bound of C: 1 - infinity mass, rounded up.
      steepest: upper bound of C(x) / x: 1 - missing mass, rounded up.
    """

    x: Array
    low: Array
    up: Array
    cap: float
    steepest: float

    def lower(self, fpr: Array) -> tuple[Array, Array]:
        """Lower envelope at `fpr`, shape [m], and the index of the sample that gives it."""
        pull = self.x[None, :] * fpr[:, None]
        value = self.low[None, :] - pull - _UNIT * (self.low[None, :] + pull)
        best = value.argmax(axis=1)
        return np.maximum(value[np.arange(len(fpr)), best], 0.0), best

    def vertices(self) -> tuple[Array, Array]:
        """The polygon above C: abscissae, increasing, and ordinates; (0, 0) first, shape [2 n + 2]."""
        x = np.append(0.0, self.x)
        low, up = np.append(0.0, self.low), np.append(0.0, self.up)
        n = len(x)
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            gap = np.abs(x[:, None] - x[None, :])
            noise = _UNIT * (x[:, None] + x[None, :])
            before = np.tril(np.ones((n, n), dtype=bool), -1)
            rise = np.maximum(up[:, None] - low[None, :], 0.0) * (1.0 + _UNIT)
            slopes = np.where(before & (gap > noise), rise / (gap - noise), np.inf)
            a = slopes.min(axis=1)
            a[0] = np.inf
            a = np.minimum(a, np.append(self.steepest, self._cheap_slopes()))
            fall = (low[None, :] - up[:, None]) * (1.0 - _UNIT)
            b = np.where(before.T, np.maximum(fall, 0.0) / (gap + noise), 0.0).max(axis=1)
        v, y = np.empty(n), np.empty(n)
        h = np.diff(x)
        with np.errstate(divide="ignore", invalid="ignore"):
            excess = a[:-1] - b[1:]
            shift = (up[1:] - up[:-1] - b[1:] * h) / excess
        shift = np.where((excess > 0.0) & np.isfinite(shift), np.clip(shift, 0.0, h), 0.5 * h)
        v[:-1] = x[:-1] + shift
        left = up[:-1] + a[:-1] * shift
        right = up[1:] - b[1:] * (h - shift)
        y[:-1] = np.maximum(left, right) + _UNIT * (up[1:] + a[:-1] * x[1:] + b[1:] * x[1:])
        # Beyond the last sample C <= cap; where the extension of A gets there it stops.
        room = max(self.cap - float(up[-1]), 0.0)
        v[-1] = x[-1] + (room / a[-1] if a[-1] > 0.0 else 0.0)
        y[-1] = self.cap if a[-1] > 0.0 else up[-1]
        if not np.isfinite(v[-1]):
            v[-1] = np.finfo(np.float64).max
        top = np.minimum(self.cap, self.steepest * v * (1.0 + _UNIT))
        return np.stack([x, v], axis=1).ravel(), np.stack([up, np.minimum(y, top)], axis=1).ravel()

    def _cheap_slopes(self) -> Array:
        """Upper bounds of the slope of C at the samples that need no neighbour: C(x) / x."""
        return self.up / self.x * (1.0 + _UNIT)

    def upper(self, fpr: Array) -> tuple[Array, Array]:
        """Upper envelope at `fpr`, shape [m], and the abscissa of the vertex that gives it."""
        v, y = self.vertices()
        with np.errstate(over="ignore", invalid="ignore"):
            pull = v[None, :] * fpr[:, None]
            value = y[None, :] - pull + _UNIT * (y[None, :] + pull)
        value[~np.isfinite(value)] = -np.inf  # a vertex so far out that it never gives the maximum
        best = value.argmax(axis=1)
        value = value[np.arange(len(fpr)), best]
        return np.clip(value, 0.0, 1.0 - fpr), v[best]
