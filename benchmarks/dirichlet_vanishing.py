"""Accuracy as the scaling r goes to 0, γ as 1/κ: the certified epsilon vanishes, accuracy does not.

Paper: arXiv 2607.19580v1, whose certificate is about the draws ρ. As r -> 0 a draw hardly depends on the
record, and ε with it; but the pathwise gradient of -log ρ_y holds the Jacobian of the network at the record,
and a larger γ makes up for the small κ. What is learned comes from the records all the same, which is why ε
of ρ is no certificate for the weights.

Command:       python -m exactdp.benchmarks.dirichlet_vanishing --dataset digits --out results
Expected time: two minutes on two cores for digits; an interrupted run goes on with the same command.
Expected:      digits, linear softmax: 97.1 % without privacy; 93 % (96, 95 and 88 % in three runs) at every r
               from 0.235 down to 1e-6, where the certified ε is 0.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from pathlib import Path

from exactdp.benchmarks.curves import store, style
from exactdp.benchmarks.experiments import chart, dirichlet, selection, sweep
from exactdp.benchmarks.experiments.experiment import Experiment
from exactdp.benchmarks.experiments.script import Script
from exactdp.train.data import Dataset

OFFSET = 3.0
SCALINGS = (1.0, 0.235, 1e-2, 1e-4, 1e-6)
_SELECTED_AT = 0.235


def compute(path: Path, experiment: Experiment, data: Mapping[str, Dataset]) -> list[store.Row]:
    """Chooses γ_eff at r = 0.235 on held-out records, then runs every r with it."""
    header = sweep.header(experiment, data, offset=OFFSET, scalings=list(SCALINGS))
    free = experiment.settings("nonprivate")
    private = experiment.settings("dirichlet", scaling=_SELECTED_AT, offset=OFFSET)
    rate = selection.select(path, free, experiment=experiment, data=data, header=header)
    points = [sweep.Point("nonprivate", 0.0, selection.rated(free, rate))]
    rate = selection.select(path, private, experiment=experiment, data=data, header=header)
    for scaling in SCALINGS:
        chosen = selection.rated(dataclasses.replace(private, scaling=scaling), rate)
        points.append(sweep.Point("dirichlet", scaling, chosen))
    return sweep.carry_out(path, points, experiment=experiment, data=data, header=header)


def draw(path: Path) -> list[Path]:
    """Draws the CSV file: accuracy against r, and the epsilon that is certified for the draws."""
    header, rows = store.read_csv(path)
    groups = chart.by_series(sweep.summaries(rows))
    group = groups["dirichlet"]
    with style.context():
        figure = style.new_figure(style.PAGE, 2.9)
        left, right = figure.subplots(1, 2)
        chart.curve(left, group, place=0, label="Dirichlet softmax training")
        for one in groups.get("nonprivate", []):
            chart.level(left, one, name="non-private")
        left.set_ylim(0.0, 100.0)
        left.set_ylabel("test accuracy (%)")
        r = [one.x for one in group]
        certified = [float(one.row["epsilon_upper"]) for one in group]
        right.plot(r, certified, color=chart.COLOURS[0], marker="o", markersize=3.2)
        right.set_yscale("symlog", linthresh=1e-4)  # at the smallest r, delta alone covers it: 0
        right.set_ylabel(r"certified $\varepsilon$ of the draws $\rho$")
        for axes in (left, right):
            axes.set_xscale("log")
            axes.set_xlabel("scaling $r$")
        rate = float(group[0].row["effective_learning_rate"])
        note = (
            f"γ = {rate:.3g}/κ(r), α = {header['offset']:g}. ε at δ = {header['delta']:g}: "
            f"{chart.threat(group[0].row)}."
        )
        chart.finish(figure, [left, right], title=chart.sizes(header), note=note, ncols=2)
        return style.save(figure, path.with_suffix(""))


SCRIPT = Script("dirichlet_vanishing", compute, draw, dirichlet.PRESETS)

if __name__ == "__main__":
    SCRIPT.run()
