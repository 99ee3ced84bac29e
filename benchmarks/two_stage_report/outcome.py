"""The report of a run."""

from __future__ import annotations

from pathlib import Path

from exactdp.benchmarks.cli import output
from exactdp.benchmarks.two_stage_report import report
from exactdp.benchmarks.two_stage_report.guarantee import Guarantee
from exactdp.benchmarks.two_stage_report.measurement import Measurement
from exactdp.train.table_metrics.evaluate import GENERATED, HELD_OUT
from exactdp.train.two_stage.outcome import Outcome

FOLDER = "report"


def write(outcome: Outcome, *, title: str) -> list[Path]:
    """Writes the report into the run's folder; returns its page and CSV file, none without held-out rows.

    Args:
      outcome: of `pipeline.run`.
      title: of the page.

    Raises:
      ValueError: the folder cannot be written to.
    """
    found = outcome.comparison
    if found is None:
        return []
    numbers = [
        Measurement(f"perplexity of {name} tokens", value, HELD_OUT)
        for name, value in found.perplexities.items()
    ]
    numbers.append(Measurement("rows drawn a second", outcome.rows_per_second, GENERATED))
    written = report.write(
        outcome.run / FOLDER,
        metrics=found.metrics,
        real_test=found.real_test,
        synthetic=found.synthetic,
        schema=found.schema,
        guarantee=Guarantee(
            epsilon=outcome.epsilon,
            delta=None if outcome.epsilon is None else outcome.delta,
            threat_model=f"{output.statement(outcome.threat_model)} {outcome.statement}",
            end_to_end=outcome.end_to_end,
            leaks=outcome.leaks,
        ),
        title=title,
        measurements=numbers,
    )
    return written[:2]
