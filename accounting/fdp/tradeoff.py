"""Certified trade-off curves of any composition."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from exactdp.accounting import prv, validate
from exactdp.accounting.fdp.curve import PiecewiseLinearTradeoff
from exactdp.accounting.fdp.envelope import Samples
from exactdp.accounting.interval import Interval
from exactdp.accounting.prv import Mechanism

Array = NDArray[np.float64]

_EPS = float(np.finfo(np.float64).eps)
_ROUNDS = 14
_START = 13
DIRECTIONS = ("worst", "remove", "add")
Direction = Literal["worst", "remove", "add"]
Composition = Sequence[tuple[Mechanism, int]]


@dataclasses.dataclass(frozen=True)
class TradeoffBracket:
    """A trade-off curve between two piecewise-linear ones (certified up to a few roundings of the knots).

    Attributes:
      lower: the guarantee: no test does better.
      upper: some test does at least as well, up to the stated width.
    """

    lower: PiecewiseLinearTradeoff
    upper: PiecewiseLinearTradeoff


def tradeoff(
    composition: Composition, *, fpr: Sequence[float], direction: Direction = "worst", tolerance: float = 1e-4
) -> list[Interval]:
    """The least false-negative rate of any test of neighbouring data sets, at each false-positive rate.

    The directions of a composed pair (P, Q), Q without the record:

    - `"remove"`: the null hypothesis is Q; a false positive says "present" of an absent record;
    - `"add"`: the null hypothesis is P; this curve is the inverse of the other one;
    - `"worst"`: the convex envelope of the smaller of the two, which is symmetric. It is the largest convex
      curve that holds whichever of the two data sets the adversary tests for, and equivalent to all
      the (epsilon, delta) guarantees in both directions. The smaller of the two may be above it.

    Args:
      composition: (mechanism, count) pairs; all of a direction are composed before the directions meet.
      fpr: false-positive rates in [0, 1].
      direction: `"worst"`, `"remove"` or `"add"`.
      tolerance: width of the intervals aimed at, in (0, 1); where the values of delta are not known
        well enough the intervals are wider, never wrong.

    Returns:
      Certified intervals of the false-negative rate, one for each `fpr`. At 0 and 1 they are exact: one less
      the mass that gives the record away, and 0.

    Raises:
      ValueError: an argument is out of range.

    Source: Dong, Roth and Su 2022 (arXiv 1905.02383), on curves and (epsilon, delta) as convex duals;
    envelopes: see `fdp.envelope`.
    """
    rates = np.array([validate.probability("fpr", value) for value in fpr], dtype=np.float64)
    query = _Query(composition, direction, tolerance)
    inner = rates[(rates > 0.0) & (rates < 1.0)]
    if len(inner):
        query.refine(np.unique(inner))
    return [query.answer(rate) for rate in rates.tolist()]


def curve(
    composition: Composition,
    *,
    direction: Direction = "worst",
    tolerance: float = 1e-4,
    smallest_fpr: float = 1e-6,
) -> TradeoffBracket:
    """The whole trade-off curve, between two piecewise-linear ones.

    Args:
      composition: as in `tradeoff`.
      direction: as in `tradeoff`.
      tolerance: width aimed at, on a grid of 65 rates dense at both ends.
      smallest_fpr: the least positive rate of the grid, in (0, 0.1]; the bracket is valid, if wider, below
        it.

    Raises:
      ValueError: an argument is out of range.
    """
    least = validate.open_probability("smallest_fpr", smallest_fpr)
    if least > 0.1:
        raise ValueError(f"smallest_fpr must be at most 0.1, got {smallest_fpr}")
    half = np.geomspace(least, 0.5, 33)
    query = _Query(composition, direction, tolerance)
    query.refine(np.unique(np.append(half, 1.0 - half)))
    return query.bracket()


class _Query:
    """Samples of one composition and direction, refined where the envelopes are apart."""

    def __init__(self, composition: Composition, direction: Direction, tolerance: float) -> None:
        validate.one_of("direction", direction, DIRECTIONS)
        self.composition = list(composition)
        self.direction: Direction = direction
        self.tolerance = validate.open_probability("tolerance", tolerance)
        # delta_PQ is what the right half (x >= 1) needs, delta_QP the left half.
        opposite: dict[Direction, Direction] = {"worst": "worst", "remove": "add", "add": "remove"}
        self.right: Direction = direction
        self.left: Direction = opposite[direction]
        infinite, missing = _lost_masses(self.composition)
        if direction == "worst":
            infinite = missing = max(infinite, missing)
        elif direction == "add":
            infinite, missing = missing, infinite
        self.infinite, self.missing = infinite, missing
        self.known: dict[tuple[bool, float], Interval] = {}
        self.samples: Samples | None = None

    def refine(self, rates: Array) -> None:
        """Adds samples until the envelopes at `rates`, in (0, 1), are within the tolerance."""
        self._start(float(rates[0]))
        for _ in range(_ROUNDS):
            samples = self._collect()
            gap = self._gap(samples, rates)
            _, at = samples.upper(rates)
            wanted = {self._locate(v) for v in np.unique(at[gap > self.tolerance]).tolist() if v > 0.0}
            wanted = {point for point in wanted if not self._near(point)}
            if not wanted:
                return
            self._evaluate(wanted)
        self._collect()

    def answer(self, rate: float) -> Interval:
        """The interval at one rate."""
        if rate == 1.0:
            return Interval(0.0, 0.0, "closed form")
        if rate == 0.0:
            value = 1.0 - self.infinite
            slack = 0.0 if self.infinite in (0.0, 1.0) else 1e-12 * value + 2.0 * _EPS
            return Interval(max(value - slack, 0.0), min(value + slack, 1.0), "closed form")
        if self.samples is None:
            raise ArithmeticError("refine must come first")
        at = np.array([rate])
        lower, upper = float(self.samples.lower(at)[0][0]), float(self.samples.upper(at)[0][0])
        return Interval(min(lower, 1.0 - rate), upper, "f-DP envelopes")

    def bracket(self) -> TradeoffBracket:
        """Both envelopes as curves."""
        if self.samples is None:
            raise ArithmeticError("refine must come first")
        s = self.samples
        v, y = s.vertices()
        keep = np.isfinite(v) & (v < 1e300)
        lower = PiecewiseLinearTradeoff.from_lines(s.x, np.minimum(np.minimum(s.low, s.x), 1.0))
        upper = PiecewiseLinearTradeoff.from_lines(v[keep], np.minimum(np.minimum(y, v), 1.0)[keep])
        return TradeoffBracket(lower, upper)

    def _start(self, least: float) -> None:
        """A first grid, to where delta has come down to the tolerance or a sample can no longer matter."""
        rest = 0.25 * self.tolerance
        lost = max(self.infinite, self.missing) + rest
        reach = prv.epsilon(self.composition, delta=lost).upper if lost < 1.0 else 0.0
        high = min(reach, math.log(1.0 / least), 700.0)  # beyond, C(x) - x fpr < 0
        low = min(reach, math.log(1.0 / rest), 700.0)  # beyond, C(x) <= x < tolerance / 4
        if self.direction == "worst":
            high = max(low, high)
        points = {(True, e) for e in np.linspace(0.0, high, _START).tolist()}
        if self.direction != "worst":
            points |= {(False, e) for e in np.linspace(0.0, low, _START).tolist() if e > 0.0}
        # Beyond the largest loss C is constant: bounded losses have a kink there.
        for right, largest in zip(
            (True, False), _largest_losses(self.composition, self.direction), strict=True
        ):
            limit = math.log(1.0 / (least if right else rest))
            if largest <= limit and (right or self.direction != "worst"):
                points.add((right, max(largest, 0.0)))
        self._evaluate(points - {(False, 0.0)})

    def _evaluate(self, points: set[tuple[bool, float]]) -> None:
        sides: list[tuple[bool, Direction]] = [(True, self.right), (False, self.left)]
        for right, direction in sides:
            epsilons = sorted(e for side, e in points if side == right)
            if epsilons:
                deltas = prv.delta_curve(self.composition, epsilons=epsilons, direction=direction)
                self.known.update({(right, e): d for e, d in zip(epsilons, deltas, strict=True)})

    def _collect(self) -> Samples:
        unit = 4.0 * _EPS
        rows: list[tuple[float, float, float]] = []
        known = self.known
        if self.direction == "worst":  # one delta serves both halves of a symmetric curve
            known = known | {(not right, eps): delta for (right, eps), delta in known.items() if eps > 0.0}
        for (right, eps), delta in known.items():
            x = math.exp(eps if right else -eps)
            scale = 1.0 if right else x
            low = max(scale * (1.0 - delta.upper) * (1.0 - unit), 0.0)
            up = scale * (1.0 - delta.lower) * (1.0 + unit)
            rows.append((x, low, min(up, x, 1.0)))
        rows.sort()
        x, low, up = (np.array(column) for column in zip(*rows, strict=True))
        cap, steepest = (min(1.0, (1.0 - lost) * (1.0 + 1e-12)) for lost in (self.infinite, self.missing))
        self.samples = Samples(x, low, np.minimum(up, np.minimum(cap, steepest * x)), cap, steepest)
        return self.samples

    def _gap(self, samples: Samples, rates: Array) -> Array:
        return samples.upper(rates)[0] - samples.lower(rates)[0]

    def _locate(self, x: float) -> tuple[bool, float]:
        """Side and epsilon of an abscissa."""
        log_x = math.log(x)
        return (log_x >= 0.0 or self.direction == "worst"), min(abs(log_x), 700.0)

    def _near(self, point: tuple[bool, float]) -> bool:
        """Whether a sample is so close that another one would only add noise."""
        right, eps = point
        return any(side == right and abs(eps - e) <= 1e-9 * (1.0 + e) for side, e in self.known)


def _largest_losses(composition: Composition, direction: Direction) -> tuple[float, float]:
    """Largest finite loss of the composition where x >= 1, and where x <= 1."""
    remove = add = 0.0
    for mechanism, count in composition:
        laws = mechanism.directions()
        if laws is not None and count:
            remove, add = remove + count * laws[0].support[1], add + count * laws[1].support[1]
    if direction == "worst":
        return max(remove, add), max(remove, add)
    return (remove, add) if direction == "remove" else (add, remove)


def _lost_masses(composition: Composition) -> tuple[float, float]:
    """P-mass of an infinite loss, and Q-mass that P never reaches, of a composition."""
    kept_p = kept_q = 0.0
    for mechanism, count in composition:
        laws = mechanism.directions()
        if laws is None or count == 0:
            continue
        for mass, which in ((laws[0].infinity_mass, "p"), (laws[0].missing_mass, "q")):
            log_kept = count * (math.log1p(-mass) if mass < 1.0 else -math.inf)
            if which == "p":
                kept_p += log_kept
            else:
                kept_q += log_kept
    return -math.expm1(kept_p), -math.expm1(kept_q)
