"""Parameters and threat models of the DP-2Stage ladder, and the noise multipliers that go with them."""

from __future__ import annotations

import dataclasses
import functools

from exactdp.accounting import validate
from exactdp.accounting.ladder import rung as base
from exactdp.accounting.ladder import search
from exactdp.accounting.ladder.rung import Composition
from exactdp.accounting.pairs.discrete_laplace import DiscreteLaplace
from exactdp.accounting.pairs.gaussian import Gaussian
from exactdp.accounting.pairs.pure import PureDP
from exactdp.accounting.printed import two_stage as printed
from exactdp.accounting.sampling.hidden import PoissonHidden
from exactdp.accounting.threat import ThreatModel

PAPER = "two_stage"

STAGE_2: ThreatModel = printed.PRINTED.threat_model
END_TO_END: ThreatModel = printed.UNIFORM.threat_model


@dataclasses.dataclass(frozen=True)
class Setting:
    """Parameters of the ladder; see `rungs`.

    Raises:
      ValueError: a parameter is outside its range.
    """

    dataset: str
    epsilon: float
    delta: float
    noise_multiplier: float | None
    num_steps: int | None
    statistics_share: float
    tolerance: float

    def __post_init__(self) -> None:
        validate.one_of("dataset", self.dataset, printed.DATASETS)
        validate.positive("epsilon", self.epsilon)
        validate.open_probability("delta", self.delta)
        if self.noise_multiplier is not None:
            validate.positive("noise_multiplier", self.noise_multiplier)
        if self.num_steps is not None:
            validate.count("num_steps", self.num_steps)
        validate.open_probability("statistics_share", self.statistics_share)
        validate.positive("tolerance", self.tolerance)

    @property
    def data(self) -> printed.Dataset:
        """The paper's table."""
        return printed.DATASETS[self.dataset]

    @property
    def steps(self) -> int:
        """T."""
        return self.data.num_steps if self.num_steps is None else int(self.num_steps)

    @property
    def noise(self) -> float:
        """The noise multiplier: the given one, or what the released code trains with for `epsilon`."""
        if self.noise_multiplier is not None:
            return float(self.noise_multiplier)
        return released_noise(self.dataset, float(self.epsilon))

    @property
    def command(self) -> str:
        """The shell command of the ladder."""
        return base.command(PAPER, dataclasses.asdict(self))

    def stage_2(self, noise_multiplier: float | None = None, num_steps: int | None = None) -> Composition:
        """DP-SGD: T subsampled Gaussian steps."""
        noise = self.noise if noise_multiplier is None else noise_multiplier
        steps = self.steps if num_steps is None else num_steps
        return ((PoissonHidden(Gaussian(noise), self.data.sampling_probability), steps),)

    def statistics(self, *, columns: int) -> tuple[float, Composition]:
        """(ε₀, private ranges or category lists of `columns` columns and the label histogram)."""
        total, _ = printed.split_budget(self.epsilon, statistics_share=self.statistics_share)
        each = total / (columns + 1)
        histogram = (DiscreteLaplace(1.0 / each), 1)
        return each, ((PureDP(each), columns), histogram) if columns else (histogram,)


@functools.lru_cache(maxsize=64)
def released_noise(dataset: str, epsilon: float) -> float:
    """The noise multiplier that the released code trains with, at the paper's own rate, steps and δ.

    Args:
      dataset: "adult", "airline" or "texas".
      epsilon: target, > 0, nats.

    Raises:
      ValueError: an argument is outside its range.

    Source: arXiv 2412.02467v2, released code.
    """
    data = printed.DATASETS[validate.one_of("dataset", dataset, printed.DATASETS)]
    return printed.noise_multiplier(
        epsilon, sampling_probability=data.sampling_probability, num_steps=data.num_steps
    )


@functools.lru_cache(maxsize=64)
def budget_noise(dataset: str, epsilon: float, *, share: float, columns: int) -> float:
    """Stage 2's noise multiplier that leaves `share` of epsilon to statistics, all composed exactly.

    At the paper's own rate, steps and δ; to 1e-3 of itself, on the safe side.

    Args:
      dataset: "adult", "airline" or "texas".
      epsilon: target of everything together, > 0, nats.
      share: of epsilon for the statistics, in (0, 1).
      columns: number of column statistics beside the label histogram.

    Raises:
      ValueError: an argument is outside its range.
      ArithmeticError: no noise multiplier could be certified.
    """
    validate.count("columns", columns)
    setting = Setting(dataset, epsilon, printed.DELTA, None, None, share, 1e-4)
    _, statistics = setting.statistics(columns=columns)
    found = search.least_private(
        lambda noise: setting.stage_2(noise) + statistics,
        epsilon=epsilon,
        delta=printed.DELTA,
        start=setting.noise,
        increasing=False,
    )
    return found.met
