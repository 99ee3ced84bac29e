"""Pure differential privacy: every (epsilon, 0) mechanism, and randomised response."""

from __future__ import annotations

import dataclasses

import numpy as np

from exactdp.accounting import validate
from exactdp.accounting.pairs import atoms, finite

_EPS = float(np.finfo(np.float64).eps)


@dataclasses.dataclass(frozen=True)
class PureDP(atoms.Atomic):
    """Binary randomised response: it dominates every mechanism that is (epsilon, 0)-DP.

    The loss is +epsilon with P-mass e^eps / (1 + e^eps) and Q-mass 1 / (1 + e^eps), and -epsilon with the
    two exchanged.

    Args:
      epsilon: pure-DP parameter of one release, >= 0.

    Raises:
      ValueError: `epsilon` is negative or not finite.

    Source: Kairouz, Oh and Viswanath 2015 (arXiv 1311.0776), Theorem 3.3 and its proof (dominance).
    """

    epsilon: float

    def __post_init__(self) -> None:
        self.plain()
        validate.non_negative("epsilon", self.epsilon)

    @property
    def symmetric(self) -> bool:
        return True

    def _build(self) -> atoms.Atoms:
        return response(float(self.epsilon), 1.0)


def response(epsilon: float, scale: float) -> atoms.Atoms:
    """The atoms of binary randomised response, the masses multiplied by `scale`."""
    if epsilon == 0.0:
        return atoms.Atoms(np.zeros(1), np.full(1, scale), np.full(1, scale), 2 * _EPS)
    small = scale * np.exp(-epsilon) / (1.0 + np.exp(-epsilon))
    large = scale / (1.0 + np.exp(-epsilon))
    u = np.array([-epsilon, epsilon])
    return atoms.Atoms(u, np.array([small, large]), np.array([large, small]), 6 * _EPS)


def randomised_response(keep_probability: float, *, categories: int = 2) -> finite.Finite:
    """k-ary randomised response on one record whose true category is replaced by another.

    Keeps the category with `keep_probability`, else answers one of the k - 1 others uniformly. The losses
    are +-log(keep (k - 1) / (1 - keep)), and 0 for the k - 2 categories that neither record has.

    Args:
      keep_probability: in (0, 1).
      categories: k >= 2.

    Raises:
      ValueError: an argument is outside its range.

    Source: Kairouz, Oh and Viswanath 2014 (arXiv 1407.1338).
    """
    keep = validate.open_probability("keep_probability", keep_probability)
    k = validate.count("categories", categories, minimum=2)
    other = (1.0 - keep) / (k - 1)
    rest = (1.0 - keep) * ((k - 2) / (k - 1))
    if k == 2:
        return finite.Finite(p=(keep, other), q=(other, keep))
    return finite.Finite(p=(keep, rest, other), q=(other, rest, keep))
