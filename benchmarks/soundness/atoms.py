"""Losses with finitely many values: exact composition, and a lattice contour for large counts."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence

import numpy as np
from flint import acb, arb

from exactdp.benchmarks.soundness import families
from exactdp.benchmarks.soundness.contour import Guide, OutOfReachError
from exactdp.benchmarks.soundness.families import LN10, Mechanism

Atoms = list[tuple[arb, arb]]  # (mass under P, mass under Q) of each outcome
TYPE_LIMIT = 60_000


def number(value: float | str) -> arb:
    """The exact value of a float, or of a decimal string to the working precision."""
    return arb(value)


def pure(epsilon: float) -> Atoms:
    """Binary randomised response: the dominating pair of pure epsilon-DP."""
    e = arb(epsilon)
    high, low = 1 / (1 + (-e).exp()), 1 / (1 + e.exp())
    return [(high, low), (low, high)]


def approximate(epsilon: float, delta: float) -> Atoms:
    """The dominating pair of (epsilon, delta)-DP."""
    d = arb(delta)
    return [(d, arb(0)), (arb(0), d), *[((1 - d) * p, (1 - d) * q) for p, q in pure(epsilon)]]


def finite(p: Sequence[float], q: Sequence[float]) -> Atoms:
    """Two finite distributions; each is divided by its sum, so that float rounding does not matter."""
    sp, sq = sum((arb(x) for x in p), arb(0)), sum((arb(x) for x in q), arb(0))
    return [(arb(a) / sp, arb(b) / sq) for a, b in zip(p, q, strict=True)]


def discrete_gaussian(noise_multiplier: float, sensitivity: int, log_tail: float) -> Atoms:
    """Discrete Gaussian on the integers against its shift; noise_multiplier is its sigma."""
    s = int(sensitivity)
    sigma = arb(noise_multiplier)
    reach = int(float(sigma) * math.sqrt(2 * log_tail)) + 2 + s
    mass = {k: (-(arb(k) ** 2) / (2 * sigma**2)).exp() for k in range(-reach - s, reach + s + 1)}
    total = sum(mass.values(), arb(0))
    return [(mass[k] / total, mass[k - s] / total) for k in range(-reach, reach + s + 1)]


def discrete_laplace(noise_multiplier: float, sensitivity: int) -> Atoms:
    """Discrete Laplace (two-sided geometric) against its shift: outcomes with one loss are joined."""
    s = int(sensitivity)
    b = arb(noise_multiplier)
    r = (-1 / b).exp()
    tail = 1 / (1 + r)  # P(k <= 0)
    inner = [(1 - r) / (1 + r) * r**k for k in range(1, s)]
    atoms = [(tail, tail * r**s)]
    atoms += [(inner[k - 1], inner[s - k - 1]) for k in range(1, s)]
    return [*atoms, (tail * r**s, tail)]


def sampled(atoms: Atoms, coins: str, q: float) -> Atoms:
    """Poisson sampling with hidden or visible coins."""
    rate = arb(q)
    if coins == "hidden":
        return [((1 - rate) * b + rate * a, b) for a, b in atoms]
    if coins == "visible":
        return [(1 - rate, 1 - rate), *[(rate * a, rate * b) for a, b in atoms]]
    return atoms


class Law:
    """A loss law as sorted outcomes: delta(eps) = A(eps) - e^eps B(eps), both cumulative sums."""

    def __init__(self, outcomes: Atoms) -> None:
        self.infinite = sum((p for p, q in outcomes if not q > 0 and p > 0), arb(0))
        rows = [(p, q) for p, q in outcomes if q > 0 and p > 0]
        rows.sort(key=lambda row: float((row[0] / row[1]).log()), reverse=True)
        self.losses = [(p / q).log() for p, q in rows]
        self.p = list(itertools.accumulate((p for p, _ in rows), initial=self.infinite))
        self.q = list(itertools.accumulate((q for _, q in rows), initial=arb(0)))

    def delta(self, epsilon: arb) -> arb:
        count = sum(1 for loss in self.losses if float(loss) > float(epsilon))
        return self.p[count] - epsilon.exp() * self.q[count]

    def epsilon(self, delta: arb) -> arb:
        """The epsilon (any sign) with delta(epsilon) = delta; +inf when the infinite mass exceeds delta."""
        if self.infinite > delta:
            return arb("inf")
        low, high = 0, len(self.losses)  # delta at losses[i] is > delta for i >= answer
        while low < high:
            middle = (low + high) // 2
            at = self.p[middle] - self.losses[middle].exp() * self.q[middle]
            if at > delta:
                high = middle
            else:
                low = middle + 1
        if low == 0 or not self.p[low] > delta:
            return arb("-inf")
        return ((self.p[low] - delta) / self.q[low]).log()


def power(atoms: Atoms, count: int) -> Atoms:
    """Outcomes of `count` independent steps, by types (multinomial)."""
    n = len(atoms)
    types = math.comb(count + n - 1, n - 1)
    if types > TYPE_LIMIT:
        raise OutOfReachError(f"atoms: {types} types")
    powers = [list(_powers(a, count)) for a in atoms]
    result: Atoms = []

    def visit(index: int, left: int, coefficient: int, p: arb, q: arb) -> None:
        if index == n - 1:
            a, b = powers[index][left]
            result.append((p * a * coefficient, q * b * coefficient))
            return
        for k in range(left + 1):
            a, b = powers[index][k]
            visit(index + 1, left - k, coefficient * math.comb(left, k), p * a, q * b)

    visit(0, count, 1, arb(1), arb(1))
    return result


def _powers(atom: tuple[arb, arb], count: int) -> itertools.accumulate:
    return itertools.accumulate(
        [atom] * count, lambda x, y: (x[0] * y[0], x[1] * y[1]), initial=(arb(1), arb(1))
    )


def flip(atoms: Atoms) -> Atoms:
    """The direction "add": Q against P."""
    return [(q, p) for p, q in atoms]


class Lattice(Mechanism):
    """Atoms whose losses lie on base + spacing * integers, for the lattice contour."""

    def __init__(self, atoms: Atoms, base: arb, spacing: arb, indices: list[int]) -> None:
        self.p = [p for p, _ in atoms]
        self.base, self.spacing, self.indices = base, spacing, indices
        self._loss = np.array([float(base + spacing * i) for i in indices])
        self._logp = np.array([float(p.log()) for p in self.p])

    def cumulant(self, s: float) -> tuple[float, float, float]:
        return families.moments(self._logp, self._loss, s)

    def delta(self, count: int, epsilon: arb, digits: float, vary: float = 1.0) -> arb:
        """delta(epsilon) after `count` steps: the trapezoid rule over one period is exact up to aliasing."""
        if not epsilon < (self.base + self.spacing * max(self.indices)) * count:
            return arb(0)
        guide = Guide([(self, count)], add=False)
        tau = guide.find(float(epsilon), 0)
        tau = min(tau, 100.0 / float(self.spacing))  # near the largest loss the saddle runs off to infinity
        tau = tau * vary if vary != 1.0 else tau
        log_delta = guide.saddle(tau)[1] - 20
        span = guide.period(tau, float(epsilon), log_delta, digits + 4) / vary
        nodes = 2 * (int(span / float(self.spacing)) // 2) + 3
        if nodes > 400_000:
            raise OutOfReachError(f"lattice: {nodes} nodes")
        offset = self.base * count
        first = offset + self.spacing * int(((epsilon - offset) / self.spacing).mid().ceil().unique_fmpz())
        s = arb(tau)
        step = 2 * arb.pi() / (self.spacing * nodes)
        weights = [p * (s * self.spacing * i).exp() for p, i in zip(self.p, self.indices, strict=True)]
        losses = [self.spacing * i for i in self.indices]
        needed = self._needed(tau, count, nodes, (digits + 25) * LN10)
        total, size = acb(0), 128
        for start in range(0, nodes // 2 + 1, size):
            size = min(size, nodes // 2 + 1 - start)
            if not needed[start : start + size].any():
                continue
            for j, m in enumerate(families.exponential_sums(weights, losses, step, start, size), start):
                z = acb(s, step * j)
                kernel = 1 / (1 - (-z * self.spacing).exp()) - (epsilon - first).exp() / (
                    1 - (-(z + 1) * self.spacing).exp()
                )
                term = m**count * (z * (offset - first)).exp() * kernel
                total += term if j == 0 else 2 * term
        return total.real / nodes

    def _needed(self, tau: float, count: int, nodes: int, tolerance: float) -> np.ndarray:
        """Which nodes have |M|^T above e^-tolerance of its peak; |M| may revive far from the real axis."""
        logw = self._logp + tau * self._loss
        w = np.exp(logw - np.max(logw))
        w /= np.sum(w)
        shifts = np.array(self.indices) - self.indices[int(np.argmax(w))]
        needed = np.empty(nodes // 2 + 1, dtype=bool)
        for start in range(0, needed.size, 4096):
            j = np.arange(start, min(start + 4096, needed.size))
            angle = 2 * math.pi / nodes * np.multiply.outer(j, shifts)
            # rounding of 1e-15 in |M| is nothing against the tolerance unless |M|^T is below it anyway
            size = np.hypot(np.cos(angle) @ w, np.sin(angle) @ w) + 1e-14
            needed[j] = count * np.log(size) > -tolerance
        return needed
