"""Utility of synthetic tables: DP-2Stage as published, repaired under one budget, and what it is made of.

Paper: arXiv 2412.02467v2, its tables of F1 and Hist, with GPT-2 of 124 M weights and ten passes. Here a GPT-2
of two layers and width 128 is trained from nothing on two cores, in every variant alike: what is compared is
the variants, not the model. "As published" takes ranges, categories and label frequencies from the table
without noise, so that its epsilon is stage 2's alone; it samples at temperature 0.7 among 50 tokens and
rejects rows that do not parse, and its learning rate ends early. "Repaired" composes statistics and stage 2
under one epsilon. The falsifiers: U with its statistics private and nothing else changed, O warmed up on text
that is no table, put into the same template, and rows drawn from the private statistics without a model.

Command:       python -m exactdp.benchmarks.two_stage_utility --dataset adult --out results
               (--study share, value_weight or order: other questions; --model gpt2: the paper's size;
               --baselines two_stage_baselines.csv: AIM and others beside them)
Expected time: an hour of one core for each seed of adult; an interrupted run goes on with the same command.
Expected:      adult at epsilon 1: F1 of the default above 55 %, of the published variants below 40 %; most of
               it from the private statistics.
"""

from __future__ import annotations

import collections
import dataclasses
import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from absl import app, flags, logging

from exactdp.accounting import validate
from exactdp.accounting.printed import two_stage as printed
from exactdp.benchmarks.curves import store, style
from exactdp.benchmarks.experiments import chart, script, sweep, tables
from exactdp.benchmarks.experiments.tables import Size, Variant

NAME = "two_stage_utility"
_AS_PUBLISHED = {
    "as_published": True,
    "decoder": "rejection",
    "temperature": 0.7,
    "top_k": 50,
}
_NAMES = {
    "real": "real training rows",
    "nonprivate": "non-private, U",
    "standard_published": "DP-Standard, as published",
    "uniform_published": "DP-2Stage-U, as published",
    "table_published": "DP-2Stage-O, as published",
    "text_published": "O on text that is no table, as published",
    "uniform": "U, one budget",
    "table": "O, one budget",
    "none": "no stage 1, one budget",
    "marginals": "default, one budget",
    "statistics": "private statistics, no model",
    "independent": "private histograms, no model",
    "aim": "AIM (smartnoise-synth)",
    "mst": "MST (smartnoise-synth)",
    "dp-ctgan": "DP-CTGAN (smartnoise-synth)",
    "ctgan": "CTGAN, not private",
    "tvae": "TVAE, not private",
}
_PRINTED = {
    "real": "real",
    "nonprivate": "GPT-2 non-DP",
    "standard_published": "DP-Standard",
    "uniform_published": "DP-2Stage-U",
    "table_published": "DP-2Stage-O (best)",
    "aim": "AIM",
    "mst": "MST",
    "dp-ctgan": "DP-CTGAN",
}
_SHOWN_BESIDE = ("aim", "mst", "dp-ctgan")
"""Methods whose printed numbers are shown whether they were run here or not."""


def methods(epsilon: float) -> list[Variant]:
    """Every variant at one epsilon."""
    private = {"epsilon": epsilon}
    published = private | _AS_PUBLISHED
    repaired = {name: private | {"first_stage": name} for name in ("uniform", "table", "none", "marginals")}
    return [
        Variant("real", 0.0, {}, without_model="real"),
        Variant("statistics", epsilon, private, without_model="marginals"),
        Variant("independent", epsilon, private, without_model="independent"),
        Variant("marginals", epsilon, repaired["marginals"]),
        Variant("standard_published", epsilon, published | {"first_stage": "none"}),
        Variant("uniform_published", epsilon, published | {"first_stage": "uniform"}),
        Variant("table_published", epsilon, published | {"first_stage": "table"}),
        Variant("text_published", epsilon, published | {"first_stage": "table"}, first_table="text"),
        Variant("uniform", epsilon, repaired["uniform"]),
        Variant("none", epsilon, repaired["none"]),
        Variant("table", epsilon, repaired["table"]),
        Variant("nonprivate", 0.0, {"first_stage": "uniform"}),
    ]


def shares(epsilon: float) -> list[Variant]:
    """The default, against the statistics' share of epsilon."""
    return [
        Variant("marginals", share, {"epsilon": epsilon, "statistics_share": share})
        for share in (0.1, 0.3, 0.5, 0.7, 0.9)
    ]


def value_weights(epsilon: float) -> list[Variant]:
    """The default, against the weight of values in stage 2's loss."""
    return [
        Variant("marginals", weight, {"epsilon": epsilon, "value_weight": weight})
        for weight in (0.0, 0.35, 0.65, 0.9, 1.0)
    ]


def orders(epsilon: float) -> list[Variant]:
    """Columns in one order, or shuffled in every row, with and without privacy."""
    found: list[Variant] = []
    for place, order in enumerate(("alphabetical", "header", "shuffled")):
        decoder = {"decoder": "rejection", "order": order}
        found += [
            Variant("marginals", float(place), {"epsilon": epsilon, **decoder}),
            Variant("nonprivate", float(place), {"first_stage": "uniform", **decoder}),
        ]
    return found


STUDIES: Mapping[str, Callable[[float], list[Variant]]] = {
    "methods": methods,
    "share": shares,
    "value_weight": value_weights,
    "order": orders,
}
_AXES = {
    "share": "statistics' share of $\\varepsilon$",
    "value_weight": "weight $\\lambda$ of values in stage 2's loss",
    "order": "order of the columns",
}


def compute(
    path: Path, size: Size, *, study: str, epsilon: float, baselines: Path | None = None
) -> list[store.Row]:
    """Runs what is missing; after every run the file is complete.

    Args:
      path: of the CSV file.
      size: of all runs.
      study: of `STUDIES`.
      epsilon: of the private runs.
      baselines: file of `two_stage_baselines` whose rows are added, in place of earlier ones of the same
        method and seed; none are by default.

    Raises:
      ValueError: as `tables.carry_out` and `tables.baselines`, the latter before anything is run.
    """
    others = [] if baselines is None else tables.baselines(baselines, size=size, epsilon=epsilon)
    header = tables.header(size, study=study, epsilon=epsilon)
    rows = tables.carry_out(path, STUDIES[study](epsilon), size=size, header=header)
    new = {(row["series"], row["seed"]) for row in others}
    rows = [row for row in rows if (row["series"], row["seed"]) not in new] + others
    sweep.write(path, header, rows, columns=tables.COLUMNS)
    return rows


def draw(path: Path) -> list[Path]:
    """Draws the CSV file."""
    header, rows = store.read_csv(path)
    return (_draw_methods if header["study"] == "methods" else _draw_curve)(path, header, rows)


def _title(header: Mapping[str, object]) -> str:
    rows = "all" if header["train_rows"] == 0 else header["train_rows"]
    seeds = "1 seed" if header["num_seeds"] == 1 else f"{header['num_seeds']} seeds"
    return (
        f"{header['paper']} · {header['dataset']}, {rows} training rows, {header['model']} GPT-2, "
        f"{header['first_steps']} steps of {header['first_batch_size']} and {header['num_steps']} of "
        f"{header['batch_size']} rows, "
        f"$\\delta$ = {header['delta']:g}, {seeds}"
    )


def _draw_methods(path: Path, header: Mapping[str, object], rows: Sequence[store.Row]) -> list[Path]:
    present = [name for name in _NAMES if any(row["series"] == name for row in rows)]
    published = {one.method: one.f1[str(header["dataset"])] for one in printed.PUBLISHED_F1}
    height = {name: -float(place) for place, name in enumerate(present)}
    with style.context():
        shown = len({*present, *_SHOWN_BESIDE})
        figure = style.new_figure(style.PAGE, 0.22 * shown + 1.25)
        figure.set_layout_engine("constrained", w_pad=0.1)  # names of methods reach far to the left
        panels = figure.subplots(1, 2, sharey=True)
        for axes, measure in zip(panels, ("f1", "hist"), strict=True):
            for one in sweep.summaries(rows, measure=measure):
                kind = _kind(one.row)
                axes.errorbar(
                    100.0 * one.mean,
                    height[one.series],
                    xerr=100.0 * one.deviation,
                    color=kind.colour,
                    marker=kind.marker,
                    markersize=4.0,
                    markeredgewidth=0.0,
                    capsize=1.8,
                    elinewidth=0.7,
                )
            for name in present:
                if all(not row[measure] for row in rows if row["series"] == name):
                    axes.text(
                        0.02,
                        height[name],
                        "no valid row",
                        transform=axes.get_yaxis_transform(),
                        fontsize=6.0,
                        color=style.VERMILLION,
                        va="center",
                    )
        for name in _SHOWN_BESIDE:
            height.setdefault(name, -float(len(height)))
        for name in height:
            if _PRINTED.get(name) in published:
                panels[0].plot(
                    published[_PRINTED[name]],
                    height[name],
                    marker="D",
                    markersize=3.6,
                    markerfacecolor="none",
                    color=style.BLACK,
                    linestyle="",
                )
        labels = [_NAMES[name] if name in present else f"{_PRINTED[name]} (in the paper)" for name in height]
        panels[0].set_yticks(list(height.values()), labels)
        for axes in panels:
            axes.tick_params(axis="y", length=0.0)
        panels[0].set_xlabel("F1 of the minority class (%)")
        panels[1].set_xlabel("Hist: overlap of marginals (%)")
        met = {_kind(row) for row in rows}
        _legend(panels[0], header, [kind for kind in (_CERTIFIED, _CLAIMED, _STAGE_2, _FREE) if kind in met])
        runs = collections.Counter(row["series"] for row in rows)
        once = [_NAMES[name] for name in present if runs[name] == 1]
        note = "Bars: one standard deviation over the seeds" + (
            f"; one run: {', '.join(once)}." if once else "."
        )
        note = note if len(once) < len(present) else ""
        chart.finish(figure, list(panels), title=_title(header), note=note)
        return style.save(figure, path.with_suffix(""))


@dataclasses.dataclass(frozen=True)
class _Kind:
    """What a marker says of a row's privacy."""

    colour: str
    marker: str
    label: str


_FREE = _Kind(style.GREY, "s", "not private")
_CERTIFIED = _Kind(style.BLUE, "o", "$\\varepsilon$ = {:g} end to end, certified")
_CLAIMED = _Kind(
    style.GREEN, "^", "$\\varepsilon$ = {:g} by the package's own account, the domain taken as public"
)
_STAGE_2 = _Kind(
    style.VERMILLION,
    "X",
    "$\\varepsilon$ = {:g} by the released accountant, for stage 2 alone: statistics are taken without noise",
)


def _kind(row: store.Row) -> _Kind:
    if row["series"] in ("real", "nonprivate") or not row["epsilon_upper"]:
        return _FREE
    if row["series"] in tables.OTHERS:
        return _CLAIMED
    return _CERTIFIED if row["end_to_end"] == "True" else _STAGE_2


def _legend(axes: Any, header: Mapping[str, object], kinds: Sequence[_Kind]) -> None:
    for kind in kinds:
        axes.plot(
            [],
            [],
            marker=kind.marker,
            color=kind.colour,
            linestyle="",
            markersize=4.0,
            label=kind.label.format(header["epsilon"]),
        )
    axes.plot(
        [],
        [],
        marker="D",
        color=style.BLACK,
        markerfacecolor="none",
        linestyle="",
        markersize=4.0,
        label=f"{header['paper']}, GPT-2 of 124 M weights, $\\varepsilon$ = 1 as printed",
    )


def _draw_curve(path: Path, header: Mapping[str, object], rows: Sequence[store.Row]) -> list[Path]:
    names = {"marginals": "default, certified end to end", "nonprivate": "non-private, U"}
    with style.context():
        figure = style.new_figure(style.PAGE, 2.8)
        panels = figure.subplots(1, 2)
        measures = {"f1": "F1 of the minority class (%)", "hist": "Hist: overlap of marginals (%)"}
        for axes, (measure, label) in zip(panels, measures.items(), strict=True):
            groups = chart.by_series(sweep.summaries(rows, measure=measure))
            for place, (series, group) in enumerate(groups.items()):
                chart.curve(axes, group, place=place, label=names[series])
            axes.set_ylabel(label)
            axes.set_xlabel(_AXES[str(header["study"])])
            if header["study"] == "order":
                axes.set_xticks(range(3), ["alphabetical", "header", "shuffled"])
        note = (
            f"$\\varepsilon$ = {header['epsilon']:g}, add/remove neighbours, hidden coins; "
            "bars: one standard deviation over the seeds."
        )
        chart.finish(figure, list(panels), title=_title(header), note=note, ncols=2)
        return style.save(figure, path.with_suffix(""))


def table(rows: Sequence[store.Row]) -> str:
    """The summaries as text."""
    lines = [f"{'series':24} {'x':>6} {'F1':>7} {'+-':>6} {'Hist':>7} {'validity':>8} {'epsilon <=':>10}"]
    hist = {(one.series, one.x): one.mean for one in sweep.summaries(rows, measure="hist")}
    for one in sweep.summaries(rows, measure="f1"):
        epsilon, validity = one.row["epsilon_upper"], one.row["validity"]
        lines.append(
            f"{one.series:24} {one.x:6g} {100 * one.mean:7.2f} {100 * one.deviation:6.2f} "
            f"{100 * hist[one.series, one.x]:7.2f} {float(validity) if validity else np.nan:8.4f} "
            f"{float(epsilon) if epsilon else np.inf:10.4g}"
        )
    return "\n".join(lines)


def main(argv: Sequence[str]) -> None:
    """Entry point."""
    given = flags.FLAGS
    epsilon: float = given.epsilon
    stem = f"{NAME}_{given.dataset}_{given.study}" + ("" if epsilon == 1.0 else f"_epsilon_{epsilon:g}")
    rows: list[store.Row] = []

    def own(path: Path) -> None:
        chosen: dict[str, Any] = {field.name: given[field.name].value for field in dataclasses.fields(Size)}
        validate.positive("epsilon", epsilon)
        if given.baselines is not None and given.study != "methods":
            raise ValueError(f"baselines must be given with study methods only, got study {given.study}")
        baselines = None if given.baselines is None else Path(given.baselines)
        size = Size(**chosen)
        rows.extend(compute(path, size, study=given.study, epsilon=epsilon, baselines=baselines))

    path = script.own_table(argv, name=stem, compute=own)
    written = [path, *draw(path)]
    if given.json:
        print(json.dumps({"rows": rows, "written": [str(one) for one in written]}))
        return
    if rows:
        print(table(rows))
    for one in written:
        print(one)


def run() -> None:
    """Defines the flags, so that importing this file defines none, and runs."""
    logging.set_verbosity(logging.WARNING)
    default = Size("adult")
    flags.DEFINE_enum("dataset", "adult", list(printed.DATASETS), "Table.")
    flags.DEFINE_enum("study", "methods", list(STUDIES), "What is compared.")
    flags.DEFINE_float("epsilon", 1.0, "Of the private runs.")
    flags.DEFINE_string("model", default.model, "Size of the model, as `exactdp train two_stage --model`.")
    for name, text in {
        "train_rows": "Training rows, 0 for all.",
        "test_rows": "Test rows, 0 for all.",
        "first_steps": "Steps of stage 1.",
        "num_steps": "Steps of stage 2.",
        "batch_size": "Expected rows of a batch of stage 2.",
        "first_batch_size": "Rows of a batch of stage 1.",
        "rows": "Synthetic rows, 0 for as many as are trained on.",
        "num_seeds": "Runs of each point.",
    }.items():
        flags.DEFINE_integer(name, getattr(default, name), text, lower_bound=0)
    flags.DEFINE_float("delta", default.delta, "At which epsilon is stated.")
    flags.DEFINE_string(
        "baselines", None, "File that two_stage_baselines wrote, whose rows are shown beside (methods only)."
    )
    flags.DEFINE_string("out", NAME, f"Directory for {NAME}_DATASET_STUDY.csv, .pdf and .png.")
    flags.DEFINE_boolean("json", False, "Print one JSON object instead of the table.")
    flags.DEFINE_boolean("redraw", False, "Only draw the figure again from the CSV file in --out.")
    app.run(main)


if __name__ == "__main__":
    run()
