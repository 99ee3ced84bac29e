"""Connect-the-dots grids: two discrete laws of one step, between which the true one lies.

For losses L under P write x = e^{-L}. delta(eps) = E[(1 - e^eps prod x_i)_+] is convex and decreasing in
every x_i, so that delta of a composition

* rises when the mass of a cell moves to the cell's two ends with E[x] kept (pessimistic), or a loss rises;
* falls when a cell is merged into one atom at its mean x = q / p (optimistic), or a loss falls.

The grid is uniform, so that a fast Fourier transform sums it, and starts at the law's anchor, next to
which two cells are cut geometrically: most of a subsampled step's mass lies there, far closer to the anchor
than any affordable step. Source: Doroshenko et al. 2022 (arXiv 2207.04380) for the pessimistic side.
"""

from __future__ import annotations

import dataclasses
import math

import numpy as np

from exactdp.accounting.laws.law import Law
from exactdp.accounting.pairs.base import Array, Unsuitable

_FINE = np.concatenate([[0.0], np.geomspace(1e-13, 1.0, 1500)])
_MAX_CELLS = 8_000_000


@dataclasses.dataclass(frozen=True)
class CellErrors:
    """Bounds of the errors of the cells' masses, and what they do to a tilted sum.

    An error that one cell gains and the next loses changes sum p f(q / p), f(x) = x^-z, by no more than
    |z (z + 1)| e^{order * loss} times the distance of the cells; an error of a cell's own by its size.

    Attributes:
      inner: errors of the inner cells, P-mass and e^loss Q-mass together, shape [cells].
      loss: upper ends of the inner cells, shape [cells].
      outer: errors of the P-masses of the lowest and of the highest cell, shape [2].
      outer_loss: the lowest and the highest edge, shape [2].
      reach: bound of the distance of neighbouring cells where the errors telescope, else None.
    """

    inner: Array
    loss: Array
    outer: Array
    outer_loss: Array
    reach: float | None

    def tilted(self, order: float, log_moment: float, mean: float) -> tuple[float, float, float]:
        """Coefficients (a, b, c) of the bound a |z (z + 1)| + min(2 b, |y| c) of the error of phi - 1."""
        with np.errstate(over="ignore"):
            inner = self.inner * np.exp(np.minimum(order * self.loss - log_moment, 700.0))
            outer = self.outer * np.exp(np.minimum(order * self.outer_loss - log_moment, 700.0))
        own, distance = float(outer.sum()), float(outer @ np.abs(self.outer_loss - mean))
        if self.reach is not None:
            return self.reach * float(inner.sum()), own, distance
        return 0.0, own + float(inner.sum()), distance + float(inner @ np.abs(self.loss - mean))


@dataclasses.dataclass(frozen=True)
class Grid:
    """A discrete law of the loss of one step.

    Attributes:
      loss: positions of the atoms, shape [n].
      p: P-masses, shape [n].
      lattice: index k of each atom's lattice point anchor + k * step (an integer for atoms on the lattice,
        a half-integer for those of cells); NaN for the atoms of the geometrically cut cells.
      anchor: the lattice's origin.
      infinity_mass: upper bound (pessimistic) or lower bound (optimistic) of the mass at infinity.
      deficit: 1 less the sum of `p`, known without rounding in the sum.
      missing_mass: 1 less the sum of p e^{-loss}, likewise.
      errors: of the cells' masses.
    """

    loss: Array
    p: Array
    lattice: Array
    anchor: float
    infinity_mass: float
    deficit: float
    missing_mass: float
    errors: CellErrors


def window(law: Law, *, count: int, log_delta: float, order: float) -> tuple[float, float]:
    """Losses outside which a step has no mass that matters at exp(log_delta) after `count` steps."""
    low, high = law.support
    reach = np.concatenate([-np.geomspace(1e6, 1e-9, 400), [0.0], np.geomspace(1e-9, 1e6, 400)])
    edges = law.anchor + reach
    masses = law.masses(edges)
    above = np.cumsum(masses.p[::-1])[::-1][1:]
    below = np.cumsum(masses.p)[:-1]
    with np.errstate(divide="ignore"):
        log_above = np.log(above + masses.p_error[1:]) + math.log(count)
        log_below = np.log(below) + order * edges + math.log(count)
    small_above = np.flatnonzero(log_above <= log_delta - 20.0)
    small_below = np.flatnonzero(log_below <= -60.0)
    top = float(edges[small_above[0]]) if len(small_above) else float(edges[-1])
    bottom = float(edges[small_below[-1]]) if len(small_below) else float(edges[0])
    return max(bottom, low), min(top, high)


def grids(law: Law, *, step: float, low: float, high: float) -> tuple[Grid, Grid]:
    """The pessimistic and the optimistic grid of `law`.

    Args:
      law: law of the loss of a step.
      step: distance of the lattice points.
      low: losses below are rounded up to the lattice point below it (or dropped, on the optimistic side).
      high: losses above are moved to infinity (or rounded down).

    Raises:
      Unsuitable: too many cells.
    """
    anchor = law.anchor
    first, last = math.floor((low - anchor) / step), math.ceil((high - anchor) / step)
    first, last = min(first, 0), max(last, 0)
    if last - first > _MAX_CELLS:
        raise Unsuitable(f"lattice needs {last - first} cells")
    index = np.arange(first, last + 1, dtype=np.float64)
    below, above = index[index < -0.5], index[index > 0.5]
    fine = np.concatenate([-_FINE[:0:-1] if first < 0 else [], [0.0], _FINE[1:] if last > 0 else []])
    inner = fine[np.abs(fine) < 1.0]
    place = np.concatenate([below, inner, above])
    edges = anchor + step * place
    masses = law.masses(edges)
    p, q = masses.p, masses.q
    # Pessimistic: the two ends of each inner cell; the outer cells go up.
    left, right = edges[:-1], edges[1:]
    width = step * np.diff(place)
    with np.errstate(over="ignore", invalid="ignore"):
        scaled_q = np.where(q[1:-1] > 0, q[1:-1] * np.exp(np.minimum(left, 700.0)), 0.0)
    up = np.clip((p[1:-1] - scaled_q) / -np.expm1(-width), 0.0, p[1:-1])
    mass = np.zeros(len(edges))
    mass[1:] += up
    mass[:-1] += p[1:-1] - up
    mass[0] += p[0]
    with np.errstate(over="ignore", invalid="ignore"):
        error = masses.p_error[1:-1] + np.where(
            masses.q_error[1:-1] > 0, masses.q_error[1:-1] * np.exp(np.minimum(right, 700.0)), 0.0
        )
    errors = CellErrors(
        inner=error,
        loss=right,
        outer=masses.p_error[[0, -1]],
        outer_loss=edges[[0, -1]],
        reach=2.0 * step if masses.telescoping else None,
    )
    low_gain = float(q[0]) - float(p[0]) * math.exp(-float(edges[0])) if p[0] > 0 else float(q[0])
    infinite = law.infinity_mass + float(p[-1]) + float(masses.p_error[-1])
    pessimistic = Grid(
        loss=edges,
        p=mass,
        lattice=np.concatenate([below, np.where(inner == 0.0, 0.0, np.nan), above]),
        anchor=anchor,
        infinity_mass=infinite,
        deficit=law.infinity_mass + float(p[-1]),
        missing_mass=law.missing_mass + float(q[-1]) + low_gain,
        errors=errors,
    )
    # Optimistic: each inner cell at its mean of e^{-L}; the top cell at its lower end or below (the last half
    # lattice point), the bottom dropped.
    with np.errstate(divide="ignore", invalid="ignore"):
        merged = np.log(p[1:-1]) - np.log(q[1:-1])
    merged = np.where(p[1:-1] > 0, np.clip(np.where(np.isnan(merged), left, merged), left, right), left)
    whole = np.abs(np.diff(place) - 1.0) < 1e-9
    top_loss = float(edges[-1]) - (0.5 * step if last > 0 else 0.0)
    top_gain = float(q[-1]) - float(p[-1]) * math.exp(-top_loss)
    optimistic = Grid(
        loss=np.append(merged, top_loss),
        p=np.append(p[1:-1], p[-1]),
        lattice=np.append(
            np.where(whole, 0.5 * (place[:-1] + place[1:]), np.nan), last - 0.5 if last > 0 else np.nan
        ),
        anchor=anchor,
        infinity_mass=law.infinity_mass,
        deficit=law.infinity_mass + float(p[0]),
        missing_mass=law.missing_mass + float(q[0]) + top_gain,
        errors=errors,
    )
    return pessimistic, optimistic
