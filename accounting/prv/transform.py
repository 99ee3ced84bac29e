"""The composed, tilted and smoothed integrand of a discrete measure: delta_1 and p_1 at any epsilon."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from exactdp.accounting.pairs.base import Array
from exactdp.accounting.prv import saddle
from exactdp.accounting.prv.discretise import Grid
from exactdp.accounting.prv.saddle import EPS, Saddle
from exactdp.accounting.prv.tilted import composed, fft_error, less_one


@dataclasses.dataclass(frozen=True)
class Nodes:
    """The tilted characteristic function about its mean, of total mass 1, and what its errors are.

    Attributes:
      log_m: its logarithm, complex, shape [n].
      relative: bound of the growth of its relative error, shape [n].
      bound: log of a bound of its size, errors included, shape [n].
      transforms: errors of the fast Fourier transforms: root of the sum of the squares over a full period of
        nodes, each with the factor by which it acts at each node, shape [n].
    """

    log_m: NDArray[np.complex128]
    relative: Array
    bound: Array
    transforms: list[tuple[float, Array]]


class Measure(Protocol):
    """A positive measure of the composed loss on a lattice."""

    def saddle(self, order: float) -> tuple[Saddle, float]:
        """Its cumulants at `order`, and a bound of the error of the first."""
        ...

    def nodes(self, order: float, y: Array, *, size: int, step: float, eta: float) -> Nodes:
        """Its tilted characteristic function at the frequencies `y`."""
        ...


class Composition:
    """The composition of grids, each with a count."""

    def __init__(self, grids: Sequence[tuple[Grid, int]]) -> None:
        self._grids = grids

    def saddle(self, order: float) -> tuple[Saddle, float]:
        at, parts = composed(self._grids, order)
        error = sum(
            n * p.error + 4 * EPS * abs(n * p.log_moment)
            for (_, n), p in zip(self._grids, parts, strict=True)
        )
        return at, error

    def nodes(self, order: float, y: Array, *, size: int, step: float, eta: float) -> Nodes:
        at, parts = composed(self._grids, order)
        log_m = np.zeros(len(y), dtype=np.complex128)
        relative, bound = np.zeros(len(y)), np.zeros(len(y))
        sizes: list[tuple[float, Array]] = []
        offset = -at.mean
        for (grid, n), part in zip(self._grids, parts, strict=True):
            moved, error = less_one(part, y, size, step, eta, n)
            log_phi = saddle.complex_log1p(moved)
            log_m += n * log_phi
            spread, most = saddle.node_error(log_phi.real, error, n)
            relative += spread
            bound += most
            offset += n * grid.anchor
            sizes.append((n * fft_error(part, size), log_phi.real))
        log_m += 1j * y * offset
        relative += 4 * EPS * y * (abs(offset) + abs(at.mean))
        size_m = np.exp(log_m.real)
        transforms = [  # d(phi^n) = n phi^(n-1) d phi
            (spread, np.minimum(size_m * np.exp(np.minimum(-log_size, 700.0)), 1.0))
            for spread, log_size in sizes
        ]
        return Nodes(log_m, relative, bound, transforms)


class Transform:
    """One measure's composed, tilted and smoothed integrand: delta_1 and p_1 at any epsilon.

    Args:
      measure: the measure.
      order: its tilt.
      size: number of nodes of a full period, even.
      step: distance of the lattice points.
      eta: standard deviation of the smoothing.
      alias: bounds of what the period wraps around.
    """

    def __init__(
        self, measure: Measure, *, order: float, size: int, step: float, eta: float, alias: saddle.Alias
    ) -> None:
        self.order, self.eta, self.period = order, eta, size * step
        at, self.moment_error = measure.saddle(order)
        smoothing = 0.5 * self.eta**2
        self.log_moment = at.log_moment + smoothing * order * (order + 1.0)
        self._center = at.mean
        y = np.arange(size // 2 + 1, dtype=np.float64) * (2.0 * math.pi / self.period)
        z = order + 1j * y
        nodes = measure.nodes(order, y, size=size, step=step, eta=eta)
        damping = -smoothing * y * y
        log_m = nodes.log_m + damping + 1j * smoothing * y * (2.0 * order + 1.0)
        weight = np.full(len(y), 2.0 / self.period)
        weight[0] *= 0.5
        kernel = weight / np.abs(z * (z + 1.0))
        bound = nodes.bound + damping
        self.error = saddle.lost(kernel, log_m.real, nodes.relative, bound)
        for spread, factor in nodes.transforms:
            self.error += spread * float(np.linalg.norm(kernel * np.exp(damping) * factor))
        top = float(y[-1])
        self.error += math.exp(-smoothing * top * top) / (math.pi * top)
        g = weight * np.exp(log_m) / (z * (z + 1.0))
        keep = np.abs(g) > 1e-18 * float(np.abs(g).max())
        self.error += float(np.abs(g[~keep]).sum())
        self.density_error = float((np.abs(z * (z + 1.0)) * np.abs(g))[~keep].sum())
        self.density_error += saddle.lost(weight, log_m.real, nodes.relative, bound)
        self._y, self._z, self._g = y[keep], z[keep], g[keep]
        self._alias = alias

    def terms(self, epsilon: float) -> NDArray[np.complex128]:
        """The terms of the sum at `epsilon`."""
        return np.asarray(self._g * np.exp(-1j * self._y * (epsilon - self._center)))

    def finite(self, epsilon: float, *, upper: bool) -> tuple[float, float, float]:
        """One end of delta over exp(scale), its derivative in epsilon likewise, and the scale.

        Losses at infinity are left out. Pessimistic measures give `upper` ends, optimistic ones lower ends.
        """
        terms = self.terms(epsilon)
        value, slope = float(terms.real.sum()), -float((self._z * terms).real.sum())
        error = self.error + 4 * EPS * abs(epsilon - self._center) * float(self._y @ np.abs(self._g))
        scale = self.log_moment - self.order * epsilon
        scale_error = self.moment_error + 4 * EPS * (abs(self.log_moment) + abs(self.order * epsilon))
        if not upper:
            density = float((terms * self._z * (self._z + 1.0)).real.sum()) + self.density_error
            error += self.eta**2 * math.exp(min(self.eta**2 / 8.0, 700.0)) * max(density, 0.0)
            log_alias = self._alias.log_error(epsilon, self.period) + self._alias.log_moment - self.log_moment
            error += math.exp(min(log_alias, 700.0))
        end = value + error if upper else value - error
        return end, slope, scale + (scale_error if upper else -scale_error)


class Chernoff:
    """A measure too small to be worth a transform: its delta is bounded above, and below by 0."""

    def __init__(self, measure: Measure, order: float) -> None:
        at, error = measure.saddle(order)
        self._order, self._log_bound = order, at.log_moment + error + saddle.log_payoff_bound(order)

    def finite(self, epsilon: float, *, upper: bool) -> tuple[float, float, float]:
        """As of a `Transform`."""
        if not upper:
            return 0.0, 0.0, -math.inf
        rounding = 4 * EPS * (abs(self._log_bound) + abs(self._order * epsilon))
        return 1.0, -self._order, self._log_bound + rounding - self._order * epsilon
