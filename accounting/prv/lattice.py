"""Engine 2: an exponentially tilted fast Fourier transform over connect-the-dots grids.

Each step is replaced by a pessimistic and by an optimistic discrete law (`discretise`). Tilted by the
saddle point's order tau, their characteristic functions at the frequencies y_j = 2 pi j / period come from
a few transforms each (the atoms near the anchor by a power series), are raised to the counts, and

    delta_1(eps) = (1 / period) sum_j M(z_j) G(z_j) e^{-z_j eps} / (z_j (z_j + 1)),   z_j = tau + i y_j,

serves any eps. G(z) = e^{eta^2 z (z+1) / 2} belongs to adding U ~ N(eta^2/2, eta^2) to the composed loss,
which cuts the sum off. Since E[e^{-U}] = 1, delta_1 >= delta. With U_s ~ N(s eta^2/2, s eta^2), the
derivative of delta_s in s is eta^2/2 times the density p_s of L + U_s at eps, and p_s <= s^{-1/2}
e^{eta^2/8} p_1, so that

    delta_1 - eta^2 e^{eta^2/8} p_1(eps) <= delta <= delta_1

for every law of L, atoms included: nothing is assumed about the decay of M. What the period wraps around is
bounded as in the contour engine.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from scipy import fft

from exactdp.accounting.pairs.base import Array, Unsuitable
from exactdp.accounting.prv import discretise, saddle
from exactdp.accounting.prv.discretise import Grid
from exactdp.accounting.prv.saddle import EPS, Components, Saddle

_SERIES = 44  # terms of the power series: pi^44 / 44! = 3e-33.
_COARSE = 13  # log2 of the number of cells from which the period is chosen


@dataclasses.dataclass(frozen=True)
class Tilted:
    """A grid tilted by exp(order * loss)."""

    grid: Grid
    order: float
    log_moment: float
    error: float
    mean: float
    variance: float
    weight: Array


def tilt(grid: Grid, order: float) -> Tilted:
    """Tilts `grid`; moments near 1 are summed by their second-order terms, as in `laws.law.tilt`."""
    with np.errstate(divide="ignore"):
        exponent = np.log(grid.p) + order * grid.loss
    peak = float(exponent.max())
    if peak == -math.inf:
        raise Unsuitable("the grid has no mass")
    weight = np.exp(exponent - peak)
    total = float(weight.sum())
    weight /= total
    log_moment = peak + math.log(total)
    mean = float(weight @ grid.loss)
    error = 8 * EPS * (4.0 + abs(peak) + float(weight @ np.abs(order * grid.loss)))
    if (
        abs(log_moment) < 0.5
        and float(grid.loss[-1]) * max(order, 1.0) < 600.0
        and float(grid.loss[0]) > -600.0
    ):
        first, second = np.expm1(order * grid.loss), np.expm1(-grid.loss)
        lost = grid.deficit - grid.missing_mass
        less_one = float(grid.p @ (first + order * second)) - grid.deficit - order * lost
        log_moment = math.log1p(less_one)
        mean = (float(grid.p @ (grid.loss * (first + 1.0) + second)) - lost) / (1.0 + less_one)
        error = 8 * EPS * float(grid.p @ np.abs(first + order * second))
        error += 4 * EPS * float((grid.p * np.abs(grid.loss)) @ (np.abs(first) + order * np.abs(second)))
        error += 8 * EPS * ((1.0 + order) * grid.deficit + order * abs(grid.missing_mass))
    moving, own, distance = grid.errors.tilted(order, log_moment, mean)
    # The moment's error: the same bound at y = 0, an error of a cell's own acting by its second-order term.
    error += order * (order + 1.0) * moving
    error += min(own, (order + 1.0) * distance + own * abs(math.expm1(-max(log_moment, 0.0))))
    error += 8 * EPS * order * float(weight @ np.abs(grid.loss - grid.anchor))
    variance = float(weight @ (grid.loss - mean) ** 2)
    return Tilted(grid, order, log_moment, error, mean, variance, weight)


def _composed(grids: Sequence[tuple[Grid, int]], order: float) -> tuple[Saddle, list[Tilted]]:
    parts = [tilt(grid, order) for grid, _ in grids]
    weighted = [(n, part) for (_, n), part in zip(grids, parts, strict=True)]
    total = Saddle(
        order,
        sum(n * t.log_moment for n, t in weighted),
        sum(n * t.mean for n, t in weighted),
        sum(n * t.variance for n, t in weighted),
    )
    return total, parts


def _horner(coefficients: Sequence[float], x: Array) -> Array:
    total = np.zeros(len(x))
    for c in reversed(coefficients):
        total *= x
        total += c
    return total


def _near(y: Array, d: Array, weight: Array) -> NDArray[np.complex128]:
    """sum_i weight_i (e^{i y d_i} - 1) for |y d_i| <= pi, by the power series in y."""
    scale = float(np.max(np.abs(d), initial=0.0))
    if scale == 0.0:
        return np.zeros(len(y), dtype=np.complex128)
    moments, power = [], weight.copy()
    for k in range(_SERIES):
        moments.append((-1.0) ** (k // 2) * float(power.sum()) / math.factorial(k))
        power *= d / scale
    x = y * scale
    square = x * x
    return _horner(moments[2::2], square) * square + 1j * (_horner(moments[1::2], square) * x)


def _less_one(
    part: Tilted, y: Array, size: int, step: float, eta: float, count: int
) -> tuple[NDArray[np.complex128], Array]:
    """phi(y) - 1 about the anchor, and a bound of its absolute error."""
    grid, weight = part.grid, part.weight
    off = np.isnan(grid.lattice)
    d = grid.loss - grid.anchor
    total = _near(y, d[off], weight[off])
    error = np.zeros(len(y))
    on, k = ~off, np.floor(grid.lattice[~off]).astype(np.int64) % size
    if on.any():
        w, residual = weight[on], d[on] - step * grid.lattice[on]
        half = bool(np.any(grid.lattice[on] != np.floor(grid.lattice[on])))
        factor = np.exp(0.5j * step * y) if half else np.ones(len(y), dtype=np.complex128)
        for r in range(18 if half else 1):
            image = np.conj(fft.rfft(np.bincount(k, weights=w, minlength=size)))[: len(y)]
            total += image * factor - (w.sum() if r == 0 else 0.0)
            w = w * residual / (r + 1)
            factor *= 1j * y
            rest = float(np.abs(w).sum())
            if count * rest * (2.0 / eta) ** (r + 1) < 1e-13:
                break
        if half:
            error += float(np.abs(w).sum()) * np.abs(factor)
    total += 1j * y * (part.mean - grid.anchor - float(weight @ d))
    z = np.hypot(part.order, y) * np.hypot(part.order + 1.0, y)
    moving, own, distance = grid.errors.tilted(part.order, part.log_moment, part.mean)
    error += z * (moving + 8 * EPS * (part.variance + step * step)) + np.minimum(2.0 * own, y * distance)
    error += 32 * EPS * np.minimum(2.0, y * math.sqrt(part.variance)) + 8 * EPS * y * float(
        weight @ np.abs(d)
    )
    return total, error


class Transform:
    """One grid's composed, tilted and smoothed integrand: delta_1 and p_1 at any epsilon."""

    def __init__(
        self,
        grids: Sequence[tuple[Grid, int]],
        *,
        order: float,
        size: int,
        step: float,
        eta: float,
        alias: saddle.Alias,
    ) -> None:
        self.order, self.eta, self.period = order, eta, size * step
        at, parts = _composed(grids, order)
        self.smoothing = 0.5 * self.eta**2
        self.log_moment = at.log_moment + self.smoothing * order * (order + 1.0)
        self.moment_error = sum(
            n * p.error + 4 * EPS * abs(n * p.log_moment) for (_, n), p in zip(grids, parts, strict=True)
        )
        self.log_free = sum(n * math.log1p(-min(g.infinity_mass, 1.0 - EPS)) for g, n in grids)
        y = np.arange(size // 2 + 1, dtype=np.float64) * (2.0 * math.pi / self.period)
        z = order + 1j * y
        log_m = -self.smoothing * y * y + 1j * self.smoothing * y * (2.0 * order + 1.0)
        self._center = at.mean
        relative, bound = np.zeros(len(y)), log_m.real.copy()
        transform_errors: list[tuple[float, Array]] = []
        offset = -at.mean
        for (grid, n), part in zip(grids, parts, strict=True):
            less_one, error = _less_one(part, y, size, step, eta, n)
            log_phi = saddle.complex_log1p(less_one)
            log_m += n * log_phi
            spread, most = saddle.node_error(log_phi.real, error, n)
            relative += spread
            bound += most
            offset += n * grid.anchor
            on = ~np.isnan(grid.lattice)
            spread_of = n * 6 * EPS * math.log2(size) * float(np.sqrt(np.sum(part.weight[on] ** 2)))
            transform_errors.append((spread_of, log_phi.real))
        log_m += 1j * y * offset
        relative += 4 * EPS * y * (abs(offset) + abs(at.mean))
        weight = np.full(len(y), 2.0 / self.period)
        weight[0] *= 0.5
        kernel = weight / np.abs(z * (z + 1.0))
        size_m = np.exp(log_m.real)
        self.error = saddle.lost(kernel, log_m.real, relative, bound)
        for spread_of, log_size in transform_errors:  # d(phi^n) = n phi^(n-1) d phi
            rest_of = np.minimum(size_m * np.exp(np.minimum(-log_size, 700.0)), 1.0)
            self.error += spread_of * math.sqrt(size) * float(np.linalg.norm(kernel * rest_of))
        top = float(y[-1])
        self.error += math.exp(-self.smoothing * top * top) / (math.pi * top)
        g = weight * np.exp(log_m) / (z * (z + 1.0))
        keep = np.abs(g) > 1e-18 * float(np.abs(g).max())
        self.error += float(np.abs(g[~keep]).sum())
        self.density_error = float((np.abs(z * (z + 1.0)) * np.abs(g))[~keep].sum())
        self.density_error += saddle.lost(weight, log_m.real, relative, bound)
        self._y, self._z, self._g = y[keep], z[keep], g[keep]
        self.alias = alias

    def terms(self, epsilon: float) -> NDArray[np.complex128]:
        """The terms of the sum at `epsilon`."""
        return np.asarray(self._g * np.exp(-1j * self._y * (epsilon - self._center)))

    def log_delta(self, epsilon: float, *, upper: bool) -> tuple[float, float]:
        """log of an upper end of a pessimistic (of a lower end of an optimistic) grid's delta."""
        terms = self.terms(epsilon)
        value, slope = float(terms.real.sum()), -float((self._z * terms).real.sum())
        error = self.error + 4 * EPS * abs(epsilon - self._center) * float(self._y @ np.abs(self._g))
        if not upper:
            density = float((terms * self._z * (self._z + 1.0)).real.sum()) + self.density_error
            error += self.eta**2 * math.exp(min(self.eta**2 / 8.0, 700.0)) * max(density, 0.0)
            log_alias = self.alias.log_error(epsilon, self.period) + self.alias.log_moment - self.log_moment
            error += math.exp(min(log_alias, 700.0))
        scale = self.log_moment - self.order * epsilon
        scale_error = self.moment_error + 4 * EPS * (abs(self.log_moment) + abs(self.order * epsilon))
        return saddle.assemble(value, error, slope, scale, scale_error, self.log_free, upper=upper)


class Lattice:
    """Certified delta(epsilon) near one epsilon at one resolution: a `saddle.Curve`."""

    def __init__(self, up: Transform, down: Transform) -> None:
        self._up, self._down = up, down

    def log_delta(self, epsilon: float, *, upper: bool) -> tuple[float, float]:
        return (self._up if upper else self._down).log_delta(epsilon, upper=upper)


class Plan:
    """What the lattices of one composition have in common: the tails that matter, and the saddle point.

    The grids are finite: unlike the laws' own, their moments are finite at every order.
    """

    def __init__(self, components: Components, *, log_delta: float) -> None:
        """Sets the tails: `log_delta` is log of the delta in question, or of one far below it."""
        self._components, self._log_delta = components, log_delta
        self._counts = [n for _, n in components]
        windows = self._windows(1.0)
        self._search = [(g[0], n) for g, n in zip(self._grids(windows, 4096), self._counts, strict=True)]
        # Beyond this order the smoothing would not be narrow beside 1 / order.
        top = max(abs(high) for _, high in windows)
        self._most = max(100.0, 1000.0 / max(top, 1e-12))

    def _windows(self, order: float) -> list[tuple[float, float]]:
        return [
            discretise.window(law, count=n, log_delta=self._log_delta, order=order)
            for law, n in self._components
        ]

    def _grids(self, windows: Sequence[tuple[float, float]], cells: int) -> list[tuple[Grid, Grid]]:
        step = max(high - low for low, high in windows) / cells
        return self._build(windows, step)

    def _build(self, windows: Sequence[tuple[float, float]], step: float) -> list[tuple[Grid, Grid]]:
        return [
            discretise.grids(law, step=step, low=low, high=high)
            for (law, _), (low, high) in zip(self._components, windows, strict=True)
        ]

    def saddle(self, *, log_delta: float | None = None, epsilon: float | None = None) -> Saddle:
        """The saddle point that belongs to a delta, or to an epsilon, about."""

        def excess(here: Saddle) -> float:
            if log_delta is not None:
                return log_delta - here.log_delta
            return (here.epsilon - (epsilon or 0.0)) * here.order

        return saddle.find_order(
            lambda order: _composed(self._search, order)[0], math.inf, excess, most=self._most
        )

    def _bounds(
        self, grids: Sequence[tuple[Grid, Grid]], order: float, orders: Sequence[float], smoothing: float
    ) -> saddle.Alias:
        worst = [(g[0], n) for g, n in zip(grids, self._counts, strict=True)]

        def log_moment(s: float) -> float:
            at, parts = _composed(worst, s)
            slack = sum(n * p.error for n, p in zip(self._counts, parts, strict=True))
            return at.log_moment + slack + smoothing * s * (s + 1.0)

        return saddle.chernoff(order, log_moment(order), orders, log_moment)

    def curve(self, *, order: float, epsilon: float, log_delta: float, log2_size: int) -> Lattice:
        """The lattice of 2^log2_size points, good near `epsilon`.

        Raises:
          Unsuitable: too many cells, or nothing bounds the aliasing.
        """
        windows = self._windows(order)
        span = max(high - low for low, high in windows)
        coarse = self._grids(windows, 2**_COARSE)
        worst = [(g[0], n) for g, n in zip(coarse, self._counts, strict=True)]
        # An order below the saddle point's may need a much shorter period (a far tail, tilted, is wide), at
        # some loss of scale.
        candidates: list[tuple[float, float, list[float], float]] = []
        least_loss = math.inf
        for share in (1.0, 0.6, 0.36, 0.2):
            at, _ = _composed(worst, share * order)
            loss = at.log_moment - at.order * epsilon - log_delta
            if candidates and loss > max(14.0, least_loss + 3.0):
                break
            least_loss = min(loss, least_loss)
            try:
                alias = self._bounds(coarse, at.order, saddle.chernoff_orders(at.order, math.inf), 0.0)
                start = min(4.0 * math.sqrt(at.variance) + 4.0 / at.order, span)
                period = alias.period(epsilon, at.log_size - 27.0, start)
            except Unsuitable:
                continue
            candidates.append((period, at.order, alias.best_orders(epsilon, period), loss))
        if not candidates:
            raise Unsuitable("no period brings the aliasing error down")
        period, order, orders, loss = min(candidates)
        size = 2**log2_size
        step = max(period, span) / size
        grids = self._build(windows, step)
        # At the highest frequency y, e^{-(eta y)^2 / 2} / y is left: small beside delta's share of the scale.
        eta = step / math.pi * math.sqrt(2.0 * min(max(18.0 + loss + math.log(step), 8.0), 40.0))
        alias = self._bounds(grids, order, orders, 0.5 * eta**2)
        up, down = (
            Transform(
                [(g[side], n) for g, n in zip(grids, self._counts, strict=True)],
                order=order,
                size=size,
                step=step,
                eta=eta,
                alias=alias,
            )
            for side in (0, 1)
        )
        return Lattice(up, down)
