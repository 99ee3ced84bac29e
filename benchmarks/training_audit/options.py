"""What a training audit is asked for."""

from __future__ import annotations

import dataclasses
from typing import NoReturn

from exactdp.accounting import validate

MODELS = ("linear", "mlp", "cnn")
CANARIES = ("mislabelled", "random")

_LEAST_TRIALS, _MOST_TRIALS = 32, 10**8
_LEAST_CANARIES, _MOST_CANARIES = 16, 20_000
_MOST_STEPS = 10**7


@dataclasses.dataclass(frozen=True)
class Options:
    """A setting of DP-SGD or of Algorithm 1, and an audit of it.

    Attributes:
      noise_multiplier: standard deviation of the noise on the sum / clip norm, > 0.
      sampling_probability: q in (0, 1].
      num_steps: T, from 1 to 1e7.
      delta: in (0, 1).
      trials: whole runs, half of them with the record, >= 32; for one run, canaries, >= 16.
      confidence: of each bound, in (0, 1).
      seed: of the runs; None for another one each time.

    Raises:
      ValueError: a value is out of range.
    """

    noise_multiplier: float = 1.0
    sampling_probability: float = 0.1
    num_steps: int = 50
    delta: float = 1e-5
    trials: int = 20_000
    confidence: float = 0.95
    seed: int | None = None

    def __post_init__(self) -> None:
        validate.positive("noise_multiplier", self.noise_multiplier)
        if validate.probability("sampling_probability", self.sampling_probability) == 0.0:
            raise ValueError("sampling_probability must be > 0, got 0")
        validate.count("num_steps", self.num_steps, minimum=1, maximum=_MOST_STEPS)
        validate.open_probability("delta", self.delta)
        validate.count("trials", self.trials, minimum=_LEAST_CANARIES)
        validate.open_probability("confidence", self.confidence)
        if self.seed is not None:
            validate.count("seed", self.seed)

    def require_runs(self) -> None:
        """Refuses fewer runs than a bound can be made of, or more than are ever done.

        Raises:
          ValueError: it refuses.
        """
        if validate.count("trials", self.trials, minimum=_LEAST_TRIALS) > _MOST_TRIALS:
            raise ValueError(f"trials must be at most {_MOST_TRIALS:g} for many runs, got {self.trials:g}")

    def require_canaries(self) -> None:
        """Refuses more canaries than one run holds.

        Raises:
          ValueError: there are more.
        """
        if self.trials > _MOST_CANARIES:
            raise ValueError(f"trials must be at most {_MOST_CANARIES} for one run, got {self.trials:g}")

    def refuse_noise(self) -> NoReturn:
        """For a setting at which no epsilon is certified, so that there is nothing to refute.

        Raises:
          ValueError: always.
        """
        raise ValueError(
            f"noise_multiplier must be large enough that an epsilon is certified, got "
            f"{self.noise_multiplier:g} at {self.num_steps} steps and delta {self.delta:g}"
        )

    @property
    def note(self) -> str:
        """The setting in words."""
        return (
            f"noise_multiplier = {self.noise_multiplier:g}, sampling_probability = "
            f"{self.sampling_probability:g}, num_steps = {self.num_steps}"
        )


@dataclasses.dataclass(frozen=True)
class RealData:
    """Of a run on real records, some of which are canaries.

    Attributes:
      dataset: name of a data set.
      model: one of `MODELS`.
      canary: "mislabelled": real records with another label; "random": uniform noise with a random label.
      learning_rate: > 0.

    Raises:
      ValueError: a value is out of range.
    """

    dataset: str = "digits"
    model: str = "mlp"
    canary: str = "mislabelled"
    learning_rate: float = 1.0

    def __post_init__(self) -> None:
        validate.one_of("model", self.model, MODELS)
        validate.one_of("canary", self.canary, CANARIES)
        validate.positive("learning_rate", self.learning_rate)
