"""Test accuracy against the share of public columns, at one epsilon.

Paper: arXiv 2506.19836v1, the utility of public features (its own numbers were not recovered). Labels are
public; columns become public in one fixed random order, those of one attribute together. Learning rate and
clip norm are chosen on held-out training records for each share.

Command:       python -m exactdp.benchmarks.feature_share --dataset location30 --out results
Expected time: twenty minutes on two cores for location30; an interrupted run goes on with the same command.
Expected:      location30 at epsilon 1: rising from DP-SGD's level with no public column towards the
               non-private one; above the public columns alone with a sixth of them public, not beyond.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from pathlib import Path

from exactdp.benchmarks.curves import store, style
from exactdp.benchmarks.experiments import chart, feature, sweep
from exactdp.benchmarks.experiments.experiment import Experiment
from exactdp.benchmarks.experiments.feature import Candidates
from exactdp.benchmarks.experiments.script import Script
from exactdp.train.data import Dataset

EPSILON = 1.0
SHARES = (0.0, 1 / 6, 1 / 3, 1 / 2, 2 / 3, 5 / 6)


def compute(path: Path, experiment: Experiment, data: Mapping[str, Dataset]) -> list[store.Row]:
    """Chooses and runs every share, with and without the private columns."""
    candidates = Candidates(
        rates=(0.3, 1.0), clip_norms=(0.1, 0.3, 1.0), public_steps=(experiment.num_steps,)
    )
    header = sweep.header(
        experiment, data, epsilon=EPSILON, shares=list(SHARES), candidates=dataclasses.asdict(candidates)
    )
    rows: list[store.Row] = []
    for share, public in feature.nested(data["test"], SHARES).items():
        cases = [("feature", feature.private(experiment, public, epsilon=EPSILON), "")]
        if share:
            cases.append(("public_only", experiment.settings("nonprivate"), public.removesuffix("+label")))
        for series, settings, view in cases:
            found = feature.chosen(
                path,
                settings,
                series=f"{series}, share {share:.3g}",
                candidates=candidates,
                experiment=experiment,
                data=data,
                header=header,
                view=view,
            )
            point = sweep.Point(series, share, found, view=view)
            rows = sweep.carry_out(path, [point], experiment=experiment, data=data, header=header)
    for series, settings in (
        ("dpsgd", feature.private(experiment, "none", epsilon=EPSILON)),
        ("nonprivate", experiment.settings("nonprivate")),
    ):
        found = feature.chosen(
            path,
            settings,
            series=series,
            candidates=Candidates(),
            experiment=experiment,
            data=data,
            header=header,
        )
        point = sweep.Point(series, 0.0, found)
        rows = sweep.carry_out(path, [point], experiment=experiment, data=data, header=header)
    return rows


def draw(path: Path) -> list[Path]:
    """Draws the CSV file."""
    header, rows = store.read_csv(path)
    groups = chart.by_series(sweep.summaries(rows))
    with style.context():
        figure = style.new_figure(style.COLUMN, 3.2)
        axes = figure.subplots()
        group = groups["feature"]
        label = rf"feature DP, $\varepsilon$ = {header['epsilon']:g}: {chart.threat(group[0].row)}"
        chart.curve(axes, group, place=0, label=label, x=lambda one: 100.0 * one.x)
        chart.curve(
            axes,
            groups["public_only"],
            place=1,
            label="public columns alone (no private data)",
            x=lambda one: 100.0 * one.x,
        )
        for series, name, dashes in (
            ("dpsgd", "DP-SGD, nothing public", ":"),
            ("nonprivate", "non-private", "--"),
        ):
            chart.level(axes, groups[series][0], name=name, linestyle=dashes)
        axes.set_xlabel("share of public columns (%); labels are public")
        axes.set_ylabel("test accuracy (%)")
        chart.finish(figure, [axes], title=chart.sizes(header), note=rf"δ = {header['delta']:g}.")
        return style.save(figure, path.with_suffix(""))


SCRIPT = Script("feature_share", compute, draw, feature.presets())

if __name__ == "__main__":
    SCRIPT.run()
