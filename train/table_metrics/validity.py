"""How many of the rows asked for were kept, and why others were not."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping

from exactdp.accounting import validate


@dataclasses.dataclass(frozen=True)
class Validity:
    """Of a generation.

    Attributes:
      asked: rows generated.
      accepted: rows kept.
      reasons: for each reason of rejection how many rows had it; a row has one.

    Raises:
      ValueError: a number is negative, or accepted and rejected rows are not those asked for.
    """

    asked: int
    accepted: int
    reasons: Mapping[str, int] = dataclasses.field(default_factory=dict[str, int])

    def __post_init__(self) -> None:
        validate.count("asked", self.asked)
        validate.count("accepted", self.accepted)
        rejected = sum(validate.count(f"reasons: {name}", number) for name, number in self.reasons.items())
        if self.accepted + rejected != self.asked:
            raise ValueError(
                f"asked must be accepted and rejected rows together, got {self.asked} for {self.accepted} "
                f"and {rejected}"
            )

    @property
    def rate(self) -> float | None:
        """Share of rows kept; None where none was asked for."""
        return self.accepted / self.asked if self.asked else None

    def __add__(self, other: Validity) -> Validity:
        """Of two generations together."""
        names = [*self.reasons, *(name for name in other.reasons if name not in self.reasons)]
        return Validity(
            self.asked + other.asked,
            self.accepted + other.accepted,
            {name: self.reasons.get(name, 0) + other.reasons.get(name, 0) for name in names},
        )
