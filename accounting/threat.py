"""Threat models: adjacency, what is released, and whether the sampling coins are hidden."""

from __future__ import annotations

import dataclasses
import enum

from exactdp.accounting import validate


class Adjacency(enum.StrEnum):
    """Which pairs of data sets are neighbours."""

    ADD_REMOVE = "add_remove"
    REPLACE = "replace"
    REPLACE_LABEL_PUBLIC = "replace_label_public"
    REPLACE_FEATURES_PUBLIC = "replace_features_public"


class Coins(enum.StrEnum):
    """Whether the adversary sees which records a step sampled."""

    HIDDEN = "hidden"
    VISIBLE = "visible"
    NONE = "none"


@dataclasses.dataclass(frozen=True)
class ThreatModel:
    """What a privacy claim is about; a required part of every claim.

    Attributes:
      adjacency: the neighbouring relation.
      coins: whether the sampling coins are hidden, visible, or absent (`none`: no sampling).
      released: what the adversary sees, in words, for example `"all noisy gradient sums"`.
    """

    adjacency: Adjacency
    coins: Coins
    released: str

    def __post_init__(self) -> None:
        for name, kind in (("adjacency", Adjacency), ("coins", Coins)):
            value = getattr(self, name)
            if value not in list(kind):
                raise ValueError(f"{name} must be one of {', '.join(kind)}, got {value!r}")
            object.__setattr__(self, name, kind(value))
        validate.text("released", self.released, empty=False)

    def as_dict(self) -> dict[str, str]:
        """The three parts as plain strings, for JSON."""
        return {"adjacency": str(self.adjacency), "coins": str(self.coins), "released": self.released}

    def require_same(self, other: ThreatModel) -> None:
        """Refuses to mix two claims about different things.

        Raises:
          ValueError: adjacency or coins differ (what is released may: composition joins releases).
        """
        if (self.adjacency, self.coins) != (other.adjacency, other.coins):
            raise ValueError(
                "threat_model must be the same for all that is composed, got "
                f"{self.adjacency}/{self.coins} and {other.adjacency}/{other.coins}"
            )
