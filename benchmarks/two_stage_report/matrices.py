"""The figure of pairs of columns: associations in both tables, their difference, and joint overlaps."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from jaxtyping import Float
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from exactdp.benchmarks.curves import style
from exactdp.benchmarks.two_stage_report.labels import literal, shortened
from exactdp.train.table_metrics.evaluate import Metrics

MOST_NAMES = 30
"""Columns that are named; more are numbered, from 1."""


def figure(metrics: Metrics) -> Figure:
    """Four matrices; call inside `style.context`."""
    drawn = style.new_figure(style.PAGE, 6.3)
    panels = drawn.subplots(2, 2)
    real, synthetic = metrics.real_associations, metrics.synthetic_associations
    contents = (
        ("held-out real rows", real, "viridis", (0.0, 1.0), "association"),
        ("synthetic rows", synthetic, "viridis", (0.0, 1.0), "association"),
        ("difference", synthetic - real, "RdBu_r", (-1.0, 1.0), "association, synthetic minus real"),
        ("joint distributions", metrics.pairs, "viridis", (0.0, 1.0), "overlap of joint distributions"),
    )
    for axes, (title, matrix, colours, ends, label) in zip(panels.flat, contents, strict=True):
        _matrix(axes, matrix, colours=colours, ends=ends, label=label, names=metrics.columns)
        axes.set_title(title, pad=4.0)
    return drawn


def _matrix(
    axes: Axes,
    matrix: Float[np.ndarray, "columns columns"],
    *,
    colours: str,
    ends: tuple[float, float],
    label: str,
    names: Sequence[str],
) -> None:
    picture = axes.imshow(matrix, cmap=colours, vmin=ends[0], vmax=ends[1], interpolation="nearest")
    axes.set_facecolor(style.GREY)  # shows where there is no number
    bar = axes.figure.colorbar(picture, ax=axes, shrink=0.8, pad=0.02)
    bar.set_label(label)
    bar.outline.set_linewidth(0.4)  # pyright: ignore[reportCallIssue]
    count = len(names)
    if count > MOST_NAMES:
        step = max(10, round(count / 8, -1))
        at = [0, *range(int(step) - 1, count, int(step))]
        for axis in (axes.xaxis, axes.yaxis):
            axis.set_ticks(at, [str(place + 1) for place in at])
        axes.set(xlabel="number of the column", ylabel="number of the column")
        return
    size = 6.5 if count <= 18 else 5.0
    texts = [shortened(name) for name in names]
    axes.set_xticks(range(count), texts, rotation=90, fontsize=size)
    axes.set_yticks(range(count), texts, fontsize=size)
    literal(*axes.get_xticklabels(), *axes.get_yticklabels())
    axes.tick_params(length=0)
