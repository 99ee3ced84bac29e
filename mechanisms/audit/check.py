"""The audit of a target: draws, counts, a lower bound, and whether it refutes what is certified."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Iterator, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray

from exactdp.accounting import prv, validate
from exactdp.accounting.audit import threshold
from exactdp.accounting.audit.band import Band
from exactdp.accounting.audit.result import AuditResult
from exactdp.accounting.interval import Interval
from exactdp.accounting.ladder.rung import encode
from exactdp.accounting.prv import Mechanism
from exactdp.accounting.threat import ThreatModel
from exactdp.mechanisms import keys
from exactdp.mechanisms.audit.target import Scores, Target

_PILOT_SHARE = 8  # one draw in so many chooses the thresholds
_TOLERANCE = 1e-3  # of the certified profile, relative; its upper ends decide
_LEAST_TRIALS = 1000


@dataclasses.dataclass(frozen=True)
class Verdict:
    """What the draws say about the claim.

    Attributes:
      result: lower bound of epsilon at the delta asked for.
      certified: the accountant's interval of epsilon there.
      refuted: whether the draws contradict the accountant at any epsilon, with the audit's confidence.
      epsilon: where they do so most, or come nearest to it.
      delta_lower: lower bound of delta at `epsilon`, from the draws.
      delta_certified: upper end of the accountant's delta at `epsilon`.
    """

    result: AuditResult
    certified: Interval
    refuted: bool
    epsilon: float
    delta_lower: float
    delta_certified: float

    def as_dict(self) -> dict[str, Any]:
        """For JSON: the result, the claim and the verdict; `AuditResult.from_dict` reads it."""
        return {
            **self.result.as_dict(),
            "claimed": {"epsilon": encode(self.certified), "delta": self.result.delta},
            "evidence": {
                "epsilon": self.epsilon,
                "delta_lower": self.delta_lower,
                "delta_certified": self.delta_certified,
            },
            "verdict": "refuted" if self.refuted else "not refuted",
        }


def check(
    target: Target,
    *,
    key: jax.Array,
    trials: int,
    delta: float = 1e-5,
    confidence: float = 0.95,
    chunk: int = 2**16,
) -> Verdict:
    """Draws from a target on both inputs and holds the lower bound against the certified upper one.

    An eighth of the draws chooses thresholds; of the rest errors are counted at these, so that memory does
    not grow with their number. The claim is refuted where the whole privacy profile is exceeded at any
    epsilon: delta(epsilon) from the draws is above the accountant's. All statements hold together at the
    stated confidence, so a correct mechanism is refuted with probability at most 1 - confidence.

    Args:
      target: what to audit.
      key: of the draws, a typed scalar key.
      trials: draws in all, half of them with the record, >= 1000.
      delta: in (0, 1), at which epsilon is reported.
      confidence: in (0, 1).
      chunk: draws at a time of one input, >= 1.

    Raises:
      ValueError: an argument is out of range, or a score is NaN.
    """
    keys.require_key(key)
    half = validate.count("trials", trials, minimum=_LEAST_TRIALS) // 2
    validate.open_probability("delta", delta)
    validate.open_probability("confidence", confidence)
    size = min(validate.count("chunk", chunk, minimum=1), half)
    return hold(
        _band(target, key, half, size, confidence),
        target.composition,
        delta=delta,
        threat_model=target.threat_model,
        note=target.name,
    )


def hold(
    band: Band,
    composition: Sequence[tuple[Mechanism, int]],
    *,
    delta: float,
    threat_model: ThreatModel,
    note: str = "",
    points: int = 33,
) -> Verdict:
    """Holds a band of error rates against the whole certified privacy profile of a composition.

    Args:
      band: of an attack on what is claimed to be that composition.
      composition: (mechanism, count) of all that is claimed.
      delta: in (0, 1), at which epsilon is reported.
      threat_model: of attack and claim.
      note: what to know before quoting the result.
      points: at how many epsilons, from 0 on, >= 1.

    Raises:
      ValueError: `delta` or `points` is out of range.
      ArithmeticError: the accountant cannot answer.
    """
    validate.open_probability("delta", delta)
    validate.count("points", points, minimum=1)
    grid = np.linspace(0.0, 1.2 * max(band.epsilon_lower(1e-9), 1.0), points).tolist()
    # Where the draws show no delta nothing can be refuted, and the accountant need not be asked.
    epsilons = [epsilon for epsilon in grid if band.delta_lower(epsilon) > 0.0] or grid[:1]
    certified = [
        float(interval.upper)
        for interval in prv.delta_curve(composition, epsilons=epsilons, tolerance=_TOLERANCE)
    ]
    found = [band.delta_lower(epsilon) for epsilon in epsilons]
    # Nearest by ratio: deltas span many magnitudes. Where nothing is found nothing is near.
    ratios = [
        low / high if high > 0.0 else np.inf if low > 0.0 else 0.0
        for low, high in zip(found, certified, strict=True)
    ]
    worst = int(np.argmax(ratios))
    return Verdict(
        result=band.result(delta=delta, threat_model=threat_model, note=note),
        certified=prv.epsilon(composition, delta=delta),
        refuted=found[worst] > certified[worst],
        epsilon=epsilons[worst],
        delta_lower=found[worst],
        delta_certified=certified[worst],
    )


def _band(target: Target, key: jax.Array, half: int, size: int, confidence: float) -> Band:
    pilot_key, rest_key = jax.random.split(key)
    pilot = max(half // _PILOT_SHARE, 1)
    scores = [
        np.concatenate([np.asarray(s) for s in _chunks(target, pilot_key, present, pilot, size)])
        for present in (True, False)
    ]
    thresholds = np.array(threshold.pilot_thresholds(*scores), np.float32)
    rest = half - pilot
    above = [np.zeros(len(thresholds), np.int64) for _ in range(2)]
    for i, present in enumerate((True, False)):
        for part in _chunks(target, rest_key, present, rest, size):
            counts, bad = _count(part, thresholds)
            if int(bad):
                raise ValueError(f"scores must not hold NaN, got {int(bad)} of {target.name}")
            above[i] += np.asarray(counts, np.int64)
    return threshold.from_counts(
        false_positives=above[1].tolist(),
        negatives=rest,
        false_negatives=(rest - above[0]).tolist(),
        positives=rest,
        thresholds=thresholds.astype(np.float64).tolist(),
        confidence=confidence,
        method="Clopper-Pearson, thresholds from a pilot sample",
    )


def _chunks(target: Target, key: jax.Array, present: bool, total: int, size: int) -> Iterator[jax.Array]:
    """`total` scores in pieces; the last is cut, so that one program draws them all."""
    side = jax.random.fold_in(key, int(present))
    here = jnp.array(present)
    for i in range(-(-total // size)):
        yield _draw(target.scores, jax.random.fold_in(side, i), here, size)[: total - i * size]


@functools.partial(jax.jit, static_argnums=(0, 3))
def _draw(scores: Scores, key: jax.Array, present: jax.Array, size: int) -> jax.Array:
    return scores(key, present, size)


@jax.jit
def _count(scores: jax.Array, thresholds: NDArray[np.float32]) -> tuple[jax.Array, jax.Array]:
    """How many scores exceed each threshold, and how many are NaN."""
    above = jnp.sum(scores[None, :] > jnp.asarray(thresholds)[:, None], axis=1, dtype=jnp.int32)
    return above, jnp.sum(jnp.isnan(scores), dtype=jnp.int32)
