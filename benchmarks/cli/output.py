"""What the commands print: one JSON object, or a short table."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence

from exactdp.accounting.threat import ThreatModel


def encode(value: object) -> object:
    """`value` with infinities as "inf" and "-inf", as JSON has no numbers for them.

    Raises:
      ValueError: there is a NaN in it.
    """
    if isinstance(value, float):
        if math.isnan(value):
            raise ValueError("an answer must be a number, got nan")
        return value if math.isfinite(value) else ("inf" if value > 0 else "-inf")
    if isinstance(value, Mapping):
        return {str(key): encode(item) for key, item in value.items()}
    if isinstance(value, Sequence) and not isinstance(value, str):
        return [encode(item) for item in value]
    return value


def as_json(answer: Mapping[str, object]) -> str:
    """`answer` on one line; floats round-trip."""
    return json.dumps(encode(answer), allow_nan=False, ensure_ascii=False)


def show(value: object) -> str:
    """A number as people read it: up to nine significant digits."""
    if value is None:
        return "-"
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return str(value)
    if isinstance(value, int):
        return str(value)
    return f"{value:.9g}"


def table(rows: Sequence[Sequence[object]]) -> str:
    """Left-aligned columns, two spaces apart."""
    cells = [[show(cell) for cell in row] for row in rows]
    widths = [max(len(row[i]) for row in cells) for i in range(len(cells[0]))]
    lines = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)) for row in cells]
    return "\n".join(line.rstrip() for line in lines)


def statement(threat_model: ThreatModel) -> str:
    """The threat model in one line."""
    return (
        f"threat model: {threat_model.adjacency} neighbours, coins {threat_model.coins}, "
        f"released: {threat_model.released}"
    )


def heading(parameters: Mapping[str, object]) -> str:
    """Mechanism and parameters in one line; adjacency and coins are in the threat model."""
    shown = [f"{name} {show(value)}" for name, value in parameters.items() if name not in _ELSEWHERE]
    return f"{parameters['mechanism']}: {', '.join(shown)}"


_ELSEWHERE = ("mechanism", "adjacency", "coins")


def report(
    parameters: Mapping[str, object],
    threat_model: ThreatModel,
    rows: Sequence[Sequence[object]],
    *,
    remark: str,
    engine: str,
    seconds: float,
) -> str:
    """What a command prints for people: the setting, the threat model once, the numbers, what they are."""
    lines = [heading(parameters), statement(threat_model), "", table(rows), ""]
    return "\n".join([*lines, f"{remark} ({engine}, {seconds:.2f} s)"])
