"""What the worst-pair check answers."""

from __future__ import annotations

import dataclasses
from typing import Any

from exactdp.accounting.interval import Interval


@dataclasses.dataclass(frozen=True)
class BeatingPair:
    """A pair of inputs with a larger divergence than the vertex pair.

    Attributes:
      p: the input whose output is P.
      p_prime: its neighbour.
      epsilon: where the hockey-stick divergence is larger; None for a Rényi divergence.
      order: the order at which the Rényi divergence is larger; None for a hockey-stick divergence.
      divergence: of this pair; its lower end is above `vertex.upper`.
      vertex: the same divergence of the vertex pair.
      family: which candidates it came from.
    """

    p: tuple[float, ...]
    p_prime: tuple[float, ...]
    epsilon: float | None
    order: float | None
    divergence: Interval
    vertex: Interval
    family: str

    def as_dict(self) -> dict[str, Any]:
        """Plain numbers, lists and strings, for JSON."""
        ends = {
            name: {"lower": value.lower, "upper": value.upper}
            for name, value in (("divergence", self.divergence), ("vertex", self.vertex))
        }
        return {**dataclasses.asdict(self), "p": list(self.p), "p_prime": list(self.p_prime), **ends}


@dataclasses.dataclass(frozen=True)
class WorstPairResult:
    """Whether the vertex pair was beaten, and by how much at most.

    Attributes:
      scaling: r.
      offset: α.
      num_classes: K.
      proof: which part of the theorem says that no pair beats the vertex pair, at any ε; None where the
        theorem is silent and `dominated` is the outcome of a search alone.
      dominated: no candidate has a certified larger hockey-stick or Rényi divergence than the vertex pair.
      epsilons: where hockey-stick divergences were compared.
      vertex_deltas: the vertex pair's there.
      ratios: for each family of candidates the largest ratio to the vertex pair's, one a value of `epsilons`.
        Exactly 1 where random candidates or an ascent hit the vertex pair itself.
      orders: where Rényi divergences were compared.
      renyi_ratios: as `ratios`.
      beating: for every kind of divergence that is beaten, the pair that beats it by the largest ratio.
      num_pairs: divergences evaluated.
      seed: of the random candidates.
    """

    scaling: float
    offset: float
    num_classes: int
    proof: str | None
    dominated: bool
    epsilons: tuple[float, ...]
    vertex_deltas: tuple[float, ...]
    ratios: dict[str, tuple[float, ...]]
    orders: tuple[float, ...]
    renyi_ratios: dict[str, tuple[float, ...]]
    beating: tuple[BeatingPair, ...]
    num_pairs: int
    seed: int

    @property
    def proved(self) -> bool:
        """Whether dominance is proved, not only searched."""
        return self.proof is not None

    @property
    def worst_ratio(self) -> float:
        """The largest ratio of hockey-stick divergences over all candidates and `epsilons`."""
        return max(max(values) for values in self.ratios.values())

    @property
    def worst_renyi_ratio(self) -> float:
        """The largest ratio of Rényi divergences over all candidates and `orders`."""
        return max(max(values) for values in self.renyi_ratios.values())

    def as_dict(self) -> dict[str, Any]:
        """Plain numbers, lists and strings, for JSON."""
        fields = {field.name: getattr(self, field.name) for field in dataclasses.fields(self)}
        for name in ("epsilons", "vertex_deltas", "orders"):
            fields[name] = list(fields[name])
        for name in ("ratios", "renyi_ratios"):
            fields[name] = {family: list(values) for family, values in fields[name].items()}
        fields["beating"] = [pair.as_dict() for pair in self.beating]
        return {
            **fields,
            "proved": self.proved,
            "worst_ratio": self.worst_ratio,
            "worst_renyi_ratio": self.worst_renyi_ratio,
        }
