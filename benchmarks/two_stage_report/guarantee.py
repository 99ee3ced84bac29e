"""What is promised of a synthetic table, in plain words."""

from __future__ import annotations

import dataclasses

from exactdp.accounting.interval import Interval


@dataclasses.dataclass(frozen=True)
class Guarantee:
    """What the certificate of a synthetic table covers.

    Attributes:
      epsilon: certified interval; None where nothing is certified.
      delta: at which it holds; None without an epsilon.
      threat_model: adjacency, what is released, who sees which coins.
      end_to_end: whether everything that the table depends on is inside the budget.
      leaks: what is outside of it, if anything.

    Raises:
      ValueError: there are leaks and yet the guarantee is called end to end, or one of epsilon and delta
        comes alone.
    """

    epsilon: Interval | None
    delta: float | None
    threat_model: str
    end_to_end: bool
    leaks: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if self.end_to_end and self.leaks:
            raise ValueError(f"end_to_end must be false where there are leaks, got {len(self.leaks)} leaks")
        if self.end_to_end and self.epsilon is None:
            raise ValueError("end_to_end must be false where nothing is certified, got no epsilon")
        if (self.epsilon is None) != (self.delta is None):
            raise ValueError(f"epsilon and delta must come together, got {self.epsilon} and {self.delta}")

    @property
    def sentence(self) -> str:
        """The promise in one sentence."""
        if self.epsilon is None:
            return "This table was made without a differential privacy guarantee."
        budget = (
            f"epsilon in [{self.epsilon.lower:.4g}, {self.epsilon.upper:.4g}] at delta = {self.delta:.3g}"
        )
        if self.end_to_end:
            return f"This table is differentially private end to end: {budget}."
        return (
            f"This table is NOT differentially private end to end: {budget} covers a part of the "
            "pipeline only; what leaks beside it is listed below."
        )
