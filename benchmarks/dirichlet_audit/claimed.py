"""What is claimed: epsilon of the draws, as printed, as repaired, and exact."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

from exactdp.accounting.interval import Interval
from exactdp.accounting.ladder import dirichlet
from exactdp.accounting.ladder.dirichlet_setting import CELL, REPLACE_LABELLED, Setting
from exactdp.accounting.ladder.rung import Value, encode

_TABLE_7_EPSILON = 1.0
_UNUSED = 1.0  # noise multiplier of the ladder's reference mechanism, which is not asked for
_TOLERANCE = 1e-4


@dataclasses.dataclass(frozen=True)
class Claimed:
    """The epsilons of the draws at one setting; each is the ladder's rung of that name.

    Attributes:
      table_7: what the paper's Table 7 prints, where the setting is its recovered cell; else None.
      printed: rung "printed".
      repaired: rung "repaired conversion", whose reading reproduces Table 7.
      exact_hidden: rung "exact, hidden coins"; add/remove. None where it could not be certified.
      exact: rung "label-public replacement", the adjacency of the paper and of the audit; likewise.
    """

    table_7: float | None
    printed: float
    repaired: float
    exact_hidden: Interval | None
    exact: Interval | None

    def values(self) -> Mapping[str, Value | None]:
        """The epsilons by name."""
        return {field.name: getattr(self, field.name) for field in dataclasses.fields(self)}

    def exceeded(self, epsilon_lower: float) -> list[str]:
        """The names of those that are certainly below a lower bound; infinite ones never are."""
        tops = {
            name: value.upper if isinstance(value, Interval) else value
            for name, value in self.values().items()
            if value is not None
        }
        return [name for name, top in tops.items() if top < epsilon_lower]

    def as_dict(self) -> dict[str, Any]:
        """For JSON; with the threat model of `exact`."""
        shown = {name: None if value is None else encode(value) for name, value in self.values().items()}
        return {**shown, "threat_model": REPLACE_LABELLED.as_dict()}


def claimed(
    scaling: float, *, offset: float, sampling_probability: float, num_steps: int, delta: float
) -> Claimed:
    """The claims at a setting.

    Args:
      scaling: r > 0.
      offset: alpha > 0.
      sampling_probability: q in [0, 1].
      num_steps: T >= 0.
      delta: in (0, 1).

    Raises:
      ValueError: a parameter is outside its range.
    """
    setting = Setting(scaling, offset, sampling_probability, num_steps, delta, _UNUSED, _TOLERANCE)
    cell = (CELL.scaling, CELL.offset, CELL.sampling_probability, CELL.num_steps, CELL.delta)
    here = (scaling, offset, sampling_probability, num_steps, delta)
    return Claimed(
        table_7=_TABLE_7_EPSILON if here == cell else None,
        printed=_number(dirichlet.as_printed(setting).upper),
        repaired=_number(dirichlet.repaired_conversion(setting).upper),
        exact_hidden=_interval(dirichlet.hidden(setting).epsilon),
        exact=_interval(dirichlet.label_public(setting).epsilon),
    )


def _number(value: float | None) -> float:
    if value is None:
        raise ArithmeticError("a printed bound has no value")
    return value


def _interval(value: Value | None) -> Interval | None:
    return value if isinstance(value, Interval) else None
