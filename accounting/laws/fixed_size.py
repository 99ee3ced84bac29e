"""The loss that dominates sampling a fixed number of records without replacement."""

from __future__ import annotations

import math

import numpy as np

from exactdp.accounting.laws.law import Law
from exactdp.accounting.laws.mapped import MappedLaw
from exactdp.accounting.pairs.base import Array, Masses, Pair

_EPS = float(np.finfo(np.float64).eps)


class FixedSizeLaw(Law):
    """The upper half of the loss of (1-q)Q + qP against Q, its mirror image, and an atom at 0 between them.

    The profile asked for is H_a((1-q)Q + qP, Q) at a >= 1 and, by duality, 1 - a + a H_{1/a}((1-q)Q + qP, Q)
    below. The P-mass of a loss is read off the slope of the profile, so a loss l > 0 has the masses (p, q)
    that it has in the first pair, the loss -l has (q, p), and what is missing to 1 sits at 0.

    It has no quadrature: the half laws end with a jump at 0, where a trapezoid rule loses its rate.

    Args:
      pair: a symmetric pair (P, Q).
      sampling_probability: q in (0, 1).
    """

    def __init__(self, pair: Pair, sampling_probability: float) -> None:
        self._upper = MappedLaw(pair, sampling_probability, add=False)
        self.infinity_mass = self.missing_mass = self._upper.infinity_mass

    @property
    def support(self) -> tuple[float, float]:
        high = max(self._upper.support[1], 0.0)
        return -high, high

    @property
    def anchor(self) -> float:
        return 0.0

    @property
    def order_limit(self) -> float:
        # E[e^{zL}] over the mirrored half is E_Q[e^{-zl}; l > 0], finite for every z > 0.
        return self._upper.order_limit

    def hockey_stick(self, epsilon: float) -> tuple[float, float]:
        value, error = self._upper.hockey_stick(abs(epsilon))
        if epsilon >= 0.0:
            return value, error
        scale = math.exp(epsilon)
        value = -math.expm1(epsilon) + scale * value
        return value, scale * error + 4.0 * _EPS * value

    def masses(self, edges: Array) -> Masses:
        above, below = edges[edges > 0.0], -edges[edges < 0.0][::-1]
        up = self._upper.masses(np.concatenate([[0.0], above]))
        down = self._upper.masses(np.concatenate([[0.0], below]))
        # Cell 0 of either is (-inf, 0]: not part of a half law. Mirrored, P and Q change places.
        p = np.concatenate([down.q[:0:-1], up.p[1:]])
        q = np.concatenate([down.p[:0:-1], up.q[1:]])
        p_error = np.concatenate([down.q_error[:0:-1], up.p_error[1:]])
        q_error = np.concatenate([down.p_error[:0:-1], up.q_error[1:]])
        atom, atom_error = self._atom()
        zero = np.array([atom])
        zero_error = np.array([atom_error])
        k = len(below)
        # With 0 among the edges the cells left and right of it stay apart, and 0 belongs to the left one.
        # Without it the last cell below and the first above are halves of one.
        if len(above) + len(below) < len(edges):
            p[k], q[k] = p[k] + atom, q[k] + atom
            p_error[k], q_error[k] = p_error[k] + atom_error, q_error[k] + atom_error
            return Masses(p, q, p_error, q_error, up.telescoping)
        parts = ((p, zero), (q, zero), (p_error, zero_error), (q_error, zero_error))
        joined = [np.concatenate([x[:k], x[k : k + 1] + y + x[k + 1 : k + 2], x[k + 2 :]]) for x, y in parts]
        return Masses(joined[0], joined[1], joined[2], joined[3], up.telescoping)

    def _atom(self) -> tuple[float, float]:
        """Mass at loss 0, the same under both, and a bound of its absolute error."""
        half = self._upper.masses(np.array([0.0]))
        rest = 1.0 - self.infinity_mass - float(half.p[1]) - float(half.q[1])
        return max(rest, 0.0), 4.0 * _EPS + float(half.p_error[1] + half.q_error[1])
