"""Two neighbouring runs, and how an adversary tells them apart."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Mapping

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Bool

from exactdp.accounting.interval import Interval
from exactdp.accounting.prv import Composition
from exactdp.accounting.threat import ThreatModel
from exactdp.benchmarks.training_audit.options import Options
from exactdp.train.attacks.likelihood_ratio import NegativeLoss, Released
from exactdp.train.attacks.transcripts import Increment
from exactdp.train.task import Records, Task

CLIP_NORM = 1.0
SIGNAL = 100.0
"""Value of a canary's own feature; the rest of its gradient, along the bias, is a hundredth of it."""
_OTHERS = 10
_DRIFT = 0.01  # how far noise moves a canary's logits in a whole run, at most; so its gradient stays the same


@dataclasses.dataclass(frozen=True)
class Claim:
    """An epsilon that somebody may read off for the audited release.

    Attributes:
      kind: "repaired" (printed, with one defect mended) or "exact".
      epsilon: at the audit's delta.
      threat_model: what the claim is about.
    """

    kind: str
    epsilon: Interval
    threat_model: ThreatModel


@dataclasses.dataclass(frozen=True, eq=False)
class Attack:
    """Records that may be in or out, the step that trains on them, and an adversary's scores.

    Attributes:
      name: of the method.
      source: its arXiv id.
      canaries: whose presence is to be told.
      rest: the records that are always there.
      instead: what stands in a canary's place where it is out, a record for each; None for nothing.
      task: the method for a number of records.
      along: what a step adds to the score from all weights.
      loss: score from the final ones.
      learning_rate: of the runs.
      threat_model: what is attacked.
      compositions: noise multiplier -> what is composed.
      claims: epsilons that may be read off for this release, by name.
      certified: the one of them that is about this threat model.
    """

    name: str
    source: str
    canaries: Records
    rest: Records
    instead: Records | None
    task: Callable[[int], Task]
    along: Increment
    loss: NegativeLoss
    learning_rate: float
    threat_model: ThreatModel
    compositions: Callable[[float], Composition]
    claims: Mapping[str, Claim]
    certified: str

    def records(self, included: Bool[np.ndarray, " canaries"]) -> Records:
        """The data set with these canaries in, and all others out."""
        found = joined(self.rest, _rows(self.canaries, included))
        return found if self.instead is None else joined(found, _rows(self.instead, ~included))

    def exceeded(self, epsilon_lower: float) -> list[str]:
        """The claims that are certainly below a lower bound."""
        return [name for name, claim in self.claims.items() if claim.epsilon.upper < epsilon_lower]


def learning_rate(options: Options) -> float:
    """So small that the weights hardly move: gradients stay large, and each step tells the most.

    Sums are divided by 1 here, a public constant like another.
    """
    return _DRIFT / (SIGNAL * options.noise_multiplier * math.sqrt(options.num_steps))


def released(options: Options, *, divisor: float = 1.0, rate: float) -> Released:
    """How weights tell the noisy sum, at the claimed noise and sampling."""
    return Released(
        divisor / (rate * CLIP_NORM), CLIP_NORM, options.noise_multiplier, options.sampling_probability
    )


def from_zero(task: Task) -> Task:
    """The task with all parameters 0 at the start: a guarantee holds for every start."""

    def initialise(key: jax.Array) -> object:
        return jax.tree.map(jnp.zeros_like, task.initialise(key))

    return dataclasses.replace(task, initialise=initialise)


def others(*, width: int) -> Records:
    """Ten records of two classes that have the first feature alone."""
    x = np.zeros((_OTHERS, width), np.float32)
    x[:, 0] = np.linspace(-1.0, 1.0, _OTHERS)
    return Records(jnp.asarray(x), jnp.arange(_OTHERS, dtype=jnp.int32) % 2)


def joined(first: Records, second: Records) -> Records:
    """Both, one after the other."""
    return Records(jnp.concatenate([first.x, second.x]), jnp.concatenate([first.y, second.y]))


def _rows(records: Records, kept: Bool[np.ndarray, " rows"]) -> Records:
    return Records(records.x[kept], records.y[kept])
