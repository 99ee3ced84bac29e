"""The feature ladder at the parameters of a training run, as its ledger has them.

The rung that certifies the run is about the run's own threat model, and its epsilon is that of the ledger:
of all steps announced so far, finished or not, with what batches that may overflow cost.
"""

from __future__ import annotations

import dataclasses
import math
from pathlib import Path
from typing import Any

from exactdp.accounting.interval import Interval
from exactdp.accounting.ladder import feature
from exactdp.accounting.ladder import rung as base
from exactdp.accounting.ladder.rung import Rung
from exactdp.accounting.ledger import Ledger
from exactdp.accounting.pairs.approximate import ApproximateDP
from exactdp.accounting.prv import Mechanism
from exactdp.train import folder

PAPER = "feature"
_SUFFIX = " (feature ladder)"
# Theorem 6 asks for the diameter and the Lipschitz constant of a convex problem, which no run knows.
_NOT_OF_A_RUN = "excess risk"


@dataclasses.dataclass(frozen=True)
class RunLadder:
    """What the ladder says of a run.

    Attributes:
      rungs: the ladder without Theorem 6; the certifying rung has the ledger's epsilon and threat model, and
        so has the open audited one the threat model.
      certified_by: the name of the certifying rung.
      epsilon: of the ledger.
      parameters: at which the ladder stands; epsilon, the target of the printed noise schedule, is the
        ledger's upper end.
    """

    rungs: tuple[Rung, ...]
    certified_by: str
    epsilon: Interval
    parameters: dict[str, Any]


def of_run(directory: str | Path) -> RunLadder:
    """The ladder of a run of `exactdp train feature`, finished or interrupted.

    Args:
      directory: the folder of the run.

    Raises:
      ValueError: there is no run in it, it is one of another method, it is damaged, or it has announced no
        step.
      ArithmeticError: the accountant cannot answer.
    """
    path, described = Path(directory), described_as(directory, PAPER)
    certified_by, delta, num_records = _asked(described, path)
    ledger = Ledger.load(path / folder.LEDGER)
    mechanism, num_steps = _step(ledger, path)
    own = ledger.epsilon(delta=delta)
    if not isinstance(own, Interval):
        raise ArithmeticError(f"epsilon must be a certified interval, got {own}")
    sampled: Any = mechanism
    parameters: dict[str, Any] = {
        "noise_multiplier": getattr(sampled, "pair", sampled).noise_multiplier,
        "sampling_probability": sampled.sampling_probability,
        "num_steps": num_steps,
        "delta": delta,
        "num_records": num_records,
    }
    if 0.0 < own.upper < math.inf:
        parameters["epsilon"] = own.upper
    command = f"exactdp ladder {PAPER} --run {directory} --json"
    found: list[Rung] = []
    for made in feature.rungs(**parameters):
        if made.name == certified_by:
            found.append(_certifying(made, (mechanism, num_steps), ledger, own, command))
        elif made.kind == "audited":
            found.append(base.open_audit(ledger.threat_model, command=command))
        elif made.name != _NOT_OF_A_RUN:
            found.append(made)
    return RunLadder(tuple(found), certified_by, own, parameters)


def described_as(directory: str | Path, method: str) -> dict[str, Any]:
    """What was asked of a run that has begun.

    Args:
      directory: the folder of the run.
      method: of `exactdp train`.

    Raises:
      ValueError: there is no run in it, it is one of another method, or it is damaged.
    """
    path = Path(directory)
    for name in (folder.RUN, folder.LEDGER):
        if not (path / name).is_file():
            raise ValueError(f"run must be the folder of a run, got {directory} without {name}")
    described = folder.description(path)
    if described.get("method") != method:
        raise ValueError(
            f"run must be one of exactdp train {method}, got {directory} of {described.get('method')}"
        )
    return described


def _asked(described: dict[str, Any], path: Path) -> tuple[str, float, int]:
    """The certifying rung's name, delta and the number of records."""
    try:
        name = str(described["certificate"]["rung"]).removesuffix(_SUFFIX)
        delta, num_records = float(described["options"]["delta"]), int(described["num_records"])
    except (KeyError, TypeError, ValueError) as error:
        raise ValueError(
            f"{folder.RUN} must hold certificate.rung, options.delta and num_records, got "
            f"{path / folder.RUN} ({type(error).__name__}: {error})"
        ) from None
    if name not in feature.BUILDERS:
        raise ValueError(f"certificate.rung must be one of the {PAPER} ladder, got {name!r} in {path}")
    return name, delta, num_records


def _step(ledger: Ledger, path: Path) -> tuple[Mechanism, int]:
    """What a step releases, batches that overflow apart, and how many steps are announced."""
    # Beside it there is what tells everything with a tiny probability, where batches may overflow.
    sampled = [item for item in ledger.composition() if not isinstance(item[0], ApproximateDP)]
    if not sampled:
        raise ValueError(f"run must have announced a step, got {path} with an empty ledger")
    if len(sampled) > 1:
        raise ValueError(f"{folder.LEDGER} must be of one run, got {path} with {len(sampled)} mechanisms")
    return sampled[0]


def _certifying(rung: Rung, step: tuple[Mechanism, int], ledger: Ledger, own: Interval, command: str) -> Rung:
    if rung.composition != (step,):
        raise ValueError(
            f"ledger must hold what its run's certificate is about, {rung.composition}, got {step} in "
            f"{ledger.path}"
        )
    note = "Certifies the run: epsilon is the ledger's own, batches that overflow included."
    return dataclasses.replace(
        rung,
        epsilon=own,
        reason="",
        threat_model=ledger.threat_model,
        composition=tuple(ledger.composition()),
        command=command,
        note=f"{note} {rung.note}".strip(),
    )
