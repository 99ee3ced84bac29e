"""A mechanism, how often and on what sample it runs, and against whom: checked, then composed."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from exactdp.accounting import validate
from exactdp.accounting.threat import Adjacency, Coins, ThreatModel
from exactdp.benchmarks.setting.families import FAMILIES, PARAMETERS, Family
from exactdp.benchmarks.setting.magnitude import representable

if TYPE_CHECKING:
    from exactdp.accounting.pairs.base import Pair

ADJACENCIES = ("add_remove", "replace")
COINS = ("hidden", "visible")


class Unsupported(ValueError):
    """A setting that is well formed, but for which no dominating pair is known."""


@dataclasses.dataclass(frozen=True)
class Setting:
    """`num_steps` runs of one mechanism, each on a fresh Poisson sample.

    Attributes:
      mechanism: a key of `FAMILIES`.
      parameters: its parameters by name; those left out take their defaults.
      sampling_probability: q in [0, 1]; 1 means that every record takes part in every step.
      num_steps: how many steps are released, >= 0.
      adjacency: `"add_remove"` or `"replace"`.
      coins: `"hidden"` or `"visible"`; without sampling (q = 1) there are none.

    Raises:
      ValueError: an unknown mechanism, or a parameter missing, out of range or of another mechanism.
      Unsupported: a combination for which no dominating pair is known.
    """

    mechanism: str
    parameters: Mapping[str, float]
    sampling_probability: float = 1.0
    num_steps: int = 1
    adjacency: str = "add_remove"
    coins: str = "hidden"

    def __post_init__(self) -> None:
        validate.one_of("mechanism", self.mechanism, FAMILIES)
        checked = _checked_parameters(self.family, self.parameters)
        object.__setattr__(self, "parameters", checked)
        q = validate.probability("sampling_probability", self.sampling_probability)
        object.__setattr__(self, "sampling_probability", q)
        steps = validate.count("num_steps", representable("num_steps", self.num_steps))
        object.__setattr__(self, "num_steps", steps)
        validate.one_of("adjacency", self.adjacency, ADJACENCIES)
        validate.one_of("coins", self.coins, COINS)
        if self._hidden_replacement and self.mechanism != "gaussian":
            raise Unsupported(
                "adjacency must be add_remove when the coins are hidden and the mechanism is not gaussian "
                f"(no dominating pair is known), got adjacency replace with mechanism {self.mechanism}; "
                "coins visible, or sampling_probability 1, can be accounted for"
            )

    @property
    def family(self) -> Family:
        """The mechanism's entry in `FAMILIES`."""
        return FAMILIES[self.mechanism]

    @property
    def sampled(self) -> bool:
        """Whether there are sampling coins at all."""
        return self.sampling_probability < 1.0

    @property
    def _hidden_replacement(self) -> bool:
        return self.adjacency == "replace" and self.sampled and self.coins == "hidden"

    def replaced(self, **changes: float) -> Setting:
        """The same setting with mechanism parameters, `sampling_probability` or `num_steps` changed."""
        own = {name: value for name, value in changes.items() if name in PARAMETERS}
        rest: dict[str, Any] = {name: value for name, value in changes.items() if name not in PARAMETERS}
        return dataclasses.replace(self, parameters={**self.parameters, **own}, **rest)

    def effective(self) -> dict[str, float]:
        """The parameters, the sensitivity being doubled where a record is replaced."""
        values = dict(self.parameters)
        if self.adjacency == "replace" and self.family.replacement == "doubles":
            values["sensitivity"] *= 2.0
        return values

    def pair(self) -> Pair:
        """The dominating pair of one step without sampling, for this adjacency."""
        return self.family.build(self.effective())

    def step(self) -> Any:
        """The dominating pair of one step, sampling included."""
        q = self.sampling_probability
        if not self.sampled:
            return self.pair()
        if self._hidden_replacement:
            from exactdp.accounting.sampling.replace import PoissonReplaceGaussian

            noise = self.parameters["noise_multiplier"] / self.parameters["sensitivity"]
            return PoissonReplaceGaussian(noise, q)
        if self.coins == "visible":
            from exactdp.accounting.sampling.visible import PoissonVisible

            return PoissonVisible(self.pair(), q)
        from exactdp.accounting.sampling.hidden import PoissonHidden

        return PoissonHidden(self.pair(), q)

    def composition(self) -> list[tuple[Any, int]]:
        """What the accountants take."""
        return [(self.step(), self.num_steps)]

    def threat_model(self) -> ThreatModel:
        """Adjacency, coins, and what is released."""
        adjacency = Adjacency(self.adjacency)
        released = f"{self.family.released}, at each of {self.num_steps} step{'s' * (self.num_steps != 1)}"
        if self.mechanism == "dirichlet" and adjacency is Adjacency.REPLACE:
            # The draw hides which input was given for a fixed label; it says nothing about a changed label.
            adjacency = Adjacency.REPLACE_LABEL_PUBLIC
        if self.mechanism == "dirichlet" and not self._vertices_are_worst():
            released += (
                " (inputs one-hot in two classes only: with an offset below 1/2 and this scaling, other "
                "inputs of three or more classes may be told apart better)"
            )
        coins = Coins(self.coins) if self.sampled else Coins.NONE
        if coins is Coins.VISIBLE:
            released += ", and which records were sampled"
        return ThreatModel(adjacency, coins, released)

    def _vertices_are_worst(self) -> bool:
        from exactdp.accounting.worst_pair import proved

        own = self.parameters
        reason = proved.loss_dominance_proved(scaling=own["scaling"], offset=own["offset"], num_classes=3)
        return reason is not None

    def as_dict(self) -> dict[str, float | int | str]:
        """All parameters by name, for JSON and CSV headers."""
        return {
            "mechanism": self.mechanism,
            **self.parameters,
            "sampling_probability": self.sampling_probability,
            "num_steps": self.num_steps,
            "adjacency": self.adjacency,
            "coins": self.coins if self.sampled else "none",
        }


def _checked_parameters(family: Family, given: Mapping[str, object]) -> dict[str, float]:
    known = (*family.required, *family.optional)
    for name, value in given.items():
        if name not in known:
            raise ValueError(
                f"{name} must be left out for {family.name}, whose parameters are {', '.join(known)}, "
                f"got {value}"
            )
    checked: dict[str, float] = {}
    for name, check in family.required.items():
        if name not in given:
            raise ValueError(f"{name} must be given for {family.name}, got nothing")
        checked[name] = check(name, given[name])
    for name, (check, default) in family.optional.items():
        checked[name] = check(name, given.get(name, default))
    return checked
