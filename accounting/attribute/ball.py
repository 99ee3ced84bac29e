"""What an estimate of Ball(X, u, d, rho) says."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

from exactdp.accounting.interval import Interval


@dataclasses.dataclass(frozen=True)
class Ball:
    """Ball(X, u, d, rho) = sup_c Pr[d(X, c) <= rho | Psi(X) = u], as far as it is known.

    Attributes:
      radius: rho.
      lower: lower end at the confidence.
      upper: upper end at the confidence.
      estimate: in between; no bound.
      confidence: of the two ends together.
      certified: whether the ends hold with that confidence whatever the law of the records is; where not,
        `statement` says what they rest on.
      statement: which u are meant, and what the ends cover.

    Source: arXiv 2506.19836v1, section on Theorem 4, for the definition.
    """

    radius: float
    lower: float
    upper: float
    estimate: float
    confidence: float
    certified: bool
    statement: str

    @property
    def interval(self) -> Interval:
        """[lower, upper], as `exactdp.accounting.fdp.risk.attribute_advantage` takes it."""
        return Interval(self.lower, self.upper, "Ball")


def worst(balls: Sequence[Ball], *, confidence: float, statement: str) -> Ball:
    """The largest Ball over several u, from one estimate of each.

    Each estimate has to hold with confidence 1 - (1 - confidence) / number of estimates: all of them hold at
    once then.

    Args:
      balls: one a u, of one radius; not empty.
      confidence: of the result.
      statement: what it covers.
    """
    top = max(balls, key=lambda ball: ball.estimate)
    return Ball(
        radius=top.radius,
        lower=max(ball.lower for ball in balls),
        upper=max(ball.upper for ball in balls),
        estimate=top.estimate,
        confidence=confidence,
        certified=all(ball.certified for ball in balls),
        statement=statement,
    )
