"""A mechanism of one's own, from its CDFs or its densities, without touching an accountant."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Sequence

import numpy as np

from exactdp.accounting import validate
from exactdp.accounting.pairs import base, crossing, panels

_EPS = float(np.finfo(np.float64).eps)

Function = Callable[[base.Array], base.Array]


@dataclasses.dataclass(frozen=True, kw_only=True)
class Custom(base.Pair):
    """A pair given by the distribution functions of an outcome x and its loss; see `from_cdf`.

    It offers masses and hockey-stick divergences, which is what the lattice engine needs.
    """

    cdf_p: Function
    cdf_q: Function
    sf_p: Function
    sf_q: Function
    loss: Function
    pieces: tuple[tuple[float, float, bool], ...]
    loss_support: tuple[float, float]
    relative_error: float
    absolute_error: float
    loss_error: float
    is_symmetric: bool = False
    infinite: float = 0.0
    missing: float = 0.0

    @property
    def infinity_mass(self) -> float:
        return self.infinite

    @property
    def missing_mass(self) -> float:
        return self.missing

    @property
    def symmetric(self) -> bool:
        return self.is_symmetric

    @property
    def support(self) -> tuple[float, float]:
        return self.loss_support

    def masses(self, edges: base.Array) -> base.Masses:
        totals = [np.zeros(len(edges) + 1) for _ in range(4)]
        for low, high, increasing in self.pieces:
            x = self._crossings(edges, low, high, increasing)
            p, p_error = self._cells(self.cdf_p, self.sf_p, low, high, x, increasing)
            q, q_error = self._cells(self.cdf_q, self.sf_q, low, high, x, increasing)
            for total, part in zip(totals, (p, q, p_error, q_error), strict=True):
                total += part
        return base.Masses(totals[0], totals[1], totals[2], totals[3])

    def hockey_stick(self, epsilon: float, *, reverse: bool = False) -> tuple[float, float]:
        # (Q, P): the event is u < -epsilon.
        m = self.masses(np.array([-epsilon if reverse else epsilon]))
        if reverse:
            p, q, dp, dq, certain = m.q[0], m.p[0], m.q_error[0], m.p_error[0], self.missing
        else:
            p, q, dp, dq, certain = m.p[1], m.q[1], m.p_error[1], m.q_error[1], self.infinite
        scale = math.exp(min(epsilon, 700.0))
        value, error = p - scale * q, dp + scale * dq + 4 * _EPS * (p + scale * q)
        low, high = max(value - error, 0.0), min(max(value, 0.0) + error, p + dp)
        return certain + 0.5 * float(low + high), 0.5 * float(high - low) + 4 * _EPS * certain

    def _crossings(
        self, edges: base.Array, low: float, high: float, increasing: bool
    ) -> tuple[base.Array, base.Array]:
        """Brackets in x of where the loss crosses each edge."""
        slack = self.loss_error * np.maximum(1.0, np.abs(edges))
        both = np.concatenate([edges - slack, edges + slack])
        first, last = crossing.bracket(self.loss, both, low, high, increasing)
        n = len(edges)
        return (first[:n], last[n:]) if increasing else (first[n:], last[:n])

    def _cells(
        self,
        cdf: Function,
        sf: Function,
        low: float,
        high: float,
        x: tuple[base.Array, base.Array],
        increasing: bool,
    ) -> tuple[base.Array, base.Array]:
        """Masses of the cells of the loss on one piece, and bounds of their errors."""
        order = slice(None) if increasing else slice(None, None, -1)
        ends = np.concatenate([[low], x[0][order], [high]]), np.concatenate([[low], x[1][order], [high]])
        best, bound = np.zeros(0), np.zeros(0)
        for tail, sign in ((cdf, 1.0), (sf, -1.0)):
            first, second = (_at(tail, e) for e in ends)
            error = self.relative_error * np.maximum(first, second) + self.absolute_error
            error += np.abs(second - first) + 2 * _EPS * np.maximum(first, second)
            error[~np.isfinite(ends[0])] = 0.0
            mass = np.maximum(sign * np.diff(second), 0.0)
            total = error[1:] + error[:-1]
            if len(best) == 0:
                best, bound = mass, total
            else:
                better = total < bound
                best, bound = np.where(better, mass, best), np.where(better, total, bound)
        return best[order], bound[order]


def _at(tail: Function, x: base.Array) -> base.Array:
    with np.errstate(under="ignore", over="ignore"):
        return np.asarray(tail(x), dtype=np.float64)


def from_cdf(
    cdf_p: Function,
    cdf_q: Function,
    *,
    loss: Function,
    outcomes: tuple[float, float] = (-math.inf, math.inf),
    turning_points: Sequence[float] = (),
    loss_support: tuple[float, float] | None = None,
    sf_p: Function | None = None,
    sf_q: Function | None = None,
    relative_error: float = 1e-13,
    absolute_error: float = 0.0,
    loss_error: float = 1e-14,
    symmetric: bool = False,
    infinity_mass: float = 0.0,
    missing_mass: float = 0.0,
) -> Custom:
    """A pair of continuous laws of one real outcome x.

    The loss log(dP/dQ)(x) must be strictly monotone between consecutive `turning_points`. Every cell of
    losses becomes intervals of x by bisection down to neighbouring floats; the bounds returned hold the
    bracket's mass, and all three errors stated here. All functions are vectorised.

    Args:
      cdf_p: x -> P(X <= x).
      cdf_q: x -> Q(X <= x).
      loss: x -> log(dP/dQ)(x), finite inside `outcomes`.
      outcomes: the interval on which both laws have a density.
      turning_points: where the loss turns, increasing, inside `outcomes`.
      loss_support: infimum and supremum of the loss; by default the loss at the ends and turning points.
      sf_p: x -> P(X > x); default 1 - cdf_p, then the upper tail has an absolute error of 2^-52.
      sf_q: the same for Q.
      relative_error: bound of the relative error of all four functions.
      absolute_error: bound of a further absolute error of them.
      loss_error: bound of the error of `loss`, absolute below 1 and relative above.
      symmetric: whether (Q, P) has the same divergences; it is not checked.
      infinity_mass: P-mass where Q has none (outside `outcomes`).
      missing_mass: Q-mass where P has none.

    Raises:
      ValueError: an argument is outside its range, the loss is not a number at an end, or the CDFs do not
        leave the masses stated.

    The certificate is as good as these statements: nothing can be proved about a black box.
    """
    for name, value in (("relative_error", relative_error), ("absolute_error", absolute_error)):
        validate.non_negative(name, value)
    validate.positive("loss_error", loss_error)
    infinite = validate.probability("infinity_mass", infinity_mass)
    missing = validate.probability("missing_mass", missing_mass)
    knots = np.array([outcomes[0], *turning_points, outcomes[1]], dtype=np.float64)
    if np.isnan(knots).any() or (np.diff(knots) <= 0.0).any():
        raise ValueError(f"outcomes and turning_points must increase strictly, got {knots.tolist()}")
    if loss_support is None:
        ends = _limits(loss, knots)
        loss_support = float(ends.min()), float(ends.max())
    extra = 0.0 if sf_p is not None and sf_q is not None else _EPS
    upper_p = sf_p if sf_p is not None else (lambda x: 1.0 - cdf_p(x))
    upper_q = sf_q if sf_q is not None else (lambda x: 1.0 - cdf_q(x))
    ends = np.array(outcomes)
    for name, cdf, lost in (("cdf_p", cdf_p, infinite), ("cdf_q", cdf_q, missing)):
        inside = float(np.diff(_at(cdf, ends))[0])
        if not abs(inside + lost - 1.0) <= 4 * (relative_error + absolute_error) + 4 * _EPS:
            raise ValueError(f"{name} must give mass {1.0 - lost} to the outcomes, got {inside}")
    # Direction of each piece; a loss that loses its digits far out is found here too.
    pieces: list[tuple[float, float, bool]] = []
    for low, high in zip(knots[:-1], knots[1:], strict=True):
        inner = _limits(loss, _inside(float(low), float(high)))
        steps = np.diff(inner) * (1.0 if inner[-1] > inner[0] else -1.0)
        if inner[0] == inner[-1] or (steps < -2.0 * loss_error * np.maximum(1.0, np.abs(inner[1:]))).any():
            raise ValueError(f"loss must be monotone between {low} and {high} within loss_error; it is not")
        pieces.append((float(low), float(high), bool(inner[-1] > inner[0])))
    return Custom(
        cdf_p=cdf_p,
        cdf_q=cdf_q,
        sf_p=upper_p,
        sf_q=upper_q,
        loss=loss,
        pieces=tuple(pieces),
        loss_support=(float(loss_support[0]), float(loss_support[1])),
        relative_error=float(relative_error),
        absolute_error=float(absolute_error) + extra,
        loss_error=float(loss_error),
        is_symmetric=symmetric,
        infinite=infinite,
        missing=missing,
    )


def _inside(low: float, high: float) -> base.Array:
    """Points of (low, high) at which the loss is asked for its direction, the far ends among them."""
    grid = np.concatenate([np.geomspace(1e-9, 1e15, 200), [1e30, 1e100, 1e300]])
    if math.isinf(low) and math.isinf(high):
        return np.concatenate([-grid[::-1], grid])
    if math.isinf(low):
        return high - grid[::-1] * max(1.0, abs(high))
    if math.isinf(high):
        return low + grid * max(1.0, abs(low))
    return low + np.linspace(0.0, 1.0, 402)[1:-1] * (high - low)


def _limits(loss: Function, x: base.Array) -> base.Array:
    with np.errstate(all="ignore"):
        values = np.asarray(loss(x), dtype=np.float64)
    if np.isnan(values).any():
        raise ValueError(f"loss must be a number at {x[np.isnan(values)][0]} (or state loss_support)")
    return values


def from_density(
    log_p: Function,
    log_q: Function,
    *,
    outcomes: tuple[float, float] = (-math.inf, math.inf),
    turning_points: Sequence[float] = (),
    center: float = 0.0,
    scale: float = 1.0,
    loss: Function | None = None,
    loss_support: tuple[float, float] | None = None,
    loss_error: float = 1e-13,
    symmetric: bool = False,
) -> Custom:
    """A pair from two log densities, integrated numerically.

    With x = center + scale sinh(y), panels in y are halved until two Gauss-Legendre rules agree to 1e-13 of
    the panel's mass (in the tails, to the rounding of its logarithm). What is stated as `relative_error` is
    ten times the largest disagreement: an estimate, right for densities that are smooth between the panels,
    not a proof. Use `from_cdf` where distribution functions with a known error exist.

    Args:
      log_p: x -> log density under P, vectorised; it may be -inf.
      log_q: the same under Q.
      outcomes: interval outside which both densities vanish.
      turning_points: as in `from_cdf`; also the points where a density has a kink.
      center: a point in the bulk of both laws.
      scale: their width.
      loss: default log_p - log_q; give it where that cancels.
      loss_support: as in `from_cdf`.
      loss_error: as in `from_cdf`.
      symmetric: as in `from_cdf`.

    Raises:
      ValueError: as in `from_cdf`, or a density does not integrate to one within 1e-8.
    """
    validate.finite("center", center)
    validate.positive("scale", scale)
    knots = np.array([outcomes[0], *turning_points, outcomes[1]], dtype=np.float64)
    y = np.arcsinh((np.clip(knots, -1e290, 1e290) - center) / scale)
    tables = [_Table(f, y, center, scale) for f in (log_p, log_q)]

    def difference(x: base.Array) -> base.Array:
        return np.asarray(log_p(x) - log_q(x))

    return from_cdf(
        tables[0].cdf,
        tables[1].cdf,
        sf_p=tables[0].sf,
        sf_q=tables[1].sf,
        loss=difference if loss is None else loss,
        outcomes=outcomes,
        turning_points=turning_points,
        loss_support=loss_support,
        relative_error=max(1e-13, *(t.relative_error for t in tables)),
        absolute_error=1e-300,
        loss_error=loss_error,
        symmetric=symmetric,
    )


class _Table:
    """Distribution function of a density from sums over panels."""

    def __init__(self, log_density: Function, knots: base.Array, center: float, scale: float) -> None:
        self._log_density, self._center, self._scale = log_density, center, scale
        edges = np.unique(np.concatenate([np.linspace(knots[0], knots[-1], 65), knots]))
        while True:
            coarse, fine = self._panels(edges, 12), self._panels(edges, 20)
            # What rounding alone does grows with the size of the logarithm.
            size = np.abs(np.log(np.maximum(fine, 1e-304)))
            bad = np.abs(coarse - fine) > (1e-13 + 1e-15 * size) * fine + 1e-304
            if not bad.any():
                break
            if len(edges) > 50_000:
                raise ValueError("log density must be smooth between the turning points; it is not")
            edges = np.sort(np.concatenate([edges, 0.5 * (edges[1:] + edges[:-1])[bad]]))
        gap = np.abs(coarse - fine) / np.maximum(fine, 1e-290)
        self.relative_error = 10.0 * float(gap.max()) + 4 * _EPS * len(edges)
        total = float(fine.sum())
        if not abs(total - 1.0) <= 1e-8:
            raise ValueError(f"log density must integrate to 1 within 1e-8, got {total}")
        self._edges, self._total = edges, total
        self._left = np.concatenate([[0.0], np.cumsum(fine)])
        self._right = np.append(np.cumsum(fine[::-1])[::-1], 0.0)

    def _panels(self, edges: base.Array, degree: int) -> base.Array:
        return self._integrate(edges[:-1], edges[1:], degree)

    def _integrate(self, low: base.Array, high: base.Array, degree: int = 16) -> base.Array:
        x, log_weight = panels.gauss(degree)
        h = 0.5 * (high - low)
        y = (low + h)[:, None] + h[:, None] * x[None, :]
        with np.errstate(all="ignore"):
            log_f = self._log_density(self._center + self._scale * np.sinh(y))
            log_f = log_f + np.log(self._scale * np.cosh(y))
            value = np.exp(log_f) @ np.exp(log_weight)
        return np.asarray(h * np.where(np.isnan(value), 0.0, value))

    def _place(self, x: base.Array) -> tuple[base.Array, np.ndarray]:
        y = np.arcsinh((np.clip(x, -1e290, 1e290) - self._center) / self._scale)
        y = np.clip(y, self._edges[0], self._edges[-1])
        return y, np.clip(np.searchsorted(self._edges, y, side="right") - 1, 0, len(self._edges) - 2)

    def cdf(self, x: base.Array) -> base.Array:
        y, k = self._place(np.asarray(x))
        return (self._left[k] + self._integrate(self._edges[k], y)) / self._total

    def sf(self, x: base.Array) -> base.Array:
        y, k = self._place(np.asarray(x))
        return (self._right[k + 1] + self._integrate(y, self._edges[k + 1])) / self._total
