"""The figure of an audit, drawn from its CSV file alone."""

from __future__ import annotations

from pathlib import Path

from matplotlib.axes import Axes
from matplotlib.lines import Line2D

from exactdp.benchmarks.curves import store, style

_COLOURS = {"l2": style.BLUE, "cosine": style.ORANGE, "perceptual": style.GREEN}
_NAMES = {"l2": "L2", "cosine": "cosine", "perceptual": "edges"}
_MATCHERS = {"view": r"its view $\Psi$", "raw": "the copy itself"}


def draw(path: Path) -> list[Path]:
    """Draws `path` (psi_audit.csv) into a PDF and a PNG beside it; returns their paths.

    Left: shares of public views that lead to their record. Middle: Ball against the radius. Right, where a
    release is claimed: the bound of Theorem 4 against the radius.
    """
    header, rows = store.read_csv(path)
    parts = {
        name: [row for row in rows if row["part"] == name]
        for name in ("reidentification", "ball", "advantage")
    }
    radius = float(str(header["radius"]))
    with style.context():
        figure = style.new_figure(style.PAGE, 2.35)
        count = 3 if parts["advantage"] else 2
        panels = figure.subplots(1, count, width_ratios=[1.15, *([1.0] * (count - 1))])
        _matches(panels[0], parts["reidentification"])
        _balls(panels[1], parts["ball"], radius=radius)
        if parts["advantage"]:
            _advantage(panels[2], parts, radius=radius)
        return style.save(figure, path.with_suffix(""))


def _matches(axes: Axes, rows: list[store.Row]) -> None:
    distances = [name for name in _COLOURS if any(row["distance"] == name for row in rows)]
    kinds = list(dict.fromkeys((row["series"], row["noise"]) for row in rows))
    for y, (series, noise) in enumerate(kinds):
        for place, distance in enumerate(distances):
            for row in rows:
                if (row["series"], row["noise"], row["distance"]) != (series, noise, distance):
                    continue
                at = y + 0.24 * (place - (len(distances) - 1) / 2.0)
                lower, value, upper = (max(float(row[name]), 1e-4) for name in ("lower", "value", "upper"))
                first = row["x"] == "1"
                axes.plot([lower, upper], [at, at], color=_COLOURS[distance], linewidth=0.8, zorder=2)
                axes.plot(
                    [value],
                    [at],
                    "o" if first else "D",
                    color=_COLOURS[distance],
                    mfc=_COLOURS[distance] if first else "white",
                    markersize=3.6 if first else 3.2,
                    mew=0.8,
                    zorder=3,
                )
    chances = {row["x"]: float(row["chance"]) for row in rows}
    for top, line in (("1", "--"), ("5", ":")):
        axes.axvline(chances[top], color=style.GREY, linestyle=line, linewidth=0.8, zorder=1)
    axes.set_xscale("log")
    axes.set_xlim(min(chances.values()) / 3.0, 1.4)
    axes.set_yticks(range(len(kinds)), [_kind(*kind) for kind in kinds])
    axes.set_ylim(len(kinds) - 0.45, -0.55)
    axes.tick_params(axis="y", length=0)
    axes.set_xlabel("share of views matched to their record")
    style.log_ticks(axes.xaxis)
    marks = [
        Line2D([], [], marker="o", linestyle="", color=style.BLACK, markersize=3.6, label="top 1"),
        Line2D(
            [], [], marker="D", linestyle="", color=style.BLACK, mfc="white", markersize=3.2, label="top 5"
        ),
        Line2D([], [], color=style.GREY, linestyle="--", linewidth=0.8, label="chance, 1"),
        Line2D([], [], color=style.GREY, linestyle=":", linewidth=0.8, label="chance, 5"),
    ]
    marks += [Line2D([], [], color=_COLOURS[name], label=_NAMES[name]) for name in distances]
    _legend_above(axes, marks, columns=4)


def _kind(series: str, noise: str) -> str:
    altered = "same copy" if float(noise) == 0.0 else "altered copy"
    return f"{altered},\n{_MATCHERS[series]}"


def _balls(axes: Axes, rows: list[store.Row], *, radius: float) -> None:
    method = next(row["series"] for row in rows if row["series"] not in ("no view", "guess"))
    blind, seen, guess = (_column(rows, name) for name in ("no view", method, "guess"))
    axes.fill_between(seen["x"], seen["lower"], seen["upper"], color=style.SKY, alpha=0.35, linewidth=0)
    axes.plot(seen["x"], seen["value"], color=style.BLUE, linewidth=1.2)
    axes.plot(blind["x"], blind["value"], color=style.GREY, linestyle=":", linewidth=1.2)
    label = "equal views" if method == "equal views" else "nearest views (not certified)"
    marks = [
        Line2D([], [], color=style.BLUE, linewidth=1.2, label=label),
        Line2D([], [], color=style.GREY, linestyle=":", linewidth=1.2, label="nothing public"),
    ]
    if guess["x"]:
        axes.plot(guess["x"], guess["lower"], color=style.VERMILLION, linewidth=1.2)
        marks.append(Line2D([], [], color=style.VERMILLION, linewidth=1.2, label=r"linear guess ($\geq$)"))
    _frame(axes, radius, seen["x"])
    axes.set_ylabel(r"Ball$(X, u, d, \rho)$")
    _legend_above(axes, marks, columns=2)


def _advantage(axes: Axes, parts: dict[str, list[store.Row]], *, radius: float) -> None:
    bound = _column(parts["advantage"], "Theorem 4")
    axes.fill_between(bound["x"], bound["lower"], bound["upper"], color=style.PURPLE, alpha=0.3, linewidth=0)
    axes.plot(bound["x"], bound["upper"], color=style.PURPLE, linewidth=1.2)
    axes.plot(bound["x"], bound["lower"], color=style.PURPLE, linewidth=1.0, linestyle="--")
    _frame(axes, radius, bound["x"])
    axes.set_ylabel(r"$1 - f(\mathrm{Ball})$")
    marks = [
        Line2D([], [], color=style.PURPLE, linewidth=1.2, label="Theorem 4, Ball's upper end"),
        Line2D([], [], color=style.PURPLE, linewidth=1.0, linestyle="--", label="lower end"),
    ]
    _legend_above(axes, marks, columns=1)


def _column(rows: list[store.Row], series: str) -> dict[str, list[float]]:
    own = [row for row in rows if row["series"] == series]
    return {name: [float(row[name]) for row in own if row[name]] for name in ("x", "lower", "value", "upper")}


def _frame(axes: Axes, radius: float, radii: list[float]) -> None:
    axes.axvline(radius, color=style.BLACK, linewidth=0.6, linestyle="-.", zorder=0)
    axes.set_xlim(0.0, max(radii))
    axes.set_ylim(-0.02, 1.02)
    axes.set_xlabel(r"radius $\rho$")


def _legend_above(axes: Axes, marks: list[Line2D], *, columns: int) -> None:
    axes.legend(
        handles=marks,
        loc="lower center",
        bbox_to_anchor=(0.5, 1.0),
        ncols=columns,
        frameon=False,
        handlelength=1.3,
        columnspacing=0.9,
        handletextpad=0.5,
        borderaxespad=0.2,
    )
