"""What is claimed: stage 2's epsilon as printed and exact, and that of everything as repaired."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any, cast

from exactdp.accounting.interval import Interval
from exactdp.accounting.ladder import rung
from exactdp.accounting.ladder import two_stage as ladder
from exactdp.accounting.ladder.rung import Value
from exactdp.accounting.ladder.two_stage_setting import Setting
from exactdp.accounting.printed import two_stage as printed
from exactdp.benchmarks.two_stage_audit.options import Options
from exactdp.train.tables.budget import Budget
from exactdp.train.two_stage import plan as plans
from exactdp.train.two_stage.plan import Plan

_STATISTICS_SHARE = 0.1  # of the ladder's repaired rungs, which are not asked for
_TOLERANCE = 1e-4

PRINTED, EXACT, REPAIRED, STATISTICS = (
    "stage 2, printed",
    "stage 2, exact",
    "repaired, end to end",
    "repaired, its statistics",
)


@dataclasses.dataclass(frozen=True)
class Claims:
    """Epsilons by name, nats.

    Attributes:
      values: a number as printed, a certified interval where exact.
    """

    values: Mapping[str, Value]

    def exceeded(self, epsilon_lower: float) -> list[str]:
        """The names of those that are certainly below a lower bound."""
        return [name for name in self.values if self.upper(name) < epsilon_lower]

    def upper(self, name: str) -> float:
        """The upper end of one."""
        value = self.values[name]
        return value.upper if isinstance(value, Interval) else value

    def as_dict(self) -> dict[str, Any]:
        """For JSON."""
        return {name: rung.encode(value) for name, value in self.values.items()}


def of_table(options: Options, *, num_rows: int, num_columns: int) -> tuple[Claims, Budget]:
    """The claims of `exactdp train two_stage` for a table of this size, and the budget of its statistics.

    With the paper's batches and passes; no column is declared.

    Args:
      options: epsilon and delta.
      num_rows: >= 4.
      num_columns: >= 1.

    Raises:
      ValueError: no noise reaches the target.
      ArithmeticError: no value could be certified.
    """
    published = _plan(options, True, num_rows, num_columns)
    repaired = _plan(options, False, num_rows, num_columns)
    budget = cast("Budget", repaired.budget)
    stage_2 = printed.epsilon(
        cast("float", published.noise),
        sampling_probability=published.sampler.sampling_probability,
        num_steps=published.num_steps,
        delta=options.delta,
    )
    values: dict[str, Value] = {
        PRINTED: stage_2.value,
        EXACT: published.certificate.epsilon(published.num_steps, delta=options.delta),
        REPAIRED: repaired.certificate.epsilon(repaired.num_steps, delta=options.delta),
        STATISTICS: budget.interval(),
    }
    return Claims(values), budget


def of_adult(options: Options) -> tuple[Setting, Claims]:
    """The paper's stage 2 on Adult at the target: its noise, rate and steps, and what is claimed for them.

    Args:
      options: epsilon and delta.

    Raises:
      ArithmeticError: no value could be certified.
    """
    setting = Setting("adult", options.epsilon, options.delta, None, None, _STATISTICS_SHARE, _TOLERANCE)
    exact = ladder.exact(setting)
    if exact.epsilon is None:
        raise ArithmeticError(exact.reason)
    return setting, Claims({PRINTED: cast("float", ladder.as_printed(setting).upper), EXACT: exact.epsilon})


def _plan(options: Options, as_published: bool, num_rows: int, num_columns: int) -> Plan:
    return plans.plan(
        options.settings(as_published=as_published),
        num_rows=num_rows,
        num_columns=num_columns,
        num_undeclared=num_columns,
    )
