"""delta(epsilon) and epsilon(delta) as a contour integral of the moment generating function.

delta(eps) = (1 / 2 pi i) * integral of M(z) exp(-z eps) / (z (z + 1)) dz on Re z = tau > 0, by the trapezoid
rule. Phases are advanced by repeated multiplication of midpoints: rotating balls would grow (wrapping), and
the working precision has guard digits for the rounding. The aliasing error is the sum over k != 0 of
delta(eps + k P) exp(tau k P), P = 2 pi / h; P is chosen so that the Chernoff bound of that sum is below the
digits asked for.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence

from flint import acb, arb

from exactdp.benchmarks.soundness.families import LN10, Mechanism, Quadrature, set_digits

WORK_LIMIT = {"": 4e8}  # node pairs; `limit_work` lowers it for quick references


def limit_work(pairs: float) -> None:
    """Sets how many (contour node, quadrature node) pairs one contour may cost before it is given up."""
    WORK_LIMIT[""] = pairs


class OutOfReachError(ArithmeticError):
    """This method would need too much work for this input."""


@dataclasses.dataclass
class Guide:
    """float64 cumulant function of a composition in one direction, loss atom at 0 removed."""

    steps: Sequence[tuple[Mechanism, int]]
    add: bool

    def __post_init__(self) -> None:
        self.log_atom = 0.0
        for mechanism, count in self.steps:
            mass = float(mechanism.atom_at_zero())
            self.log_atom += count * math.log(mass) if mass > 0 else -math.inf
        lows, highs = zip(*[(m.order_low, m.order_high) for m, _ in self.steps], strict=True)
        self.top = -1 - max(lows) if self.add else min(highs)

    def __call__(self, tau: float) -> tuple[float, float, float]:
        k = k1 = k2 = 0.0
        for mechanism, count in self.steps:
            a, b, c = mechanism.cumulant(-1 - tau if self.add else tau)
            k, k1, k2 = k + count * a, k1 + count * (-b if self.add else b), k2 + count * c
        if self.log_atom > -math.inf and self.log_atom - k > -700:
            rest = -math.expm1(min(self.log_atom - k, -1e-12))
            first = k1 / rest
            k, k1, k2 = k + math.log(rest), first, (k2 + k1 * k1) / rest - first * first
        return k, k1, max(k2, 1e-300)

    def saddle(self, tau: float) -> tuple[float, float]:
        """(epsilon, log delta), the saddle-point approximation parametrised by tau."""
        k, k1, k2 = self(tau)
        epsilon = k1 - 1 / tau - 1 / (tau + 1)
        curvature = k2 + tau**-2 + (tau + 1) ** -2
        return epsilon, k - tau * epsilon - math.log(tau * (tau + 1)) - 0.5 * math.log(
            2 * math.pi * curvature
        )

    def find(self, goal: float, index: int) -> float:
        """tau at which `saddle(tau)[index]` is `goal` (index 0: epsilon, 1: log delta)."""
        sign = 1.0 if index == 0 else -1.0
        low, high, step = -math.inf, math.inf, 1.0  # of log(tau), or of logit(tau / top)
        for _ in range(70):
            if low == -math.inf or high == math.inf:
                if low == -math.inf and high == math.inf:
                    middle = 0.0
                else:
                    middle = low + step if high == math.inf else high - step
                    step *= 2
            else:
                middle = 0.5 * (low + high)
            if abs(middle) > 600 or high - low < 1e-3:
                break
            tau = math.exp(middle) if self.top == math.inf else self.top / (1 + math.exp(-middle))
            if tau >= self.top:
                high = middle
                continue
            try:
                value = sign * self.saddle(tau)[index]
            except (OverflowError, ValueError, MemoryError):
                value = math.inf
            if math.isnan(value) or value > sign * goal:
                high = middle
            else:
                low = middle
        middle = 0.5 * (low + high) if math.isfinite(low + high) else max(low, min(high, 0.0))
        if self.top == math.inf:
            return math.exp(middle)
        return min(
            0.9 * self.top, self.top / (1 + math.exp(-middle))
        )  # at 0.9 a few digits are lost, no more

    def settle(self, epsilon: float, log_delta: float, vary: float, most: float = 100.0) -> float:
        """The tau at or left of the saddle of `epsilon` with the shortest period.

        `vary` < 1 moves it further. Left of the saddle the terms exceed their sum by e^excess, at most
        e^most: ball arithmetic pays for that with digits. It is worth it where the cumulant function rises
        like a wall just right of the saddle.
        """
        saddle = self.find(epsilon, 0)
        level = self(saddle)[0] - saddle * epsilon

        def excess(tau: float) -> float:  # log of how far the terms exceed those at the saddle
            return self(tau)[0] - tau * epsilon - level

        near = [saddle * f for f in (1.0, 0.95, 0.9, 0.84, 0.78, 0.7, 0.6, 0.5, 0.4)]
        best = min(
            (tau for tau in near if tau == saddle or excess(tau) < most),
            key=lambda tau: self.period(tau, epsilon, log_delta, 20),
        )
        if vary != 1.0:
            while excess(best * vary) > excess(best) + 12:
                vary = 0.5 * (1 + vary)
            return best * vary
        return best

    def period(self, tau: float, epsilon: float, log_delta: float, digits: float) -> float:
        """P with an aliasing error below 10^-digits of delta."""
        tol = digits * LN10 + 6
        left = (tol - min(0.0, log_delta)) / tau
        right = math.inf
        for i in range(1, 60):
            factor = 1.04 * 1.09**i
            other = tau * factor if self.top == math.inf else tau + (self.top - tau) * i / 61
            try:
                k = self(other)[0]
            except (OverflowError, ValueError):
                break
            here = (k - other * epsilon - log_delta + tol) / (other - tau)
            if here > 2 * right + left:
                break
            right = min(right, here)
        return max(left, right)


@dataclasses.dataclass
class Contour:
    """M^T / (z (z + 1)) on the nodes of one contour."""

    tau: arb
    step: arb
    values: list[acb]

    def delta(self, epsilon: arb) -> tuple[arb, arb]:
        """delta(epsilon) and its derivative."""
        rotation = acb(0, -self.step * epsilon).exp()
        phase, total, slope = acb(1), acb(0), acb(0)
        y = arb(0)
        for j, value in enumerate(self.values):
            term = value * phase
            if j == 0:
                term = term / 2
            total += term
            slope -= term * acb(self.tau, y)
            phase = (phase * rotation).mid()
            y = self.step * (j + 1)
        scale = self.step / arb.pi() * (-self.tau * epsilon).exp()
        return total.real * scale, slope.real * scale


def build(
    guide: Guide, tau: float, epsilon: float, log_delta: float, digits: float, shrink: float = 1.0
) -> Contour:
    """Evaluates the contour until the terms have decayed to 10^-digits of the sum."""
    total_count = sum(count for _, count in guide.steps)
    digits = digits + 6
    # the terms may exceed their sum
    guard = max(0.0, guide(tau)[0] - tau * epsilon - log_delta) / LN10
    inner = digits + guard + math.log10(total_count) + 2
    set_digits(inner + 4)
    step = arb(2 * math.pi / guide.period(tau, epsilon, log_delta, digits) * shrink)
    s = arb(tau)
    atom = arb(1)
    for mechanism, count in guide.steps:
        atom *= mechanism.atom_at_zero() ** count
    values: list[acb] = []
    rotation = acb(0, -step * arb(epsilon)).exp()
    running, work = acb(0), 0.0
    size = 24
    while True:
        start = len(values)
        nodes = sum(
            m.cost(tau, float(step) * (start + size), inner)
            for m, _ in guide.steps
            if isinstance(m, Quadrature)
        )
        work += float(nodes + 100) * size
        if work > WORK_LIMIT[""]:
            raise OutOfReachError(f"contour: the integrand decays too slowly (work {work:.2g})")
        block = [acb(1)] * size
        for mechanism, count in guide.steps:
            if guide.add:
                line = [m.conjugate() for m in mechanism.line(-1 - s, step, start, size, inner)]
            else:
                line = mechanism.line(s, step, start, size, inner)
            block = [b * m**count for b, m in zip(block, line, strict=True)]
        log_peak = -math.inf
        phase = rotation**start
        for j, value in enumerate(block):
            z = acb(s, step * (start + j))
            value = (value - atom) / (z * (z + 1))
            values.append(value)
            running += value * phase
            phase = (phase * rotation).mid()
            log_peak = max(log_peak, log_abs(value))
        if log_peak < log_abs(running) - digits * LN10:
            return Contour(s, step, values)
        size = max(24, len(values) // 2)


def log_abs(value: acb) -> float:
    """log |value| of the midpoint, -inf for 0."""
    size = abs(value.mid())
    return float(size.log()) if size > 0 else -math.inf


def delta_at(
    steps: Sequence[tuple[Mechanism, int]], add: bool, epsilon: str, digits: float, vary: float = 1.0
) -> arb:
    """delta(epsilon) of a composition in one direction."""
    guide = Guide(steps, add)
    eps = float(epsilon)
    if eps >= sum(count * mechanism.loss_bound(add) for mechanism, count in steps):
        return arb(0)
    log_delta = min(0.0, guide.saddle(guide.find(eps, 0))[1]) - 5
    tau = guide.settle(eps, log_delta, vary)
    contour = build(guide, tau, eps, log_delta, digits, 1.0 if vary == 1.0 else 0.87)
    return contour.delta(arb(epsilon))[0]


def epsilon_at(
    steps: Sequence[tuple[Mechanism, int]], add: bool, delta: str, digits: float, vary: float = 1.0
) -> arb:
    """The epsilon (of any sign) at which delta(epsilon) = delta in one direction."""
    guide = Guide(steps, add)
    set_digits(digits + 30)
    goal = arb(delta)
    log_delta = float(goal.log())
    epsilon = arb(guide.saddle(guide.find(log_delta, 1))[0])
    for _ in range(40):  # coarse contours until the guess is good, then a fine one
        tau = guide.settle(float(epsilon), log_delta - 3, 1.0)
        value, slope = build(guide, tau, float(epsilon), log_delta - 3, 5).delta(epsilon)
        limit = 0.05 + 0.5 * abs(float(epsilon))
        if value > 0 and slope < 0:
            move = float(((goal / value).log() * value / slope).mid())
        else:
            move = -limit  # delta is so small here that the coarse contour does not see it
        epsilon = arb(float(epsilon) + min(limit, max(-limit, move)))
        if abs(move) < 1e-3 * max(1e-3, abs(float(epsilon))):
            break
    tau = guide.settle(float(epsilon), log_delta - 3, vary)
    contour = build(guide, tau, float(epsilon), log_delta - 3, digits, 1.0 if vary == 1.0 else 0.87)
    return solve(contour, epsilon, goal, digits)


def solve(contour: Contour, epsilon: arb, goal: arb, digits: float) -> arb:
    """Newton's method on log delta."""
    for _ in range(60):
        value, slope = contour.delta(epsilon)
        if not value > 0 or not slope < 0:
            raise OutOfReachError("contour: Newton left the range of this contour")
        move = ((goal / value).log() * value / slope).mid()
        bound = max(1.0, abs(float(epsilon)))
        if abs(move) > bound:
            move = arb(bound) if move > 0 else arb(-bound)
        epsilon = (epsilon + move).mid()
        if abs(float(move)) <= 10.0 ** -(digits + 2) * abs(float(epsilon)) or float(move) == 0:
            return epsilon
    raise OutOfReachError("contour: Newton did not converge")
