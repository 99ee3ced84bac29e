"""What is audited: draws of a mechanism on two neighbouring inputs, and the composition that is claimed."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence

import jax

from exactdp.accounting.prv import Mechanism
from exactdp.accounting.threat import ThreatModel

Scores = Callable[[jax.Array, jax.Array, int], jax.Array]
"""(key, present, size) -> float32 [size]: scores of independent runs with or without the record.

Higher means "with". Jittable, `present` being a traced boolean and `size` static.
"""


@dataclasses.dataclass(frozen=True)
class Target:
    """A mechanism to audit.

    Attributes:
      name: in words.
      scores: one score a run. The sharpest test takes the likelihood ratio of the pair that is claimed; any
        score gives a valid bound.
      composition: what the accountant is told.
      threat_model: what the scores are computed from.
    """

    name: str
    scores: Scores
    composition: Sequence[tuple[Mechanism, int]]
    threat_model: ThreatModel
