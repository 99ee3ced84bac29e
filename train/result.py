"""What a finished run gives."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

from exactdp.accounting.interval import Interval
from exactdp.accounting.threat import ThreatModel
from exactdp.train.state import State


@dataclasses.dataclass(frozen=True)
class Result:
    """What a finished run gives.

    Attributes:
      metric: what is measured, such as test_accuracy.
      measured: of the released weights, on the test records.
      epsilon: certified, of all that the ledger holds.
      delta: at which.
      threat_model: what epsilon is about.
      steps: done in the whole run.
      seconds: this call took.
      run: the folder.
      state: the last one.
    """

    metric: str
    measured: float
    epsilon: Interval
    delta: float
    threat_model: ThreatModel
    steps: int
    seconds: float
    run: Path
    state: State = dataclasses.field(repr=False)

    def as_dict(self) -> dict[str, Any]:
        """For JSON; infinities are floats."""
        return {
            self.metric: self.measured,
            "epsilon": {"lower": self.epsilon.lower, "upper": self.epsilon.upper},
            "delta": self.delta,
            "threat_model": self.threat_model.as_dict(),
            "steps": self.steps,
            "seconds": self.seconds,
            "run": str(self.run),
        }
