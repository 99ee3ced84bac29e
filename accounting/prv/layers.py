"""The lattice engine by layers of the largest loss, for deltas that one large loss decides.

A subsampled step's loss lies near 0 with a tail far above; where that tail falls more slowly than an
exponential, no single tilt concentrates the composed loss near epsilon, and a transform tilted to one side
or the other drowns delta in its rounding. The grids' measure is therefore split by the largest of all losses:
for cuts b_0 < b_1 < ...,

    delta(eps) = delta_0 + sum_j delta_j,
    M_j(z) = prod_i phi_i(z; b_{j+1})^{n_i} - prod_i phi_i(z; b_j)^{n_i},

with phi_i(z; b) = E[e^{zL}; L <= b] of component i. Each delta_j is that of a positive measure, has a tilt of
its own, and is a sum of positive terms: nothing cancels between layers. The difference is taken as
prod phi_i(b_j)^{n_i} expm1(sum n_i log1p(r_i)), r_i the layer's part of phi_i over what lies below.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from exactdp.accounting.pairs.base import Array, Unsuitable
from exactdp.accounting.prv import layer_saddle, saddle
from exactdp.accounting.prv.discretise import Grid
from exactdp.accounting.prv.saddle import EPS, Saddle
from exactdp.accounting.prv.tilted import Tilted, fft_error, less_one, tilt
from exactdp.accounting.prv.transform import Composition, Measure, Nodes

_LEAST_CUT = 1.0 / 8.0  # the first cut, over epsilon: below it, eight losses are needed
_RATIO = 1.25  # of neighbouring cuts
_TINY = 1e-30


def _step(tilted: Tilted) -> layer_saddle.Step:
    return layer_saddle.Step(tilted.log_moment, tilted.mean, tilted.variance, tilted.error)


class Layer:
    """Those composed losses whose largest lies in one layer: a `Measure`.

    Args:
      low: each component's grid up to the layer, with its count.
      part: each component's grid in the layer; None where it is empty there.
    """

    def __init__(self, low: Sequence[tuple[Grid, int]], part: Sequence[Grid | None]) -> None:
        self._low, self._part = low, part

    def _tilted(self, order: float) -> list[tuple[int, Tilted, Tilted | None, float]]:
        """Count, tilted grid below, tilted grid of the layer and log of their ratio, a component each."""
        found: list[tuple[int, Tilted, Tilted | None, float]] = []
        for (grid, n), extra in zip(self._low, self._part, strict=True):
            below = tilt(grid, order)
            above = tilt(extra, order) if extra is not None else None
            log_ratio = above.log_moment - below.log_moment if above is not None else -math.inf
            found.append((n, below, above, log_ratio))
        return found

    def saddle(self, order: float) -> tuple[Saddle, float]:
        return layer_saddle.layer(
            order,
            [
                (n, _step(below), None if above is None else _step(above))
                for n, below, above, _ in self._tilted(order)
            ],
        )

    def nodes(self, order: float, y: Array, *, size: int, step: float, eta: float) -> Nodes:
        at, _ = self.saddle(order)
        log_low, grown = np.zeros(len(y), dtype=np.complex128), np.zeros(len(y), dtype=np.complex128)
        log_c, log_b_c = np.zeros(len(y)), np.zeros(len(y))
        rounding, rounding_part = np.zeros(len(y)), np.zeros(len(y))
        offset, total = -at.mean, 0.0
        low_errors: list[tuple[int, Array, Array, Array, float]] = []
        part_errors: list[tuple[float, Array, Array, float]] = []
        for n, below, above, log_ratio in self._tilted(order):
            moved, error = less_one(below, y, size, step, eta, n)
            log_a = saddle.complex_log1p(moved)
            log_low += n * log_a
            rounding += 4 * EPS * n * np.abs(log_a)
            offset += n * below.grid.anchor
            log_alpha = np.log(np.exp(log_a.real) + error + _TINY)
            log_c += n * log_alpha
            log_both = log_alpha
            if above is not None:
                moved_part, part_error = less_one(above, y, size, step, eta, n)
                part_error = part_error + 4 * EPS
                ratio = math.exp(min(log_ratio, 300.0))
                w = ratio * (1.0 + moved_part) * np.exp(-log_a)
                log_1w = saddle.complex_log1p(w)
                grown += n * log_1w
                rounding_part += 4 * EPS * n * np.abs(log_1w)
                beta = ratio * (np.abs(1.0 + moved_part) + part_error)
                log_both = np.logaddexp(log_alpha, np.log(beta))
                log_b_c += n * np.logaddexp(0.0, np.log(beta) - log_alpha)
                total += n * float(np.logaddexp(0.0, log_ratio))
                part_errors.append((n * ratio, part_error, log_both, fft_error(above, size)))
            low_errors.append((n, error, log_alpha, log_both, fft_error(below, size)))
        # |a_i| <= alpha_i, |R_i d_i| <= beta_i: the product's derivatives, over its value at y = 0.
        scale = layer_saddle.log_expm1(total)
        log_b = log_c + log_b_c
        with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
            log_difference = log_c + np.where(
                log_b_c > 30.0, log_b_c, np.log(np.expm1(np.minimum(log_b_c, 30.0)))
            )
            log_m = log_low + np.where(grown.real > 30.0, grown, np.log(np.expm1(grown))) - scale
        lost = ~np.isfinite(log_m.real)
        log_m = np.where(lost, -700.0, log_m).astype(np.complex128)
        error = np.where(lost, _exp(log_difference - scale), 0.0)
        transforms: list[tuple[float, Array]] = []
        for count, own, log_alpha, log_both, spread in low_errors:
            factor = count * _exp(np.minimum(log_difference - log_alpha, log_b - log_both) - scale)
            error += factor * own
            transforms.append((spread, factor))
        for n_ratio, own, log_both, spread in part_errors:
            factor = n_ratio * _exp(log_b - log_both - scale)
            error += factor * own
            transforms.append((spread, factor))
        rounded = rounding + 4 * EPS * (1.0 + y * (abs(offset) + abs(at.mean)))
        error += _exp(np.maximum(log_m.real, log_difference - scale)) * 4 * EPS
        error += _exp(log_b - scale) * rounding_part + _exp(log_m.real) * rounded
        log_m += 1j * y * offset
        size_m = np.exp(log_m.real)
        return Nodes(log_m, error / np.maximum(size_m, 1e-300), np.log(size_m + error + 1e-300), transforms)


def cuts(epsilon: float, top: float) -> list[float]:
    """Losses at which to split, geometric from epsilon / 8 to beyond `top`."""
    first = max(_LEAST_CUT * epsilon, 1e-3 * top)
    count = max(math.ceil(math.log(top / first) / math.log(_RATIO)), 1)
    return [first * _RATIO**k for k in range(count + 1)]


def split(grids: Sequence[tuple[Grid, int]], at: Sequence[float]) -> list[Measure | None]:
    """The measure below the first cut, and one a layer; None where a layer is empty.

    Raises:
      Unsuitable: a component has no mass below the first cut.
    """

    def below(cut: float) -> list[tuple[Grid, int]]:
        found = [(grid.between(-math.inf, cut), n) for grid, n in grids]
        low = [(grid, n) for grid, n in found if grid is not None]
        if len(low) < len(grids):
            raise Unsuitable("a component has no mass below the lowest layer")
        return low

    measures: list[Measure | None] = [Composition(below(at[0]))]
    for low, high in zip(at[:-1], at[1:], strict=True):
        part = [grid.between(low, high) for grid, _ in grids]
        measures.append(Layer(below(low), part) if any(grid is not None for grid in part) else None)
    return measures


def _exp(x: Array) -> Array:
    return np.exp(np.minimum(x, 700.0))
