"""Parameters and threat models of the feature-DP ladder."""

from __future__ import annotations

import dataclasses

from exactdp.accounting import validate
from exactdp.accounting.ladder import rung as base
from exactdp.accounting.pairs.gaussian import Gaussian
from exactdp.accounting.printed import feature as printed
from exactdp.accounting.sampling.hidden import PoissonHidden
from exactdp.accounting.threat import Adjacency, Coins, ThreatModel

PAPER = "feature"
NUM_RECORDS = 197_324
"""Rows of Purchase100; source: arXiv 2506.19836v1, experiments."""

MULTIPLIER_UNIT = "noise std on the sum / norm bound"
_RELEASED = "all noisy gradients; public features are known"

ADD_REMOVE = ThreatModel(Adjacency.ADD_REMOVE, Coins.HIDDEN, _RELEASED)
ADD_REMOVE_VISIBLE = ThreatModel(
    Adjacency.ADD_REMOVE, Coins.VISIBLE, _RELEASED + ", and so is each step's batch"
)
REPLACE = ThreatModel(Adjacency.REPLACE_FEATURES_PUBLIC, Coins.HIDDEN, _RELEASED)
REPLACE_VISIBLE = ThreatModel(
    Adjacency.REPLACE_FEATURES_PUBLIC, Coins.VISIBLE, _RELEASED + ", and so is each step's batch"
)


@dataclasses.dataclass(frozen=True)
class Setting:
    """Parameters of the ladder; see `rungs`.

    Raises:
      ValueError: a parameter is outside its range.
    """

    noise_multiplier: float
    sampling_probability: float
    num_steps: int
    delta: float
    num_records: int
    epsilon: float
    constant: float
    diameter: float
    dimension: int
    step_size: float
    tolerance: float

    def __post_init__(self) -> None:
        validate.positive("noise_multiplier", self.noise_multiplier)
        validate.probability("sampling_probability", self.sampling_probability)
        validate.positive("sampling_probability", self.sampling_probability)
        validate.count("num_steps", self.num_steps, minimum=1)
        validate.open_probability("delta", self.delta)
        validate.count("num_records", self.num_records, minimum=1)
        for name in ("epsilon", "constant", "diameter", "step_size", "tolerance"):
            validate.positive(name, getattr(self, name))
        validate.count("dimension", self.dimension, minimum=1)

    @property
    def batch_size(self) -> float:
        """m = p·n, the expected batch size."""
        return self.sampling_probability * self.num_records

    @property
    def scheduled(self) -> float:
        """The noise multiplier of the printed schedule."""
        return printed.printed_noise(
            self.epsilon,
            delta=self.delta,
            lipschitz=1.0,
            batch_size=self.batch_size,
            num_records=self.num_records,
            num_steps=self.num_steps,
            constant=self.constant,
        )

    @property
    def command(self) -> str:
        """The shell command of the ladder."""
        return base.command(PAPER, dataclasses.asdict(self))

    def step(
        self, noise_multiplier: float | None = None, probability: float | None = None
    ) -> base.Composition:
        """T subsampled Gaussian steps with hidden coins."""
        noise = self.noise_multiplier if noise_multiplier is None else noise_multiplier
        p = self.sampling_probability if probability is None else probability
        return ((PoissonHidden(Gaussian(float(noise)), float(p)), self.num_steps),)
