"""Measures of the composed loss by their exact moment generating functions: all of it, or a layer of it.

A layer holds those composed losses whose largest lies there. With the measures a_i below the layer and b_i in
it, one component each (`Law.layer`), its moment generating function is

    prod_i (a_i + b_i)^{n_i} - prod_i a_i^{n_i} = prod_i a_i^{n_i} expm1(sum_i n_i log1p(b_i / a_i)),

where nothing cancels: it is a positive measure, with a tilt of its own.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from typing import Protocol

import numpy as np
from numpy.typing import NDArray
from scipy import fft

from exactdp.accounting.laws.law import Moments, Tilted, tilt
from exactdp.accounting.pairs.base import Array, Unsuitable
from exactdp.accounting.prv import layer_saddle, saddle
from exactdp.accounting.prv.saddle import EPS, Saddle

_CLOSEST = 2e-4  # of a layer: two large losses may weigh no less than one
_DIRECT = 700  # what a transform costs for each node of either kind, in products

Parts = Sequence[tuple[Moments, int]]
"""Measures of one step's loss, each with the number of steps that have it."""


@dataclasses.dataclass(frozen=True)
class Cumulants(Saddle):
    """A saddle with the tilted steps that it is the sum of, and the error of its K."""

    error: float
    parts: tuple[Tilted, ...]


@dataclasses.dataclass(frozen=True)
class Integrand:
    """M(t + iy) / M(t), less the oscillation e^{iy mean}, at the nodes of a contour.

    It is a product of a factor of size `factor` and of a power of characteristic functions.

    Attributes:
      log_m: its logarithm, complex, shape [n].
      log_power: log of the size of the power, shape [n].
      relative: bound of the growth of the power's relative error, shape [n].
      bound: log of a bound of the power's size, errors included, shape [n].
      factor: size of the factor, shape [n].
      absolute: what the factor's error adds to that of the integrand, shape [n].
    """

    log_m: NDArray[np.complex128]
    log_power: Array
    relative: Array
    bound: Array
    factor: Array
    absolute: Array


class Measure(Protocol):
    """A positive measure of the composed loss."""

    @property
    def order_limit(self) -> float:
        """Supremum of the orders at which the moment is finite."""
        ...

    @property
    def closest(self) -> float:
        """How near above an order the next is to be that bounds the aliasing (`saddle.chernoff_orders`)."""
        ...

    def cumulants(self, order: float) -> Cumulants:
        """K and its derivatives at `order`."""
        ...

    def beyond(self, at: Cumulants, factor: float) -> float:
        """How many losses exceed the cut that they should lie below, in the mean, tilted.

        Only those count that exceed it by far: e^loss - 1, nearly proportional to the likelihood ratio of the
        pair that is sampled, by `factor`.
        """
        ...

    def log_decay(self, at: Cumulants, y: Array) -> Array:
        """log of a bound on |M(order + iy)| / M(order): on [y_k, y_{k+1}] for each k, last beyond y_last."""
        ...

    def integrand(self, at: Cumulants, step: float, count: int, center: float, most_work: float) -> Integrand:
        """The integrand over e^{iy center} at y = step * k, k < count.

        Raises:
          Unsuitable: it takes more than `most_work` products.
        """
        ...


def cumulants(components: Parts, order: float, *, frequency: float = 0.0) -> Cumulants:
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


class Composition:
    """All of a composition, or what lies below the lowest layer of it: a `Measure`.

    Args:
      components: each component's measure, with its count.
      cut: the lowest layer's lower cut, inf for all of the composition.
    """

    def __init__(self, components: Parts, *, cut: float = math.inf) -> None:
        self._components, self._cut = components, cut
        self.closest = 0.02 if cut == math.inf else _CLOSEST
        self.order_limit = min(law.order_limit for law, _ in components)

    def cumulants(self, order: float) -> Cumulants:
        return cumulants(self._components, order)

    def beyond(self, at: Cumulants, factor: float) -> float:
        return _many_above(self._components, at.parts, _times(factor, self._cut))

    def log_decay(self, at: Cumulants, y: Array) -> Array:
        total = np.zeros(len(y))
        for (law, n), part in zip(self._components, at.parts, strict=True):
            total += n * _log_decay(law, at.order, part, y)
        return total

    def integrand(self, at: Cumulants, step: float, count: int, center: float, most_work: float) -> Integrand:
        y = step * np.arange(count)
        log_m = np.zeros(count, dtype=np.complex128)
        relative, bound = np.zeros(count), np.zeros(count)
        # The last block is the largest: if it is too large, nothing has been spent on the others.
        for block in reversed(_blocks(count, step, 7.0 / math.sqrt(at.variance))):
            start, stop = block.start, block.stop
            here = cumulants(self._components, at.order, frequency=float(y[stop - 1]))
            _check_work(here.parts, stop - start, most_work)
            for (_, n), part in zip(self._components, here.parts, strict=True):
                less_one, error = _characteristic(part, float(y[start]), step, stop - start)
                log_phi = saddle.complex_log1p(less_one)
                log_m[block] += n * log_phi
                lost, most = saddle.node_error(log_phi.real, error, n)
                relative[block] += lost
                bound[block] += most
            log_m[block] += 1j * y[block] * (here.mean - center)
            relative[block] += 4 * EPS * y[block] * (abs(here.mean) + abs(center))
        return Integrand(log_m, log_m.real, relative, bound, np.ones(count), np.zeros(count))


class Layer:
    """Those composed losses whose largest lies in one layer: a `Measure`.

    Args:
      below: each component's measure below the layer, with its count.
      part: each component's measure in the layer.
      low: the layer's lower cut.
      high: the upper one, or inf.
    """

    closest = _CLOSEST

    def __init__(self, below: Parts, part: Sequence[Moments], *, low: float, high: float) -> None:
        self._below, self._part, self._low, self._high = below, part, low, high
        self.order_limit = min(law.order_limit for law in (*(a for a, _ in below), *part))

    def _tilted(self, order: float, frequency: float = 0.0) -> list[tuple[int, Tilted, Tilted]]:
        """Count, tilted measure below and tilted measure of the layer, a component each."""
        return [
            (
                n,
                tilt(a, a.nodes(order=order, frequency=frequency, count=n), order),
                tilt(b, b.nodes(order=order, frequency=frequency, count=n), order),
            )
            for (a, n), b in zip(self._below, self._part, strict=True)
        ]

    def cumulants(self, order: float) -> Cumulants:
        tilted = self._tilted(order)
        at, error = layer_saddle.layer(
            order,
            [(n, _step(a), _step(b)) for n, a, b in tilted],
        )
        parts = tuple(t for _, a, b in tilted for t in (a, b))
        return Cumulants(at.order, at.log_moment, at.mean, at.variance, error, parts)

    def beyond(self, at: Cumulants, factor: float) -> float:
        # In the last layer, all that lies far above its lower cut is no single hump.
        high = self._high if self._high < math.inf else _times(factor, self._low)
        below = _many_above(self._below, at.parts[::2], _times(factor, self._low))
        return max(below, *(_share_above(part, _times(factor, high)) for part in at.parts[1::2]))

    def log_decay(self, at: Cumulants, y: Array) -> Array:
        # |prod (a + b)^n - prod a^n| is at most the same of bounds of |a| and |b|: it has no minus signs.
        total, grown, scale = np.zeros(len(y)), np.zeros(len(y)), 0.0
        for (law, n), a, b in zip(self._below, at.parts[::2], at.parts[1::2], strict=True):
            log_ratio = b.log_moment - a.log_moment
            log_d = np.maximum(_log_decay(law, at.order, a, y), -600.0)
            total += n * log_d
            grown += n * np.logaddexp(0.0, log_ratio - log_d)
            scale += n * float(np.logaddexp(0.0, log_ratio))
        log_grown = grown + np.log(np.maximum(-np.expm1(-grown), 1e-300))
        return total + log_grown - layer_saddle.log_expm1(scale) + _SLACK

    def integrand(self, at: Cumulants, step: float, count: int, center: float, most_work: float) -> Integrand:
        y = step * np.arange(count)
        log_m = np.zeros(count, dtype=np.complex128)
        relative, bound, factor, absolute, log_power = (np.zeros(count) for _ in range(5))
        for block in reversed(_blocks(count, step, 7.0 / math.sqrt(at.variance))):
            start, stop = block.start, block.stop
            here = self._tilted(at.order, float(y[stop - 1]))
            _check_work([t for _, a, b in here for t in (a, b)], stop - start, most_work)
            nodes, grown, slip = y[block], np.zeros(stop - start, dtype=np.complex128), np.zeros(stop - start)
            scale = mean = 0.0
            for n, a, b in here:
                moved, error = _characteristic(a, float(nodes[0]), step, stop - start)
                log_a = saddle.complex_log1p(moved)
                lost, most = saddle.node_error(log_a.real, error, n)
                log_m[block] += n * log_a
                relative[block] += lost
                bound[block] += most
                mean += n * a.mean
                moved, part_error = _characteristic(b, float(nodes[0]), step, stop - start)
                ratio = math.exp(b.log_moment - a.log_moment)
                apart = b.mean - a.mean
                w = ratio * (1.0 + moved) * np.exp(1j * nodes * apart - log_a)
                grown += n * saddle.complex_log1p(w)
                scale += n * math.log1p(ratio)
                # Errors of w = b / a, those of log(1 + w) being no more than 1 / (1 - |w|) times them.
                size_a = np.maximum(np.exp(log_a.real) - error, _TINY)
                turned = 2.0 + nodes * (abs(a.mean) + abs(b.mean)) + abs(a.log_moment) + abs(b.log_moment)
                fraction = 8 * EPS * turned + error / size_a + b.log_moment_error + a.log_moment_error
                slip_w = ratio * part_error / size_a + np.abs(w) * fraction * (1.0 + fraction)
                slip += n * (slip_w / np.maximum(1.0 - np.abs(w) - slip_w, _TINY) + 4 * EPS * np.abs(w))
            if not 0.0 < scale < _MOST_GROWTH:
                raise Unsuitable("tilted, too many large losses are likely")
            # |expm1(g + s) - expm1(g)| <= e^{|g|} expm1(|s|), and slip bounds |s|.
            value = np.expm1(grown) / math.expm1(scale)
            slip = np.exp(np.abs(grown)) * np.expm1(np.minimum(slip, 300.0)) + 8 * EPS * np.abs(grown)
            factor[block] = np.abs(value)
            absolute[block] = slip / math.expm1(scale) + 8 * EPS * np.abs(value)
            log_power[block] = log_m[block].real
            log_m[block] += np.log(np.where(value == 0.0, 1e-300, value)) + 1j * nodes * (mean - center)
            relative[block] += 4 * EPS * nodes * (abs(mean) + abs(center))
        absolute *= np.exp(np.minimum(bound, 0.0))
        return Integrand(log_m, log_power, relative, bound, factor, absolute)


_TINY = 1e-30  # in place of what rounding has lost: what it divides is then lost as a whole
_MOST_GROWTH = 200.0  # log of the share of the tilted mass that has a large loss
_SLACK = 1e-9  # of a logarithm: far above its rounding


def _step(tilted: Tilted) -> layer_saddle.Step:
    return layer_saddle.Step(tilted.log_moment, tilted.mean, tilted.variance, tilted.log_moment_error)


def _times(factor: float, loss: float) -> float:
    """log(1 + factor (e^loss - 1))."""
    return loss + math.log(factor - (factor - 1.0) * math.exp(-loss))


def _share_above(part: Tilted, loss: float) -> float:
    return float(part.weight[part.deviation > loss - part.mean].sum())


def _many_above(components: Parts, tilted: Sequence[Tilted], loss: float) -> float:
    return sum(n * _share_above(part, loss) for (_, n), part in zip(components, tilted, strict=True))


def _log_decay(law: Moments, order: float, part: Tilted, y: Array) -> Array:
    """log of a bound on the tilted |phi|: on [y_k, y_{k+1}] for each k, last beyond y_last."""
    decay = law.decay(order=order, log_moment=part.log_moment)
    if decay is None:
        return np.zeros(len(y))
    with np.errstate(divide="ignore"):
        return np.log(np.append(decay.bound(y[:-1], y[1:]), decay.falling_bound(y[-1:])))


def _check_work(parts: Sequence[Tilted], count: int, most: float) -> None:
    if sum(len(p.weight) for p in parts) * count > most:
        raise Unsuitable("quadrature nodes times contour nodes are too many")


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
