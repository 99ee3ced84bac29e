"""Choosing a learning rate on held-out training records, never on test records.

What the choice itself costs in privacy is not in any epsilon of the figures: as in the paper, and as in most
of the literature, the epsilon is of one run with its hyper-parameters given.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from pathlib import Path

from exactdp.benchmarks.curves import store
from exactdp.benchmarks.experiments import sweep
from exactdp.benchmarks.experiments.experiment import Experiment
from exactdp.train.data import Dataset
from exactdp.train.settings import Settings

RATES: Mapping[str, tuple[float, ...]] = {
    "nonprivate": (0.1, 0.3, 1.0, 3.0),
    "dirichlet": (0.3, 1.0, 3.0, 10.0, 30.0),
    "dpsgd": (0.1, 0.3, 1.0, 3.0),
    "gaussian_features": (0.001, 0.01, 0.1, 1.0),
    "label_public": (0.1, 0.3, 1.0, 3.0),
}
"""Method -> learning rates to choose from; of dirichlet effective ones, gamma kappa."""


def rated(settings: Settings, rate: float) -> Settings:
    """The settings with a learning rate; of dirichlet an effective one."""
    name = "effective_learning_rate" if settings.method == "dirichlet" else "learning_rate"
    return dataclasses.replace(settings, **{name: float(rate)})


def select(
    path: Path,
    settings: Settings,
    *,
    experiment: Experiment,
    data: Mapping[str, Dataset],
    header: Mapping[str, object],
) -> float:
    """The rate of `RATES` with the best mean accuracy on held-out records, the smallest of equals.

    The mean is over all seeds: near the largest rates some runs learn a class less, which a single one may
    hide. The runs are rows of the CSV file, of split "held_out".

    Args:
      path: of the CSV file.
      settings: of the method, without a learning rate.
      experiment: model and seeds.
      data: as `Experiment.load` gives it.
      header: of the file.
    """
    points = [
        sweep.Point(settings.method, rate, rated(settings, rate), split="held_out")
        for rate in RATES[settings.method]
    ]
    rows = sweep.carry_out(path, points, experiment=experiment, data=data, header=header)
    return best(rows, settings.method)


def best(rows: list[store.Row], method: str) -> float:
    """The best rate among the held-out rows of a method, the smallest of equals."""
    mine = [one for one in sweep.summaries(rows, split="held_out") if one.series == method]
    return min((-one.mean, one.x) for one in mine)[1]
