"""Which two inputs of the Dirichlet mechanism are hardest to tell apart: what is proved, and a search."""

from exactdp.accounting.worst_pair.inversion import hockey_stick
from exactdp.accounting.worst_pair.proved import (
    largest_proved_scaling,
    loss_dominance_proved,
    renyi_dominance_proved,
)
from exactdp.accounting.worst_pair.renyi import order_limits, renyi
from exactdp.accounting.worst_pair.result import BeatingPair, WorstPairResult
from exactdp.accounting.worst_pair.search import check

__all__ = [
    "BeatingPair",
    "WorstPairResult",
    "check",
    "hockey_stick",
    "largest_proved_scaling",
    "loss_dominance_proved",
    "order_limits",
    "renyi",
    "renyi_dominance_proved",
]
