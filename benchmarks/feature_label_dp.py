"""Label differential privacy: Algorithm 1 with all inputs public, against randomised response of the labels.

Paper: arXiv 2506.19836v1, label DP as feature DP with Psi(x, y) = x, and the question of Ghazi et al. 2021
(arXiv 2102.06062) that it answers; its own numbers for this comparison were not recovered. Randomised
response is (epsilon, 0)-DP in one record's label, Algorithm 1 (epsilon, delta)-DP in it, and DP-SGD, whose
step costs as much, (epsilon, delta)-DP in the whole record. Learning rates and clip norms are chosen at
epsilon = 2 on held-out training records, whose labels are not randomised.

Command:       python -m exactdp.benchmarks.feature_label_dp --dataset fashion_mnist --out results
Expected time: six to fifteen minutes on two cores; an interrupted run goes on with the same command.
Expected:      fashion_mnist: Algorithm 1 and randomised response near 69 % at epsilon 1 and 76 % at 2; DP-SGD
               above both at epsilon 1 and below, randomised response in two stages the best from 4 on.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from exactdp.benchmarks.curves import store, style
from exactdp.benchmarks.experiments import chart, feature, sweep
from exactdp.benchmarks.experiments.experiment import Experiment
from exactdp.benchmarks.experiments.feature import ARXIV, Candidates
from exactdp.benchmarks.experiments.label_noise import LabelNoise
from exactdp.benchmarks.experiments.script import Script
from exactdp.train.data import Dataset

PRESETS = {
    "fashion_mnist": Experiment("fashion_mnist", "mlp", 10_000, 2_000, 500, paper=ARXIV),
    "digits": Experiment("digits", "linear", 0, 0, 300, paper=ARXIV),
    "mnist": Experiment("mnist", "mlp", 10_000, 2_000, 500, paper=ARXIV),
}
_STAGES = {"response": 1, "two_stages": 2}
_NAMES = {
    "feature": "Algorithm 1, all inputs public",
    "response": "randomised response",
    "two_stages": "randomised response, two stages",
    "dpsgd": "DP-SGD",
}


def compute(path: Path, experiment: Experiment, data: Mapping[str, Dataset]) -> list[store.Row]:
    """Chooses hyper-parameters, then runs every method at every epsilon."""
    tried = {
        "feature": Candidates(rates=(0.3, 1.0), clip_norms=(0.3, 1.0)),
        "dpsgd": Candidates(rates=(0.3, 1.0), clip_norms=(0.3, 1.0)),
        "nonprivate": Candidates(rates=(0.03, 0.1, 0.3)),
        "response": Candidates(rates=(0.03, 0.1, 0.3)),
    }
    header = sweep.header(
        experiment,
        data,
        epsilons=list(feature.EPSILONS),
        candidates={name: dataclasses.asdict(one) for name, one in tried.items()},
    )
    common: dict[str, Any] = {"experiment": experiment, "data": data, "header": header}
    free = experiment.settings("nonprivate")
    found = feature.chosen(path, free, series="nonprivate", candidates=tried["nonprivate"], **common)
    rows = sweep.carry_out(path, [sweep.Point("nonprivate", 0.0, found)], **common)
    private = {
        "feature": feature.private(experiment, "features", epsilon=feature.SELECTED_AT),
        "dpsgd": feature.private(experiment, "none", epsilon=feature.SELECTED_AT),
    }
    for series, settings in private.items():
        found = feature.chosen(path, settings, series=series, candidates=tried[series], **common)
        points = [sweep.Point(series, e, dataclasses.replace(found, epsilon=e)) for e in feature.EPSILONS]
        rows = sweep.carry_out(path, points, **common)
    for series, stages in _STAGES.items():
        noise = LabelNoise(feature.SELECTED_AT, stages)
        found = feature.chosen(
            path, free, series=series, candidates=tried["response"], labels=noise, **common
        )
        points = [sweep.Point(series, e, found, labels=LabelNoise(e, stages)) for e in feature.EPSILONS]
        rows = sweep.carry_out(path, points, **common)
    return rows


def draw(path: Path) -> list[Path]:
    """Draws the CSV file."""
    header, rows = store.read_csv(path)
    groups = chart.by_series(sweep.summaries(rows))
    with style.context():
        figure = style.new_figure(style.PAGE, 3.4)
        axes = figure.subplots()
        for place, (series, name) in enumerate(_NAMES.items()):
            group = groups[series]
            chart.curve(axes, group, place=place, label=f"{name}: {chart.threat(group[0].row)}")
        chart.level(axes, groups["nonprivate"][0], name="non-private")
        label = rf"$\varepsilon$, at $\delta$ = {header['delta']:g} but for randomised response, at 0"
        chart.epsilon_axis(axes, feature.EPSILONS, label=label)
        axes.set_ylabel("test accuracy (%)")
        chart.finish(figure, [axes], title=chart.sizes(header))
        return style.save(figure, path.with_suffix(""))


SCRIPT = Script("feature_label_dp", compute, draw, PRESETS)

if __name__ == "__main__":
    SCRIPT.run()
