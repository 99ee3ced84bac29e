"""Audited lower bounds in a figure: a mark at the bound, with an arrow to where the interval goes on."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from typing import Any

from matplotlib.axes import Axes
from matplotlib.lines import Line2D

from exactdp.benchmarks.curves import store, style

_ARROW = 1.9  # the length of an arrow, as a factor of its foot
_LOOK: dict[str, Any] = {"color": style.BLACK, "markersize": 4.0}
_LINE = 62


def lower_bounds(axes: Axes, x: Sequence[float], y: Sequence[float], *, label: str | None = None) -> None:
    """Draws lower bounds into axes whose vertical scale is logarithmic.

    A bound of 0 has no place there: it is a hollow mark on the lower edge, which says nothing.

    Args:
      axes: with the lower limit that they are to have, where a bound is 0.
      x: where the bounds stand.
      y: the bounds, >= 0.
      label: for a legend that is made from the axes.
    """
    _arrows(axes, [(a, b) for a, b in zip(x, y, strict=True) if b > 0.0], label=label)
    nothing = [a for a, b in zip(x, y, strict=True) if b == 0.0]
    if nothing:
        axes.plot(
            nothing,
            [axes.get_ylim()[0]] * len(nothing),
            "o",
            mfc="white",
            clip_on=False,
            zorder=5,
            label="audited, no bound above 0",
            **_LOOK,
        )


def _arrows(axes: Axes, points: Sequence[tuple[float, float]], *, label: str | None) -> None:
    if not points:
        return
    x, y = zip(*points, strict=True)
    axes.errorbar(
        x,
        y,
        yerr=[[0.0] * len(y), [(_ARROW - 1.0) * value for value in y]],
        lolims=True,
        fmt="o",
        capsize=2.2,
        elinewidth=0.9,
        zorder=5,
        label=label,
        **_LOOK,
    )


def of(rows: Sequence[store.Row]) -> list[tuple[float, float]]:
    """The audited lower bounds among the rows of a panel: (x, bound)."""
    return [
        (float(row["x"]), float(row["lower"])) for row in rows if row["kind"] == "audited" and row["lower"]
    ]


def draw(axes: Axes, rows: Sequence[store.Row]) -> None:
    """Draws the audited lower bounds of a panel, all in view."""
    found = of(rows)
    if not found:
        return
    lower_bounds(axes, [x for x, _ in found], [y for _, y in found])
    axes.set_ylim(
        min(axes.get_ylim()[0], 0.8 * min(y for _, y in found)),
        max(axes.get_ylim()[1], 1.2 * _ARROW * max(y for _, y in found)),
    )


def handles(headers: Sequence[dict[str, Any]]) -> list[Line2D]:
    """Legend entries of the audits that the headers of panels list: one for each kind of statement."""
    labels = dict.fromkeys(_label(entry) for header in headers for entry in header.get("audits", ()))
    return [Line2D([], [], linestyle="none", marker="o", label=label, **_LOOK) for label in labels]


def _label(entry: dict[str, Any]) -> str:
    sure = {"confidence": "confidence", "credible": "credibility"}[entry["certainty"]]
    text = (
        f"audited, ≥ with {100.0 * entry['confidence']:g} % {sure}; released: "
        f"{entry['threat_model']['released']}"
    )
    return textwrap.fill(text, _LINE)
