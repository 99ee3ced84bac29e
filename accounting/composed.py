"""The Renyi and the central-limit accountant for compositions; `prv` gives the exact answer.

Both ask nothing of a mechanism but the laws of its loss, in both directions.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np

from exactdp.accounting import validate
from exactdp.accounting.fdp.approximation import Approximation
from exactdp.accounting.fdp.gaussian import GaussianTradeoff
from exactdp.accounting.laws.law import Law, tilt
from exactdp.accounting.pairs.base import Array, Unsuitable
from exactdp.accounting.prv import Composition
from exactdp.accounting.rdp import account
from exactdp.accounting.rdp.bound import UpperBound

_CELLS = 20_001
_NEAR_ZERO = 1e-9  # an order at which the tilt is no tilt
_SOURCE = "Dong, Roth and Su 2022 (arXiv 1905.02383), central limit theorem for composition"

Side = Sequence[tuple[Law, int]]


def rdp_epsilon(composition: Composition, *, delta: float, conversion: str = "optimal") -> UpperBound:
    """Upper bound on epsilon from the exact Renyi curves, each direction composed apart, the worse taken.

    D_order = log E_P[exp((order - 1) L)] / (order - 1), from quadrature with its error added.

    Args:
      composition: (mechanism, count) pairs.
      delta: in (0, 1).
      conversion: as in `rdp.account.epsilon`.

    Raises:
      ValueError: bad input.
      ArithmeticError: a mechanism's moments are out of reach.
    """
    validate.open_probability("delta", delta)
    bounds = [
        account.epsilon([(_renyi(law, n), n) for law, n in side], delta=delta, conversion=conversion)
        for side in _sides(composition)
        if side
    ]
    return max(bounds, key=lambda bound: bound.value, default=UpperBound(0.0, math.nan))


def gdp_mu(composition: Composition) -> Approximation:
    """mu of the Gaussian curve the composed loss tends to: 2 E[L] / sd[L], the worse direction. No bound.

    Exact for composed Gaussians without sampling; for others the error falls slowly, as 1 / sqrt(steps).

    Raises:
      ValueError: bad input.
      ArithmeticError: some loss is infinite with positive probability, or the moments are out of reach.
    """
    mus = [0.0]
    for side in _sides(composition):
        moments = [(n, *_mean_and_variance(law)) for law, n in side]
        mean, variance = sum(n * m for n, m, _ in moments), sum(n * v for n, _, v in moments)
        if variance > 0.0:
            mus.append(2.0 * max(mean, 0.0) / math.sqrt(variance))
    return Approximation(max(mus), "mu of the central limit of the composed loss", _SOURCE)


def gdp_epsilon(composition: Composition, *, delta: float) -> Approximation:
    """Epsilon of the Gaussian curve of `gdp_mu`, at `delta` in (0, 1). No bound: it is often too small.

    Raises:
      ValueError: bad input.
      ArithmeticError: as `gdp_mu`.
    """
    validate.open_probability("delta", delta)
    value = GaussianTradeoff(gdp_mu(composition).value).epsilon(delta)
    return Approximation(value, "epsilon of the central limit of the composed loss", _SOURCE)


def _sides(composition: Composition) -> list[list[tuple[Law, int]]]:
    """Laws with counts in the remove and in the add direction."""
    entries = [(m.directions(), validate.count("count", n)) for m, n in composition]
    if not entries:
        raise ValueError("composition must hold at least one (mechanism, count), got none")
    known = [(laws, n) for laws, n in entries if laws is not None and n > 0]
    return [[(laws[i], n) for laws, n in known] for i in (0, 1)]


def _renyi(law: Law, count: int) -> Callable[[float], float]:
    def divergence(order: float) -> float:
        if law.infinity_mass > 0.0 or order - 1.0 >= law.order_limit:
            return math.inf
        return max(0.0, _log_moment(law, count, order - 1.0) / (order - 1.0))

    return divergence


def _log_moment(law: Law, count: int, order: float) -> float:
    """Upper bound of log E_P[exp(order L)]."""
    try:
        tilted = tilt(law, law.nodes(order=order, frequency=0.0, count=count), order)
        return tilted.log_moment + tilted.log_moment_error
    except Unsuitable:
        ends, p = _cells(law)
        exponent = order * ends[1:] + np.log(np.maximum(p, 1e-320))
        peak = float(exponent.max())
        return peak + math.log(float(np.exp(exponent - peak).sum())) + 1e-12


def _mean_and_variance(law: Law) -> tuple[float, float]:
    if law.infinity_mass > 0.0:
        raise ArithmeticError("the loss is infinite with positive probability: there is no central limit")
    try:
        tilted = tilt(law, law.nodes(order=_NEAR_ZERO, frequency=0.0, count=1), _NEAR_ZERO)
        return tilted.mean, tilted.variance
    except Unsuitable:
        ends, p = _cells(law)
        middle = 0.5 * (ends[1:] + ends[:-1])
        mean = float(p @ middle)
        return mean, float(p @ (middle - mean) ** 2)


def _cells(law: Law) -> tuple[Array, Array]:
    """Ends of the cells of a bounded loss, and upper ends of their P-masses."""
    low, high = law.support
    if not (math.isfinite(low) and math.isfinite(high)):
        raise Unsuitable("the moments of an unbounded loss need quadrature nodes")
    inner = np.linspace(low, high, _CELLS)
    masses = law.masses(inner)
    ends = np.concatenate([[low - (high - low) / _CELLS], inner, [high]])
    return ends, masses.p + masses.p_error
