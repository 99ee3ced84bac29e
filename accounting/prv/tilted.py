"""Exponentially tilted grids: their moments and their characteristic functions."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from scipy import fft

from exactdp.accounting.pairs.base import Array, Unsuitable
from exactdp.accounting.prv.discretise import Grid
from exactdp.accounting.prv.saddle import EPS, Saddle

_SERIES = 44  # terms of the power series: pi^44 / 44! = 3e-33.
_TAYLOR = 18  # terms about a lattice point: (pi / 2)^18 / 18! = 5e-13.


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
        grid.errors is not None
        and abs(log_moment) < 0.5
        and float(grid.loss[-1]) * max(order, 1.0) < 600.0
        and float(grid.loss[0]) > -600.0
    ):
        first, second = np.expm1(order * grid.loss), np.expm1(-grid.loss)
        lost = grid.deficit - grid.missing_mass
        moved = float(grid.p @ (first + order * second)) - grid.deficit - order * lost
        log_moment = math.log1p(moved)
        mean = (float(grid.p @ (grid.loss * (first + 1.0) + second)) - lost) / (1.0 + moved)
        error = 8 * EPS * float(grid.p @ np.abs(first + order * second))
        error += 4 * EPS * float((grid.p * np.abs(grid.loss)) @ (np.abs(first) + order * np.abs(second)))
        error += 8 * EPS * ((1.0 + order) * grid.deficit + order * abs(grid.missing_mass))
    moving, own, distance = _errors(grid, order, log_moment, mean)
    # The moment's error: the same bound at y = 0, an error of a cell's own acting by its second-order term.
    error += order * (order + 1.0) * moving
    error += min(own, (order + 1.0) * distance + own * abs(math.expm1(-max(log_moment, 0.0))))
    error += 8 * EPS * order * float(weight @ np.abs(grid.loss - grid.anchor))
    variance = float(weight @ (grid.loss - mean) ** 2)
    return Tilted(grid, order, log_moment, error, mean, variance, weight)


def _errors(grid: Grid, order: float, log_moment: float, mean: float) -> tuple[float, float, float]:
    return grid.errors.tilted(order, log_moment, mean) if grid.errors is not None else (0.0, 0.0, 0.0)


def composed(grids: Sequence[tuple[Grid, int]], order: float) -> tuple[Saddle, list[Tilted]]:
    """The composition's cumulants at `order`, and each tilted grid."""
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


def less_one(
    part: Tilted, y: Array, size: int, step: float, eta: float, count: int
) -> tuple[NDArray[np.complex128], Array]:
    """phi(y) - 1 about the anchor at y = 2 pi j / (size * step), and a bound of its absolute error.

    Atoms within a step of the anchor by the power series; the others by fast Fourier transforms, a Taylor
    term each, about the nearest lattice point anchor + k * step.
    """
    grid, weight = part.grid, part.weight
    d = grid.loss - grid.anchor
    near = np.abs(d) <= step
    total = _near(y, d[near], weight[near])
    error = np.zeros(len(y))
    if not near.all():
        index = np.rint(d[~near] / step)
        w, residual = weight[~near], d[~near] - step * index
        k = index.astype(np.int64) % size
        factor = np.ones(len(y), dtype=np.complex128)
        for r in range(_TAYLOR):
            image = np.conj(fft.rfft(np.bincount(k, weights=w, minlength=size)))[: len(y)]
            total += image * factor - (w.sum() if r == 0 else 0.0)
            w = w * residual / (r + 1)
            factor *= 1j * y
            rest = float(np.abs(w).sum())
            if count * rest * (2.0 / eta) ** (r + 1) < 1e-13:
                break
        error += float(np.abs(w).sum()) * np.abs(factor)
    total += 1j * y * (part.mean - grid.anchor - float(weight @ d))
    z = np.hypot(part.order, y) * np.hypot(part.order + 1.0, y)
    moving, own, distance = _errors(grid, part.order, part.log_moment, part.mean)
    error += z * (moving + 8 * EPS * (part.variance + step * step)) + np.minimum(2.0 * own, y * distance)
    error += 32 * EPS * np.minimum(2.0, y * math.sqrt(part.variance)) + 8 * EPS * y * float(
        weight @ np.abs(d)
    )
    return total, error


def fft_error(part: Tilted, size: int) -> float:
    """What a transform of the weights adds: root of the sum of the squares over the `size` nodes."""
    norm = float(np.linalg.norm(part.weight))
    return 6 * EPS * math.log2(size) * norm * math.sqrt(size)
