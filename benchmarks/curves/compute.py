"""The rows of the CSV files: one call a point, so that processes can share the work."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from exactdp.benchmarks.curves import ladders
from exactdp.benchmarks.curves.panels import TRADEOFF, Panel

Row = list[object]


def tasks(panel: Panel) -> list[object]:
    """What `rows` is to be called with, in turn: the points, or the curves of a trade-off panel."""
    if panel.name == TRADEOFF:
        from exactdp.benchmarks.curves import tradeoffs

        return list(range(len(tradeoffs.of(panel.paper))))
    return list(panel.values)


def rows(panel: Panel, task: Any) -> list[Row]:
    """The rows of one task."""
    if panel.name == TRADEOFF:
        from exactdp.benchmarks.curves import tradeoffs

        return tradeoffs.rows(tradeoffs.of(panel.paper)[task], panel.values)
    value = int(task) if panel.name == "num_steps" else float(task)
    return [_row(float(task), rung) for rung in ladders.rungs(panel.paper, **{panel.name: value})]


def _row(x: float, rung: Any) -> Row:
    lower, upper = ladders.ends(rung.epsilon)
    model = rung.threat_model
    return [x, rung.name, rung.kind, str(model.adjacency), str(model.coins), lower, upper, rung.reason]


LADDER_COLUMNS = ("rung", "kind", "adjacency", "coins", "released", "lower", "upper", "reason", "source", "note")


def ladder_rows(paper: str) -> list[Row]:
    """The ladder at the paper's own parameters."""
    table: list[Row] = []
    for rung in ladders.rungs(paper):
        lower, upper = ladders.ends(rung.epsilon)
        model = rung.threat_model
        threat = [str(model.adjacency), str(model.coins), model.released]
        table.append([rung.name, rung.kind, *threat, lower, upper, rung.reason, str(rung.source), rung.note])
    return table


def in_file_order(parts: Sequence[list[Row]]) -> list[Row]:
    """All rows, the points of a rung together, rungs in the order of the ladder."""
    every = [row for part in parts for row in part]
    names = list(dict.fromkeys(str(row[1]) for row in every))
    return [row for name in names for row in every if row[1] == name]
