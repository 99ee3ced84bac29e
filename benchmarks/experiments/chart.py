"""What the figures of paper A's results have in common; they are drawn from CSV rows alone."""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Mapping, Sequence

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from exactdp.benchmarks.curves import store, style
from exactdp.benchmarks.experiments.sweep import Summary

COLOURS = (style.BLUE, style.VERMILLION, style.GREEN, style.PURPLE, style.BLACK, style.ORANGE, style.SKY)
MARKERS = "os^Dv<P"
_WORDS = {
    "add_remove": "add/remove",
    "replace": "replacement",
    "replace_label_public": "replacement, label kept",
    "replace_features_public": "replacement, public features kept",
    "hidden": "hidden coins",
    "visible": "visible coins",
    "none": "no sampling",
}


def threat(row: store.Row) -> str:
    """Threat model of a row's epsilon in a few words, and what it covers."""
    covered = "covers the weights" if row["covers_weights"] == "True" else "does not cover the weights"
    return f"{words(row['adjacency'])}, {words(row['coins'])}; {covered}"


def words(name: str) -> str:
    """An adjacency or a kind of coins in words."""
    return _WORDS.get(name, name)


def sizes(header: Mapping[str, object]) -> str:
    """What a figure was made with, for its title."""
    dataset = str(header["dataset"]).replace("_", " ")
    return (
        f"{header['paper']} · {dataset}, {header['train_records']} training and {header['test_records']} "
        f"test records, {header['model']}, T = {header['num_steps']}, {header['num_seeds']} seeds"
    )


def by_series(found: Sequence[Summary]) -> dict[str, list[Summary]]:
    """The summaries of each series, by x."""
    groups: dict[str, list[Summary]] = {}
    for one in found:
        groups.setdefault(one.series, []).append(one)
    return {name: sorted(group, key=lambda one: one.x) for name, group in groups.items()}


def curve(
    axes: Axes,
    group: Sequence[Summary],
    *,
    place: int,
    label: str,
    x: Callable[[Summary], float] = lambda one: one.x,
    scale: float = 100.0,
) -> None:
    """Means, in per cent unless `scale` is another, with a bar of one standard deviation over the seeds."""
    axes.errorbar(
        [x(one) for one in group],
        [scale * one.mean for one in group],
        yerr=[scale * one.deviation for one in group],
        color=COLOURS[place % len(COLOURS)],
        marker=MARKERS[place % len(MARKERS)],
        markersize=3.2,
        markeredgewidth=0.0,
        capsize=1.8,
        elinewidth=0.7,
        label=label,
    )


def epsilon_axis(axes: Axes, epsilons: Sequence[float], *, label: str) -> None:
    """A logarithmic axis with a tick at every epsilon."""
    axes.set_xscale("log", base=2)
    axes.set_xticks(epsilons, [f"{value:g}" for value in epsilons])
    axes.set_xlabel(label)


def level(axes: Axes, one: Summary, *, name: str, linestyle: str = "--", note: str = "") -> None:
    """A grey line at a mean that depends on nothing on the axis, with its value in the legend."""
    height = 100.0 * one.mean
    axes.axhline(
        height,
        color=style.GREY,
        linestyle=linestyle,
        linewidth=0.9,
        label=f"{name}: {height:.1f} %{note}",
    )


def finish(figure: Figure, axes: Sequence[Axes], *, title: str, note: str = "", ncols: int = 1) -> None:
    """Grid, title and a legend below, of the first axes that has entries; the note under it."""
    for one in axes:
        one.grid(linewidth=0.3, color="#e6e6e6")
        one.set_axisbelow(True)
    width = int(24 * figure.get_figwidth())
    figure.suptitle("\n".join(textwrap.wrap(title, width)), fontsize=6.5, color=style.GREY)
    handles, labels = next(found for one in axes if (found := one.get_legend_handles_labels())[0])
    figure.legend(
        handles,
        labels,
        loc="outside lower center",
        ncols=ncols,
        title="\n".join(textwrap.wrap(note, width)) or None,
        title_fontsize=6.5,
        alignment="left",
        labelspacing=0.35,
        columnspacing=1.2,
    )
