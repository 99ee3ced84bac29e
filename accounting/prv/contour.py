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

import math
from collections.abc import Callable, Sequence

import numpy as np

from exactdp.accounting.pairs.base import Array, Unsuitable
from exactdp.accounting.prv import saddle
from exactdp.accounting.prv.measures import Composition, Cumulants, Measure, cumulants
from exactdp.accounting.prv.saddle import EPS, Components

_MAX_NODES, _MAX_SMOOTHED = 200_000, 400_000
_MAX_WORK, _MAX_SMOOTHED_WORK = 10**12, 40_000_000
_FAR = 1e4  # over the most nodes: up to where the integrand's decay is bounded
_MOST_TERMS = 200_000  # held at once
_MOST = 2e5  # largest order tried where the orders have no limit


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


def whole(
    components: Components, at: Cumulants, *, epsilon: float, log_tolerance: float, eta: float = 0.0
) -> Contour:
    """The contour of a whole composition (see `Contour`)."""
    free = sum(n * math.log1p(-law.infinity_mass) for law, n in components)
    measure = Composition(components)
    return Contour(measure, at, epsilon=epsilon, log_tolerance=log_tolerance, eta=eta, log_finite=free)


def start(at: Cumulants, log_delta: float) -> float:
    """A first guess of epsilon(delta): the saddle point's, or Chernoff's bound where that is far off."""
    if abs(at.log_delta - log_delta) < 1.0:
        return at.epsilon
    return max((at.log_moment + saddle.log_payoff_bound(at.order) - log_delta) / at.order, 0.0)


class Contour:
    """One contour: the integrand at its nodes, good for every epsilon near its saddle point."""

    def __init__(
        self,
        measure: Measure,
        at: Cumulants,
        *,
        epsilon: float,
        log_tolerance: float,
        eta: float = 0.0,
        log_finite: float = 0.0,
    ) -> None:
        """Evaluates the integrand.

        Args:
          measure: of the composed loss.
          at: its cumulants at the order that the contour passes through.
          epsilon: where the contour is to be used.
          log_tolerance: log of the relative error of delta aimed at.
          eta: standard deviation of the smoothing (see `lattice`), which cuts off an integrand whose
            decay is not known; 0 for none.
          log_finite: log of the probability that no loss is infinite; the rest is added to delta.

        Raises:
          Unsuitable: the integrand falls too slowly, or the quadrature is out of reach.
        """
        if not at.variance > 0.0:
            raise Unsuitable("tilted, the composition is a single atom")
        self._measure, self._at, self._center, self._eta = measure, at, epsilon, eta
        self._smoothing = 0.5 * eta * eta
        self._log_finite_free = log_finite

        def moment_bound(order: float) -> float:
            there = measure.cumulants(order)
            return there.log_moment + there.error + self._smoothing * order * (order + 1.0)

        self._log_moment = at.log_moment + self._smoothing * at.order * (at.order + 1.0)
        orders = saddle.chernoff_orders(at.order, measure.order_limit, closest=measure.closest)
        self._alias = saddle.chernoff(at.order, self._log_moment, orders, moment_bound)
        target = log_tolerance + at.log_size
        self._period = self._alias.period(epsilon, target, 4.0 * math.sqrt(at.variance) + 4.0 / at.order)
        self._step = 2.0 * math.pi / self._period
        reach = self._choose_reach(target)
        count = int(reach / self._step) + 2
        if count > (_MAX_SMOOTHED if eta else _MAX_NODES):
            raise Unsuitable(f"contour needs {count} nodes")
        self._evaluate(count)

    def _choose_reach(self, log_target: float) -> float:
        """Where the nodes may end: what lies beyond is bounded interval by interval."""
        # What is proved may say something of the far end only, and nothing of a stretch before it.
        y = self._step * np.geomspace(1.0, _FAR * _MAX_SMOOTHED, 410)
        # The nodes in (y_k, y_{k+1}] have sum step / y^2 <= 1/y_k - 1/y_{k+1} + step / y_k^2.
        weight = np.append(1.0 / y[:-1] - 1.0 / y[1:], 1.0 / y[-1]) + self._step / y**2
        with np.errstate(under="ignore"):
            size = np.exp(self._measure.log_decay(self._at, y) - self._smoothing * y * y)
            rest = np.cumsum((size * weight)[::-1])[::-1] / math.pi
        good = np.flatnonzero(rest <= math.exp(log_target))
        if len(good) == 0:
            raise Unsuitable("the integrand falls too slowly for a contour")
        self._log_rest = math.log(max(float(rest[good[0]]), 1e-300))
        return float(y[good[0]])

    def _evaluate(self, count: int) -> None:
        at, t, step = self._at, self._at.order, self._step
        y = step * np.arange(count)
        most_work = _MAX_SMOOTHED_WORK if self._eta else _MAX_WORK
        found = self._measure.integrand(at, step, count, self._center, most_work)
        damping = -self._smoothing * y * y
        log_m = found.log_m + damping + 1j * self._smoothing * y * (2.0 * t + 1.0)
        log_power, bound = found.log_power + damping, found.bound + damping
        z = t + 1j * y
        weight = np.full(count, step / math.pi)
        weight[0] *= 0.5
        self._y, self._z = y, z
        self._g = weight * np.exp(log_m) / (z * (z + 1.0))
        self._moved = 4 * EPS * float(y @ np.abs(self._g))  # by which the terms err for each unit of epsilon
        self._known: dict[float, tuple[float, float, float]] = {}
        kernel = weight / np.abs(z * (z + 1.0))
        self._rounding = saddle.lost(kernel * found.factor, log_power, found.relative, bound)
        self._rounding += float(kernel @ found.absolute)
        self._density_error = 0.0
        if self._eta:
            self._density_error = saddle.lost(weight * found.factor, log_power, found.relative, bound)
            self._density_error += float(weight @ found.absolute)

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
