"""The figure of the audit, drawn from its CSV file alone."""

from __future__ import annotations

import math
from pathlib import Path

from matplotlib.axes import Axes

from exactdp.benchmarks.curves import marks, store, style
from exactdp.benchmarks.experiments.dirichlet import ARXIV

_LINES = {
    "printed": ("printed (Lemma 13)", style.VERMILLION, "--"),
    "repaired": ("its reading that gives Table 7", style.ORANGE, "--"),
    "exact": ("exact, label-public replacement", style.BLUE, "-"),
    "exact_hidden": ("exact, add/remove, hidden coins", style.SKY, "-"),
}
_LOWEST = 1e-3


def draw(path: Path) -> list[Path]:
    """Draws `path` (dirichlet_audit.csv) into a PDF and a PNG beside it; returns their paths.

    Epsilon against the scaling r: claims as lines, certified intervals as bands, audited lower bounds as
    marks with an arrow to where the interval goes on.
    """
    header, rows = store.read_csv(path)
    with style.context():
        figure = style.new_figure(style.COLUMN, 3.1)
        axes = figure.subplots()
        for name, (label, colour, line) in _LINES.items():
            _claim(axes, [row for row in rows if row["series"] == name], label, colour, line)
        printed = [row for row in rows if row["series"] == "table_7"]
        if printed:
            axes.plot(
                [float(row["scaling"]) for row in printed],
                [float(row["upper"]) for row in printed],
                "D",
                color=style.BLACK,
                mfc="white",
                markersize=4.0,
                mew=0.9,
                zorder=4,
                label="Table 7",
            )
        axes.set_xscale("log")
        axes.set_yscale("log")
        top = max(_finite(row) for row in rows)
        axes.set_ylim(_LOWEST, 3.0 * top)
        _audited(axes, [row for row in rows if row["series"] == "audited"], float(str(header["confidence"])))
        axes.set_xlabel("scaling $r$")
        axes.set_ylabel(r"$\varepsilon$ at $\delta$ = " + f"{header['delta']:g}")
        axes.grid(linewidth=0.3, color="#e6e6e6")
        axes.set_axisbelow(True)
        figure.suptitle(
            f"{ARXIV} · α = {header['offset']:g}, q = {header['sampling_probability']:g}, "
            f"T = {header['num_steps']}; {header['trials']} runs at each mark",
            fontsize=6.5,
            color=style.GREY,
        )
        figure.legend(loc="outside lower center", ncols=2, columnspacing=1.0, labelspacing=0.35)
        return style.save(figure, path.with_suffix(""))


def _finite(row: store.Row) -> float:
    value = float(row["upper"] or row["lower"])
    return value if math.isfinite(value) else 0.0


def _claim(axes: Axes, rows: list[store.Row], label: str, colour: str, line: str) -> None:
    # Zero has no place on a logarithmic axis: a curve leaves the picture at its lower edge.
    kept = [row for row in rows if float(row["upper"]) > 0.0 and math.isfinite(float(row["upper"]))]
    x = [float(row["scaling"]) for row in kept]
    low, high = ([float(row[end]) for row in kept] for end in ("lower", "upper"))
    if line == "-":
        axes.fill_between(x, low, high, color=colour, alpha=0.35, linewidth=0)
    axes.plot(x, high, color=colour, linestyle=line, label=label)


def _audited(axes: Axes, rows: list[store.Row], confidence: float) -> None:
    marks.lower_bounds(
        axes,
        [float(row["scaling"]) for row in rows],
        [float(row["lower"]) for row in rows],
        label=f"audited weights, ≥ with {100.0 * confidence:g} % confidence",
    )
