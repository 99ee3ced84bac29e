"""One rung of a ladder: a claim, its threat model, a value or the reason for none, its source."""

from __future__ import annotations

import dataclasses
import functools
import math
from collections.abc import Mapping, Sequence
from typing import Any, Literal, get_args

from exactdp.accounting import prv, validate
from exactdp.accounting.interval import Interval
from exactdp.accounting.prv import Mechanism
from exactdp.accounting.prv.account import Direction
from exactdp.accounting.threat import ThreatModel

Kind = Literal["printed", "repaired", "exact", "audited"]
Composition = tuple[tuple[Mechanism, int], ...]
Value = float | Interval

KINDS: tuple[str, ...] = get_args(Kind)
OPEN_AUDIT = "no audit result given"

_NATS = "nats"


@dataclasses.dataclass(frozen=True)
class Quantity:
    """A number beside epsilon, with its unit.

    Attributes:
      name: a parameter or a result, in the field's words.
      value: a number or a certified interval.
      unit: in words; "1" for a pure number.

    Raises:
      ValueError: the value is NaN, or name or unit is empty.
    """

    name: str
    value: Value
    unit: str

    def __post_init__(self) -> None:
        _not_empty("name", self.name)
        _not_empty("unit", self.unit)
        _not_nan(self.name, self.value)

    def as_dict(self) -> dict[str, Any]:
        """For JSON."""
        return {"name": self.name, "value": encode(self.value), "unit": self.unit}


@dataclasses.dataclass(frozen=True)
class Rung:
    """One claim.

    Attributes:
      name: unique within its ladder.
      kind: "printed", "repaired", "exact" or "audited".
      threat_model: what the claim is about. Values of different threat models do not bound one another.
      epsilon: in nats: a certified interval, a number (an upper bound, or a formula's value), or None.
      source: where it stands, or "derived".
      reason: why there is no epsilon; empty exactly where there is one.
      corrects: the rung before it, and what it corrects there, in words.
      note: what to know before quoting it.
      command: the shell command that produces it.
      quantities: other numbers that belong to it.
      composition: what is composed, as (mechanism, count), where epsilon is the exact one of a composition.

    Raises:
      ValueError: an unknown kind, an empty name or source, a NaN or negative epsilon, or neither or both of
        epsilon and reason.
    """

    name: str
    kind: Kind
    threat_model: ThreatModel
    epsilon: Value | None
    source: str
    reason: str = ""
    corrects: str = ""
    note: str = ""
    command: str = ""
    quantities: tuple[Quantity, ...] = ()
    composition: Composition | None = dataclasses.field(default=None, repr=False)

    def __post_init__(self) -> None:
        validate.one_of("kind", self.kind, KINDS)
        _not_empty("name", self.name)
        _not_empty("source", self.source)
        if (self.epsilon is None) != bool(self.reason.strip()):
            raise ValueError(
                f"reason must be given exactly where epsilon is None, got epsilon = {self.epsilon} and "
                f"reason = {self.reason!r}"
            )
        if self.epsilon is not None:
            _not_nan("epsilon", self.epsilon)
            if (self.epsilon.lower if isinstance(self.epsilon, Interval) else self.epsilon) < 0.0:
                raise ValueError(f"epsilon must be >= 0, got {self.epsilon}")

    @property
    def upper(self) -> float | None:
        """The number to quote as a guarantee: the upper end of epsilon; None where there is none."""
        return self.epsilon.upper if isinstance(self.epsilon, Interval) else self.epsilon

    def bounds(self, other: Rung) -> bool:
        """Whether this rung's epsilon is at least the other's, both being about one threat model.

        Raises:
          ValueError: the threat models differ, be it in what is released, or a rung has no epsilon.
        """
        if self.threat_model != other.threat_model:
            raise ValueError(
                "threat_model must be the same for rungs that are compared, got "
                f"{self.threat_model} and {other.threat_model}"
            )
        if self.upper is None or other.epsilon is None:
            raise ValueError(f"epsilon must be known, got None for {self.name!r} or {other.name!r}")
        low = other.epsilon.lower if isinstance(other.epsilon, Interval) else other.epsilon
        return self.upper >= low

    def as_dict(self) -> dict[str, Any]:
        """For JSON: epsilon is a number, {"lower", "upper"}, or null with a reason; infinity is "inf"."""
        record: dict[str, Any] = {
            "name": self.name,
            "kind": self.kind,
            "threat_model": self.threat_model.as_dict(),
            "epsilon": None if self.epsilon is None else encode(self.epsilon),
        }
        if self.epsilon is None:
            record["reason"] = self.reason
        record |= {"unit": _NATS, "source": self.source, "corrects": self.corrects, "note": self.note}
        record |= {"quantities": [quantity.as_dict() for quantity in self.quantities]}
        record |= {"command": self.command}
        return record


def encode(value: Value) -> float | str | dict[str, float | str]:
    """A number or an interval for JSON, infinities as "inf" and "-inf"."""
    if isinstance(value, Interval):
        return {"lower": _number(value.lower), "upper": _number(value.upper)}
    return _number(value)


def exact(
    composition: Composition, *, delta: float, tolerance: float | None, direction: Direction = "worst"
) -> tuple[Interval | None, str]:
    """Certified epsilon of a composition, or None with the reason why it could not be certified.

    Args:
      composition: (mechanism, count) pairs.
      delta: in (0, 1).
      tolerance: width aimed at; None for the accountant's own.
      direction: as in `prv.epsilon`.

    Returns:
      (interval, "") or (None, reason).

    Raises:
      ValueError: bad input.
    """
    return _cached(composition, delta, tolerance, direction)


@functools.lru_cache(maxsize=64)
def _cached(
    composition: Composition, delta: float, tolerance: float | None, direction: Direction
) -> tuple[Interval | None, str]:
    # Rungs of one ladder share compositions, and mechanisms are frozen.
    try:
        return prv.epsilon(composition, delta=delta, tolerance=tolerance, direction=direction), ""
    except ArithmeticError as error:
        return None, f"the exact accountant could not certify this setting: {error}"


def open_audit(threat_model: ThreatModel, *, command: str) -> Rung:
    """The audited rung before there is an audit: no value, and the reason says so.

    Args:
      threat_model: what an audit would have to attack.
      command: the command that prints the ladder.
    """
    return Rung(
        name="audited",
        kind="audited",
        threat_model=threat_model,
        epsilon=None,
        source="derived",
        reason=OPEN_AUDIT,
        note="A lower bound that an attack on the released object attains, with its confidence.",
        command=command,
    )


def with_audit(ladder: Sequence[Rung], audited: Rung) -> list[Rung]:
    """The ladder with its open audited rung replaced by a result.

    Args:
      ladder: as `rungs` of a paper returns it.
      audited: of kind "audited", with a value, about the threat model of the open rung.

    Raises:
      ValueError: `audited` is of another kind, has no value, or is about another threat model, be it in what
        is released; or the ladder has no open audited rung.
    """
    if audited.kind != "audited" or audited.epsilon is None:
        raise ValueError(f"audited must be an audited rung with an epsilon, got {audited}")
    place = open_rung(ladder)
    if place.threat_model != audited.threat_model:
        raise ValueError(
            "threat_model must be the same for the audit and the ladder's open rung, got "
            f"{audited.threat_model.as_dict()} and {place.threat_model.as_dict()}"
        )
    return [audited if rung is place else rung for rung in ladder]


def open_rung(ladder: Sequence[Rung]) -> Rung:
    """The audited rung that has no value yet.

    Raises:
      ValueError: there is none.
    """
    for rung in ladder:
        if rung.kind == "audited" and rung.epsilon is None:
            return rung
    raise ValueError("ladder must hold an audited rung without a value, got none")


def command(paper: str, parameters: Mapping[str, Any]) -> str:
    """The shell command of a ladder; parameters that are None are left out."""
    flags = [f"--{name} {value}" for name, value in parameters.items() if value is not None]
    return " ".join(["exactdp ladder", paper, *flags, "--json"])


def find(ladder: Sequence[Rung], name: str) -> Rung:
    """The rung of that name.

    Raises:
      ValueError: there is none.
    """
    return {rung.name: rung for rung in ladder}[validate.one_of("name", name, [r.name for r in ladder])]


def _number(value: float) -> float | str:
    return value if math.isfinite(value) else ("inf" if value > 0.0 else "-inf")


def _not_empty(name: str, value: str) -> None:
    if not value.strip():
        raise ValueError(f"{name} must not be empty, got {value!r}")


def _not_nan(name: str, value: Value) -> None:
    if not isinstance(value, Interval) and math.isnan(value):
        raise ValueError(f"{name} must be a number, got nan")
