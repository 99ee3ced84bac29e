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

import math
from collections.abc import Sequence

from scipy import fft

from exactdp.accounting.pairs.base import Unsuitable
from exactdp.accounting.prv import discretise, layers, saddle
from exactdp.accounting.prv.discretise import Grid, Tilt
from exactdp.accounting.prv.saddle import EPS, Components, Saddle
from exactdp.accounting.prv.transform import Chernoff, Composition, Measure, Transform

_COARSE = 2048  # number of cells from which the orders and the periods are chosen
_MOST_NODES = 2**22  # of a layer: half a gigabyte
_CLOSEST = 2e-4  # of the orders that bound the aliasing: two large losses may weigh no less than one
_NEGLIGIBLE = -23.0  # log of the share of delta below which a layer is only bounded
_LAYERS_APART = 7.0  # log of the share of delta below which a layer has no say in the cells' widths

Part = Transform | Chernoff


class Lattice:
    """Certified delta(epsilon) near one epsilon at one resolution: a `saddle.Curve`.

    Args:
      up: transforms of the pessimistic measures, whose deltas add up.
      down: of the optimistic ones.
      log_free: log of the probability that no step's loss is infinite, pessimistic and optimistic.
    """

    def __init__(self, up: Sequence[Part], down: Sequence[Part], log_free: tuple[float, float]) -> None:
        self._sides, self._log_free = (up, down), log_free

    def log_delta(self, epsilon: float, *, upper: bool) -> tuple[float, float]:
        ends = [t.finite(epsilon, upper=upper) for t in self._sides[0 if upper else 1]]
        most = max((scale for end, _, scale in ends if end > 0.0), default=0.0)
        value = slope = 0.0
        for end, derivative, scale in ends:
            if end > 0.0:
                value += end * math.exp(scale - most)
                slope += derivative * math.exp(scale - most)
        rounding = 4 * EPS * len(ends) * value
        log_free = self._log_free[0 if upper else 1]
        return saddle.assemble(value, rounding, slope, most, 0.0, log_free, upper=upper)


class Plan:
    """What the lattices of one composition have in common: the tails that matter, and the saddle point.

    The grids are finite: unlike the laws' own, their moments are finite at every order.
    """

    def __init__(self, components: Components, *, log_delta: float) -> None:
        """Sets the tails: `log_delta` is log of the delta in question, or of one far below it."""
        self._components, self._log_delta = components, log_delta
        self._counts = [n for _, n in components]
        windows = self._windows(1.0)
        self._search = Composition(self._side(self._grids(windows, _COARSE, [(0.0, math.inf)]), 0))
        # Beyond this order the smoothing would not be narrow beside 1 / order.
        top = max(abs(high) for _, high in windows)
        self._most = max(100.0, 1000.0 / max(top, 1e-12))

    def _windows(self, order: float) -> list[tuple[float, float]]:
        return [
            discretise.window(law, count=n, log_delta=self._log_delta, order=order)
            for law, n in self._components
        ]

    def _grids(
        self,
        windows: Sequence[tuple[float, float]],
        cells: int,
        tilts: Sequence[Tilt],
        *,
        absorb: bool = False,
    ) -> list[tuple[Grid, Grid]]:
        found: list[tuple[Grid, Grid]] = []
        for (law, _), (low, high) in zip(self._components, windows, strict=True):
            at = discretise.edges(law, low=low, high=high, cells=cells, tilts=tilts, absorb=absorb)
            found.append(discretise.grids(law, at, absorb=absorb))
        return found

    def _side(self, grids: Sequence[tuple[Grid, Grid]], side: int) -> list[tuple[Grid, int]]:
        return [(pair[side], n) for pair, n in zip(grids, self._counts, strict=True)]

    def saddle(self, *, log_delta: float | None = None, epsilon: float | None = None) -> Saddle:
        """The saddle point that belongs to a delta, or to an epsilon, about."""

        def excess(here: Saddle) -> float:
            if log_delta is not None:
                return log_delta - here.log_delta
            return (here.epsilon - (epsilon or 0.0)) * here.order

        return saddle.find_order(
            lambda order: self._search.saddle(order)[0], math.inf, excess, most=self._most
        )

    def curve(self, *, order: float, epsilon: float, log_delta: float, log2_size: int) -> Lattice:
        """The lattice of 2^log2_size points, good near `epsilon`.

        Raises:
          Unsuitable: too many cells, or nothing bounds the aliasing.
        """
        windows = self._windows(order)
        span = max(high - low for low, high in windows)
        coarse = Composition(self._side(self._grids(windows, _COARSE, [(order, math.inf)]), 0))
        # An order below the saddle point's may need a much shorter period (a far tail, tilted, is wide), at
        # some loss of scale.
        candidates: list[tuple[float, float, list[float], float]] = []
        least_loss = math.inf
        for share in (1.0, 0.6, 0.36, 0.2):
            at, _ = coarse.saddle(share * order)
            loss = at.log_moment - at.order * epsilon - log_delta
            if candidates and loss > max(14.0, least_loss + 3.0):
                break
            least_loss = min(loss, least_loss)
            try:
                period, orders = _period(
                    coarse, at, epsilon=epsilon, span=span, log_target=at.log_size - 27.0
                )
            except Unsuitable:
                continue
            candidates.append((period, at.order, orders, loss))
        if not candidates:
            raise Unsuitable("no period brings the aliasing error down")
        period, order, orders, loss = min(candidates)
        size = 2**log2_size
        step = max(period, span) / size
        grids = self._grids(windows, size, [(order, math.inf)])
        eta = _eta(step, loss)
        up, down = (
            _transform(Composition(self._side(grids, side)), order, orders, size=size, step=step, eta=eta)
            for side in (0, 1)
        )
        return Lattice([up], [down], self._log_free(grids))

    def _log_free(self, grids: Sequence[tuple[Grid, Grid]]) -> tuple[float, float]:
        up, down = (
            sum(n * math.log1p(-min(g.infinity_mass, 1.0 - EPS)) for g, n in self._side(grids, side))
            for side in (0, 1)
        )
        return up, down

    def layered(self, *, epsilon: float, log_delta: float, log2_size: int) -> Lattice:
        """The lattice of step 2^-log2_size of the window, by layers of the largest loss (see `layers`).

        Raises:
          Unsuitable: too many cells, or nothing bounds the aliasing.
        """
        windows = self._windows(1.0)
        span = max(high - low for low, high in windows)
        step = span / 2**log2_size
        cuts = layers.cuts(epsilon, max(high for _, high in windows))
        coarse = layers.split(
            self._side(self._grids(windows, _COARSE, [(0.0, math.inf)], absorb=True), 0), cuts
        )
        found = [None if measure is None else self._order(measure, epsilon) for measure in coarse]
        # Cells are to be narrow under the tilts of the layers that matter.
        weights = [
            at.log_moment - at.order * epsilon + at.log_size if at is not None else -math.inf for at in found
        ]
        tilts = [
            (at.order, cut)
            for at, cut, weight in zip(found, cuts, weights, strict=True)
            if at is not None and weight > max(weights) - _LAYERS_APART
        ]
        grids = self._grids(windows, 2 ** (log2_size - 1), tilts, absorb=True)
        up, down = (layers.split(self._side(grids, side), cuts) for side in (0, 1))
        above: list[Part] = []
        below: list[Part] = []
        for rough, at, *measures in zip(coarse, found, up, down, strict=True):
            if rough is None or at is None:
                if any(measure is not None for measure in measures):
                    raise Unsuitable("a layer is too thin for the coarse grid")
                continue
            loss = at.log_moment - at.order * epsilon - log_delta
            if loss + at.log_size < _NEGLIGIBLE:
                above += [Chernoff(measure, at.order) for measure in measures[:1] if measure is not None]
                continue
            period, alias_orders = _period(
                rough, at, epsilon=epsilon, span=span, log_target=at.log_size - 27.0 - max(loss, 0.0)
            )
            size = 2 * max(2**9, fft.next_fast_len(math.ceil(0.5 * period / step), real=True))
            if size > _MOST_NODES:
                raise Unsuitable("a layer needs too many nodes")
            eta = _eta(step, loss)
            for parts, measure in zip((above, below), measures, strict=True):
                if measure is not None:
                    parts.append(_transform(measure, at.order, alias_orders, size=size, step=step, eta=eta))
        return Lattice(above, below, self._log_free(grids))

    def _order(self, measure: Measure, epsilon: float) -> Saddle:
        """The saddle point of `measure` that belongs to `epsilon`, about."""

        def at(order: float) -> Saddle:
            return measure.saddle(order)[0]

        def excess(here: Saddle) -> float:
            return (here.epsilon - epsilon) * here.order

        return saddle.find_order(at, math.inf, excess, most=self._most)


def _eta(step: float, loss: float) -> float:
    """At the highest frequency y, e^{-(eta y)^2 / 2} / y is left: small beside delta's share of the scale."""
    return step / math.pi * math.sqrt(2.0 * min(max(18.0 + loss + math.log(step), 8.0), 40.0))


def _bounds(measure: Measure, order: float, orders: Sequence[float], smoothing: float) -> saddle.Alias:
    """Chernoff bounds of this very measure: an optimistic grid's moments may exceed a pessimistic one's."""

    def log_moment(s: float) -> float:
        at, error = measure.saddle(s)
        return at.log_moment + error + smoothing * s * (s + 1.0)

    return saddle.chernoff(order, log_moment(order), orders, log_moment)


def _period(
    measure: Measure, at: Saddle, *, epsilon: float, span: float, log_target: float
) -> tuple[float, list[float]]:
    """A period at which the aliasing is small, and the orders that show it."""
    alias = _bounds(measure, at.order, saddle.chernoff_orders(at.order, math.inf, closest=_CLOSEST), 0.0)
    start = min(4.0 * math.sqrt(at.variance) + 4.0 / at.order, span)
    period = alias.period(epsilon, log_target, start)
    return period, alias.best_orders(epsilon, period)


def _transform(
    measure: Measure, order: float, orders: Sequence[float], *, size: int, step: float, eta: float
) -> Transform:
    alias = _bounds(measure, order, orders, 0.5 * eta**2)
    return Transform(measure, order=order, size=size, step=step, eta=eta, alias=alias)
