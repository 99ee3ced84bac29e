"""Stored audit results beside the curves: which paper's they are, and where in its figures they stand.

A result is about one setting. It stands in a panel where it knows all that decides what was released and
agrees with the panel in all but what the panel varies, and in the ladder's table where nothing that it knows
differs from the ladder.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from exactdp.accounting.audit.result import AuditResult
from exactdp.benchmarks.curves import compute, ladders, panels
from exactdp.benchmarks.curves.compute import Row
from exactdp.benchmarks.curves.panels import TRADEOFF, Panel

HEADER = "audits"
"""The key of a CSV file's header under which the results that it holds are listed."""


@dataclasses.dataclass(frozen=True)
class Audit:
    """A stored result.

    Attributes:
      file: its name, without its folder.
      paper: whose ladder leaves an audited rung open for it.
      result: what was found.
    """

    file: str
    paper: str
    result: AuditResult

    def as_dict(self) -> dict[str, Any]:
        """For a header; without the points of its trade-off curve, which no panel shows."""
        return {"file": self.file, **{k: v for k, v in self.result.as_dict().items() if k != "tradeoff"}}


def read(files: Sequence[str | Path], *, papers: Sequence[str]) -> list[Audit]:
    """Reads results and finds the paper of each.

    Args:
      files: JSON, as `AuditResult.save` or an audit with `--json` writes it.
      papers: whose figures are made.

    Raises:
      ValueError: a file cannot be read, holds no result, is about no threat model that one of the ladders
        leaves an audited rung open for, or is about a setting that neither the ladder nor a panel of its
        paper has.
    """
    found: list[Audit] = []
    for file in files:
        result = AuditResult.load(file)
        fitting = [paper for paper in papers if ladders.audited(paper) == result.threat_model]
        if not fitting:
            raise ValueError(
                f"audit must be about what the audited rung of a ladder of {', '.join(papers)} is about, got "
                f"{file} about {result.threat_model.as_dict()}"
            )
        audit = Audit(Path(file).name, fitting[0], result)
        if not _in_ladder(audit) and all(_place(panel, audit) is None for panel in panels.of(audit.paper)):
            base = ladders.defaults(audit.paper)
            known = {"delta": result.delta, **result.parameters}
            raise ValueError(
                f"audit must agree with the ladder of {audit.paper}, {_shown(base)}, in all but one that a "
                f"panel varies, got {file} with {_shown(known)}"
            )
        found.append(audit)
    return found


def in_panel(panel: Panel, audits: Sequence[Audit]) -> tuple[list[Row], list[dict[str, Any]]]:
    """The rows of a panel's CSV file that audits add, and their entry in its header."""
    rows: list[Row] = []
    entries: list[dict[str, Any]] = []
    for audit in audits:
        x = _place(panel, audit)
        if x is not None:
            rows.append(compute.row(x, audit.result.rung()))
            entries.append(audit.as_dict())
    return rows, entries


def in_ladder(paper: str, audits: Sequence[Audit]) -> tuple[list[Row], list[dict[str, Any]]]:
    """The rows of a ladder's CSV file that audits add, and their entry in its header."""
    standing = [audit for audit in audits if audit.paper == paper and _in_ladder(audit)]
    return [compute.ladder_row(audit.result.rung()) for audit in standing], [
        audit.as_dict() for audit in standing
    ]


def _in_ladder(audit: Audit) -> bool:
    base = ladders.defaults(audit.paper)
    different = audit.result.differing(ladders.decisive(audit.paper, base))
    return base["delta"] <= audit.result.delta and not different


def _place(panel: Panel, audit: Audit) -> float | None:
    """Where on the panel's horizontal axis the audit stands, or None."""
    result = audit.result
    # Zero has no place on a logarithmic axis; a bound of zero says nothing anyway.
    if audit.paper != panel.paper or panel.name == TRADEOFF or result.epsilon_lower == 0.0:
        return None
    base = ladders.defaults(panel.paper)
    known = {**result.parameters, "delta": result.delta}
    if panel.name not in known or (panel.name != "delta" and result.delta < base["delta"]):
        return None
    fixed = {name: value for name, value in ladders.decisive(panel.paper, base).items() if name != panel.name}
    sure = all(name in known and isinstance(value, (int, float)) for name, value in fixed.items())
    x = float(known[panel.name])
    return x if sure and not result.differing(fixed) and 0.0 < x < math.inf else None


def _shown(parameters: dict[str, Any]) -> str:
    return ", ".join(f"{name} = {value}" for name, value in parameters.items() if value is not None)
