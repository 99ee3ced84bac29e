"""Claimed beside exact, one line a claim, drawn from the CSV file alone."""

from __future__ import annotations

from pathlib import Path

from matplotlib.axes import Axes
from matplotlib.lines import Line2D

from exactdp.benchmarks.curves import store, style

_COLOURS = {"holds": style.BLUE, "violated": style.VERMILLION, "undecided": style.GREY}
_LABELS = {
    "epsilon": r"$\varepsilon$ (log scale)",
    "delta": r"$\delta$ (log scale)",
}


def draw(path: Path) -> list[Path]:
    """Draws `path` (a CSV file of `exactdp check`) into a PDF and a PNG beside it; returns their paths.

    A panel for claims about epsilon (a noise multiplier is shown through the epsilon it is claimed for), one
    for claims about delta. An exact interval is drawn as a bar with a dot, the claim as a hollow diamond.
    """
    _, rows = store.read_csv(path)
    panels = [(axis, [row for row in rows if row["axis"] == axis]) for axis in ("epsilon", "delta")]
    panels = [(axis, group) for axis, group in panels if group]
    with style.context():
        height = 0.75 + 0.55 * (len(panels) - 1) + 0.165 * len(rows)
        figure = style.new_figure(style.PAGE, height)
        all_axes = figure.subplots(
            len(panels), 1, squeeze=False, height_ratios=[len(group) + 1 for _, group in panels]
        )[:, 0]
        for axes, (axis, group) in zip(all_axes, panels, strict=True):
            _panel(axes, group)
            axes.set_xlabel(_LABELS[axis])
        figure.legend(
            handles=_legend(rows), loc="outside upper right", ncols=5, columnspacing=1.2, handlelength=1.4
        )
        return style.save(figure, path.with_suffix(""))


def _panel(axes: Axes, rows: list[store.Row]) -> None:
    axes.set_xscale("log")
    for y, row in enumerate(rows):
        colour = _COLOURS[row["kind"]]
        claimed = float(row["axis_claimed"])
        if row["axis_upper"]:
            # 0 has no place on a log axis: the bar then starts a decade below the claim.
            lower, upper = (max(float(row[end]), claimed / 10.0) for end in ("axis_lower", "axis_upper"))
            axes.plot([upper, claimed], [y, y], color=colour, linewidth=0.8, alpha=0.6, zorder=1)
            axes.plot([lower, upper], [y, y], color=colour, linewidth=2.5, solid_capstyle="butt", zorder=2)
            axes.plot([upper], [y], "o", color=colour, markersize=3.4, zorder=3)
        axes.plot(
            [claimed],
            [y],
            "D",
            markersize=4.0,
            mfc="white",
            mec=colour,
            mew=0.9,
            zorder=4 if _apart(row) else 2,
        )
    verdicts = axes.secondary_yaxis("right")
    verdicts.set_yticks(range(len(rows)), [row["verdict"].replace("holds, ", "") for row in rows])
    axes.set_yticks(range(len(rows)), [_name(row) for row in rows])
    for side in (axes.yaxis, verdicts.yaxis):
        side.set_tick_params(length=0, labelsize=6.5)
    for label, row in zip(verdicts.get_yticklabels(), rows, strict=True):
        label.set_color(_COLOURS[row["kind"]])
    verdicts.spines["right"].set_visible(False)
    axes.spines["left"].set_visible(False)
    axes.set_ylim(len(rows) - 0.4, -0.6)
    axes.grid(axis="y", linewidth=0.3, color="#d9d9d9", zorder=0)
    axes.set_axisbelow(True)
    style.log_ticks(axes.xaxis)


def _name(row: store.Row) -> str:
    """The claim's name, what it is claimed at, and its threat model."""
    given = rf"$\delta$ = {_short(row['delta'])}" if row["axis"] == "epsilon" and row["delta"] else ""
    if row["axis"] == "delta" and row["epsilon"]:
        given = rf"$\varepsilon$ = {_short(row['epsilon'])}"
    claimed = rf"$\sigma$ = {float(row['claimed']):.4g}" if row["quantity"] == "noise_multiplier" else ""
    coins = f"{row['coins']} coins" if row["coins"] and row["coins"] != "none" else ""
    model = [x.replace("_", "/") for x in (row["adjacency"],) if x] + [x for x in (coins,) if x]
    return f"{row['name']} ({', '.join([x for x in (claimed, given) if x] + model)})"


def _short(number: str) -> str:
    return f"{float(number):.3g}".replace("e-0", "e-")


def _apart(row: store.Row) -> bool:
    """Whether the claim's mark lies clear of the exact one's."""
    return not row["axis_upper"] or abs(float(row["axis_upper"]) / float(row["axis_claimed"]) - 1.0) > 0.02


def _legend(rows: list[store.Row]) -> list[Line2D]:
    kinds = [kind for kind in _COLOURS if any(row["kind"] == kind for row in rows)]
    marks = [
        Line2D(
            [], [], marker="D", linestyle="", mfc="white", mec=style.BLACK, markersize=4.0, label="claimed"
        ),
        Line2D(
            [],
            [],
            marker="o",
            color=style.BLACK,
            markersize=3.4,
            linewidth=2.0,
            label="exact (certified interval)",
        ),
    ]
    return marks + [Line2D([], [], color=_COLOURS[kind], linewidth=2.5, label=kind) for kind in kinds]
