"""What the audit is asked for."""

from __future__ import annotations

import dataclasses

from exactdp.accounting import validate
from exactdp.accounting.ladder.dirichlet_setting import CELL
from exactdp.benchmarks.dirichlet_audit.claimed import Claimed, claimed
from exactdp.train.attacks import released_weights

_IN_SHARE = 8
_LEAST_TRIALS, _MOST_TRIALS = 2 * _IN_SHARE, 10**8
_MOST_STEPS = 10**7


@dataclasses.dataclass(frozen=True)
class Options:
    """Parameters of the runs and of the bound; those of the paper's recovered cell by default.

    Attributes:
      offset: alpha > 0.
      sampling_probability: q in (0, 1].
      num_steps: T, from 1 to 1e7.
      delta: in (0, 1).
      dataset: whose first records are trained on.
      records: how many of them, >= 1.
      model: one with a dense first layer.
      effective_learning_rate: gamma kappa at true-class probability 0.9, > 0; gamma is it over kappa.
      trials: runs in all, from 16 to 1e8; one in eight with the feature.
      confidence: of each bound, in (0, 1).
      seed: of the runs; None for another one each time.

    Raises:
      ValueError: a value is out of range.
    """

    offset: float = CELL.offset
    sampling_probability: float = CELL.sampling_probability
    num_steps: int = CELL.num_steps
    delta: float = CELL.delta
    dataset: str = "digits"
    records: int = 10
    model: str = "linear"
    effective_learning_rate: float = 1.0
    trials: int = 1000
    confidence: float = 0.95
    seed: int | None = None

    def __post_init__(self) -> None:
        validate.positive("offset", self.offset)
        if validate.probability("sampling_probability", self.sampling_probability) == 0.0:
            raise ValueError("sampling_probability must be > 0, got 0")
        validate.count("num_steps", self.num_steps, minimum=1, maximum=_MOST_STEPS)
        validate.open_probability("delta", self.delta)
        validate.count("records", self.records, minimum=1)
        validate.one_of("model", self.model, released_weights.MODELS)
        validate.positive("effective_learning_rate", self.effective_learning_rate)
        validate.count("trials", self.trials, minimum=_LEAST_TRIALS, maximum=_MOST_TRIALS)
        validate.open_probability("confidence", self.confidence)
        if self.seed is not None:
            validate.count("seed", self.seed)

    @property
    def runs_in(self) -> int:
        """Runs on the data set whose record has the feature: an eighth.

        False negatives enter the bound by log(1 - fnr), false positives by log(fpr): these need the runs.
        """
        return self.trials // _IN_SHARE

    @property
    def runs_out(self) -> int:
        """Runs on the data set whose record has it not."""
        return self.trials - self.runs_in

    def claims(self, scaling: float) -> Claimed:
        """What is claimed for the draws at a scaling.

        Args:
          scaling: r > 0.
        """
        return claimed(
            scaling,
            offset=self.offset,
            sampling_probability=self.sampling_probability,
            num_steps=self.num_steps,
            delta=self.delta,
        )
