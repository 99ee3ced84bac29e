"""The rungs of DP-2Stage at a run's own parameters, as its ledger has them.

Stage 2 is the steps of the ledger, the statistics are what was announced before them. Where the run's
certificate is of both together, its epsilon is the ledger's; where it is of stage 2 alone, there is a rung
without a certificate for the pipeline end to end.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from exactdp.accounting import prv
from exactdp.accounting.interval import Interval
from exactdp.accounting.ladder import rung as base
from exactdp.accounting.ladder.rung import Quantity, Rung
from exactdp.accounting.ladder.two_stage_setting import STAGE_2
from exactdp.accounting.ledger import Entry, Ledger
from exactdp.accounting.pairs.approximate import ApproximateDP
from exactdp.accounting.printed import two_stage as printed
from exactdp.accounting.prv import Mechanism
from exactdp.accounting.threat import ThreatModel
from exactdp.benchmarks.curves import run_ladder
from exactdp.benchmarks.curves.run_ladder import RunLadder
from exactdp.train import folder

PAPER = "two_stage"
_PIPELINE = "the synthetic table and all that it was made of"


def of_run(directory: str | Path) -> RunLadder:
    """The rungs of a run of `exactdp train two_stage`, finished or interrupted.

    Args:
      directory: the folder of the run.

    Raises:
      ValueError: there is no run in it, it is one of another method or without privacy, it is damaged, or it
        has announced no step.
      ArithmeticError: the accountant cannot answer.
    """
    path, described = Path(directory), run_ladder.described_as(directory, PAPER)
    try:
        delta = float(described["options"]["delta"])
        published = bool(described["settings"]["as_published"])
        private = described["settings"]["epsilon"] is not None
    except (KeyError, TypeError, ValueError) as error:
        raise ValueError(f"{folder.RUN} must hold a run's settings, got {path} ({error})") from None
    if not private:
        raise ValueError(f"run must be a private one, got {directory} without noise")
    ledger = Ledger.load(path / folder.LEDGER)
    steps = [entry for entry in ledger.entries if entry.note.startswith(f"{PAPER} ")]
    statistics = [entry for entry in ledger.entries if entry not in steps]
    sampled: Any = next((e.mechanism for e in steps if not isinstance(e.mechanism, ApproximateDP)), None)
    if sampled is None:
        raise ValueError(f"run must have announced a step, got {path} with none in its ledger")
    num_steps = sum(entry.count for entry in steps if entry.mechanism == sampled)
    parameters: dict[str, Any] = {
        "noise_multiplier": sampled.pair.noise_multiplier,
        "sampling_probability": sampled.sampling_probability,
        "num_steps": num_steps,
        "delta": delta,
    }
    command = f"exactdp ladder {PAPER} --run {directory} --json"
    own = prv.epsilon(ledger.composition(), delta=delta)
    rungs = [_printed(parameters, command), _exact(steps, parameters, command)]
    if published:
        rungs.append(_leaking(command))
        certified_by = "exact"
    else:
        rungs += [_statistics(statistics, delta, ledger.threat_model, command)]
        rungs.append(_whole(ledger, own, command))
        certified_by = rungs[-1].name
    rungs.append(base.open_audit(ledger.threat_model, command=command))
    return RunLadder(tuple(rungs), certified_by, own, parameters)


def _merged(entries: list[Entry]) -> list[tuple[Mechanism, int]]:
    totals: dict[Mechanism, int] = {}
    for entry in entries:
        totals[entry.mechanism] = totals.get(entry.mechanism, 0) + entry.count
    return list(totals.items())


def _printed(parameters: dict[str, Any], command: str) -> Rung:
    rates = {name: parameters[name] for name in ("sampling_probability", "num_steps", "delta")}
    bound = printed.epsilon(parameters["noise_multiplier"], **rates)
    return Rung(
        name="printed",
        kind="printed",
        threat_model=STAGE_2,
        epsilon=bound.value,
        source=str(printed.PRINTED.source),
        note="Stage 2 alone, by the released accountant at the run's own rate, steps and noise.",
        command=command,
        quantities=(Quantity("noise_multiplier", parameters["noise_multiplier"], "noise std / clip norm"),),
    )


def _exact(steps: list[Entry], parameters: dict[str, Any], command: str) -> Rung:
    composition = _merged(steps)
    return Rung(
        name="exact",
        kind="exact",
        threat_model=STAGE_2,
        epsilon=prv.epsilon(composition, delta=parameters["delta"]),
        source="derived",
        corrects="printed: " + printed.EXACT_STAGE_2.defect,
        note="Stage 2 alone, batches that overflow included.",
        command=command,
        composition=tuple(composition),
    )


def _statistics(statistics: list[Entry], delta: float, threat_model: ThreatModel, command: str) -> Rung:
    composition = _merged(statistics)
    return Rung(
        name="statistics",
        kind="exact",
        threat_model=threat_model,
        epsilon=prv.epsilon(composition, delta=delta),
        source="derived",
        corrects="U, as released: domain, label frequencies and tables with noise",
        note="The statistics alone.",
        command=command,
        composition=tuple(composition),
    )


def _whole(ledger: Ledger, own: Interval, command: str) -> Rung:
    return Rung(
        name="statistics and stage 2, one budget",
        kind="exact",
        threat_model=ledger.threat_model,
        epsilon=own,
        source="derived",
        corrects="exact, statistics: both of one row, composed",
        note="Certifies the run: epsilon is the ledger's own.",
        command=command,
        composition=tuple(ledger.composition()),
    )


def _leaking(command: str) -> Rung:
    return Rung(
        name="end to end",
        kind="exact",
        threat_model=ThreatModel(STAGE_2.adjacency, STAGE_2.coins, _PIPELINE),
        epsilon=None,
        reason="ranges, categories and label frequencies are taken from the table without noise",
        source="derived",
        corrects="printed: " + printed.UNIFORM.defect,
        note="Stage 2's epsilon does not cover what is released.",
        command=command,
    )
