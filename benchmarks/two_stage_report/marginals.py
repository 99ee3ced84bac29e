"""Figures of the marginal distributions: real rows as a dashed outline, synthetic ones filled."""

from __future__ import annotations

import numpy as np
from jaxtyping import Float, Int
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from exactdp.benchmarks.curves import style
from exactdp.benchmarks.two_stage_report.labels import literal, shortened
from exactdp.train.table_metrics.cells import Cells
from exactdp.train.tables.schema import Column, Schema

ACROSS, DOWN = 3, 5
"""Panels of a figure."""
BINS = 20

_MOST_BARS = 7
_ROW_HEIGHT = 1.5


def figures(
    real: Int[np.ndarray, "rows columns"],
    synthetic: Int[np.ndarray, "others columns"],
    schema: Schema,
    *,
    overlaps: Float[np.ndarray, " columns"],
) -> list[Figure]:
    """One panel a column, `ACROSS` x `DOWN` of them in a figure; call inside `style.context`.

    Args:
      real: codes.
      synthetic: codes.
      schema: of both.
      overlaps: histogram intersections at `BINS` bins, drawn beside the names.
    """
    found: list[Figure] = []
    places = range(len(schema.columns))
    for start in range(0, len(places), ACROSS * DOWN):
        shown = places[start : start + ACROSS * DOWN]
        rows = -(-len(shown) // ACROSS)
        figure = style.new_figure(style.PAGE, _ROW_HEIGHT * rows + 0.35)
        panels = list(figure.subplots(rows, ACROSS, squeeze=False).flat)
        for axes, place in zip(panels, shown, strict=False):
            column = schema.columns[place]
            cells = Cells.of(real[:, place], column, bins=BINS)
            shares = [_shares(table[:, place], cells) for table in (real, synthetic)]
            (_bars if column.kind == "category" else _steps)(axes, cells, *shares)
            name = axes.set_title(shortened(column.name, 22), loc="left", fontsize=7.5, pad=3.0)
            axes.set_title(f"{overlaps[place]:.3f}", loc="right", fontsize=6.5, color=style.GREY, pad=3.0)
            literal(name)
        for axes in panels[len(shown) :]:
            axes.set_axis_off()
        marks = [
            Line2D([], [], color=style.BLACK, linestyle="--", linewidth=0.9, label="held-out real rows"),
            Patch(color=style.SKY, label="synthetic rows"),
            Line2D([], [], linestyle="", label="grey number: overlap of the two"),
        ]
        figure.legend(handles=marks, loc="outside upper center", ncols=3)
        found.append(figure)
    return found


def _shares(codes: Int[np.ndarray, " rows"], cells: Cells) -> Float[np.ndarray, " cells"]:
    return np.bincount(cells.places(codes), minlength=cells.size) / len(codes)


def _steps(
    axes: Axes, cells: Cells, real: Float[np.ndarray, " cells"], synthetic: Float[np.ndarray, " cells"]
) -> None:
    """A number: the bins of the real rows' range, and in words what is outside or missing."""
    column = cells.column
    low, high = cells.ends if cells.ends is not None else (column.low, column.high)
    count = min(BINS, high - low + 1)  # fewer codes than bins: each has one of its own, others stay empty
    inside = slice(1, BINS + 1) if count == BINS else cells.places(np.arange(low, high + 1))
    # A code is a unit wide: 3 is drawn from 2.5 to 3.5.
    edges = (low - 0.5 + np.arange(count + 1) * (high - low + 1) / count) / 10.0**column.decimals
    axes.stairs(synthetic[inside], edges, fill=True, color=style.SKY, zorder=1)
    axes.stairs(real[inside], edges, color=style.BLACK, linestyle="--", linewidth=0.9, zorder=2)
    axes.set_xlim(float(edges[0]), float(edges[-1]))
    notes: list[str] = []
    if real[-1] or synthetic[-1]:
        notes.append(f"missing: {_percent(real[-1])} real, {_percent(synthetic[-1])} synth.")
    outside = float(synthetic[0] + synthetic[BINS + 1])
    if outside:
        notes.append(f"outside the real range: {_percent(outside)} synth.")
    top = max(float(real[inside].max()), float(synthetic[inside].max()), 1e-9)
    axes.set_ylim(0.0, (1.1 + 0.2 * len(notes)) * top)
    if notes:
        axes.text(0.98, 0.98, "\n".join(notes), transform=axes.transAxes, ha="right", va="top", fontsize=5.5)
    axes.ticklabel_format(axis="x", style="sci", scilimits=(-3, 5), useMathText=True)
    axes.locator_params(nbins=4)
    axes.set(xlabel="value", ylabel="share of rows")


def _percent(share: float) -> str:
    return "< 0.1 %" if 0.0 < share < 0.001 else f"{100.0 * share:.1f} %"


def _bars(
    axes: Axes, cells: Cells, real: Float[np.ndarray, " cells"], synthetic: Float[np.ndarray, " cells"]
) -> None:
    """A category: its most frequent values, the others together, and the missing cells."""
    column = cells.column
    order = np.argsort(-(real[:-1] + synthetic[:-1]), kind="stable")
    room = _MOST_BARS if len(order) <= _MOST_BARS else _MOST_BARS - 1
    kept = order[:room]
    bars = [(_named(column, int(code)), real[code], synthetic[code]) for code in kept]
    if len(order) > room:
        rest = order[room:]
        bars.append((f"{len(rest)} others", real[rest].sum(), synthetic[rest].sum()))
    if column.missing:
        bars.append(("(missing)", real[-1], synthetic[-1]))
    at = np.arange(len(bars))
    axes.barh(at, [bar[2] for bar in bars], 0.72, color=style.SKY, zorder=1)
    axes.barh(
        at,
        [bar[1] for bar in bars],
        0.72,
        facecolor="none",
        edgecolor=style.BLACK,
        linestyle="--",
        linewidth=0.8,
        zorder=2,
    )
    axes.set_yticks(at, [bar[0] for bar in bars], fontsize=5.5)
    literal(*axes.get_yticklabels())
    axes.set_ylim(len(bars) - 0.5, -0.5)
    axes.tick_params(axis="y", length=0)
    axes.locator_params(axis="x", nbins=4)
    axes.set_xlabel("share of rows")


def _named(column: Column, code: int) -> str:
    return shortened(column.values[code])
