"""Engine 1: the contour integral of the exact moment generating function.

For tau > 0 and M(z) = E_P[e^{zL}],

    delta(eps) = (1 / 2 pi i) int_{Re z = tau} M(z) e^{-z eps} / (z (z + 1)) dz.

The trapezoid rule of step h = 2 pi / period adds sum_{k != 0} delta(eps + k period) e^{tau k period}:
positive terms, each bounded by Chernoff through the same M. What lies beyond the last node is bounded
through |M| <= M(tau) prod_i bound_i(y)^{count_i} (`Law.decay`). Rounding is bounded by a running forward
error analysis; the elementary functions of NumPy are taken to be good to 4 units in the last place.
Prior art: Zhu, Dong and Wang 2022 (arXiv 2106.08567), Alghamdi et al. 2023 (arXiv 2208.09595).
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray
from scipy import fft

from exactdp.accounting.laws.law import Tilted, tilt
from exactdp.accounting.pairs.base import Array, Unsuitable
from exactdp.accounting.prv import saddle
from exactdp.accounting.prv.saddle import EPS, Components, Saddle

_MAX_NODES, _MAX_SMOOTHED = 100_000, 400_000
_MAX_WORK, _MAX_SMOOTHED_WORK = 10_000_000_000, 40_000_000
_MOST_TERMS = 200_000  # held at once
_DIRECT = 700  # what a transform costs for each node of either kind, in products
_MOST = 2e5  # largest order tried where the orders have no limit


@dataclasses.dataclass(frozen=True)
class Cumulants(Saddle):
    """A saddle with the tilted steps that it is the sum of, and the error of its K."""

    error: float
    parts: tuple[Tilted, ...]


def cumulants(components: Components, order: float, *, frequency: float = 0.0) -> Cumulants:
    """The composition's cumulants at `order`, from nodes good up to `frequency`."""
    parts = tuple(
        tilt(law, law.nodes(order=order, frequency=frequency, count=count), order)
        for law, count in components
    )
    weighted = [(count, part) for (_, count), part in zip(components, parts, strict=True)]
    return Cumulants(
        order=order,
        log_moment=sum(n * t.log_moment for n, t in weighted),
        mean=sum(n * t.mean for n, t in weighted),
        variance=sum(n * t.variance for n, t in weighted),
        error=sum(n * t.log_moment_error + 4 * EPS * abs(n * t.log_moment) for n, t in weighted),
        parts=parts,
    )


def find(
    components: Components,
    *,
    log_delta: float | None = None,
    epsilon: float | None = None,
    share: float = 1.0,
    enough: Callable[[Cumulants], bool] | None = None,
) -> Cumulants:
    """The cumulants near the saddle point that belongs to a delta, or to an epsilon.

    Args:
      components: laws of one direction with their counts.
      log_delta: log of the delta wanted; or
      epsilon: the epsilon wanted.
      share: largest share of the limit of the orders to be used. Near the limit the moment comes from a
        far tail that needs many nodes; a smaller order serves where the scale it loses can be spared.
      enough: the search ends where this says so.
    """

    def excess(at: Cumulants) -> float:
        if log_delta is not None:
            return log_delta - at.log_delta
        return at.epsilon - (epsilon or 0.0)

    limit = saddle.order_limit(components)
    return saddle.find_order(
        lambda order: cumulants(components, order),
        limit,
        excess,
        most=share * limit if limit < math.inf else _MOST,
        enough=enough,
    )


def start(at: Cumulants, log_delta: float) -> float:
    """A first guess of epsilon(delta): the saddle point's, or Chernoff's bound where that is far off."""
    if abs(at.log_delta - log_delta) < 1.0:
        return at.epsilon
    return max((at.log_moment + saddle.log_payoff_bound(at.order) - log_delta) / at.order, 0.0)


class Contour:
    """One contour: the integrand at its nodes, good for every epsilon near its saddle point."""

    def __init__(
        self, components: Components, at: Cumulants, *, epsilon: float, log_tolerance: float, eta: float = 0.0
    ) -> None:
        """Evaluates the integrand.

        Args:
          components: laws of one direction with their counts.
          at: cumulants at the order that the contour passes through.
          epsilon: where the contour is to be used.
          log_tolerance: log of the relative error of delta aimed at.
          eta: standard deviation of the smoothing (see `lattice`), which cuts off an integrand whose
            decay is not known; 0 for none.

        Raises:
          Unsuitable: the integrand falls too slowly, or the quadrature is out of reach.
        """
        if not at.variance > 0.0:
            raise Unsuitable("tilted, the composition is a single atom")
        self._components, self._at, self._center, self._eta = components, at, epsilon, eta
        self._smoothing = 0.5 * eta * eta
        self._log_finite_free = sum(n * math.log1p(-law.infinity_mass) for law, n in components)
        limit = saddle.order_limit(components)

        def moment_bound(order: float) -> float:
            there = cumulants(components, order)
            return there.log_moment + there.error + self._smoothing * order * (order + 1.0)

        self._log_moment = at.log_moment + self._smoothing * at.order * (at.order + 1.0)
        self._alias = saddle.chernoff(
            at.order, self._log_moment, saddle.chernoff_orders(at.order, limit), moment_bound
        )
        target = log_tolerance + at.log_size
        self._period = self._alias.period(epsilon, target, 4.0 * math.sqrt(at.variance) + 4.0 / at.order)
        self._step = 2.0 * math.pi / self._period
        reach = self._choose_reach(target)
        count = int(reach / self._step) + 2
        if count > (_MAX_SMOOTHED if eta else _MAX_NODES):
            raise Unsuitable(f"contour needs {count} nodes")
        self._evaluate(count)

    def _log_decay(self, y: Array) -> Array:
        """log of a bound on |M(order + iy)| / M(order): on [y_k, y_{k+1}] for each k, last beyond y_last."""
        total = -self._smoothing * y * y
        for (law, count), part in zip(self._components, self._at.parts, strict=True):
            decay = law.decay(order=self._at.order, log_moment=part.log_moment)
            if decay is not None:
                with np.errstate(divide="ignore"):
                    total[:-1] += count * np.log(decay.bound(y[:-1], y[1:]))
                    total[-1:] += count * np.log(decay.falling_bound(y[-1:]))
        return total

    def _choose_reach(self, log_target: float) -> float:
        """Where the nodes may end: what lies beyond is bounded interval by interval."""
        y = self._step * np.geomspace(1.0, _MAX_SMOOTHED, 240)
        # The nodes in (y_k, y_{k+1}] have sum step / y^2 <= 1/y_k - 1/y_{k+1} + step / y_k^2.
        weight = np.append(1.0 / y[:-1] - 1.0 / y[1:], 1.0 / y[-1]) + self._step / y**2
        with np.errstate(under="ignore"):
            rest = np.cumsum((np.exp(self._log_decay(y)) * weight)[::-1])[::-1] / math.pi
        good = np.flatnonzero(rest <= math.exp(log_target))
        if len(good) == 0:
            raise Unsuitable("the integrand falls too slowly for a contour")
        self._log_rest = math.log(max(float(rest[good[0]]), 1e-300))
        return float(y[good[0]])

    def _evaluate(self, count: int) -> None:
        at, t, step = self._at, self._at.order, self._step
        y = step * np.arange(count)
        # log M(t + iy) / M(t), less i y center
        log_m = -self._smoothing * y * y + 1j * self._smoothing * y * (2.0 * t + 1.0)
        relative, bound = np.zeros(count), log_m.real.copy()
        most_work = _MAX_SMOOTHED_WORK if self._eta else _MAX_WORK
        # The last block is the largest: if it is too large, nothing has been spent on the others.
        for block in reversed(_blocks(count, step, 7.0 / math.sqrt(at.variance))):
            start, stop = block.start, block.stop
            here = cumulants(self._components, t, frequency=float(y[stop - 1]))
            if sum(len(p.weight) for p in here.parts) * (stop - start) > most_work:
                raise Unsuitable("quadrature nodes times contour nodes are too many")
            for (_, n), part in zip(self._components, here.parts, strict=True):
                less_one, error = _characteristic(part, float(y[start]), step, stop - start)
                log_phi = saddle.complex_log1p(less_one)
                log_m[block] += n * log_phi
                lost, most = saddle.node_error(log_phi.real, error, n)
                relative[block] += lost
                bound[block] += most
            log_m[block] += 1j * y[block] * (here.mean - self._center)
            relative[block] += 4 * EPS * y[block] * (abs(here.mean) + abs(self._center))
        z = t + 1j * y
        weight = np.full(count, step / math.pi)
        weight[0] *= 0.5
        self._y, self._z = y, z
        self._g = weight * np.exp(log_m) / (z * (z + 1.0))
        self._moved = 4 * EPS * float(y @ np.abs(self._g))  # by which the terms err for each unit of epsilon
        self._known: dict[float, tuple[float, float, float]] = {}
        self._rounding = saddle.lost(weight / np.abs(z * (z + 1.0)), log_m.real, relative, bound)
        self._density_error = saddle.lost(weight, log_m.real, relative, bound) if self._eta else 0.0

    def prepare(self, epsilons: Sequence[float]) -> None:
        """Evaluates the sums at the first of many points at once, for `log_delta` to find."""
        size = max(1, _MOST_TERMS // len(self._g))
        for start in range(0, min(len(epsilons), 4 * size), size):
            block = epsilons[start : start + size]
            self._known.update(zip(block, self._sums(np.array(block)), strict=True))

    def _sums(self, epsilons: Array) -> list[tuple[float, float, float]]:
        """delta over exp(K - order * epsilon), and its derivative and the density likewise."""
        terms = self._g * np.exp(np.outer(epsilons - self._center, -1j * self._y))
        density = np.zeros(len(epsilons))
        if self._eta:
            density = (terms * (self._z * (self._z + 1.0))).real.sum(axis=1)
        values, slopes = terms.real.sum(axis=1), -(terms @ self._z).real
        return list(zip(values.tolist(), slopes.tolist(), density.tolist(), strict=True))

    def log_delta(self, epsilon: float, *, upper: bool) -> tuple[float, float]:
        at, t = self._at, self._at.order
        if epsilon not in self._known:
            self._known = {epsilon: self._sums(np.array([epsilon]))[0]}  # both ends are asked for in turn
        value, slope, density = self._known[epsilon]
        error = math.exp(self._log_rest) + self._rounding + abs(epsilon - self._center) * self._moved
        if not upper:
            if self._eta:
                density += self._density_error
                density += math.exp(self._log_rest) / self._eta**2
                error += self._eta**2 * math.exp(self._eta**2 / 8.0) * max(density, 0.0)
            error += math.exp(min(self._alias.log_error(epsilon, self._period), 700.0))
        scale = self._log_moment - t * epsilon
        scale_error = at.error + 4 * EPS * (abs(self._log_moment) + abs(t * epsilon))
        return saddle.assemble(value, error, slope, scale, scale_error, self._log_finite_free, upper=upper)


def _blocks(count: int, step: float, frequency: float) -> list[slice]:
    """Nodes up to `frequency`, up to twice that, and so on: higher ones need finer quadratures."""
    blocks: list[slice] = []
    start = 0
    while start < count:
        stop = min(count, int(frequency / step) + 1)
        if stop > start:
            blocks.append(slice(start, stop))
        start, frequency = stop, 2.0 * frequency
    return blocks


def _characteristic(
    part: Tilted, start: float, step: float, count: int
) -> tuple[NDArray[np.complex128], Array]:
    """phi(y) - 1 of the centred tilted step at y = start + step * k, and a bound of its absolute error."""
    keep = part.weight > 1e-20 / len(part.weight)
    weight, d = part.weight[keep], part.deviation[keep]
    dropped = float(part.weight[~keep].sum())
    if len(d) * count <= _DIRECT * (len(d) + count):
        less_one, error = _by_products(weight, d, start, step, count), 0.0
    else:
        less_one, error = _by_transforms(weight, d, start, step, count)
    y = start + step * np.arange(count)
    swing = np.minimum(2.0, y * math.sqrt(part.variance))
    error = error + 16.0 * EPS * swing * (1.0 + part.magnitude) + 4.0 * EPS * y * float(weight @ np.abs(d))
    return less_one, error + 2.0 * part.quadrature_error + 2.0 * dropped


def _by_products(weight: Array, d: Array, start: float, step: float, count: int) -> NDArray[np.complex128]:
    """sum_j weight_j (e^{i y d_j} - 1), to rounding relative to |y d_j|.

    e^{iyd} - 1 is put together from (e^{iad} - 1) and (e^{ibd} - 1) with y = a + b by one matrix product:
    count * n exponentials become about 2 sqrt(count) * n.
    """
    inner = max(1, int(math.sqrt(count)))
    outer = -(-count // inner)
    a = _expm1_i(np.outer(start + step * inner * np.arange(outer), d))
    b = _expm1_i(np.outer(step * np.arange(inner), d))
    weighted = a * weight
    less_one = weighted.sum(axis=1)[:, None] + (b @ weight)[None, :] + weighted @ b.T
    return np.asarray(less_one.ravel()[:count])


def _by_transforms(
    weight: Array, d: Array, start: float, step: float, count: int
) -> tuple[NDArray[np.complex128], float]:
    """The same sum, and a bound of its absolute error, in about (n + count) log(count) operations.

    Each d_j is split into the nearest point of a lattice and a residual r_j. On the lattice the sum is a
    discrete Fourier transform, and e^{ixr} is a power series in x r, |x r| <= pi / 8, x being the distance of
    the frequency from the middle one. A transform of N numbers errs by no more than 4 EPS log2(N) times the
    sum of their magnitudes at any of its outputs.
    """
    half = count // 2
    size = int(fft.next_fast_len(4 * count))
    spacing = 2.0 * math.pi / (size * step)
    place = np.rint(d / spacing)
    residual = d - spacing * place
    index = place.astype(np.int64) % size
    middle = start + step * half
    x = step * (np.arange(count) - half)
    most = float(np.max(np.abs(x)))
    terms = weight * np.exp(1j * middle * d)
    factor = np.ones(count, dtype=np.complex128)
    total = np.full(count, -float(weight.sum()), dtype=np.complex128)
    rest, order = 1.0, 0
    while rest > 1e-18 and order < 30:
        lattice = np.bincount(index, weights=terms.real, minlength=size) + 1j * np.bincount(
            index, weights=terms.imag, minlength=size
        )
        image = fft.ifft(lattice, norm="forward")
        total += factor * np.concatenate([image[size - half :], image[: count - half]])
        order += 1
        terms = terms * residual / order
        factor *= 1j * x
        rest = float(np.abs(terms).sum()) * most**order
    # exp(pi / 8) < 1.5 bounds the sum of the terms' magnitudes, and of what is left beyond the last.
    return total, 8.0 * EPS * (math.log2(size) + 4.0) + 1.5 * rest


def _expm1_i(x: Array) -> NDArray[np.complex128]:
    """e^{ix} - 1 without cancellation."""
    half = 0.5 * x
    sine = np.sin(half)
    return np.asarray(2.0 * sine * (1j * np.cos(half) - sine))
