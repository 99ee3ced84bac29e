"""The figure of the audit, drawn from its CSV file alone."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from matplotlib.axes import Axes
from matplotlib.lines import Line2D

from exactdp.benchmarks.curves import ladders, store, style

_PRINTED, _EXACT = "stage 2, printed", "stage 2, exact"
_COLOURS = {"as published": style.VERMILLION, "repaired": style.BLUE}
_LOSSES = {"means over the batch": style.VERMILLION, "means over the row": style.BLUE}
_MARKS = ("o", "s", "D")


def draw(path: Path) -> list[Path]:
    """Draws `path` (two_stage_audit.csv) into a PDF and a PNG beside it; returns their paths.

    Left: lower bounds of epsilon from what is taken from the table, above those from the noisy sums of the
    first step, of all steps, and of one with every row in it; each group with what is claimed for it. Right:
    how far one row moves the clipped sum, against the number of rows beside it.
    """
    header, rows = store.read_csv(path)
    parts: dict[str, list[store.Row]] = {}
    for row in rows:
        parts.setdefault(row["part"], []).append(row)
    with style.context():
        figure = style.new_figure(style.PAGE, 3.6)
        left, right = figure.subplots(1, 2, width_ratios=[1.25, 1.0])
        _bounds(left, parts)
        left.set_xlabel(r"$\varepsilon$ at $\delta$ = " + f"{header['delta']:g}")
        _moves(right, parts)
        confidence = 100.0 * float(str(header["confidence"]))
        figure.suptitle(
            f"{ladders.ARXIV['two_stage']} · lower bounds with {confidence:g} % confidence from "
            f"{header['trials']} runs as published; printed values dashed",
            fontsize=6.5,
            color=style.GREY,
        )
        handles = [
            Line2D([], [], color=colour, marker="o", linestyle="", markersize=4.0, label=f"{name}, audited")
            for name, colour in _COLOURS.items()
        ]
        handles += [
            Line2D([], [], color=style.BLACK, linestyle="--", label="printed"),
            Line2D([], [], color=style.BLACK, label="exact: stage 2; one step with clipping that holds"),
            Line2D([], [], color=style.BLUE, label="certified: everything; statistics"),
        ]
        figure.legend(handles=handles, loc="outside lower center", ncols=5, columnspacing=1.0)
        return style.save(figure, path.with_suffix(""))


def _bounds(axes: Axes, parts: dict[str, list[store.Row]]) -> None:
    names: list[str] = []
    claims = {row["series"]: row for row in parts["claim"]}
    for mode, colour in _COLOURS.items():
        for row in parts.get(mode, ()):
            _mark(axes, len(names), row, colour)
            if mode == "repaired":
                shown = (
                    ("repaired, its statistics", style.BLUE, "-"),
                    ("repaired, end to end", style.BLUE, "-"),
                )
            else:
                shown = ((_EXACT, style.BLACK, "-"), (_PRINTED, style.BLACK, "--"))
            _claim(axes, len(names), ((claims[name], colour, line) for name, colour, line in shown))
            names.append(row["series"])
    stage = {row["series"]: row for row in parts["stage 2"]}
    step = {row["series"]: row for row in parts["one step"]}
    for part, told in (("first", "first step"), ("stage", "all steps"), ("step", "one step")):
        for row in parts[part]:
            loss = row["series"].partition(",")[0]
            _mark(axes, len(names), row, _LOSSES[loss])
            shown = ((stage[_EXACT], style.BLACK, "-"), (stage[_PRINTED], style.BLACK, "--"))
            if part == "step":
                shown = ((step[row["series"]], style.BLACK, "-"),)
            _claim(axes, len(names), shown)
            names.append(f"{told}: {row['series']}")
    axes.set_yticks(range(len(names)), names, fontsize=6.0)
    axes.set_ylim(len(names) - 0.4, -0.6)
    axes.set_xlim(left=-0.1)
    axes.tick_params(axis="y", length=0)
    axes.grid(axis="x", linewidth=0.3, color="#e6e6e6")
    axes.set_axisbelow(True)


def _mark(axes: Axes, y: int, row: store.Row, colour: str) -> None:
    """A lower bound, with an arrow to where the interval goes on."""
    axes.errorbar(
        [float(row["lower"])],
        [y],
        xerr=[[0.0], [0.3]],
        xlolims=True,
        fmt="o",
        color=colour,
        markersize=3.4,
        capsize=1.8,
        elinewidth=0.8,
        zorder=4,
    )


def _claim(axes: Axes, y: int, shown: Iterable[tuple[store.Row, str, str]]) -> None:
    for row, colour, line in shown:
        axes.plot(
            [float(row["upper"])] * 2, [y - 0.42, y + 0.42], color=colour, linestyle=line, linewidth=1.1
        )


def _moves(axes: Axes, parts: dict[str, list[store.Row]]) -> None:
    for name in dict.fromkeys(row["series"] for row in parts["move"]):
        colour = _LOSSES[name.partition(",")[0]]
        own = [row for row in parts["move"] if row["series"] == name]
        known = [row for row in parts.get("move, derived", ()) if row["series"] == name]
        number = list(dict.fromkeys(row["series"] for row in parts["move"])).index(name)
        axes.plot(
            [float(row["x"]) for row in own],
            [float(row["lower"]) for row in own],
            _MARKS[number],
            color=colour,
            mfc="white",
            markersize=3.6,
            mew=0.9,
            label=name,
        )
        if known:
            axes.plot(
                [float(row["x"]) for row in known],
                [float(row["lower"]) for row in known],
                color=colour,
                linewidth=0.8,
                zorder=1,
            )
    axes.axhline(1.0, color=style.BLACK, linestyle="--", linewidth=0.9, label="sensitivity as printed")
    axes.set_yscale("log")
    axes.set_ylim(0.7, 500.0)  # room for the legend
    style.log_ticks(axes.yaxis)
    axes.set_xlabel("short rows in the physical batch")
    axes.set_ylabel("move of the clipped sum / clip norm")
    axes.legend(fontsize=6.0, loc="upper left")
