"""What an audit found: a lower bound of epsilon, how sure it is, and what it is about."""

from __future__ import annotations

import dataclasses
import json
import math
import pathlib
from collections.abc import Mapping, Sequence
from typing import Any, Literal, cast, get_args

from exactdp.accounting import validate
from exactdp.accounting.interval import Interval
from exactdp.accounting.ladder import rung as base
from exactdp.accounting.ladder.rung import Quantity, Rung
from exactdp.accounting.threat import ThreatModel

Certainty = Literal["confidence", "credible"]
CERTAINTIES: tuple[str, ...] = get_args(Certainty)

_NO_EVIDENCE = "The trials show no loss of privacy: too few, or an attack that does not work."

_QUANTITIES = frozenset(
    (
        "delta",
        "epsilon",
        "noise_multiplier",
        "num_records",
        "num_steps",
        "offset",
        "sampling_probability",
        "scaling",
    )
)
"""Parameters of the ladders, which are numbers wherever an audit names them."""


@dataclasses.dataclass(frozen=True)
class AuditResult:
    """A lower bound of epsilon from the results of an attack.

    Attributes:
      epsilon_lower: in nats, >= 0, finite.
      confidence: in (0, 1); see `certainty`.
      delta: in [0, 1).
      trials: number of runs, scores or guesses used, >= 1.
      method: how the bound was computed, in words.
      threat_model: what was attacked. A bound of one threat model says nothing about another.
      certainty: `"confidence"`: whatever the mechanism is, the bound is too high with probability at most
        1 - confidence over the trials. `"credible"`: posterior probability under the stated prior; how often
        it is too high for a given mechanism is not bounded.
      assumption: what was taken for granted about the mechanism; empty for nothing. Without it the bound
        need not hold.
      mu_lower: lower bound of mu of GDP, or None.
      tradeoff: points (fpr, fnr) of a convex curve above the true one, with the same confidence; may be
        empty.
      note: what to know before quoting it.
      parameters: of the mechanism that was attacked, finite numbers under the names that its paper's ladder
        has for them; empty where they were not stored.

    Raises:
      ValueError: a value is outside its range.
    """

    epsilon_lower: float
    confidence: float
    delta: float
    trials: int
    method: str
    threat_model: ThreatModel
    certainty: Certainty = "confidence"
    assumption: str = ""
    mu_lower: float | None = None
    tradeoff: tuple[tuple[float, float], ...] = ()
    note: str = ""
    parameters: Mapping[str, float] = dataclasses.field(default_factory=dict, hash=False)

    def __post_init__(self) -> None:
        validate.non_negative("epsilon_lower", self.epsilon_lower)
        validate.open_probability("confidence", self.confidence)
        if validate.probability("delta", self.delta) == 1.0:
            raise ValueError(f"delta must be in [0, 1), got {self.delta}")
        validate.count("trials", self.trials, minimum=1)
        validate.one_of("certainty", self.certainty, CERTAINTIES)
        validate.text("method", self.method, empty=False)
        validate.text("assumption", self.assumption)
        validate.text("note", self.note)
        if self.mu_lower is not None:
            validate.non_negative("mu_lower", self.mu_lower)
        for point in self.tradeoff:
            for rate in point:
                validate.probability("tradeoff", rate)
        for name, value in self.parameters.items():
            validate.finite(f"parameters[{name!r}]", value)

    def refutes(self, epsilon: float, *, delta: float, threat_model: ThreatModel) -> bool:
        """Whether the claim "(epsilon, delta)-DP" of the same threat model is refuted at this confidence.

        Args:
          epsilon: claimed, in nats.
          delta: claimed; at most the audit's, as epsilon at a smaller delta is no smaller.
          threat_model: of the claim.

        Raises:
          ValueError: `epsilon` is negative or NaN, the claim is about another threat model, or its delta is
            above the audit's.
        """
        if not epsilon >= 0.0:
            raise ValueError(f"epsilon must be >= 0, got {epsilon}")
        self.require(delta=delta, threat_model=threat_model)
        return self.epsilon_lower > epsilon

    def require(self, *, delta: float, threat_model: ThreatModel) -> None:
        """Refuses to be held against a claim about something else.

        Raises:
          ValueError: the threat models differ, be it in what is released, or `delta` is above the audit's.
        """
        if self.threat_model != threat_model:
            raise ValueError(
                "threat_model of the audit must be the claim's, got "
                f"{self.threat_model.as_dict()} and {threat_model.as_dict()}"
            )
        if not delta <= self.delta:
            raise ValueError(
                "delta must be at most the audit's (a bound at one delta holds at smaller ones), got "
                f"{delta} and {self.delta}"
            )

    def rung(self, *, command: str = "") -> Rung:
        """The audited rung of a ladder: epsilon from the lower bound to infinity."""
        sure = f"{100.0 * self.confidence:g} %"
        kind = {"confidence": f"{sure} confidence", "credible": f"{sure} credible, no confidence bound"}
        notes = [f"A lower bound, {kind[self.certainty]}, from {self.trials} trials."]
        if self.assumption:
            notes.append(f"It takes for granted that {self.assumption}.")
        if self.epsilon_lower == 0.0:
            notes.append(_NO_EVIDENCE)
        quantities = [Quantity("confidence", self.confidence, "1"), Quantity("delta", self.delta, "1")]
        quantities.append(Quantity("trials", float(self.trials), "1"))
        if self.mu_lower is not None:
            quantities.append(Quantity("mu_lower", self.mu_lower, "1"))
        quantities += [Quantity(name, float(value), "1") for name, value in self.parameters.items()]
        return Rung(
            name="audited",
            kind="audited",
            threat_model=self.threat_model,
            epsilon=Interval(self.epsilon_lower, math.inf, self.method),
            source=self.method,
            note=" ".join([*notes, self.note]).strip(),
            command=command,
            quantities=tuple(quantities),
        )

    def differing(self, parameters: Mapping[str, Any]) -> dict[str, float]:
        """Those of the audit's parameters that have another value in `parameters`, with the audit's value.

        What either side does not know as a number does not differ.

        Args:
          parameters: of a ladder, by name.
        """
        known = {
            name: value for name, value in parameters.items() if _is_number(value) and name in self.parameters
        }
        return {
            name: self.parameters[name]
            for name, value in known.items()
            if not math.isclose(value, self.parameters[name], rel_tol=1e-9)
        }

    def placed(
        self, ladder: Sequence[Rung], *, delta: float, parameters: Mapping[str, Any] | None = None
    ) -> list[Rung]:
        """The ladder with its open audited rung filled by this result.

        Args:
          ladder: as `rungs` of a paper returns it.
          delta: the ladder's, at most the audit's.
          parameters: of the ladder, those that the audit must agree with where it knows them.

        Raises:
          ValueError: the ladder has no open audited rung, its threat model is another one, `delta` is above
            the audit's, or a parameter differs.
        """
        place = base.open_rung(ladder)
        self.require(delta=delta, threat_model=place.threat_model)
        parameters = parameters or {}
        other = self.differing(parameters)
        if other:
            raise ValueError(
                "parameters of the audit must be the ladder's, got "
                + ", ".join(
                    f"{name} = {value:g} beside {parameters[name]:g}" for name, value in other.items()
                )
            )
        return base.with_audit(ladder, self.rung(command=place.command))

    def as_dict(self) -> dict[str, Any]:
        """For JSON; `from_dict` reads it."""
        record = {field.name: getattr(self, field.name) for field in dataclasses.fields(self)}
        record["threat_model"] = self.threat_model.as_dict()
        record["tradeoff"] = [list(point) for point in self.tradeoff]
        record["parameters"] = dict(self.parameters)
        return record

    @classmethod
    def from_dict(cls, record: Mapping[str, Any]) -> AuditResult:
        """Reads `as_dict`. Further fields are ignored, so that a command may store more beside it.

        So are entries of `parameters` that are words, or null: the name of a data set, or a seed that was not
        given. What a ladder has as a number (`scaling`, `num_steps`, ...) must be one.

        Raises:
          ValueError: a required field is missing, or a value is outside its range.
        """
        fields = {field.name: field for field in dataclasses.fields(cls)}
        missing = [
            name
            for name, field in fields.items()
            if field.default is dataclasses.MISSING
            and field.default_factory is dataclasses.MISSING
            and name not in record
        ]
        if missing:
            raise ValueError(
                f"an audit result must have the fields {', '.join(missing)}, got {sorted(record)}"
            )
        values = {name: record[name] for name in fields if name in record}
        values["threat_model"] = _threat_model(record["threat_model"])
        values["tradeoff"] = _points(record.get("tradeoff", []))
        values["parameters"] = _numbers(record.get("parameters", {}))
        return cls(**values)

    def save(self, path: str | pathlib.Path) -> None:
        """Writes the result as one JSON object."""
        text = json.dumps(self.as_dict(), allow_nan=False, ensure_ascii=False, indent=2)
        pathlib.Path(path).write_text(text + "\n", encoding="utf-8")

    @classmethod
    def load(cls, path: str | pathlib.Path) -> AuditResult:
        """Reads a file that `save` or a command with `--json` wrote.

        Raises:
          ValueError: it cannot be read, or is not an audit result.
        """
        try:
            record = json.loads(pathlib.Path(path).read_text(encoding="utf-8"))
        except OSError as error:
            raise ValueError(
                f"audit must be a file that can be read, got {str(path)!r} ({error.strerror})"
            ) from None
        except (ValueError, RecursionError):
            raise ValueError(f"audit must be a JSON file, got {path}, which is none") from None
        if not isinstance(record, dict):
            raise ValueError(f"audit must be a JSON object, got {path} with {record!r:.40}")
        try:
            return cls.from_dict(cast(dict[str, Any], record))
        except ValueError as error:
            raise ValueError(f"audit must be a stored audit result, got {path}: {error}") from None


def _threat_model(found: object) -> ThreatModel:
    names = [field.name for field in dataclasses.fields(ThreatModel)]
    if not isinstance(found, Mapping) or sorted(found) != sorted(names):
        raise ValueError(f"threat_model must have the fields {', '.join(names)} and no other, got {found!r}")
    return ThreatModel(**cast(dict[str, Any], found))


def _points(found: object) -> tuple[tuple[float, float], ...]:
    if not isinstance(found, list) or any(not isinstance(point, list) or len(point) != 2 for point in found):
        raise ValueError(f"tradeoff must be a list of pairs (fpr, fnr), got {found!r:.80}")
    return tuple((fpr, fnr) for fpr, fnr in found)


def _numbers(found: object) -> dict[str, float]:
    """The numbers among stored parameters."""
    if not isinstance(found, Mapping):
        raise ValueError(f"parameters must be an object of numbers by name, got {found!r:.80}")
    for name, value in found.items():
        if name in _QUANTITIES and not _is_number(value):
            raise ValueError(f"parameters[{name!r}] must be a number, got {value!r:.80}")
        if isinstance(value, (list, dict)) or isinstance(value, str) and _reads_as_number(value):
            raise ValueError(f"parameters[{name!r}] must be a number, a word or null, got {value!r:.80}")
    return {name: value for name, value in found.items() if _is_number(value)}


def _reads_as_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _is_number(value: object) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)
