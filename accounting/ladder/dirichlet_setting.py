"""Parameters and threat models of the Dirichlet ladder."""

from __future__ import annotations

import dataclasses

from exactdp.accounting import validate
from exactdp.accounting.ladder import rung as base
from exactdp.accounting.pairs.dirichlet import Dirichlet
from exactdp.accounting.printed import dirichlet as printed
from exactdp.accounting.rdp.bound import UpperBound
from exactdp.accounting.threat import Adjacency, Coins, ThreatModel

PAPER = "dirichlet"
CELL = printed.TABLE_7_CIFAR10

_STAND_IN = "one draw a step; a step without the record shows a draw at another input"
_LABELLED = "the draws of each step's batch with their labels; all labels are public"
_WEIGHTS = "the trained weights; all labels are public"

ADD_REMOVE_HIDDEN = ThreatModel(Adjacency.ADD_REMOVE, Coins.HIDDEN, _STAND_IN)
REPLACE_VISIBLE = ThreatModel(
    Adjacency.REPLACE_LABEL_PUBLIC, Coins.VISIBLE, "the draws of each step's batch, and who is in it"
)
REPLACE_LABELLED = ThreatModel(Adjacency.REPLACE_LABEL_PUBLIC, Coins.HIDDEN, _LABELLED)
REPLACE_STAND_IN = ThreatModel(Adjacency.REPLACE_LABEL_PUBLIC, Coins.HIDDEN, _STAND_IN)
REPLACE_WEIGHTS = ThreatModel(Adjacency.REPLACE_LABEL_PUBLIC, Coins.HIDDEN, _WEIGHTS)
REPLACE_GRADIENTS = ThreatModel(
    Adjacency.REPLACE_LABEL_PUBLIC, Coins.HIDDEN, "all noisy gradient sums; all labels are public"
)


@dataclasses.dataclass(frozen=True)
class Setting:
    """Parameters of the ladder; see `rungs`.

    Raises:
      ValueError: a parameter is outside its range.
    """

    scaling: float
    offset: float
    sampling_probability: float
    num_steps: int
    delta: float
    noise_multiplier: float
    tolerance: float

    def __post_init__(self) -> None:
        validate.positive("scaling", self.scaling)
        validate.positive("offset", self.offset)
        validate.probability("sampling_probability", self.sampling_probability)
        validate.count("num_steps", self.num_steps)
        validate.open_probability("delta", self.delta)
        validate.positive("noise_multiplier", self.noise_multiplier)
        validate.positive("tolerance", self.tolerance)

    @property
    def pair(self) -> Dirichlet:
        """One draw on the vertex pair."""
        return Dirichlet(float(self.scaling), float(self.offset))

    @property
    def command(self) -> str:
        """The shell command of the ladder."""
        return base.command(PAPER, dataclasses.asdict(self))

    def rule(self, *, conversion: str, factor_three: bool = True, curve: str = "printed") -> UpperBound:
        """The paper's rule, or a variant of it."""
        return printed.epsilon(
            self.scaling,
            offset=self.offset,
            sampling_probability=self.sampling_probability,
            num_steps=self.num_steps,
            delta=self.delta,
            conversion=conversion,
            factor_three=factor_three,
            curve=curve,
        )
