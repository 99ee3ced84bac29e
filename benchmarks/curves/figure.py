"""Draws the curves of a paper, each panel from its CSV file alone."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from matplotlib.axes import Axes
from matplotlib.lines import Line2D

from exactdp.benchmarks.curves import marks, store, style

_EXTRA = (style.SKY, style.OLIVE, style.BROWN, style.PURPLE, style.ORANGE, style.INDIGO, style.WINE)
_COLOURS = {
    "printed": (style.BLACK, style.GREY, *_EXTRA),
    "repaired": (style.ORANGE, style.PURPLE, *_EXTRA),
    "exact": (style.BLUE, style.VERMILLION, style.GREEN, style.INDIGO, style.WINE, *_EXTRA),
    "audited": (style.GREY, *_EXTRA),
}
_DASHES: dict[str, Any] = {
    "printed": (0, (4, 1.6)),
    "repaired": (0, (5, 1.2, 1, 1.2)),
    "exact": "-",
    "audited": ":",
}
_MARKERS = "osD^vP*X<>"
_SYMBOLS = {
    "scaling": "r",
    "offset": "α",
    "noise_multiplier": "σ",
    "sampling_probability": "q",
    "num_steps": "T",
    "delta": "δ",
}
_WORDS = {
    "add_remove": "add/remove",
    "replace": "replace",
    "replace_label_public": "replace, label public",
    "replace_features_public": "replace, features public",
    "hidden": "hidden coins",
    "visible": "visible coins",
    "none": "no sampling",
}


class Series:
    """One rung in one panel.

    Attributes:
      rung: its name.
      kind: printed, repaired, exact or audited.
      label: for the legend; it names the threat model.
      x, lower, upper: the points that have a value.
    """

    def __init__(self, rows: Sequence[store.Row]) -> None:
        first = rows[0]
        self.rung, self.kind = first["rung"], first["kind"]
        self.label = f"{self.rung} ({_WORDS[first['adjacency']]}, {_WORDS[first['coins']]})"
        kept = [row for row in rows if row["upper"] and math.isfinite(float(row["upper"]))]
        self.x = [float(row["x"]) for row in kept]
        self.lower = [float(row["lower"]) for row in kept]
        self.upper = [float(row["upper"]) for row in kept]


def series(rows: Sequence[store.Row]) -> list[Series]:
    """The rungs of a panel, in the order of the file; those without any value are left out."""
    names = list(dict.fromkeys(row["rung"] for row in rows))
    found = [Series([row for row in rows if row["rung"] == name]) for name in names]
    return [one for one in found if one.x]


def styles(every: Sequence[Series]) -> dict[str, tuple[str, Any, str]]:
    """Colour, dash pattern and marker of each rung, the same in all panels of a paper."""
    chosen: dict[str, tuple[str, Any, str]] = {}
    for one in every:
        if one.rung not in chosen:
            used = {colour for colour, *_ in chosen.values()}
            free = [colour for colour in _COLOURS[one.kind] if colour not in used]
            colour = (free or _COLOURS[one.kind])[0]
            chosen[one.rung] = (colour, _DASHES[one.kind], _MARKERS[len(chosen) % len(_MARKERS)])
    return chosen


def draw_panel(path: Path) -> list[Path]:
    """Draws one CSV file as a figure one column wide, legend below; returns the paths of the PDF and PNG."""
    header, rows = store.read_csv(path)
    every = series(rows)
    look = styles(every)
    audited = marks.handles([header])
    with style.context():
        figure = style.new_figure(style.COLUMN, 2.3 + 0.13 * (len(every) + 1 + 2 * len(audited)))
        axes = figure.subplots()
        fill(axes, header, every, look)
        marks.draw(axes, rows)
        figure.legend(
            handles=[*handles(every, [every], look), *audited],
            loc="outside lower center",
            ncols=1,
            title=str(header["arxiv"]),
            **_LEGEND,
        )
        return style.save(figure, path.with_suffix(""))


def draw_paper(paths: Sequence[Path], stem: Path) -> list[Path]:
    """Draws the panels of a paper as one figure of the width of a page, with one legend."""
    panels = [store.read_csv(path) for path in paths]
    parts = [series(rows) for _, rows in panels]
    every = [one for part in parts for one in part]
    look = styles(every)
    with style.context():
        losses = [
            part for part, (header, _) in zip(parts, panels, strict=True) if header["panel"] != "tradeoff"
        ]
        entries = [*handles(every, losses, look), *marks.handles([header for header, _ in panels])]
        figure = style.new_figure(style.PAGE, 4.3 + 0.14 * (3 + math.ceil(len(entries) / 2)))
        grid = figure.subplots(2, 2).ravel()
        for letter, axes, (header, rows), part in zip("abcd", grid, panels, parts, strict=False):
            fill(axes, header, part, look)
            marks.draw(axes, rows)
            axes.set_title(f"({letter})", loc="left")
        for axes in grid[len(panels) :]:
            axes.set_visible(False)
        figure.legend(
            handles=entries,
            loc="outside lower center",
            ncols=2,
            title=caption([header for header, _ in panels]),
            **_LEGEND,
        )
        return style.save(figure, stem)


_LEGEND: dict[str, Any] = {
    "title_fontsize": 6.5,
    "alignment": "left",
    "columnspacing": 1.2,
    "labelspacing": 0.35,
}


def caption(headers: Sequence[dict[str, Any]]) -> str:
    """The paper, the parameters that no panel varies otherwise, and what is drawn how."""
    values: dict[str, Any] = {}
    for header in headers:
        values |= header["parameters"]
    shown = [
        f"{symbol} = {values[name]:g}" for name, symbol in _SYMBOLS.items() if values.get(name) is not None
    ]
    lines = [", ".join([str(headers[0]["arxiv"]), *shown])]
    marked = "Vertical line: the paper's value. " if any("marked" in header for header in headers) else ""
    lines.append(f"{marked}Shaded: certified interval. Wide and pale: below another curve.")
    if any(header["panel"] == "tradeoff" for header in headers):
        lines.append(
            "(d) Exact rungs that are a composition: their own curve. All others: the lower one that their "
            "(ε, δ) implies."
        )
    return "\n".join(lines)


def fill(
    axes: Axes, header: dict[str, Any], every: Sequence[Series], look: dict[str, tuple[str, Any, str]]
) -> None:
    """Draws the series into `axes`; labels and scales come from the header."""
    marked = header["panel"] != "tradeoff"
    for depth, one in enumerate(every):
        colour, dash, marker = look[one.rung]
        if one.kind == "exact":  # the certified interval; mostly thinner than the line
            wide = marked and any(2.0 * low < high for low, high in zip(one.lower, one.upper, strict=True))
            axes.fill_between(
                one.x,
                one.lower,
                one.upper,
                color=colour,
                alpha=0.12 if wide else 0.35,
                linewidth=0.0,
                zorder=1.5,
            )
        drawn: dict[str, Any] = (
            {"marker": marker, "markersize": 2.6, "markeredgewidth": 0.0} if marked else {}
        )
        below = sum(coincide(one, other) for other in every[:depth])
        if below:  # wide and pale below the curve that it would hide, or be hidden by
            drawn = {"linewidth": 1.1 + 2.2 * below, "alpha": 0.4}
        axes.plot(one.x, one.upper, color=colour, linestyle=dash, zorder=2.5 - 0.01 * depth, **drawn)
    axes.grid(linewidth=0.3, color="#e6e6e6")
    axes.set_axisbelow(True)
    axes.set_xlabel(header["x_label"])
    axes.set_ylabel(header["y_label"])
    axes.set_xscale(header["x_scale"])
    axes.set_yscale(header["y_scale"])
    if not marked:
        axes.plot([0.0, 1.0], [1.0, 0.0], color="#bbbbbb", linewidth=0.6, zorder=1)
        axes.set_xlim(0.0, 1.0)
        axes.set_ylim(0.0, 1.0)
        return
    if math.isfinite(ceiling(every)):
        axes.set_ylim(top=ceiling(every))
    if "marked" in header:
        axes.axvline(header["marked"], color="#bbbbbb", linewidth=0.6, zorder=1)
    for axis, scale in ((axes.xaxis, header["x_scale"]), (axes.yaxis, header["y_scale"])):
        if scale == "log":
            style.log_ticks(axis)


def ceiling(every: Sequence[Series]) -> float:
    """Where the axis of a panel of epsilons ends; infinite where all of it is shown.

    A bound that explodes leaves the panel: it would press the exact values together.
    """
    exact = [value for one in every if one.kind == "exact" for value in one.upper]
    most = max(value for one in every for value in one.upper)
    return 5.0 * max(exact) if exact and most > 20.0 * max(exact) else math.inf


def coincide(one: Series, other: Series) -> bool:
    """Whether two curves cannot be told apart in a figure."""
    return one.x == other.x and all(
        math.isclose(a, b, rel_tol=2e-3) for a, b in zip(one.upper, other.upper, strict=True)
    )


def handles(
    every: Sequence[Series], parts: Sequence[Sequence[Series]], look: dict[str, tuple[str, Any, str]]
) -> list[Line2D]:
    """Legend entries, one a rung; they name those that lie above the panels in `parts`."""
    labels = {one.rung: one.label for one in every}
    in_view = {one.rung for part in parts for one in part if min(one.upper) <= ceiling(part)}
    return [
        Line2D(
            [],
            [],
            color=colour,
            linestyle=dash,
            marker=marker,
            markersize=2.6,
            markeredgewidth=0.0,
            label=labels[rung] + ("" if rung in in_view else ": beyond the panel"),
        )
        for rung, (colour, dash, marker) in look.items()
    ]
