"""Optimisers and learning-rate schedules by name."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

import numpy as np
import optax

from exactdp.accounting import validate

NAMES = ("sgd", "adam", "adamw")
_LARGEST = 1e15  # far from the end of float32
SCHEDULES = ("constant", "cosine", "linear")


@dataclasses.dataclass(frozen=True)
class Optimiser:
    """An optimiser with its schedule. A step of the schedule is a step of the run, whatever its size.

    Attributes:
      name: "sgd", "adam" or "adamw".
      learning_rate: the first step's, > 0.
      schedule: "constant", or "cosine" or "linear" decay to 0 over the run.
      momentum: of sgd, in [0, 1).
      weight_decay: of adamw, >= 0.
      decay_end: share of the run after which a decaying rate is 0, in (0, 1].

    Raises:
      ValueError: an argument is outside its range, or of another optimiser.
    """

    name: str = "sgd"
    learning_rate: float = 0.1
    schedule: str = "constant"
    momentum: float = 0.0
    weight_decay: float = 0.0
    decay_end: float = 1.0

    def __post_init__(self) -> None:
        validate.one_of("optimizer", self.name, NAMES)
        validate.positive("learning_rate", self.learning_rate)
        validate.one_of("schedule", self.schedule, SCHEDULES)
        if not 0.0 <= validate.non_negative("momentum", self.momentum) < 1.0:
            raise ValueError(f"momentum must be in [0, 1), got {self.momentum}")
        if validate.non_negative("weight_decay", self.weight_decay) > _LARGEST:
            raise ValueError(f"weight_decay must be at most {_LARGEST:g}, got {self.weight_decay}")
        if not 0.0 < validate.positive("decay_end", self.decay_end) <= 1.0:
            raise ValueError(f"decay_end must be in (0, 1], got {self.decay_end}")
        if self.decay_end < 1.0 and self.schedule == "constant":
            raise ValueError(f"decay_end must be 1 with a constant schedule, got {self.decay_end}")
        if self.momentum and self.name != "sgd":
            raise ValueError(f"momentum must be 0 with {self.name}, got {self.momentum}")
        if self.weight_decay and self.name != "adamw":
            raise ValueError(f"weight_decay must be 0 with {self.name}, got {self.weight_decay}")

    def rate(self, num_steps: int) -> Callable[[int], float]:
        """The learning rate of a step, for a run of `num_steps`."""
        schedule = self._schedule(num_steps)
        return lambda step: float(np.asarray(schedule(step)))

    def build(self, num_steps: int) -> optax.GradientTransformation:
        """The optax transformation for a run of `num_steps`."""
        schedule = self._schedule(num_steps)
        if self.name == "adam":
            return optax.adam(schedule)
        if self.name == "adamw":
            return optax.adamw(schedule, weight_decay=self.weight_decay)
        return optax.sgd(schedule, momentum=self.momentum or None)

    def _schedule(self, num_steps: int) -> optax.Schedule:
        validate.count("num_steps", num_steps, minimum=1)
        steps = max(round(num_steps * self.decay_end), 1)
        if self.schedule == "cosine":
            return optax.cosine_decay_schedule(self.learning_rate, steps)
        if self.schedule == "linear":
            return optax.linear_schedule(self.learning_rate, 0.0, steps)
        return optax.constant_schedule(self.learning_rate)
