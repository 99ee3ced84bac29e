"""The contour integral in float64, for runs over many random inputs: about 1e-12 relative in delta.

The rounding of M^T is kept small by working with M(s + iy)/M(s) - 1 = E[expm1(i y L)] under the tilted law,
and with M(s) - 1 = E_P[expm1(s L)]; both are small exactly when T is large. make_truths.py uses ball
arithmetic instead; the two share the choice of contour and nothing else.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from exactdp.benchmarks.soundness import families
from exactdp.benchmarks.soundness.contour import Guide, OutOfReachError
from exactdp.benchmarks.soundness.families import Mechanism, Quadrature

DIGITS = 17.0
PAIR_LIMIT = 6e7


def _tilted(mechanism: Quadrature, s: float, height: float) -> tuple[np.ndarray, np.ndarray, float]:
    """Tilted probabilities, losses and log M(s)."""
    h, k = mechanism.indices(s, height, DIGITS)
    logp, loss = mechanism.floats(k * h)
    top = float(np.max(logp + s * loss))
    w = np.exp(logp + s * loss - top)
    total = math.fsum(w)
    rough = top + math.log(total * h)
    if abs(rough) < 0.5:
        # the nodes left out by the tilt matter here, at s = 0
        h, k0 = mechanism.indices(0.0, height, DIGITS)
        both = np.arange(min(k0.min(), k.min()), max(k0.max(), k.max()) + 1)
        lp, ls = mechanism.floats(both * h)
        rough = math.log1p(math.fsum(np.exp(lp) * np.expm1(s * ls)) * h)
    return w / total, loss, rough


def _log_ratio(mechanism: Mechanism, s: float, y: np.ndarray) -> np.ndarray:
    """log(M(s + iy) / M(s))."""
    if isinstance(mechanism, families.Gaussian):
        v = mechanism.sigma**-2
        return v * (1j * y * (2 * s + 1) - y * y) / 2
    if not isinstance(mechanism, Quadrature):
        raise OutOfReachError("float contour: this family is left to ball arithmetic")
    p, loss, _ = _tilted(mechanism, s, float(y[-1]))
    if p.size * y.size > PAIR_LIMIT:
        raise OutOfReachError("float contour: too many nodes")
    out = np.empty(y.size, dtype=complex)
    for start in range(0, y.size, 512):
        angle = np.multiply.outer(y[start : start + 512], loss)
        re = -2 * (np.sin(angle / 2) ** 2 @ p)
        im = np.sin(angle) @ p
        near = 0.5 * np.log1p(np.maximum(2 * re + re * re + im * im, -0.99))
        # log1p of |ratio|^2 - 1 is for ratios near 1; a small ratio would lose half its digits there
        size = np.hypot(1 + re, im)
        far = np.log(np.maximum(size, 1e-17))
        out[start : start + 512] = np.where(size > 0.5, near, far) + 1j * np.arctan2(im, 1 + re)
    return out


def _log_mgf(mechanism: Mechanism, s: float, height: float) -> float:
    if isinstance(mechanism, Quadrature):
        return _tilted(mechanism, s, height)[2]
    return mechanism.cumulant(s)[0]


def _contour(guide: Guide, tau: float, step: float) -> tuple[np.ndarray, np.ndarray, float]:
    """(y, log of M^T/(z (z + 1)) relative to M(tau)^T, T log M(tau))."""
    s = -1 - tau if guide.add else tau
    size, start, ys, logs, total = 128, 0, [], [], 0
    while True:
        y = step * np.arange(start, start + size)
        z = tau + 1j * y
        value = -np.log(z) - np.log1p(z)
        for mechanism, count in guide.steps:
            ratio = _log_ratio(mechanism, s, y)
            value = value + count * (np.conj(ratio) if guide.add else ratio)
        ys.append(y)
        logs.append(value)
        total += size
        if float(np.max(value.real)) < logs[0][0].real - 37:
            break
        if total > 400_000:
            raise OutOfReachError("float contour: the integrand decays too slowly")
        start, size = total, max(128, total // 2)
    height = float(ys[-1][-1])
    level = math.fsum(count * _log_mgf(mechanism, s, height) for mechanism, count in guide.steps)
    return np.concatenate(ys), np.concatenate(logs), level


def epsilon_at(steps: Sequence[tuple[Mechanism, int]], add: bool, log_delta: float) -> tuple[float, float]:
    """(epsilon, an estimate of its absolute error) with delta(epsilon) = exp(log_delta) in one direction."""
    guide = Guide(steps, add)
    epsilon = guide.saddle(guide.find(log_delta, 1))[0]
    for _ in range(60):
        tau = guide.settle(epsilon, log_delta - 3, 1.0, most=5.0)
        step = 2 * math.pi / guide.period(tau, epsilon, log_delta - 3, DIGITS)
        y, logs, level = _contour(guide, tau, step)
        log_value, log_slope, loss = _evaluate(y, logs, level, tau, step, epsilon)
        limit = 0.05 + 0.5 * abs(epsilon)
        good = math.isfinite(log_value) and math.isfinite(log_slope)
        move = (log_value - log_delta) * math.exp(min(600.0, log_value - log_slope)) if good else -limit
        epsilon += min(limit, max(-limit, move))
        if abs(move) < 1e-3 * max(1e-3, abs(epsilon)):
            break
    else:
        raise OutOfReachError("float contour: no convergence")
    for _ in range(20):
        log_value, log_slope, loss = _evaluate(y, logs, level, tau, step, epsilon)
        move = (log_value - log_delta) * math.exp(log_value - log_slope)
        epsilon += move
        if abs(move) <= 4e-16 * max(1.0, abs(epsilon)):
            break
    magnitude = abs(level) + tau * abs(epsilon) + 40
    for mechanism, count in steps:
        _, first, second = mechanism.cumulant(-1 - tau if add else tau)
        magnitude += count * tau * (abs(first) + 0.5 * math.sqrt(second))
    return float(epsilon), float(1e-15 * magnitude * loss * math.exp(log_value - log_slope))


def _evaluate(
    y: np.ndarray, logs: np.ndarray, level: float, tau: float, step: float, epsilon: float
) -> tuple[float, float, float]:
    """log delta, log(-delta'), and how many times the terms exceed their sum."""
    terms = np.exp(logs - logs[0].real - 1j * y * epsilon)
    terms[0] *= 0.5
    value = math.fsum(terms.real)
    slope = math.fsum((terms * (tau + 1j * y)).real)
    if not value > 0 or not slope > 0:
        return math.nan, math.nan, math.inf
    scale = level - tau * epsilon + logs[0].real + math.log(step / math.pi)
    return scale + math.log(value), scale + math.log(slope), float(np.sum(np.abs(terms))) / value
