"""What a run gives: the table, what certifies it, and how it compares."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

from exactdp.accounting.interval import Interval
from exactdp.accounting.threat import ThreatModel
from exactdp.train.table_metrics.validity import Validity
from exactdp.train.two_stage.measured import Comparison
from exactdp.train.two_stage.run_folder import SYNTHETIC


@dataclasses.dataclass(frozen=True, eq=False)
class Outcome:
    """A synthetic table.

    Attributes:
      rows: how many there are.
      validity: of all rows that were drawn.
      epsilon: certified, of all that the ledger holds; None without privacy.
      delta: at which.
      threat_model: what epsilon is about.
      statement: what the certificate covers, and what it does not.
      end_to_end: whether all that was made of the table is covered.
      leaks: what was taken from it without noise, one sentence each.
      comparison: with held-out rows; None where there were none, or no synthetic row. Private.
      rows_per_second: drawn, compilation included.
      seconds: this call took.
      run: the folder.
    """

    rows: int
    validity: Validity
    epsilon: Interval | None
    delta: float
    threat_model: ThreatModel
    statement: str
    end_to_end: bool
    leaks: tuple[str, ...]
    comparison: Comparison | None
    rows_per_second: float
    seconds: float
    run: Path

    def as_dict(self) -> dict[str, Any]:
        """For JSON; infinities are floats."""
        return {
            "rows": self.rows,
            "validity": self.validity.rate,
            "epsilon": None
            if self.epsilon is None
            else {"lower": self.epsilon.lower, "upper": self.epsilon.upper},
            "delta": self.delta,
            "end_to_end": self.end_to_end,
            "leaks": list(self.leaks),
            "threat_model": self.threat_model.as_dict(),
            **self._metrics(),
            "synthetic": str(self.run / SYNTHETIC),
            "rows_per_second": self.rows_per_second,
            "seconds": self.seconds,
            "run": str(self.run),
        }

    def _metrics(self) -> dict[str, float | None]:
        found = None if self.comparison is None else self.comparison.as_dict()
        names = ("f1", "auc", "accuracy", "hist", "pair", "correlation_accuracy")
        return {name: None if found is None else found[name]["value"] for name in names}
