"""The search for a pair of inputs that is easier to tell apart than the vertex pair."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from exactdp.accounting import validate
from exactdp.accounting.interval import Interval
from exactdp.accounting.pairs.dirichlet import Dirichlet
from exactdp.accounting.worst_pair import candidates
from exactdp.accounting.worst_pair.inversion import bounds
from exactdp.accounting.worst_pair.proved import loss_dominance_proved
from exactdp.accounting.worst_pair.renyi import renyi
from exactdp.accounting.worst_pair.result import BeatingPair, WorstPairResult

Array = NDArray[np.float64]

_SCREEN, _FINAL = 1e-7, 1e-12  # relative errors aimed at: while searching, and for a verdict
_RENYI_ROUNDING = 1e-10
_SMALLEST_DELTA = 1e-250


def check(
    *,
    scaling: float,
    offset: float,
    num_classes: int,
    epsilons: Sequence[float] | None = None,
    deltas: Sequence[float] | None = None,
    orders: Sequence[float] | None = None,
    num_random: int = 100,
    num_ascents: int = 2,
    seed: int = 0,
) -> WorstPairResult:
    """Looks for a pair of inputs that beats the vertex pair of the Dirichlet mechanism.

    Candidates: uniform distributions on m against n coordinates, two-coordinate mixtures, random pairs, and
    local ascent (transfers of mass between two coordinates of p or p') from the best of them, at each ε and
    each order. Pairs are ordered and the families contain both ways round, so that both directions are
    searched. A verdict "beaten" is certified; "dominated" without a proof says that this search found none.

    Args:
      scaling: r > 0.
      offset: α > 0.
      num_classes: K in [2, 1000].
      epsilons: where hockey-stick divergences are compared.
      deltas: instead of `epsilons`: the values that the vertex pair's δ(ε) should take there, below its total
        variation. With neither: ε = 0, and where δ is 10^-1/2, 10^-1, 10^-2, 10^-4, 10^-7, 10^-10 of the
        total variation.
      orders: Rényi orders in (1, 1 + α/r); eight of them by default.
      num_random: pairs in each of the two random families, >= 1.
      num_ascents: ascents at each ε and each order, >= 0.
      seed: of everything random.

    Returns:
      The result; its `proof` says whether a theorem made the search unnecessary.

    Raises:
      ValueError: an argument is outside its range, or the vertex pair's δ is below 1e-250 at an ε.
      ArithmeticError: two independent evaluations of the vertex pair disagree.
    """
    proof = loss_dominance_proved(scaling=scaling, offset=offset, num_classes=num_classes)
    classes = validate.count("num_classes", num_classes, minimum=2)
    if classes > 1000:
        raise ValueError(f"num_classes must be <= 1000, got {num_classes}")
    num_random = validate.count("num_random", num_random, minimum=1)
    num_ascents = validate.count("num_ascents", num_ascents)
    seed = validate.count("seed", seed)
    vertex = Dirichlet(float(scaling), float(offset))
    grid = _epsilons(vertex, epsilons, deltas)
    order_grid = _orders(vertex, orders)
    values = [_vertex(vertex, classes, epsilon) for epsilon in grid]

    rng = np.random.default_rng(seed)
    families = candidates.families(classes, num_random=num_random, rng=rng)
    state = _Search(vertex, families, num_ascents, rng)
    for epsilon, value in zip(grid, values, strict=True):
        state.run(_HockeyStick(vertex, value, epsilon))
    ratios, state.ratios = state.ratios, {}
    for order in order_grid:
        state.run(_Renyi(vertex, classes, order))
    return WorstPairResult(
        scaling=vertex.scaling,
        offset=vertex.offset,
        num_classes=classes,
        proof=proof,
        dominated=not state.beating,
        epsilons=tuple(grid),
        vertex_deltas=tuple(value.midpoint for value in values),
        ratios={name: tuple(row) for name, row in ratios.items()},
        orders=tuple(order_grid),
        renyi_ratios={name: tuple(row) for name, row in state.ratios.items()},
        beating=tuple(state.beating),
        num_pairs=state.num_pairs,
        seed=seed,
    )


def _epsilons(
    vertex: Dirichlet, epsilons: Sequence[float] | None, deltas: Sequence[float] | None
) -> list[float]:
    total = vertex.hockey_stick(0.0)[0]
    if epsilons is not None:
        if deltas is not None:
            raise ValueError("deltas must not be given together with epsilons")
        if len(epsilons) == 0:
            raise ValueError("epsilons must not be empty, got []")
        return [validate.finite("epsilons", epsilon) for epsilon in epsilons]
    if deltas is None:
        return [0.0] + [_solve(vertex, total * part) for part in (10**-0.5, 0.1, 1e-2, 1e-4, 1e-7, 1e-10)]
    if len(deltas) == 0:
        raise ValueError("deltas must not be empty, got []")
    for delta in deltas:
        if not _SMALLEST_DELTA <= validate.open_probability("deltas", delta) < total:
            raise ValueError(f"deltas must be in [{_SMALLEST_DELTA}, {total}) here, got {delta}")
    return [_solve(vertex, float(delta)) for delta in deltas]


def _solve(vertex: Dirichlet, delta: float) -> float:
    """An ε at which the vertex pair's hockey-stick divergence is about `delta`."""
    low, high = 0.0, vertex.scaling
    while vertex.hockey_stick(high)[0] > delta:
        low, high = high, 2.0 * high
    for _ in range(40):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if vertex.hockey_stick(middle)[0] > delta else (low, middle)
    return low


def _orders(vertex: Dirichlet, orders: Sequence[float] | None) -> list[float]:
    room = vertex.offset / vertex.scaling
    if orders is None:
        return [1.0 + room * part for part in (1e-3, 0.05, 0.2, 0.4, 0.6, 0.8, 0.9, 0.99)]
    if len(orders) == 0:
        raise ValueError("orders must not be empty, got []")
    for order in orders:
        if not 1.0 < validate.finite("orders", order) < 1.0 + room:
            raise ValueError(f"orders must be in (1, 1 + offset / scaling) = (1, {1.0 + room}), got {order}")
    return [float(order) for order in orders]


def _vertex(vertex: Dirichlet, classes: int, epsilon: float) -> Interval:
    """The vertex pair's divergence, by incomplete beta functions and by inversion."""
    value, error = vertex.hockey_stick(epsilon)
    if value < _SMALLEST_DELTA:
        raise ValueError(f"epsilons must leave the vertex pair a delta >= {_SMALLEST_DELTA}, got {epsilon}")
    closed = Interval(max(value - error, 0.0), value + error, "closed form")
    identity = np.eye(classes)
    low, high = bounds(
        identity[0],
        identity[1],
        scaling=vertex.scaling,
        offset=vertex.offset,
        epsilon=epsilon,
        tolerance=_FINAL,
    )
    closed.intersect(Interval(float(low[0]), float(high[0]), "inversion"))
    return closed


@dataclasses.dataclass(frozen=True)
class _HockeyStick:
    """The divergence H(e^ε), and what it is for the vertex pair."""

    mechanism: Dirichlet
    vertex: Interval
    epsilon: float
    order: None = None

    def screen(self, p: Array, q: Array) -> Array:
        low, high = self._bounds(p, q, _SCREEN)
        return 0.5 * (low + high)

    def certify(self, p: Array, q: Array) -> Interval:
        low, high = self._bounds(p, q, _FINAL)
        return Interval(float(low[0]), float(high[0]), "inversion")

    def _bounds(self, p: Array, q: Array, tolerance: float) -> tuple[Array, Array]:
        r, alpha = self.mechanism.scaling, self.mechanism.offset
        least = self.vertex.lower
        return bounds(p, q, scaling=r, offset=alpha, epsilon=self.epsilon, tolerance=tolerance, least=least)


class _Renyi:
    """The Rényi divergence of one order, and what it is for the vertex pair."""

    epsilon = None

    def __init__(self, mechanism: Dirichlet, classes: int, order: float) -> None:
        self.mechanism, self.order = mechanism, order
        identity = np.eye(classes)
        self.vertex = self.certify(identity[0], identity[1])

    def screen(self, p: Array, q: Array) -> Array:
        return renyi(p, q, order=self.order, scaling=self.mechanism.scaling, offset=self.mechanism.offset)

    def certify(self, p: Array, q: Array) -> Interval:
        value = float(self.screen(p, q)[0])
        return Interval(value * (1.0 - _RENYI_ROUNDING), value * (1.0 + _RENYI_ROUNDING), "closed form")


@dataclasses.dataclass(frozen=True)
class _Found:
    """A candidate with its ratio to the vertex pair."""

    ratio: float
    family: str
    p: Array
    p_prime: Array

    @property
    def is_vertex_pair(self) -> bool:
        return bool(
            self.p.max() == 1.0 and self.p_prime.max() == 1.0 and self.p.argmax() != self.p_prime.argmax()
        )


class _Search:
    """Runs the candidates and the ascents, and keeps what they found."""

    def __init__(
        self,
        vertex: Dirichlet,
        families: dict[str, candidates.Pairs],
        num_ascents: int,
        rng: np.random.Generator,
    ) -> None:
        self.vertex, self.families, self.num_ascents, self.rng = vertex, families, num_ascents, rng
        self.ratios: dict[str, list[float]] = {}
        self.beating: list[BeatingPair] = []
        self.num_pairs = 0

    def run(self, target: _HockeyStick | _Renyi) -> None:
        """One ε or one order."""
        scale, best = target.vertex.midpoint, list[_Found]()
        for name, (p, q) in self.families.items():
            values = self._evaluate(target, p, q) / scale
            top = int(values.argmax())
            best.append(_Found(float(values[top]), name, p[top], q[top]))
        found = list(best)
        best.sort(key=lambda entry: -entry.ratio)
        climbed = [self._ascend(target, start, scale) for start in best[: self.num_ascents]]
        if climbed:
            found.append(dataclasses.replace(max(climbed, key=lambda entry: entry.ratio), family="ascent"))
        for entry in found:
            ratio = self._verdict(target, entry)
            self.ratios.setdefault(entry.family, []).append(ratio)

    def _verdict(self, target: _HockeyStick | _Renyi, entry: _Found) -> float:
        """The ratio with all digits; a pair that certainly beats the vertex pair is kept."""
        if entry.is_vertex_pair:
            return 1.0
        # Screening is good to 1e-6 at least.
        if entry.ratio < 1.0 - 1e-5:
            return entry.ratio
        certified = target.certify(entry.p[None, :], entry.p_prime[None, :])
        self.num_pairs += 1
        if certified.lower > target.vertex.upper:
            p, p_prime = tuple(entry.p.tolist()), tuple(entry.p_prime.tolist())
            self._keep(
                BeatingPair(p, p_prime, target.epsilon, target.order, certified, target.vertex, entry.family)
            )
        return certified.midpoint / target.vertex.midpoint

    def _keep(self, pair: BeatingPair) -> None:
        """One of each kind stays: the one with the larger ratio."""
        same = [other for other in self.beating if (other.order is None) == (pair.order is None)]
        excess = pair.divergence.midpoint / pair.vertex.midpoint
        if all(excess > other.divergence.midpoint / other.vertex.midpoint for other in same):
            self.beating = [other for other in self.beating if other not in same] + [pair]

    def _evaluate(self, target: _HockeyStick | _Renyi, p: Array, q: Array) -> Array:
        self.num_pairs += p.shape[0]
        return target.screen(p, q)

    def _ascend(self, target: _HockeyStick | _Renyi, start: _Found, scale: float) -> _Found:
        """The best of 40 transfers at a time; the share moved shrinks when none is better."""
        best, share, steps = start, 1.0, 0
        while share > 0.02 and steps < 25 and not best.is_vertex_pair:
            p, q = candidates.neighbours(best.p, best.p_prime, share=share, limit=40, rng=self.rng)
            values = self._evaluate(target, p, q) / scale
            i = int(values.argmax())
            steps += 1
            if values[i] > best.ratio * (1.0 + 1e-6):
                best = _Found(float(values[i]), start.family, p[i], q[i])
            else:
                share *= 0.4
        return best
