"""The figure of a training audit, drawn from its CSV file alone."""

from __future__ import annotations

import math
import textwrap
from pathlib import Path

from exactdp.benchmarks.curves import store, style

_COLOURS = (style.BLUE, style.GREEN, style.PURPLE)
_WRAP = 26
_ADJACENCY = {
    "add_remove": "add/remove",
    "replace": "replacement",
    "replace_features_public": "replacement, public features kept",
    "replace_label_public": "replacement, label kept",
}


def draw(path: Path) -> list[Path]:
    """Draws `path` into a PDF and a PNG beside it; returns their paths.

    A line for each audited bound, with an arrow to where its interval goes on; claims as vertical lines, the
    the repaired ones dashed, the exact ones as bands.
    """
    header, rows = store.read_csv(path)
    audited = [row for row in rows if row["kind"] == "audited"]
    claims = [row for row in rows if row["kind"] != "audited" and math.isfinite(float(row["upper"]))]
    tops = [float(row["upper"]) for row in claims] + [float(row["lower"]) for row in audited]
    reach = 1.12 * max(*tops, 0.1)
    with style.context():
        figure = style.new_figure(style.COLUMN, 0.44 * len(audited) + 1.5)
        figure.set_layout_engine("constrained", w_pad=0.08)  # names of bounds reach far to the left
        axes = figure.subplots()
        exact = iter(_COLOURS)
        for row in claims:
            repaired = row["kind"] == "repaired"
            colour = style.VERMILLION if repaired else next(exact)
            low, high = float(row["lower"]), float(row["upper"])
            if not repaired:
                axes.axvspan(low, high, color=colour, alpha=0.35, linewidth=0)
            label = f"arXiv {header['source']}, {row['name']}" if repaired else row["name"]
            axes.axvline(high, color=colour, linestyle="--" if repaired else "-", label=label)
        for place, row in enumerate(audited):
            low = float(row["lower"])
            axes.annotate(
                "",
                (min(low + 0.12 * reach, reach), -place),
                (low, -place),
                arrowprops={"arrowstyle": "->", "linewidth": 0.9},
            )
            axes.plot(
                [low],
                [-place],
                "o",
                color=style.BLACK,
                markersize=4.0,
                zorder=5,
                label=f"audited, ≥ with {100.0 * float(str(header['confidence'])):g} % confidence"
                if place == 0
                else None,
            )
        names = ["\n".join(textwrap.wrap(row["name"], _WRAP)) for row in audited]
        axes.set_yticks([-place for place in range(len(audited))], names, fontsize=6.0)
        axes.set_ylim(0.4 - len(audited), 0.6)
        axes.set_xlim(-0.02 * reach, reach)  # a bound of 0 is seen whole
        axes.set_xlabel(r"$\varepsilon$ at $\delta$ = " + f"{header['delta']:g}")
        figure.suptitle(
            f"arXiv {header['source']} · {header['method']}, {_ADJACENCY[str(header['adjacency'])]}, "
            f"coins {header['coins']}\n"
            f"s = {header['noise_multiplier']:g}, q = {header['sampling_probability']:g}, "
            f"T = {header['num_steps']}",
            fontsize=6.5,
            color=style.GREY,
        )
        figure.legend(loc="outside lower center", ncols=1, labelspacing=0.35)
        return style.save(figure, path.with_suffix(""))
