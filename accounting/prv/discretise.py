"""Connect-the-dots grids: two discrete laws of one step, between which the true one lies.

For losses L under P write x = e^{-L}. delta(eps) = E[(1 - e^eps prod x_i)_+] is convex and decreasing in
every x_i, so that delta of a composition

* rises when the mass of a cell moves to the cell's two ends with E[x] kept (pessimistic), or a loss rises;
* falls when a cell is merged into one atom at its mean x = q / p (optimistic), or a loss falls.

What a cell of width w and tilted mass m costs is about m w^2, so that the best cells have a width inverse to
the cube root of the tilted density: most of them lie where the tilted mass does, and near the law's anchor
they shrink geometrically (most of a subsampled step's mass is far closer to it than any affordable step).
Source: Doroshenko et al. 2022 (arXiv 2207.04380) for the pessimistic side.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence

import numpy as np

from exactdp.accounting.laws.law import Law
from exactdp.accounting.pairs.base import Array, Masses

_NEAREST = 1e-13  # distance of the nearest edges from the anchor, over the width of the window
_COARSE = 600  # geometric cells on either side of the anchor, from which the widths are chosen

Tilt = tuple[float, float]
"""An order, and the loss below which the law is tilted by it."""


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
      reach: distances from one cell's lower end to the next one's upper end where the errors telescope, shape
        [cells], else None.
    """

    inner: Array
    loss: Array
    outer: Array
    outer_loss: Array
    reach: Array | None

    def tilted(self, order: float, log_moment: float, mean: float) -> tuple[float, float, float]:
        """Coefficients (a, b, c) of the bound a |z (z + 1)| + min(2 b, |y| c) of the error of phi - 1."""
        with np.errstate(over="ignore"):
            inner = self.inner * np.exp(np.minimum(order * self.loss - log_moment, 700.0))
            outer = self.outer * np.exp(np.minimum(order * self.outer_loss - log_moment, 700.0))
            own, distance = float(outer.sum()), float(outer @ np.abs(self.outer_loss - mean))
            if self.reach is not None:
                return float(self.reach @ inner), own, distance
            return 0.0, own + float(inner.sum()), distance + float(inner @ np.abs(self.loss - mean))


@dataclasses.dataclass(frozen=True)
class Grid:
    """A discrete law of the loss of one step.

    Attributes:
      loss: positions of the atoms, shape [n].
      p: P-masses, shape [n].
      anchor: the law's anchor, the origin of the lattice.
      infinity_mass: upper bound (pessimistic) or lower bound (optimistic) of the mass at infinity.
      deficit: 1 less the sum of `p`, known without rounding in the sum (where there are `errors`).
      missing_mass: 1 less the sum of p e^{-loss}, likewise.
      errors: of the cells' masses; None where they are part of the masses, and the grid is taken as it is.
    """

    loss: Array
    p: Array
    anchor: float
    infinity_mass: float
    deficit: float
    missing_mass: float
    errors: CellErrors | None

    def between(self, low: float, high: float) -> Grid | None:
        """The atoms of low < loss <= high of a grid without `errors`; None where there are none."""
        inside = (self.loss > low) & (self.loss <= high) & (self.p > 0.0)
        if not inside.any():
            return None
        return dataclasses.replace(self, loss=self.loss[inside], p=self.p[inside])


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


def edges(
    law: Law,
    *,
    low: float,
    high: float,
    cells: int,
    tilts: Sequence[Tilt] = (),
    beside: tuple[Law, float] | None = None,
    absorb: bool = False,
) -> Array:
    """Cell edges of `law` on [low, high], the anchor among them.

    Args:
      law: law of the loss of a step.
      low: first edge.
      high: last edge.
      cells: number of cells, about.
      tilts: under which the cells are to be narrow where the mass is.
      beside: the law of one more step, and the sum of both losses about which the cells are to be narrow.
      absorb: as of `grids`; each cell then costs what its mass is uncertain by, and there are fewer where
        more would cost more than they gain.
    """
    anchor, span = law.anchor, max(high, law.anchor) - min(low, law.anchor)
    if span == 0.0:
        return np.array([anchor])
    pad = 1e-12 * (
        span + abs(anchor)
    )  # atoms at the ends of the window lie in a cell, whatever their rounding
    low, high = low - pad, high + pad
    away = np.geomspace(_NEAREST * span, span, _COARSE)
    even = np.linspace(min(low, anchor), max(high, anchor), _COARSE)
    near = [anchor - away, anchor + away]
    if beside is not None:  # where the other loss lies near its anchor
        other, total = beside
        near += [total - other.anchor - away, total - other.anchor + away]
    rough = np.unique(np.concatenate([*near, [anchor, low, high], even]))
    rough = rough[(rough >= min(low, anchor)) & (rough <= max(high, anchor))]
    masses = law.masses(rough)
    width, p = np.diff(rough), masses.p[1:-1]
    parts = [width / width.sum(), np.full(len(width), 1.0 / len(width))]
    with np.errstate(divide="ignore"):
        log_p = np.log(p)
    weights = [np.where(rough[:-1] < top, log_p + order * rough[1:], -math.inf) for order, top in tilts]
    if beside is not None:
        other, total = beside
        with np.errstate(divide="ignore"):
            weights.append(log_p + np.log(other.masses(total - rough[::-1]).p[-2:0:-1]) - np.log(width))
    for weight in weights:
        log_density = weight - np.log(width)
        most = float(log_density.max())
        if most == -math.inf:
            continue
        part = np.exp((log_density - most) / 3.0) * width
        parts.append(part / part.sum())
    share = 0.7 / max(len(parts) - 2, 1)
    shares = np.array([0.15, 0.15, *(share for _ in parts[2:])]) @ np.array(parts)
    count = cells * shares
    if absorb:  # a cell of width w costs about order m w^2 by its width, and its error by itself
        order = max([1.0, *(order for order, _ in tilts)])
        with np.errstate(over="ignore"):
            count = np.minimum(count, width * np.cbrt(order * p / width / (masses.p_error[1:-1] + 1e-322)))
        count = np.maximum(count, 1e-6 * cells * shares)
    place = np.concatenate([[0.0], np.cumsum(count)])
    fine = np.interp(np.linspace(0.0, place[-1], math.ceil(place[-1]) + 1), place, rough)
    return np.unique(np.concatenate([fine, [rough[0], anchor, rough[-1]]]))


def grids(law: Law, edges: Array, *, absorb: bool = False) -> tuple[Grid, Grid]:
    """The pessimistic and the optimistic grid of `law` over the cells between `edges`.

    Losses below the first edge are rounded up to it (or dropped, on the optimistic side); losses above the
    last are moved to infinity (or dropped).

    Args:
      law: law of the loss of a step.
      edges: increasing, shape [n].
      absorb: whether the masses' errors are made part of the grids, each mass taken at the end of its range
        that is worse (pessimistic) or better: delta rises with a cell's P-mass and falls with its Q-mass.
        Else the grids carry them as `errors`, which is sharper over many steps.
    """
    masses = law.masses(edges)
    if absorb:
        low_p, low_q = (
            np.maximum(m - e, 0.0) for m, e in ((masses.p, masses.p_error), (masses.q, masses.q_error))
        )
        worse = dataclasses.replace(masses, p=masses.p + masses.p_error, q=low_q)
        better = dataclasses.replace(masses, p=low_p, q=masses.q + masses.q_error)
    else:
        worse = better = masses
    errors = None if absorb else _errors(masses, edges)
    return _pessimistic(law, worse, edges, errors), _optimistic(law, better, edges, errors)


def _errors(masses: Masses, edges: Array) -> CellErrors:
    width = np.diff(edges)
    with np.errstate(over="ignore", invalid="ignore"):
        inner = masses.p_error[1:-1] + np.where(
            masses.q_error[1:-1] > 0, masses.q_error[1:-1] * np.exp(np.minimum(edges[1:], 700.0)), 0.0
        )
    return CellErrors(
        inner=inner,
        loss=edges[1:],
        outer=masses.p_error[[0, -1]],
        outer_loss=edges[[0, -1]],
        reach=width + np.append(width[1:], width[-1:]) if masses.telescoping else None,
    )


def _pessimistic(law: Law, masses: Masses, edges: Array, errors: CellErrors | None) -> Grid:
    """The two ends of each inner cell; the outer cells go up."""
    p, q, left = masses.p, masses.q, edges[:-1]
    with np.errstate(over="ignore", invalid="ignore"):
        scaled_q = np.where(q[1:-1] > 0, q[1:-1] * np.exp(np.minimum(left, 700.0)), 0.0)
    up = np.clip((p[1:-1] - scaled_q) / -np.expm1(-np.diff(edges)), 0.0, p[1:-1])
    mass = np.zeros(len(edges))
    mass[1:] += up
    mass[:-1] += p[1:-1] - up
    mass[0] += p[0]
    low_gain = float(q[0]) - float(p[0]) * math.exp(-float(edges[0])) if p[0] > 0 else float(q[0])
    return Grid(
        loss=edges,
        p=mass,
        anchor=law.anchor,
        infinity_mass=law.infinity_mass + float(p[-1]) + float(masses.p_error[-1]),
        deficit=law.infinity_mass + float(p[-1]),
        missing_mass=law.missing_mass + float(q[-1]) + low_gain,
        errors=errors,
    )


def _optimistic(law: Law, masses: Masses, edges: Array, errors: CellErrors | None) -> Grid:
    """Each inner cell at its mean of e^{-L}; the outer cells dropped, but for atoms at the support's ends.

    Tilted, the mass above the last edge could weigh more than all the rest.
    """
    p, q, left, right = masses.p, masses.q, edges[:-1], edges[1:]
    with np.errstate(divide="ignore", invalid="ignore"):
        merged = np.log(p[1:-1]) - np.log(q[1:-1])
    merged = np.where(p[1:-1] > 0, np.clip(np.where(np.isnan(merged), left, merged), left, right), left)
    start, end = float(edges[0]), float(edges[-1])
    bottom = float(p[0]) if start <= law.support[0] else 0.0
    top = float(p[-1]) if end >= law.support[1] else 0.0
    bottom_gain = float(q[0]) - (bottom * math.exp(-start) if bottom else 0.0)
    top_gain = float(q[-1]) - (top * math.exp(-end) if top else 0.0)
    return Grid(
        loss=np.concatenate([[start], merged, [end]]),
        p=np.concatenate([[bottom], p[1:-1], [top]]),
        anchor=law.anchor,
        infinity_mass=law.infinity_mass,
        deficit=law.infinity_mass + (float(p[0]) - bottom) + (float(p[-1]) - top),
        missing_mass=law.missing_mass + bottom_gain + top_gain,
        errors=errors,
    )
