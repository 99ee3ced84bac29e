"""Pairs whose loss takes finitely many values: sums, not integrals."""

from __future__ import annotations

import abc
import dataclasses
import functools
import math

import numpy as np

from exactdp.accounting.pairs import base

_EPS = float(np.finfo(np.float64).eps)
_LONG = float(np.finfo(np.longdouble).eps)


@dataclasses.dataclass(frozen=True)
class Atoms:
    """The finite losses with their masses.

    Attributes:
      u: losses, strictly increasing, shape [n].
      p: P-masses, shape [n].
      q: Q-masses, shape [n].
      relative_error: bound of the relative error of `p` and `q`, and of `u` too.
    """

    u: base.Array
    p: base.Array
    q: base.Array
    relative_error: float


class Atomic(base.Pair):
    """A pair given by its atoms: a subclass has `_build` and, where it needs them, the two extra masses.

    Losses are rounded. An atom is counted in the cell of its stored loss, and the bounds returned cover
    the distance to the pair whose losses are exactly the stored ones: that is a relative change of P.
    """

    @abc.abstractmethod
    def _build(self) -> Atoms:
        """Computes the atoms, once."""

    @functools.cached_property
    def atoms(self) -> Atoms:
        """The finite losses with their masses."""
        return self._build()

    @property
    def symmetric(self) -> bool:
        a = self.atoms
        mirrored = np.array_equal(a.u, -a.u[::-1]) and np.array_equal(a.p, a.q[::-1])
        return bool(mirrored and self.infinity_mass == self.missing_mass)

    @property
    def binary(self) -> tuple[tuple[float, float, float], tuple[float, float, float]] | None:
        a = self.atoms
        if len(a.u) != 2:
            return None
        low, high = ((float(a.u[i]), float(a.p[i]), float(a.q[i])) for i in (0, 1))
        return low, high

    @property
    def support(self) -> tuple[float, float]:
        u = self.atoms.u
        return float(u[0]), float(u[-1])

    def masses(self, edges: base.Array) -> base.Masses:
        a = self.atoms
        # searchsorted "right" counts the atoms at or below each edge: cells are open on the left.
        stops = np.searchsorted(a.u, edges, side="right")
        p, q = _segments(a.p, stops), _segments(a.q, stops)
        length = np.diff(np.concatenate([[0], stops, [len(a.u)]]))
        unit = a.relative_error + _EPS + _LONG * length
        outer = np.maximum(np.abs(a.u[0]), np.abs(a.u[-1]))
        return base.Masses(p, q, p * (unit + a.relative_error * outer), q * unit, telescoping=False)

    def hockey_stick(self, epsilon: float, *, reverse: bool = False) -> tuple[float, float]:
        a = self.atoms
        if reverse:
            u, mass, certain = -a.u, a.q, self.missing_mass
        else:
            u, mass, certain = a.u, a.p, self.infinity_mass
        above = u > epsilon
        u, mass = u[above], mass[above]
        terms = -mass * np.expm1(epsilon - u)
        value = certain + float(np.sum(terms.astype(np.longdouble)))
        # d/du of a term is mass e^(epsilon - u) <= mass; u is known to a relative error.
        unit = a.relative_error + 4 * _EPS
        error = unit * float(np.sum(terms + mass * (np.abs(u) + abs(epsilon)) * np.exp(epsilon - u)))
        return value, error + 4 * _EPS * value + _LONG * len(u) * value

    def quadrature(
        self, *, slopes: tuple[float, float], frequency: float, cosine_power: float, log_target: float
    ) -> base.Quadrature:
        a = self.atoms
        # A Q-mass below the floats is e^-u times a P-mass that need not be.
        with np.errstate(divide="ignore"):
            log_weight = np.where(a.q > 1e-290, np.log(a.q), np.log(a.p) - a.u)
        keep = log_weight > -math.inf
        return base.Quadrature(a.u[keep], log_weight[keep], -math.inf)


def _segments(values: base.Array, stops: np.ndarray) -> base.Array:
    """Sums of values[stops[i-1]:stops[i]], in extended precision where there is one."""
    padded = np.append(values.astype(np.longdouble), np.longdouble(0.0))
    starts = np.concatenate([[0], stops])
    sums = np.add.reduceat(padded, starts)
    lengths = np.diff(np.append(starts, len(values)))
    # reduceat answers an empty segment with the element at its start.
    return np.where(lengths > 0, sums, 0.0).astype(np.float64)
