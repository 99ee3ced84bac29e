"""Two steps, as a sum over the losses of one of them of the other's delta: quick, and exact in the far tail.

Both steps are replaced by connect-the-dots grids (`discretise`), pessimistic and optimistic. With the atoms
(l_i, p_i) of the first and delta_2 of the second,

    delta(eps) = sum_i p_i delta_2(eps - l_i).

With F_m = sum_{k >= m} p_k e^{l_m - l_k} over the second step's atoms, and l_m the first of them above e,

    delta_2(e) = D_m + (1 - e^{e - l_m}) F_m,   D_m = D_{m+1} + (1 - e^{l_m - l_{m+1}}) F_{m+1}.

All terms are positive: nothing cancels, whatever delta is, and no tilt and no transform is needed.
"""

from __future__ import annotations

import math

import numpy as np

from exactdp.accounting.pairs.base import Array, Unsuitable
from exactdp.accounting.prv import discretise, saddle
from exactdp.accounting.prv.discretise import Grid
from exactdp.accounting.prv.saddle import EPS, Components

_UNDERFLOW = 1e-318  # far more than the few operations on an atom lose where they underflow
_BLOCK = 50.0  # losses that share a factor e^{-loss}


class Step:
    """delta of a discrete step at any real epsilon.

    Args:
      grid: atoms, with the errors of their masses absorbed.
    """

    def __init__(self, grid: Grid) -> None:
        kept = grid.p > 0.0
        self.loss, self.p = grid.loss[kept], grid.p[kept]
        if not len(self.loss):
            raise Unsuitable("the grid has no mass")
        self._above = _scaled_sums(self.loss, self.p)
        rise = -np.expm1(-np.diff(self.loss)) * self._above[1:]
        self._rest = np.append(np.cumsum(rise[::-1])[::-1], 0.0)

    def delta(self, epsilon: Array) -> tuple[Array, Array]:
        """delta at each of `epsilon`, and minus its derivative."""
        place = np.searchsorted(self.loss, epsilon, side="right")
        inside = place < len(self.loss)
        place = np.minimum(place, len(self.loss) - 1)
        less = np.minimum(epsilon - self.loss[place], 0.0)
        above = np.where(inside, self._above[place], 0.0)
        value = np.where(inside, self._rest[place], 0.0) - np.expm1(less) * above
        return value, np.exp(less) * above


def _scaled_sums(loss: Array, p: Array) -> Array:
    """F_m = sum_{k >= m} p_k e^{l_m - l_k}, in blocks of losses, scaled so that no underflow grows."""
    found = np.empty(len(loss))
    starts = np.flatnonzero(np.diff(np.floor((loss - loss[0]) / _BLOCK), prepend=-1.0))
    carried, end = 0.0, len(loss)
    for start in starts[::-1]:
        less = loss[start:end] - loss[end - 1]
        found[start:end] = (np.cumsum((p[start:end] * np.exp(-less))[::-1])[::-1] + carried) * np.exp(less)
        end = int(start)
        carried = float(found[end]) * math.exp(loss[end - 1] - loss[end]) if end else 0.0
    return found


class Nested:
    """Certified delta(epsilon) of two steps: a `saddle.Curve`, good near one epsilon.

    Args:
      components: one law with count two, or two with count one.
      epsilon: about which the cells are laid.
      log_delta: log of the delta in question, or of one below it.
      cells: number of cells of each step.

    Raises:
      Unsuitable: not two steps.
    """

    def __init__(self, components: Components, *, epsilon: float, log_delta: float, cells: int) -> None:
        laws = [law for law, n in components for _ in range(min(n, 3))]
        if len(laws) != 2:
            raise Unsuitable("only two steps are summed directly")
        grids: list[tuple[Grid, Grid]] = []
        for law, other in zip(laws, laws[::-1], strict=True):
            if len(components) == 1 and grids:
                grids.append(grids[0])
                break
            low, high = discretise.window(law, count=2, log_delta=log_delta, order=1.0)
            at = discretise.edges(law, low=low, high=high, cells=cells, beside=(other, epsilon), absorb=True)
            grids.append(discretise.grids(law, at, absorb=True))
        self._sides = [(Step(grids[0][side]), Step(grids[1][side])) for side in (0, 1)]
        self._log_free = [
            sum(math.log1p(-min(grid[side].infinity_mass, 1.0 - EPS)) for grid in grids) for side in (0, 1)
        ]

    def log_delta(self, epsilon: float, *, upper: bool) -> tuple[float, float]:
        side = 0 if upper else 1
        outer, inner = self._sides[side]
        each, fall = inner.delta(epsilon - outer.loss)
        value, slope = float(outer.p @ each), -float(outer.p @ fall)
        atoms = len(outer.loss) + len(inner.loss)
        moved = 4 * EPS * (abs(epsilon) + float(np.abs(outer.loss[[0, -1]]).max()))
        error = 2 * EPS * (atoms + 16) * value - moved * slope + atoms * _UNDERFLOW
        return saddle.assemble(value, error, slope, 0.0, 0.0, self._log_free[side], upper=upper)
