"""The loss of a step that reveals nothing at all with a known probability: an erasure mixture."""

from __future__ import annotations

import math

import numpy as np

from exactdp.accounting.laws.law import Decay, Law, Nodes
from exactdp.accounting.pairs.base import Array, Masses

_EPS = float(np.finfo(np.float64).eps)


class ErasureLaw(Law):
    """With probability q the loss of `law`, else an atom at loss 0.

    Both distributions put 1 - q on one common outcome ("not sampled"), whose loss is 0, and share out
    the rest as `law` does: the factor q cancels in every likelihood ratio.

    Args:
      law: the loss of the step that was sampled.
      sampling_probability: q in (0, 1).
    """

    def __init__(self, law: Law, sampling_probability: float) -> None:
        self.law, self.q = law, sampling_probability
        self.infinity_mass = self.q * law.infinity_mass
        self.missing_mass = self.q * law.missing_mass

    @property
    def support(self) -> tuple[float, float]:
        low, high = self.law.support
        return min(low, 0.0), max(high, 0.0)

    @property
    def erased_gaussian(self) -> tuple[float, float] | None:
        mu = self.law.gaussian_mu
        return None if mu is None else (mu, self.q)

    @property
    def anchor(self) -> float:
        return 0.0

    @property
    def order_limit(self) -> float:
        return self.law.order_limit

    def masses(self, edges: Array) -> Masses:
        q, base = self.q, self.law.masses(edges)
        p, q_mass = q * base.p, q * base.q
        p_error, q_error = q * base.p_error + 2.0 * _EPS * p, q * base.q_error + 2.0 * _EPS * q_mass
        # The cell (e_{i-1}, e_i] that holds 0 has i = number of edges below 0.
        home = int(np.searchsorted(edges, 0.0, side="left"))
        for mass, error in ((p, p_error), (q_mass, q_error)):
            mass[home] += 1.0 - q
            error[home] += 2.0 * _EPS
        return Masses(p, q_mass, p_error, q_error, base.telescoping)

    def hockey_stick(self, epsilon: float) -> tuple[float, float]:
        value, error = self.law.hockey_stick(epsilon)
        value, error = self.q * value, self.q * error
        if epsilon < 0.0:
            value += (1.0 - self.q) * -math.expm1(epsilon)
        return value, error + 4.0 * _EPS * value

    def nodes(self, *, order: float, frequency: float, count: int) -> Nodes:
        base = self.law.nodes(order=order, frequency=frequency, count=count)
        # The atom is summed exactly: the aliasing error stays and the moment it is relative to grows.
        return Nodes(
            np.append(base.loss, 0.0),
            np.append(base.log_p + math.log(self.q), math.log1p(-self.q)),
            base.log_alias,
            np.append(base.tail, 0.0),
        )

    def decay(self, *, order: float, log_moment: float) -> Decay | None:
        # The density of the sampled part is q f(l) e^{order l} / M with M the whole moment: as if the moment
        # of the inner law were M / q. The atom joins as a bin of its own; it may lie within another bin, and
        # `Decay` then ignores that pair.
        base = self.law.decay(order=order, log_moment=log_moment - math.log(self.q))
        if base is None:
            return None
        atom = (1.0 - self.q) * math.exp(-log_moment) * (1.0 - 1e-12)
        place = int(np.searchsorted(base.low, 0.0))
        return Decay(
            base.mass,
            base.variation,
            np.insert(base.bins, place, atom),
            np.insert(base.low, place, 0.0),
            np.insert(base.high, place, 0.0),
        )
