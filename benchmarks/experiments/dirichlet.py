"""What the experiments of paper A (arXiv 2607.19580) train on."""

from __future__ import annotations

from exactdp.benchmarks.experiments.experiment import Experiment

ARXIV = "arXiv 2607.19580v1"
_SMALL = {
    "digits": Experiment("digits", "linear", 0, 0, 500, paper=ARXIV),
    "mnist": Experiment("mnist", "mlp", 10_000, 2_000, 500, paper=ARXIV),
    "fashion_mnist": Experiment("fashion_mnist", "mlp", 10_000, 2_000, 500, paper=ARXIV),
    "cifar10_subset": Experiment("cifar10_subset", "cnn", 0, 0, 500, paper=ARXIV),
}
PRESETS = {
    **_SMALL,
    # The one configuration of the paper's that could be recovered; the architecture could not, nor the rates.
    "cifar10": Experiment("cifar10", "wrn-16-4", 0, 0, 20_000, sampling_probability=0.005, paper=ARXIV),
}
"""Data set -> sizes and model that suit it: minutes on two cores, but for cifar10, the paper's own size."""
