"""The figure of the speed comparison, drawn from its CSV file alone."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from matplotlib.axes import Axes

from exactdp.benchmarks.curves import store, style
from exactdp.benchmarks.speed.measure import OURS

LOOK = {
    OURS: (style.BLACK, "o"),
    "opake-accounting": (style.VERMILLION, "s"),
    "dp-accounting": (style.BLUE, "^"),
    "riskcal": (style.SKY, "v"),
    "prv-accountant": (style.GREEN, "D"),
    "opacus": (style.ORANGE, "P"),
    "fourier-accountant": (style.PURPLE, "X"),
    "autodp": (style.GREY, "*"),
}


def draw(path: Path) -> list[Path]:
    """Draws the CSV file at `path` as a PDF and a PNG file of its name.

    Returns:
      The paths of both.
    """
    _, rows = store.read_csv(path)
    with style.context():
        names = list(dict.fromkeys(row["case"] for row in rows))
        figure = style.new_figure(style.PAGE, 1.6 + 0.145 * len(names))
        left, right = figure.subplots(1, 2, width_ratios=(1.0, 1.15))
        _sweep(left, rows)
        _ratios(right, rows, names)
        handles, labels = left.get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside upper center", ncols=4)
        return style.save(figure, path.with_suffix(""))


def _sweep(axis: Axes, rows: Sequence[store.Row]) -> None:
    for library, (colour, marker) in LOOK.items():
        points = sorted(
            (int(row["num_steps"]), 1e3 * float(row["cpu_seconds"]))
            for row in rows
            if (row["library"], row["sweep"], row["tolerance"]) == (library, "1", "") and row["cpu_seconds"]
        )
        label = f"{library} (to $10^{{-6}}$)" if library == OURS else library
        x, y = [p[0] for p in points], [p[1] for p in points]
        front = 3 if library == OURS else 2
        if points:
            axis.plot(x, y, color=colour, marker=marker, markersize=3.5, label=label, zorder=front)
    matched = _matched(rows)
    axis.plot(
        list(matched), list(matched.values()), color=style.BLACK, linestyle=":", marker="o", markersize=3.5,
        fillstyle="none", label=f"{OURS} (to the Rust peer's error)", zorder=3,
    )  # fmt: skip
    axis.set_xscale("log")
    axis.set_yscale("log")
    axis.set_xlabel(r"Number of steps $T$ ($q = 0.01$, $\delta = 10^{-5}$)")
    axis.set_ylabel("Time of one query (ms)")


def _matched(rows: Sequence[store.Row]) -> dict[int, float]:
    """Our time at the Rust peer's error, or another's where that one has no answer, by number of steps."""
    answer: dict[int, float] = {}
    for library in ("dp-accounting", "opake-accounting"):
        for row in rows:
            if row["library"] == library and row["sweep"] == "1" and row["ours_seconds"]:
                answer[int(row["num_steps"])] = 1e3 * float(row["ours_seconds"])
    return dict(sorted(answer.items()))


def _ratios(axis: Axes, rows: Sequence[store.Row], names: Sequence[str]) -> None:
    for line, dashes in ((1.0, "-"), (3.0, ":"), (10.0, "--")):
        axis.axvline(line, color=style.GREY, linewidth=0.7, linestyle=dashes, zorder=0)
    for library, (colour, marker) in LOOK.items():
        mine = [row for row in rows if row["library"] == library and row["ratio"] and row["tight"] == "1"]
        x, y = [float(row["ratio"]) for row in mine], [names.index(row["case"]) for row in mine]
        axis.plot(x, y, color=colour, marker=marker, markersize=4.0, linestyle="")
    axis.set_xscale("log")
    axis.set_yticks(range(len(names)), [name.replace("delta", "δ =") for name in names])
    axis.set_ylim(len(names) - 0.5, -0.5)
    axis.set_xlabel("Time of the peer over ours, at its error or less")
    axis.tick_params(axis="y", length=0)
