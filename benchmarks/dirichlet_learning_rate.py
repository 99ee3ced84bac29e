"""Learning-rate collapse: test accuracy against γ, and against γ_eff = γκ, for several offsets α.

Paper: arXiv 2607.19580v1, Figure 2. With κ = r s ψ'(r s + α) at s = 0.9, the curves of all α are to fall on
one another when drawn against γ_eff. The paper's learning rates were not recovered. Nothing is selected here:
every rate is shown.

Command:       python -m exactdp.benchmarks.dirichlet_learning_rate --dataset digits --out results
Expected time: four minutes on two cores for digits; an interrupted run goes on with the same command.
Expected:      digits, r = 0.235: best at γ = 11, 39 and 140 for α = 1, 3 and 10, and at γ_eff = 3 for all; at
               one γ_eff the curves agree within the spread of three runs.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from exactdp.accounting.printed import dirichlet as printed
from exactdp.benchmarks.curves import store, style
from exactdp.benchmarks.experiments import chart, dirichlet, sweep
from exactdp.benchmarks.experiments.experiment import Experiment
from exactdp.benchmarks.experiments.script import Script
from exactdp.train.data import Dataset

SCALING = 0.235
OFFSETS = (1.0, 3.0, 10.0)
RATES = (0.03, 0.1, 0.5, 3.0, 20.0)


def compute(path: Path, experiment: Experiment, data: Mapping[str, Dataset]) -> list[store.Row]:
    """Runs every effective rate at every offset."""
    header = sweep.header(experiment, data, scaling=SCALING, offsets=list(OFFSETS), rates=list(RATES))
    points = [
        sweep.Point(
            f"{offset:g}",
            rate,
            experiment.settings("dirichlet", scaling=SCALING, offset=offset, effective_learning_rate=rate),
        )
        for offset in OFFSETS
        for rate in RATES
    ]
    return sweep.carry_out(path, points, experiment=experiment, data=data, header=header)


def draw(path: Path) -> list[Path]:
    """Draws the CSV file, against the rate and against the effective rate."""
    header, rows = store.read_csv(path)
    groups = chart.by_series(sweep.summaries(rows))
    scaling = float(str(header["scaling"]))
    with style.context():
        figure = style.new_figure(style.PAGE, 2.9)
        left, right = figure.subplots(1, 2, sharey=True)
        for place, (offset, group) in enumerate(groups.items()):
            factor = printed.kappa(scaling, offset=float(offset), true_class_probability=0.9)
            epsilon = float(group[0].row["epsilon_upper"])
            label = (
                rf"$\alpha = {offset}$: $\kappa = {factor:.3g}$, certified $\varepsilon \leq {epsilon:.3g}$"
            )
            chart.curve(left, group, place=place, label=label, x=lambda one: float(one.row["learning_rate"]))
            chart.curve(right, group, place=place, label=label)
        for axes, name in ((left, r"learning rate $\gamma$"), (right, r"$\gamma_{\rm eff} = \gamma\kappa$")):
            axes.set_xscale("log")
            axes.set_xlabel(name)
        left.set_ylabel("test accuracy (%)")
        threat = chart.threat(next(iter(groups.values()))[0].row)
        note = f"r = {scaling:g}, δ = {header['delta']:g}. ε: {threat} (it is about the draws ρ)."
        chart.finish(figure, [left, right], title=chart.sizes(header), note=note)
        return style.save(figure, path.with_suffix(""))


SCRIPT = Script("dirichlet_learning_rate", compute, draw, dirichlet.PRESETS)

if __name__ == "__main__":
    SCRIPT.run()
