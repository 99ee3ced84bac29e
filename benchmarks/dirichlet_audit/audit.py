"""The audit at one scaling: two data sets, many runs on each, lower bounds beside the claims."""

from __future__ import annotations

import dataclasses
import math
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import jax
import numpy as np

from exactdp.accounting import validate
from exactdp.accounting.audit import threshold
from exactdp.accounting.audit.band import Band
from exactdp.accounting.audit.result import AuditResult
from exactdp.accounting.ladder.dirichlet_setting import REPLACE_WEIGHTS
from exactdp.accounting.printed import dirichlet as printed
from exactdp.accounting.sampling import truncated
from exactdp.accounting.threat import ThreatModel
from exactdp.benchmarks.dirichlet_audit.claimed import Claimed
from exactdp.benchmarks.dirichlet_audit.neighbours import Neighbours, neighbours
from exactdp.benchmarks.dirichlet_audit.options import Options
from exactdp.mechanisms import keys
from exactdp.mechanisms.batches import Poisson
from exactdp.train import certificates, data, dirichlet
from exactdp.train.attacks import released_weights
from exactdp.train.attacks.released_weights import Read, Scores
from exactdp.train.data import Dataset
from exactdp.train.network import Network
from exactdp.train.task import Records, Task

REPLACE_UPDATES = ThreatModel(
    REPLACE_WEIGHTS.adjacency, REPLACE_WEIGHTS.coins, "the weights after every step; all labels are public"
)
_CHUNK = 256
_MEASURED = 8
_TYPICAL = 0.9  # true-class probability at which the paper compares rates


@dataclasses.dataclass(frozen=True)
class Audited:
    """What was found at one scaling.

    Attributes:
      scaling: r.
      learning_rate: gamma.
      weights: the bound from the final weights, the initial ones known; it is the one to quote.
      blind: from the final weights alone.
      updates: from the weights after every step.
      missed: runs with the feature whose final weights do not show it.
      false: runs without it whose final weights seem to show it.
      accuracy: on the test records, mean of a few of the models.
      claimed: epsilon of the draws.
      seconds: how long it took.
    """

    scaling: float
    learning_rate: float
    weights: AuditResult
    blind: AuditResult
    updates: AuditResult
    missed: int
    false: int
    accuracy: float
    claimed: Claimed
    seconds: float

    @property
    def exceeded(self) -> list[str]:
        """The claims that the bound exceeds."""
        return self.claimed.exceeded(self.weights.epsilon_lower)

    @property
    def verdict(self) -> str:
        """What the bound says of the claims."""
        known = [name for name, value in self.claimed.values().items() if value is not None]
        how_many = {0: "no epsilon", len(known): "every epsilon"}.get(len(self.exceeded), "some epsilons")
        return f"the weights exceed {how_many} claimed for the draws"

    def as_dict(self) -> dict[str, Any]:
        """For JSON; `AuditResult.from_dict` reads it."""
        return {
            **self.weights.as_dict(),
            "claimed": self.claimed.as_dict(),
            "exceeded": self.exceeded,
            "verdict": self.verdict,
            "scaling": self.scaling,
            "learning_rate": self.learning_rate,
            "missed": self.missed,
            "false": self.false,
            "accuracy": self.accuracy,
            "readings": {name: result.as_dict() for name, result in self.readings().items()},
            "seconds": self.seconds,
        }

    def readings(self) -> Mapping[str, AuditResult]:
        """The bounds by what the adversary sees."""
        return {
            "final and initial weights": self.weights,
            "final weights alone": self.blind,
            "weights after every step": self.updates,
        }


def prepare(scalings: Sequence[float], options: Options) -> Callable[[], list[Audited]]:
    """Checks all that an audit needs; what is returned carries it out, at one scaling after the other.

    It trains on both data sets and bounds epsilon of what is released. The coins and draws of each scaling
    come from the same seed. Every bound holds with its confidence by itself; no statement is made about
    several together.

    Args:
      scalings: r > 0.
      options: all else.

    Raises:
      ValueError: a value is out of range or stands twice among `scalings`, or the data set has no feature to
        use.
    """
    data.require_known(options.dataset)
    for scaling in scalings:
        validate.positive("scaling", scaling)
    if len({f"{scaling:g}" for scaling in scalings}) < len(scalings):
        raise ValueError(f"scaling must have no value twice in six digits, got {list(scalings)}")
    dataset = data.load(options.dataset)
    pair = neighbours(dataset, records=options.records)
    cases = [(scaling, _rate(scaling, options), _task(scaling, options, dataset)) for scaling in scalings]
    return lambda: [_audit(*case, pair, dataset, options) for case in cases]


def _rate(scaling: float, options: Options) -> float:
    return released_weights.require_rate(
        options.effective_learning_rate
        / printed.kappa(scaling, offset=options.offset, true_class_probability=_TYPICAL)
    )


def _audit(
    scaling: float, rate: float, task: Task, pair: Neighbours, dataset: Dataset, options: Options
) -> Audited:
    start = time.perf_counter()
    claims = options.claims(scaling)
    read = released_weights.reader(options.model, feature=pair.feature)
    inside, models = _runs(task, pair.present, read, rate, options, runs=options.runs_in, side=1)
    outside, _ = _runs(task, pair.absent, read, rate, options, runs=options.runs_out, side=0)
    measured = min(_MEASURED, options.runs_in)
    accuracy = [
        task.measure(jax.tree.map(lambda leaf: leaf[i], models), dataset.x_test, dataset.y_test)  # noqa: B023
        for i in range(measured)
    ]
    return Audited(
        scaling=scaling,
        learning_rate=rate,
        weights=_bound(inside.weights, outside.weights, scaling, options, REPLACE_WEIGHTS),
        blind=_blind(inside, outside, scaling, options),
        updates=_bound(inside.updates, outside.updates, scaling, options, REPLACE_UPDATES),
        missed=int(np.count_nonzero(inside.weights <= 0.0)),
        false=int(np.count_nonzero(outside.weights > 0.0)),
        accuracy=float(np.mean(accuracy)),
        claimed=claims,
        seconds=time.perf_counter() - start,
    )


def _task(scaling: float, options: Options, dataset: Dataset) -> Task:
    q, n = options.sampling_probability, options.records
    # What overflowing batches cost is a millionth of delta, or nothing.
    room = truncated.capacity_for(
        n,
        sampling_probability=q,
        num_steps=options.num_steps,
        log10_overflow=math.log10(options.delta) - 6.0,
    )
    sampler = Poisson(n, q, min(room, n))
    classes = dataset.num_classes
    return dirichlet.task(
        Network(options.model, dataset.input_shape, classes),
        certificate=certificates.dirichlet(
            scaling, offset=options.offset, sampler=sampler, num_classes=classes
        ),
        sampler=sampler,
        scaling=scaling,
        offset=options.offset,
    )


def _runs(
    task: Task, records: Records, read: Read, rate: float, options: Options, *, runs: int, side: int
) -> tuple[Scores, Any]:
    return released_weights.run_many(
        task,
        records,
        read=read,
        learning_rate=rate,
        num_steps=options.num_steps,
        runs=runs,
        key=jax.random.fold_in(keys.run_key(options.seed), side),
        chunk=min(_CHUNK, options.runs_in),  # of one size on both sides, to be compiled once
    )


def _bound(
    inside: np.ndarray, outside: np.ndarray, scaling: float, options: Options, threat_model: ThreatModel
) -> AuditResult:
    """From a test that was fixed before any run: has the weight moved at all."""
    band = threshold.fixed_thresholds(inside, outside, thresholds=[0.0], confidence=options.confidence)
    known = "The initial weights, which do not depend on the data, are known. "
    return _result(band, scaling, options, threat_model, known)


def _blind(inside: Scores, outside: Scores, scaling: float, options: Options) -> AuditResult:
    # Equal scores do not occur: the initial weights are continuous. So the seed of their order is of no use.
    band = threshold.order_statistics(inside.blind, outside.blind, seed=0, confidence=options.confidence)
    return _result(band, scaling, options, REPLACE_WEIGHTS, "")


def _result(
    band: Band, scaling: float, options: Options, threat_model: ThreatModel, known: str
) -> AuditResult:
    note = f"{known}The {options.model} model on {options.records} records of {options.dataset}."
    result = band.result(delta=options.delta, threat_model=threat_model, note=note)
    return dataclasses.replace(
        result,
        parameters={
            "scaling": scaling,
            "offset": options.offset,
            "sampling_probability": options.sampling_probability,
            "num_steps": options.num_steps,
        },
    )
