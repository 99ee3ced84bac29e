"""Test accuracy against epsilon with some features public: Algorithm 1, DP-SGD and the non-private ends.

Paper: arXiv 2506.19836v1, the classification experiments (Purchase100, Criteo). Their accuracies and
hyper-parameters were not recovered. Purchase100 is not part of this repository's data: Location-30, which has
its layout, stands for it. Feature DP starts from as many steps of public pre-training as it then
takes private ones. Learning rate and clip norm of each method are chosen at epsilon = 2 on held-out training
records.

Command:       python -m exactdp.benchmarks.feature_accuracy --dataset location30 --out results
               (--dataset purchase100: the paper's own data set, for a machine that has it)
Expected time: fifteen minutes on two cores for location30; an interrupted run goes on with the same command.
Expected:      location30, a sixth of the columns public: at epsilon 1, DP-SGD near 10 %, feature DP near what
               the public columns alone give, and above it where epsilon is larger.
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

_PRIVATE = {
    "feature": "feature DP, two batches",
    "single": "feature DP, naive single batch",
    "dpsgd": "DP-SGD",
}
_FREE = {"public_only": "public features alone (no private data)", "nonprivate": "non-private"}


def compute(path: Path, experiment: Experiment, data: Mapping[str, Dataset]) -> list[store.Row]:
    """Chooses each method's hyper-parameters on held-out records, then runs every epsilon."""
    public = feature.TABLES[experiment.dataset].public
    candidates = Candidates(public_steps=(experiment.num_steps,))
    header = sweep.header(
        experiment,
        data,
        public=public,
        note=feature.TABLES[experiment.dataset].why,
        epsilons=list(feature.EPSILONS),
        candidates=dataclasses.asdict(candidates),
    )
    rows: list[store.Row] = []
    for series, view in (("nonprivate", ""), ("public_only", public.removesuffix("+label"))):
        found = feature.chosen(
            path,
            experiment.settings("nonprivate"),
            series=series,
            candidates=candidates,
            experiment=experiment,
            data=data,
            header=header,
            view=view,
        )
        point = sweep.Point(series, 0.0, found, view=view)
        rows = sweep.carry_out(path, [point], experiment=experiment, data=data, header=header)
    tried = {"feature": candidates, "dpsgd": Candidates(), "single": candidates}
    for series, text, batches in (
        ("feature", public, "two"),
        ("dpsgd", "none", "two"),
        ("single", public, "single"),
    ):
        found = feature.chosen(
            path,
            feature.private(experiment, text, epsilon=feature.SELECTED_AT, batches=batches),
            series=series,
            candidates=tried[series],
            experiment=experiment,
            data=data,
            header=header,
        )
        points = [
            sweep.Point(series, epsilon, dataclasses.replace(found, epsilon=epsilon))
            for epsilon in feature.EPSILONS
        ]
        rows = sweep.carry_out(path, points, experiment=experiment, data=data, header=header)
    return rows


def draw(path: Path) -> list[Path]:
    """Draws the CSV file; where there are two classes, the area under the ROC curve beside the accuracy."""
    header, rows = store.read_csv(path)
    measures = {"accuracy": "test accuracy (%)"}
    if any(row.get("auc") for row in rows):
        measures["auc"] = "area under the ROC curve (%)"
    with style.context():
        figure = style.new_figure(style.PAGE, 3.4)
        panels = figure.subplots(1, len(measures), squeeze=False)[0]
        for axes, (measure, label) in zip(panels, measures.items(), strict=True):
            groups = chart.by_series(sweep.summaries(rows, measure=measure))
            for place, (series, name) in enumerate(_PRIVATE.items()):
                group = groups[series]
                chart.curve(axes, group, place=place, label=f"{name}: {chart.threat(group[0].row)}")
            for (series, name), dashes in zip(_FREE.items(), (":", "--"), strict=True):
                chart.level(axes, groups[series][0], name=name, linestyle=dashes)
            chart.epsilon_axis(
                axes,
                feature.EPSILONS,
                label=rf"$\varepsilon$ at $\delta$ = {header['delta']:g}, records replaced",
            )
            axes.set_ylabel(label)
        note = f"{header['note']}."
        chart.finish(figure, panels, title=chart.sizes(header), note=note[0].upper() + note[1:])
        return style.save(figure, path.with_suffix(""))


SCRIPT = Script("feature_accuracy", compute, draw, feature.presets())

if __name__ == "__main__":
    SCRIPT.run()
