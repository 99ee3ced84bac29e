"""What is drawn for each paper: the panels, their grids and their axes."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

import numpy as np

from exactdp.benchmarks.curves import ladders

TRADEOFF = "tradeoff"
COLUMNS = ("x", "rung", "kind", "adjacency", "coins", "lower", "upper", "reason")
"""Columns of every CSV file of curves: epsilon, or the false-negative rate, between lower and upper at x."""


@dataclasses.dataclass(frozen=True)
class Panel:
    """One panel of one paper.

    Attributes:
      paper: a name in `ladders.PAPERS`.
      name: `"num_steps"`, `"delta"`, the paper's own parameter, or `"tradeoff"`.
      label: of the horizontal axis.
      values: where the ladder is computed; false-positive rates for the trade-off curve.
    """

    paper: str
    name: str
    label: str
    values: tuple[float, ...]

    @property
    def stem(self) -> str:
        """File name without its suffix."""
        return f"{self.paper}_{self.name}"

    def header(self) -> dict[str, Any]:
        """What the CSV file says about itself besides the versions; the figure is drawn from this."""
        base = ladders.defaults(self.paper)
        fixed = {name: value for name, value in base.items() if name != self.name}
        header: dict[str, Any] = {
            "paper": self.paper,
            "arxiv": ladders.ARXIV[self.paper],
            "panel": self.name,
            "parameters": fixed,
            "grid": list(self.values),
            "x_label": self.label,
        }
        if self.name == TRADEOFF:
            return {**header, "x_scale": "linear", "y_scale": "linear", "y_label": "false-negative rate"}
        log = {"x_scale": "log", "y_scale": "log", "y_label": r"privacy loss $\varepsilon$ (nats)"}
        if base.get(self.name) is None:
            return {**header, **log}
        return {**header, **log, "marked": base[self.name]}


def _grid(low: float, high: float, count: int, *also: float) -> tuple[float, ...]:
    """Points evenly spaced on a log scale in two digits, and those in `also`."""
    points = {float(f"{value:.2g}") for value in np.geomspace(low, high, count)}
    return tuple(sorted(points | set(also)))


_STEPS = _grid(100, 100_000, 7)
_DELTAS = _grid(1e-12, 1e-2, 6)
_FPR = tuple(float(f"{x:.6g}") for x in (*np.geomspace(1e-4, 0.02, 8), *np.linspace(0.03, 1.0, 49)))

_OWN: Mapping[str, tuple[str, str, tuple[float, ...]]] = {
    "dirichlet": ("scaling", "scaling $r$ of the Dirichlet draw", _grid(0.02, 2.0, 9)),
    "feature": ("sampling_probability", "sampling probability $p = m/|S|$ of a step", _grid(0.001, 0.3, 9)),
    "two_stage": (
        "noise_multiplier",
        r"noise multiplier $\sigma$ (noise std / clip norm)",
        _grid(0.4, 4.0, 9),
    ),
}


def of(paper: str) -> list[Panel]:
    """The four panels of a paper. The paper's own value is a point of every grid that has one."""
    base = ladders.defaults(paper)
    name, label, values = _OWN[paper]

    def panel(name: str, label: str, values: tuple[float, ...]) -> Panel:
        own = base.get(name)
        return Panel(paper, name, label, values if own is None else tuple(sorted({*values, float(own)})))

    return [
        panel("num_steps", "number of steps $T$", _STEPS),
        panel("delta", r"$\delta$ (probability)", _DELTAS),
        panel(name, label, values),
        Panel(paper, TRADEOFF, "false-positive rate", (0.0, *_FPR)),
    ]
