"""The whole audit: what is taken from the table, and the loss, each beside what is claimed."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import jax
import numpy as np

from exactdp.accounting.ladder.two_stage_setting import Setting
from exactdp.benchmarks.two_stage_audit import claims, coupling, leak, neighbours
from exactdp.benchmarks.two_stage_audit.claims import EXACT, PRINTED, Claims
from exactdp.benchmarks.two_stage_audit.coupling import Coupled
from exactdp.benchmarks.two_stage_audit.leak import Reading
from exactdp.benchmarks.two_stage_audit.neighbours import Neighbours
from exactdp.benchmarks.two_stage_audit.options import Options
from exactdp.benchmarks.two_stage_audit.short_and_long import OURS, RELEASED
from exactdp.mechanisms import keys
from exactdp.mechanisms.audit.check import Verdict
from exactdp.train.tables import csv_file
from exactdp.train.tables.budget import Budget
from exactdp.train.two_stage.inputs import FEWEST_ROWS

RATIOS = (30, 300)
"""Value tokens of the long row to a short row's; GPT-2's context allows a thousand."""

_AS_PUBLISHED, _REPAIRED = "as published", "repaired"
_STAGE_2 = (PRINTED, EXACT)


@dataclasses.dataclass(frozen=True)
class Audited:
    """What was found.

    Attributes:
      claimed: epsilons of `exactdp train two_stage` for a table of this size.
      readings: by mode ("as published", "repaired"), those that were attacked.
      columns: of each attack, the column it looks at.
      check: whether the likelihood ratio refutes the budget of the private statistics; None where they were
        not attacked.
      stage_2: epsilons of the paper's stage 2 on Adult.
      coupled: of the losses that were attacked.
      seconds: how long it took.
    """

    claimed: Claims
    readings: Mapping[str, Sequence[Reading]]
    columns: Mapping[str, str]
    check: Verdict | None
    stage_2: Claims
    coupled: Sequence[Coupled]
    seconds: float

    @property
    def headline(self) -> Reading:
        """The reading to quote: as published the first, else the likelihood ratio's."""
        if _AS_PUBLISHED in self.readings:
            return self.readings[_AS_PUBLISHED][0]
        return self.readings[_REPAIRED][-1]

    @property
    def exceeded(self) -> list[str]:
        """The claims that the headline's bound exceeds."""
        return self.claimed.exceeded(self.headline.result.epsilon_lower)

    @property
    def sound(self) -> bool:
        """Whether what is claimed to be private here, statistics and loss, passed its checks."""
        own = [one.verdict.refuted for one in self.coupled if one.loss == OURS]
        return not any([*own, self.check is not None and self.check.refuted])

    @property
    def verdict(self) -> str:
        """What the bounds say of the claims."""
        told: list[str] = []
        if _AS_PUBLISHED in self.readings:
            count = len([name for name in _STAGE_2 if name in self.exceeded])
            number = ("no epsilon", "one epsilon", "every epsilon")[count]
            told.append(f"what is taken from the table as published exceeds {number} claimed for stage 2")
        if any(one.loss == RELEASED for one in self.coupled):
            worst = max(one.first.epsilon_lower for one in self.coupled if one.loss == RELEASED)
            how = "exceeds" if worst > self.stage_2.upper(PRINTED) else "does not exceed"
            told.append(
                f"on a crafted table the first noisy sum of the released loss {how} stage 2's printed epsilon"
            )
        if self.check is not None:
            told.append(
                f"private statistics and the loss of each row are {'not ' if self.sound else ''}refuted"
            )
        return "; ".join(told)

    def as_dict(self) -> dict[str, Any]:
        """For JSON; `AuditResult.from_dict` reads it, and each of the readings."""
        return {
            **self.headline.result.as_dict(),
            "claimed": self.claimed.as_dict(),
            "exceeded": self.exceeded,
            "verdict": self.verdict,
            "reading": self.headline.name,
            "columns": dict(self.columns),
            "readings": {
                mode: {one.name: one.as_dict() for one in found} for mode, found in self.readings.items()
            },
            "check": None if self.check is None else self.check.as_dict(),
            "coupling": {
                "claimed": self.stage_2.as_dict(),
                "losses": {one.name: one.as_dict() for one in self.coupled},
            },
            "sound": self.sound,
        }


def prepare(options: Options) -> Callable[[], Audited]:
    """Checks all that an audit needs; what is returned attacks what the options name.

    Every bound holds with its confidence by itself; no statement is made about several together.

    Raises:
      ValueError: a value is out of range, or the table cannot be used; no message holds a cell of it.
      ArithmeticError: a claim could not be certified.
    """
    raw, label = neighbours.made_up() if options.csv is None else (csv_file.read(options.csv), options.label)
    if raw.num_rows < FEWEST_ROWS:
        raise ValueError(f"csv must have at least {FEWEST_ROWS} rows, got {raw.num_rows} in {options.csv}")
    pair = neighbours.neighbours(raw, label=label, rows=options.rows)
    claimed, budget = claims.of_table(
        options, num_rows=pair.absent.num_rows, num_columns=len(pair.absent.names)
    )
    setting, stage_2 = claims.of_adult(options)
    return lambda: _audit(options, pair, claimed, budget, setting, stage_2)


def _audit(
    options: Options, pair: Neighbours, claimed: Claims, budget: Budget, setting: Setting, stage_2: Claims
) -> Audited:
    start = time.perf_counter()
    seeds = np.random.SeedSequence(options.seed).spawn(2 + len(RATIOS) + 1)
    key = jax.random.fold_in(keys.run_key(options.seed), 0)
    readings: dict[str, Sequence[Reading]] = {}
    verdict: Verdict | None = None
    cases: list[tuple[str, int]] = []
    if options.as_published:
        readings[_AS_PUBLISHED] = leak.published(pair, options, seed=seeds[0])
        cases += [(RELEASED, ratio) for ratio in RATIOS]
    if options.repaired:
        readings[_REPAIRED], verdict = leak.repaired(pair, options, budget=budget, seed=seeds[1])
        cases.append((OURS, RATIOS[-1]))
    return Audited(
        claimed=claimed,
        readings=readings,
        columns=pair.columns,
        check=verdict,
        stage_2=stage_2,
        coupled=[
            coupling.audit(
                loss, ratio, setting, options, seed=seeds[2 + number], key=jax.random.fold_in(key, number)
            )
            for number, (loss, ratio) in enumerate(cases)
        ],
        seconds=time.perf_counter() - start,
    )
