"""The rows of the CSV files: one call a point, so that processes can share the work."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from exactdp.benchmarks.curves import ladders
from exactdp.benchmarks.curves.panels import TRADEOFF, Panel

if TYPE_CHECKING:
    from exactdp.accounting.ladder.rung import Rung

Row = list[object]


def tasks(panel: Panel) -> list[float]:
    """What `rows` is to be called with, in turn: the points; 0 alone for a trade-off panel."""
    return [0.0] if panel.name == TRADEOFF else list(panel.values)


def rows(panel: Panel, task: float) -> list[Row]:
    """The rows of one task."""
    if panel.name == TRADEOFF:
        from exactdp.benchmarks.curves import tradeoffs

        return tradeoffs.rows(panel.paper, panel.values)
    value = int(task) if panel.name == "num_steps" else task
    return [row(task, rung) for rung in ladders.rungs(panel.paper, **{panel.name: value})]


def row(x: float, rung: Rung) -> Row:
    """A rung at one point of a panel."""
    lower, upper = ladders.ends(rung.epsilon)
    model = rung.threat_model
    return [x, rung.name, rung.kind, str(model.adjacency), str(model.coins), lower, upper, rung.reason]


LADDER_COLUMNS = (
    "rung",
    "kind",
    "adjacency",
    "coins",
    "released",
    "lower",
    "upper",
    "reason",
    "source",
    "corrects",
    "note",
    "quantities",
)


def ladder_rows(paper: str) -> list[Row]:
    """The ladder at the paper's own parameters."""
    return [ladder_row(rung) for rung in ladders.rungs(paper)]


def ladder_row(rung: Rung) -> Row:
    """A rung in the ladder's CSV file."""
    lower, upper = ladders.ends(rung.epsilon)
    model = rung.threat_model
    threat = [str(model.adjacency), str(model.coins), model.released]
    remarks = [rung.reason, rung.source, rung.corrects, rung.note, ladders.quantities(rung)]
    return [rung.name, rung.kind, *threat, lower, upper, *remarks]


def in_file_order(parts: Sequence[list[Row]]) -> list[Row]:
    """All rows, the points of a rung together, rungs in the order of the ladder."""
    every = [row for part in parts for row in part]
    names = list(dict.fromkeys(str(row[1]) for row in every))
    return [row for name in names for row in every if row[1] == name]
