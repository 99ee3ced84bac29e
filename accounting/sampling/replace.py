"""Poisson-sampled Gaussian noise under replacement of a record."""

from __future__ import annotations

import dataclasses
from typing import ClassVar

from exactdp.accounting import validate
from exactdp.accounting.laws.law import Law
from exactdp.accounting.laws.replace import ReplaceLaw
from exactdp.accounting.pairs.gaussian import Gaussian


@dataclasses.dataclass(frozen=True)
class PoissonReplaceGaussian:
    """Gaussian noise on a Poisson-sampled sum of vectors of norm <= 1, one record replaced, coins hidden.

    With s the noise multiplier and q the sampling probability, the pair is

        P = (1-q) N(0, s^2) + q N(+1, s^2)    against    Q = (1-q) N(0, s^2) + q N(-1, s^2).

    It is exact: it dominates every pair of neighbours, and one attains it.

    *Dominates.* Let the record contribute v, or v' after the replacement, both of norm <= 1. Fix the coins
    of all other records: their sum is a common shift (mixing over it only lowers a divergence, by joint
    convexity). Take any event A, and z with N(0, s^2)(A) = Phi(z). By Neyman and Pearson no event of that
    size is likelier under a mean at distance d than the half space towards it, nor less likely than the
    one away from it: N(v, s^2)(A) <= Phi(z + 1/s) and N(v', s^2)(A) >= Phi(z - 1/s). For every a >= 0

        P_v(A) - a Q_v'(A) <= (1-q)(1-a) Phi(z) + q Phi(z + 1/s) - a q Phi(z - 1/s),

    which is P(B) - a Q(B) for the half line B = {x >= -z s}. So sup_A (P_v - a Q_v')(A) <= H_a(P, Q) for
    every a >= 0 at once: (P, Q) is a dominating pair, and such pairs compose adaptively (arXiv 2106.08567,
    Theorem 10).

    *Attained.* All other records contribute 0, and the replaced ones +e and -e for a unit vector e.

    Args:
      noise_multiplier: noise standard deviation divided by the clip norm, > 0.
      sampling_probability: q in [0, 1]; at 1 the pair is `Gaussian(noise_multiplier, sensitivity=2.0)`.

    Raises:
      ValueError: an argument is out of its range.

    Source: derived here.
    """

    noise_multiplier: float
    sampling_probability: float

    adjacency: ClassVar[str | None] = "replace"
    coins: ClassVar[str | None] = "hidden"

    def __post_init__(self) -> None:
        validate.positive("noise_multiplier", self.noise_multiplier)
        inverse = 1.0 / float(self.noise_multiplier)
        validate.positive("1 / noise_multiplier^2", inverse * inverse)
        validate.probability("sampling_probability", self.sampling_probability)

    def directions(self) -> tuple[Law, Law] | None:
        """The law, once for each direction (they are equal); None where nothing is ever sampled."""
        noise, q = float(self.noise_multiplier), float(self.sampling_probability)
        if q == 0.0:
            return None
        if q == 1.0:
            return Gaussian(noise, sensitivity=2.0).directions()
        law = ReplaceLaw(noise, q)
        return law, law
