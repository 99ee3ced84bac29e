"""What the audit is asked for."""

from __future__ import annotations

import dataclasses
from pathlib import Path

from exactdp.accounting import validate
from exactdp.accounting.printed import two_stage as printed
from exactdp.train.two_stage.inputs import FEWEST_ROWS
from exactdp.train.two_stage.settings import TwoStageSettings

MODES = ("both", "as_published", "repaired")
_IN_SHARE = 8
_LEAST_TRIALS, _MOST_TRIALS, _MOST_DRAWS = 2 * _IN_SHARE, 10**7, 10**9


@dataclasses.dataclass(frozen=True)
class Options:
    """Parameters of the runs and of the bounds.

    Attributes:
      csv: a table; None for one that is made up.
      label: its label's column; None for none. Of the made-up table it is income.
      rows: how many of its first rows are used, >= 4; a public number.
      mode: one of `MODES`: what is attacked.
      epsilon: the target: stage 2's as published, of everything as repaired; in (0, 1000].
      delta: in (0, 1).
      trials: runs of each attack, from 16 to 1e7.
      draws: noisy sums of a single step, half of them with the long row, from 16 to 1e9.
      first_steps: noisy sums of a first step with sampling, a quarter of them with the long row in the
        table, from 16 to 1e9.
      confidence: of each bound, in (0, 1).
      seed: of all that is not the statistics' noise, which is the operating system's; None for another one
        each time.

    Raises:
      ValueError: a value is out of range.
    """

    csv: Path | None = None
    label: str | None = None
    rows: int = 400
    mode: str = "both"
    epsilon: float = 1.0
    delta: float = printed.DELTA
    trials: int = 1000
    draws: int = 20_000
    first_steps: int = 4_000_000
    confidence: float = 0.95
    seed: int | None = None

    def __post_init__(self) -> None:
        if self.label is not None and self.csv is None:
            raise ValueError(f"label must be left out without csv, got {self.label!r}")
        validate.count("rows", self.rows, minimum=FEWEST_ROWS)
        validate.one_of("mode", self.mode, MODES)
        self.settings(as_published=True)
        validate.count("trials", self.trials, minimum=_LEAST_TRIALS, maximum=_MOST_TRIALS)
        validate.count("draws", self.draws, minimum=_LEAST_TRIALS, maximum=_MOST_DRAWS)
        validate.count("first_steps", self.first_steps, minimum=_LEAST_TRIALS, maximum=_MOST_DRAWS)
        validate.open_probability("confidence", self.confidence)
        if self.seed is not None:
            validate.count("seed", self.seed)

    @property
    def as_published(self) -> bool:
        """Whether what the paper releases is attacked."""
        return self.mode != "repaired"

    @property
    def repaired(self) -> bool:
        """Whether what is private here is attacked."""
        return self.mode != "as_published"

    @property
    def runs_in(self) -> int:
        """Runs with the record where the attack hardly errs: an eighth.

        False negatives enter the bound by log(1 - fnr), false positives by log(fpr): these need the runs.
        """
        return self.trials // _IN_SHARE

    @property
    def runs_out(self) -> int:
        """Runs without it."""
        return self.trials - self.runs_in

    def settings(self, *, as_published: bool) -> TwoStageSettings:
        """Of `exactdp train two_stage`: its defaults, with the paper's batches."""
        return TwoStageSettings(
            epsilon=self.epsilon,
            delta=self.delta,
            batch_size=printed.BATCH_SIZE,
            as_published=as_published,
        )
