"""The look of every figure: sizes for a two-column paper, colour-blind-safe colours, embedded fonts.

Figures are made without pyplot: no global state, no display.
"""

from __future__ import annotations

import io
import logging
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any, cast

import matplotlib
from matplotlib.axis import Axis
from matplotlib.backend_bases import FigureCanvasBase
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.backends.backend_pdf import FigureCanvasPdf
from matplotlib.figure import Figure
from matplotlib.ticker import LogLocator, NullFormatter

from exactdp.benchmarks.curves import store

COLUMN = 3.4
"""Width of one column in inches."""
PAGE = 7.0
"""Width of the text block in inches."""

# Okabe and Ito's palette: told apart with any common colour vision deficiency.
BLACK, ORANGE, SKY, GREEN, BLUE, VERMILLION, PURPLE = (
    "#000000",
    "#E69F00",
    "#56B4E9",
    "#009E73",
    "#0072B2",
    "#D55E00",
    "#CC79A7",
)
OLIVE, BROWN, INDIGO, WINE = "#8A8A1F", "#8C510A", "#332288", "#882255"
GREY = "#7f7f7f"

RC: Mapping[str, Any] = {
    "font.family": "serif",
    "font.serif": ["STIXGeneral", "DejaVu Serif"],
    "mathtext.fontset": "stix",
    "font.size": 8.0,
    "axes.labelsize": 8.0,
    "axes.titlesize": 8.0,
    "xtick.labelsize": 7.0,
    "ytick.labelsize": 7.0,
    "legend.fontsize": 6.5,
    "axes.linewidth": 0.6,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "xtick.major.width": 0.6,
    "ytick.major.width": 0.6,
    "lines.linewidth": 1.1,
    "legend.frameon": False,
    "legend.handlelength": 2.4,
    "pdf.fonttype": 42,
    "svg.fonttype": "none",
    "figure.dpi": 100,
    "axes.unicode_minus": True,
}


def context() -> Any:
    """The settings, as a context manager."""
    return matplotlib.rc_context(cast(Any, dict(RC)))


def new_figure(width: float, height: float) -> Figure:
    """An empty figure with constrained layout; call inside `context`."""
    return Figure(figsize=(width, height), layout="constrained")


def log_ticks(axis: Axis) -> None:
    """Ticks of a log axis: plain numbers where they are short, with 2 and 5 between decades given room."""
    low, high = axis.get_view_interval()
    axis.set_major_locator(LogLocator(numticks=7))
    axis.set_minor_locator(LogLocator(subs=range(2, 10), numticks=7))
    axis.set_minor_formatter(NullFormatter())
    if 1e-4 < low and high < 2e4:
        axis.set_major_formatter(lambda value, _: f"{value:g}")
        decades = math.log10(high / low)
        between = "2345" if decades < 0.9 else "25" if decades < 2.7 else ""
        axis.set_minor_formatter(
            lambda value, _: f"{value:g}" if f"{value:e}"[0] in between and between else ""
        )
        axis.set_tick_params(which="minor", labelsize=7.0, pad=5.0)


def save(figure: Figure, stem: Path) -> list[Path]:
    """Writes `stem`.pdf and `stem`.png, each atomically and without a time stamp; returns their paths."""
    logging.getLogger("fontTools").setLevel(logging.WARNING)  # reports every table it embeds
    paths: list[Path] = []
    formats: list[tuple[str, type[FigureCanvasBase], dict[str, Any]]] = [
        (".pdf", FigureCanvasPdf, {"metadata": {"CreationDate": None}}),
        (".png", FigureCanvasAgg, {"dpi": 220}),
    ]
    for suffix, canvas, options in formats:
        content = io.BytesIO()
        name = suffix.removeprefix(".")
        canvas(figure).print_figure(content, format=name, **options)
        figure.set_layout_engine("none")  # laid out once: both files look the same, and it takes a while
        path = stem.with_name(stem.name + suffix)
        store.write_atomically(path, content.getvalue())
        paths.append(path)
    return paths
