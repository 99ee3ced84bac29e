"""Test accuracy of Dirichlet softmax training against the sampling probability, at one epsilon.

Paper: arXiv 2607.19580v1, which reports that accuracy at ε = 4 on CIFAR-10 rises as q falls from 0.04 to
0.001. The number of steps is kept, so that a smaller q also means fewer records seen; the scaling is chosen
anew at every q, by the paper's rule (with its conversion repaired) and exactly under visible coins.

Command:       python -m exactdp.benchmarks.dirichlet_sampling --dataset digits --out results
Expected time: three minutes on two cores for digits; an interrupted run goes on with the same command.
Expected:      digits, T = 500: the scaling that is allowed falls as q rises, by both rules (0.48 to 0.10 for
               visible coins); accuracy rises with q all the same, from 51 % where batches hold seven records
               to 97 %.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from exactdp.benchmarks.curves import store, style
from exactdp.benchmarks.experiments import chart, dirichlet, rules, selection, sweep
from exactdp.benchmarks.experiments.experiment import Experiment
from exactdp.benchmarks.experiments.script import Script
from exactdp.train.data import Dataset
from exactdp.train.settings import Settings

EPSILON, OFFSET = 4.0, 3.0
PROBABILITIES = (0.005, 0.02, 0.05, 0.2)
_SELECTED_AT = 0.05
RULES = ("repaired", "visible")


def compute(path: Path, experiment: Experiment, data: Mapping[str, Dataset]) -> list[store.Row]:
    """Chooses the rate at q = 0.05 on held-out records, then runs every q by both rules."""
    header = sweep.header(
        experiment, data, epsilon=EPSILON, offset=OFFSET, probabilities=list(PROBABILITIES), rules=list(RULES)
    )
    settings = _settings("visible", _SELECTED_AT, experiment)
    if settings is None:
        raise ValueError(f"epsilon must be reachable at sampling_probability {_SELECTED_AT}, got {EPSILON}")
    rate = selection.select(path, settings, experiment=experiment, data=data, header=header)
    points = [
        sweep.Point(
            rule,
            q,
            None if found is None else selection.rated(found, rate),
            reason="" if found else f"no scaling gives epsilon {EPSILON:g} by this rule",
        )
        for rule in RULES
        for q in PROBABILITIES
        for found in [_settings(rule, q, experiment)]
    ]
    return sweep.carry_out(path, points, experiment=experiment, data=data, header=header)


def _settings(rule: str, q: float, experiment: Experiment) -> Settings | None:
    scaling = rules.scaling(
        rule,
        epsilon=EPSILON,
        offset=OFFSET,
        sampling_probability=q,
        num_steps=experiment.num_steps,
        delta=experiment.delta,
    )
    if scaling is None:
        return None
    return experiment.settings("dirichlet", scaling=scaling, offset=OFFSET, sampling_probability=q)


def draw(path: Path) -> list[Path]:
    """Draws the CSV file: accuracy and the scaling that was allowed."""
    header, rows = store.read_csv(path)
    groups = chart.by_series(sweep.summaries(rows))
    with style.context():
        figure = style.new_figure(style.PAGE, 2.9)
        left, right = figure.subplots(1, 2)
        for place, (rule, group) in enumerate(groups.items()):
            adjacency, coins = (chart.words(name) for name in rules.THREATS[rule])
            chart.curve(left, group, place=place, label=f"{rules.NAMES[rule]} ({adjacency}, {coins})")
            right.plot(
                [one.x for one in group],
                [float(one.row["noise"]) for one in group],
                color=chart.COLOURS[place],
                marker=chart.MARKERS[place],
                markersize=3.2,
            )
        for axes in (left, right):
            axes.set_xscale("log")
            style.log_ticks(axes.xaxis)
            axes.set_xlabel("sampling probability $q$")
        left.set_ylabel("test accuracy (%)")
        right.set_yscale("log")
        right.set_ylabel("scaling $r$")
        note = (
            f"Scaling for ε = {header['epsilon']:g}, δ = {header['delta']:g}, α = {header['offset']:g}. "
            "Every ε here is about the draws ρ and does not cover the weights."
        )
        chart.finish(figure, [left, right], title=chart.sizes(header), note=note)
        return style.save(figure, path.with_suffix(""))


SCRIPT = Script("dirichlet_sampling", compute, draw, dirichlet.PRESETS)

if __name__ == "__main__":
    SCRIPT.run()
