"""The attack on what is taken from a table: many runs on both of two neighbours."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import numpy as np

from exactdp.accounting.audit import threshold
from exactdp.accounting.audit.result import AuditResult
from exactdp.accounting.ladder.two_stage_setting import END_TO_END
from exactdp.accounting.threat import Adjacency, Coins, ThreatModel
from exactdp.benchmarks.two_stage_audit.neighbours import ATTACKS, Neighbours
from exactdp.benchmarks.two_stage_audit.options import Options
from exactdp.mechanisms.audit import check
from exactdp.mechanisms.audit.check import Verdict
from exactdp.train.tables import as_published, pseudo
from exactdp.train.tables import statistics as table_statistics
from exactdp.train.tables.budget import Budget
from exactdp.train.tables.csv_file import RawTable
from exactdp.train.tables.statistics import Statistics

STATISTICS = ThreatModel(Adjacency.ADD_REMOVE, Coins.NONE, "the domain and the statistics of the table")

RELEASED, DRAWN, LIKELIHOOD = "statistics", "rows of stage 1", "likelihood ratio"
CERTAINTY = 1.0 - 1e-6
"""Of the check: how surely correct statistics are not refuted."""

_POINTS = 5
_TAILS = 1.5  # standard deviations of the score beyond the middle

Measure = Callable[[RawTable], Statistics]


@dataclasses.dataclass(frozen=True)
class Reading:
    """What one attack found.

    Attributes:
      seen: what the adversary sees.
      attack: its test, one of `ATTACKS` or `LIKELIHOOD`.
      result: the bound.
      missed: of the runs with the record, how many the test took for runs without it.
      false: the other way round.
    """

    seen: str
    attack: str
    result: AuditResult
    missed: int
    false: int

    @property
    def name(self) -> str:
        """Unique among the readings of a mode."""
        return f"{self.seen}: {self.attack}"

    def as_dict(self) -> dict[str, Any]:
        """For JSON; `AuditResult.from_dict` reads it."""
        return self.result.as_dict() | {"missed": self.missed, "false": self.false}


def published(pair: Neighbours, options: Options, *, seed: np.random.SeedSequence) -> list[Reading]:
    """The bounds from what the paper's pipeline takes: exact statistics, and uniform rows drawn from them.

    The statistics are a function of the table, so that epsilon is infinite and only the number of runs limits
    their bound. The rows are random; theirs is infinite as well where delta is below the probability that
    they show the record's category or a value beyond the others' range, which is 0 without the record.

    Args:
      pair: the tables.
      options: trials, delta, confidence.
      seed: of the rows.
    """

    def measure(raw: RawTable) -> Statistics:
        return as_published.exact(raw, label=pair.label)

    runs = (options.runs_in, options.runs_out)
    return _readings(_scores(pair, measure, "uniform", runs, seed), pair, options, END_TO_END)


def repaired(
    pair: Neighbours,
    options: Options,
    *,
    budget: Budget,
    seed: np.random.SeedSequence,
    measure: Measure | None = None,
) -> tuple[list[Reading], Verdict]:
    """The same attacks on private statistics, and a better one, by the likelihood ratio of all counts.

    Half as many runs as `options.trials`, half of them with the record.

    Args:
      pair: the tables.
      options: trials, delta, confidence.
      budget: of the statistics.
      seed: of the rows; not of the statistics' noise.
      measure: takes the statistics, and is claimed to stay within the budget; None for
        `statistics.measure`.

    Returns:
      The readings, the likelihood ratio's last; and whether the latter refutes the budget: its whole privacy
      profile, with the confidence `CERTAINTY`.
    """

    def own(raw: RawTable) -> Statistics:
        return table_statistics.measure(raw, declared=[], label=pair.label, budget=budget)

    half = max(options.trials // 4, 1)
    method = "independent" if pair.label is None else "marginals"
    found = _scores(pair, measure or own, method, (half, half), seed)
    tables, sigma = budget.num_columns, float(budget.table_noise.noise_multiplier)
    tail = _TAILS * tables**0.5 / sigma
    key = (RELEASED, LIKELIHOOD)
    scores = found.pop(key)
    readings = _readings(found, pair, options, STATISTICS)
    readings.append(
        _reading(
            key, scores, [-tail, 0.0, tail], options, STATISTICS, "all other rows are known to the adversary"
        )
    )
    # One threshold: where the two laws are told apart best.
    band = threshold.fixed_thresholds(*scores, thresholds=[0.0], confidence=CERTAINTY)
    composition = [(mechanism, count) for mechanism, count, _ in budget.releases()]
    return readings, check.hold(
        band, composition, delta=options.delta, threat_model=STATISTICS, points=_POINTS
    )


_Scores = dict[tuple[str, str], tuple[np.ndarray, np.ndarray]]


def _scores(
    pair: Neighbours,
    measure: Measure,
    method: str,
    runs: tuple[int, int],
    seed: np.random.SeedSequence,
) -> _Scores:
    """Of each attack, one score for each run on the table with the record, and on that without it."""
    rng = np.random.default_rng(seed)
    sides: list[dict[tuple[str, str], list[float]]] = []
    for raw, number in zip((pair.present, pair.absent), runs, strict=True):
        side: dict[tuple[str, str], list[float]] = {}
        for _ in range(number):
            found = measure(raw)
            # The number of rows is public: as many are drawn from either table.
            codes = pseudo.draw(found, num_rows=pair.absent.num_rows, method=method, rng=rng)
            run = {(RELEASED, name): score for name, score in pair.released(found).items()}
            run |= {(DRAWN, name): score for name, score in pair.drawn(found, codes).items()}
            if found.private:
                run[RELEASED, LIKELIHOOD] = pair.likelihood(found)
            for key, score in run.items():
                side.setdefault(key, []).append(score)
        sides.append(side)
    return {key: (np.array(sides[0][key]), np.array(sides[1][key])) for key in sides[0]}


def _readings(found: _Scores, pair: Neighbours, options: Options, threat_model: ThreatModel) -> list[Reading]:
    return [
        _reading(key, scores, [0.0], options, threat_model, f"column {pair.columns[key[1]]!r}")
        for key, scores in found.items()
    ]


def _reading(
    key: tuple[str, str],
    scores: tuple[np.ndarray, np.ndarray],
    thresholds: list[float],
    options: Options,
    threat_model: ThreatModel,
    where: str,
) -> Reading:
    seen, attack = key
    band = threshold.fixed_thresholds(*scores, thresholds=thresholds, confidence=options.confidence)
    rule = ATTACKS.get(attack, "the counts speak for the record")
    if seen == DRAWN:
        rule = f"a drawn row shows the {attack}"
    note = f"Seen: {seen}. The test, fixed before any run: {rule} ({where})."
    result = band.result(delta=options.delta, threat_model=threat_model, note=note)
    inside, outside = scores
    return Reading(seen, attack, result, int(np.sum(inside <= 0.0)), int(np.sum(outside > 0.0)))
