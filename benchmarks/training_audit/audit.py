"""The audit: runs, scores, lower bounds beside what is certified."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Mapping
from typing import Any

import jax
import numpy as np

from exactdp.accounting.audit import canaries, family, threshold
from exactdp.accounting.audit.result import AuditResult
from exactdp.accounting.ladder.rung import encode
from exactdp.benchmarks.training_audit.attack import Attack
from exactdp.benchmarks.training_audit.options import Options
from exactdp.mechanisms import keys
from exactdp.train.attacks import transcripts
from exactdp.train.attacks.transcripts import Transcripts
from exactdp.train.task import Records

_ALL, _FINAL = "weights after every step", "loss of the record under the final weights"
_NOISE_ONLY = f"{_ALL}, only the size of the noise in doubt"
_FINAL_NOISE_ONLY = f"{_FINAL}, only the size of the noise in doubt"
_ONE_RUN = {
    "f-dp": "{}, one run, f-DP",
    "dp": "{}, one run, DP",
}
_SETTING = ("noise_multiplier", "sampling_probability", "num_steps")
_CHUNK = 2048


@dataclasses.dataclass(frozen=True, eq=False)
class Audited:
    """What was found.

    Attributes:
      attack: what was attacked.
      readings: bounds by what the adversary sees and what is taken for granted; the first is the one to
        quote.
      seconds: how long it took.
    """

    attack: Attack
    readings: Mapping[str, AuditResult]
    seconds: float

    @property
    def result(self) -> AuditResult:
        """The bound to quote: nothing is taken for granted."""
        return next(iter(self.readings.values()))

    @property
    def best(self) -> float:
        """The larger of the bounds that hold together: the first one's, with and without an assumption."""
        names = (_ALL, _NOISE_ONLY) if _ALL in self.readings else tuple(self.readings)[:1]
        return max(self.readings[name].epsilon_lower for name in names)

    @property
    def refuted(self) -> bool:
        """Whether that is above what is certified for this threat model, at the confidence asked for."""
        return self.best > self.attack.claims[self.attack.certified].epsilon.upper

    @property
    def verdict(self) -> str:
        """What the bounds say of the certificate."""
        return "refuted" if self.refuted else "not refuted"

    def as_dict(self) -> dict[str, Any]:
        """For JSON; `AuditResult.from_dict` reads it."""
        claims = self.attack.claims
        return {
            **self.result.as_dict(),
            "method_audited": self.attack.name,
            "claimed": {
                name: {
                    "epsilon": encode(claim.epsilon),
                    "kind": claim.kind,
                    "threat_model": claim.threat_model.as_dict(),
                }
                for name, claim in claims.items()
            },
            "certified": self.attack.certified,
            "exceeded": self.attack.exceeded(self.best),
            "verdict": self.verdict,
            "readings": {name: one.as_dict() for name, one in self.readings.items()},
            "seconds": self.seconds,
        }


def many_runs(attack: Attack, options: Options) -> Audited:
    """Trains many models, half of them with the one canary, and bounds epsilon of what they release.

    The bounds of each reading hold with the confidence asked for by themselves.

    Args:
      attack: with one canary.
      options: all else.
    """
    start = time.perf_counter()
    key = keys.run_key(options.seed)
    half = options.trials // 2
    inside = _run(
        attack, options, np.ones(1, bool), runs=options.trials - half, key=jax.random.fold_in(key, 1)
    )
    outside = _run(attack, options, np.zeros(1, bool), runs=half, key=jax.random.fold_in(key, 0))
    readings: dict[str, AuditResult] = {}
    for name, within, scores_in, scores_out in (
        (_ALL, _NOISE_ONLY, inside.steps, outside.steps),
        (_FINAL, _FINAL_NOISE_ONLY, inside.last, outside.last),
    ):
        # The seed only orders equal scores.
        band = threshold.order_statistics(
            scores_in[:, 0], scores_out[:, 0], seed=0, confidence=options.confidence
        )
        about: dict[str, Any] = {
            "delta": options.delta,
            "threat_model": attack.threat_model,
            "note": f"{options.note}.",
        }
        readings[name] = band.result(**about)
        readings[within] = family.result(band, attack.compositions, start=options.noise_multiplier, **about)
    return _audited(attack, options, readings, start)


def one_run(attack: Attack, options: Options) -> Audited:
    """Trains one model, each canary in or out by a fair coin of its own, and bounds epsilon.

    Args:
      attack: with many canaries.
      options: all else.
    """
    start = time.perf_counter()
    key = keys.run_key(options.seed)
    coins = jax.random.bernoulli(jax.random.fold_in(key, 2), 0.5, (len(attack.canaries.y),))
    included = np.asarray(coins)
    found = _run(attack, options, included, runs=1, key=jax.random.fold_in(key, 3))
    readings = {
        _ONE_RUN[bound].format(name): canaries.result(
            scores[0],
            included,
            delta=options.delta,
            threat_model=attack.threat_model,
            bound=bound,
            confidence=options.confidence,
            note=f"{options.note}.",
        )
        for name, scores in ((_ALL, found.steps), (_FINAL, found.last))
        for bound in ("f-dp", "dp")
    }
    return _audited(attack, options, readings, start)


def _audited(attack: Attack, options: Options, readings: Mapping[str, AuditResult], start: float) -> Audited:
    """What was found, with the parameters by which it finds its place on a ladder."""
    setting = {name: float(getattr(options, name)) for name in _SETTING}
    known = {name: dataclasses.replace(one, parameters=setting) for name, one in readings.items()}
    return Audited(attack, known, time.perf_counter() - start)


def _run(attack: Attack, options: Options, included: np.ndarray, *, runs: int, key: jax.Array) -> Transcripts:
    records: Records = attack.records(included)
    return transcripts.run_many(
        attack.task(len(records.y)),
        records,
        increment=attack.along,
        last=attack.loss,
        learning_rate=attack.learning_rate,
        num_steps=options.num_steps,
        runs=runs,
        key=key,
        chunk=_CHUNK,
    )
