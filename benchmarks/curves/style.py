"""The look of every figure: sizes for a two-column paper, colour-blind-safe colours, embedded fonts.

Figures are made without pyplot: no global state, no display.
"""

from __future__ import annotations

import io
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import matplotlib
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.backends.backend_pdf import FigureCanvasPdf
from matplotlib.figure import Figure

from exactdp.benchmarks.curves import store

COLUMN = 3.4
"""Width of one column in inches."""
PAGE = 7.0
"""Width of the text block in inches."""

# Okabe and Ito's palette: told apart with any common colour vision deficiency, and in this order also in grey.
BLACK, ORANGE, SKY, GREEN, BLUE, VERMILLION, PURPLE = (
    "#000000",
    "#E69F00",
    "#56B4E9",
    "#009E73",
    "#0072B2",
    "#D55E00",
    "#CC79A7",
)
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
    return matplotlib.rc_context(dict(RC))


def new_figure(width: float, height: float) -> Figure:
    """An empty figure with constrained layout; call inside `context`."""
    return Figure(figsize=(width, height), layout="constrained")


def save(figure: Figure, stem: Path) -> list[Path]:
    """Writes `stem`.pdf and `stem`.png, each atomically and without a time stamp; returns their paths."""
    paths = []
    for suffix, canvas, options in (
        (".pdf", FigureCanvasPdf, {"metadata": {"CreationDate": None}}),
        (".png", FigureCanvasAgg, {"dpi": 220}),
    ):
        content = io.BytesIO()
        name = suffix.removeprefix(".")
        canvas(figure).print_figure(content, format=name, **options)
        figure.set_layout_engine("none")  # laid out once: both files look the same, and it takes a while
        path = stem.with_name(stem.name + suffix)
        store.write_atomically(path, content.getvalue())
        paths.append(path)
    return paths
