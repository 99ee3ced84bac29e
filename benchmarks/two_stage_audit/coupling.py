"""The audit of stage 2's loss: noisy clipped sums of one step and of all, with and without a long row.

The table, the initial weights and so the gradients are crafted; no bound is about the weights that the paper
trained. The first step's sum depends on no learning rate.
"""

from __future__ import annotations

import dataclasses
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from exactdp.accounting.audit import threshold
from exactdp.accounting.audit.result import AuditResult
from exactdp.accounting.ladder.two_stage_setting import STAGE_2, Setting
from exactdp.accounting.pairs.gaussian import Gaussian
from exactdp.accounting.printed import two_stage as printed
from exactdp.accounting.threat import Adjacency, Coins, ThreatModel
from exactdp.benchmarks.two_stage_audit.leak import CERTAINTY
from exactdp.benchmarks.two_stage_audit.options import Options
from exactdp.benchmarks.two_stage_audit.sampled_step import SampledStep
from exactdp.benchmarks.two_stage_audit.short_and_long import OURS, ClippedSums, clipped_sums
from exactdp.mechanisms import noise
from exactdp.mechanisms.audit import check
from exactdp.mechanisms.audit.check import Verdict

STEP = ThreatModel(Adjacency.ADD_REMOVE, Coins.NONE, "the noisy gradient sum of one step, every row in it")

SHORT_ROWS = printed.BATCH_SIZE - 1
"""Beside the long one in the single step: a batch of the paper's size."""

_STEP_TAIL = 2.0  # noise standard deviations beyond the middle
# Of the logarithms of likelihood ratios.
_STAGE_THRESHOLDS = (0.0, 1.0, 2.0)
_FIRST_THRESHOLDS = (2.0, 3.0)
_FIRST_SHARE = 4  # of the first steps, the part with the long row: it is seldom drawn, and then mostly seen
_POINTS = 5


@dataclasses.dataclass(frozen=True)
class Coupled:
    """What was found for one loss and length.

    Attributes:
      loss: one of `short_and_long.LOSSES`.
      ratio: value tokens of the long row to those of a short one.
      moved: how far it moves the clipped sum beside `SHORT_ROWS` short ones, in clip norms.
      first: of the first step's sum, with the paper's sampling and noise; an adversary against all sums may
        leave the others aside.
      first_integrated: epsilon of the law that `first` draws from, by numerical integration, uncertified.
      step: of one step's sum, without sampling.
      stage: of the sums of all steps, with the paper's sampling, steps and noise, at the learning rate 0.
      verdict: whether the step refutes a Gaussian of sensitivity one clip norm, with the confidence
        `CERTAINTY`.
    """

    loss: str
    ratio: int
    moved: float
    first: AuditResult
    first_integrated: float
    step: AuditResult
    stage: AuditResult
    verdict: Verdict

    @property
    def name(self) -> str:
        """Unique."""
        return f"{self.loss}, {self.ratio} : 1"

    def as_dict(self) -> dict[str, Any]:
        """For JSON; each of `first`, `step` and `stage` is an `AuditResult`."""
        return {
            "loss": self.loss,
            "ratio": self.ratio,
            "moved": self.moved,
            "first": self.first.as_dict(),
            "first_integrated": self.first_integrated,
            "step": self.step.as_dict(),
            "step_claimed": self.verdict.as_dict()["claimed"],
            "stage": self.stage.as_dict(),
        }


def audit(
    loss: str, ratio: int, setting: Setting, options: Options, *, seed: np.random.SeedSequence, key: jax.Array
) -> Coupled:
    """Bounds for one loss and one length of the long row.

    Args:
      loss: one of `short_and_long.LOSSES`.
      ratio: in 1 ... 1020.
      setting: the paper's sampling, steps and noise.
      options: draws, first steps, trials, delta, confidence.
      seed: of all that is sampled.
      key: of the step's noise.
    """
    sums = clipped_sums(loss, ratio=ratio)
    note = f"Loss: {loss}. A row of {ratio} value tokens beside short ones of one; noise {setting.noise:.4f}."
    scores, middle = _step_scores(sums, setting.noise, draws=options.draws // 2, key=key)
    cuts = [middle, middle + _STEP_TAIL * setting.noise]
    step = threshold.fixed_thresholds(*scores, thresholds=cuts, confidence=options.confidence)
    sure = threshold.fixed_thresholds(*scores, thresholds=cuts[:1], confidence=CERTAINTY)
    law = SampledStep(sums, num_rows=SHORT_ROWS, setting=setting)
    first = threshold.fixed_thresholds(
        *_first_scores(law, options, seed.spawn(1)[0]),
        thresholds=_FIRST_THRESHOLDS,
        confidence=options.confidence,
    )
    stage = threshold.fixed_thresholds(
        *_stage_scores(law, loss, setting, options, seed),
        thresholds=_STAGE_THRESHOLDS,
        confidence=options.confidence,
    )
    return Coupled(
        loss=loss,
        ratio=ratio,
        moved=float(np.linalg.norm(sums.move(SHORT_ROWS))),
        first=first.result(
            delta=options.delta,
            threat_model=STAGE_2,
            note=f"{note} The first step's sum alone, at rate {setting.data.sampling_probability:.3g}; its "
            "parameters are the initial ones, whatever the learning rate.",
        ),
        first_integrated=law.epsilon(options.delta),
        step=step.result(delta=options.delta, threat_model=STEP, note=note),
        stage=stage.result(
            delta=options.delta,
            threat_model=STAGE_2,
            note=f"{note} {setting.steps} steps at rate {setting.data.sampling_probability:.3g}; the "
            "parameters stay where they are (learning rate 0), which the guarantee has to allow.",
        ),
        verdict=check.hold(
            sure, [(Gaussian(setting.noise), 1)], delta=options.delta, threat_model=STEP, points=_POINTS
        ),
    )


def _step_scores(
    sums: ClippedSums, noise_multiplier: float, *, draws: int, key: jax.Array
) -> tuple[tuple[np.ndarray, np.ndarray], float]:
    """Noisy sums with and without the long row, projected on what it changes; and the middle of the means.

    The adversary knows the other rows and all that is public, and so both sums without noise.
    """
    change = sums.move(SHORT_ROWS)
    size = float(np.linalg.norm(change))
    direction = jnp.asarray(change / size)
    std = noise_multiplier * printed.CLIP_NORM

    @jax.jit
    def draw(own: jax.Array, total: jax.Array) -> jax.Array:
        drawn = jax.vmap(lambda one: noise.gaussian(one, total, std=std))(jax.random.split(own, draws))
        return (drawn - sums.values[0, SHORT_ROWS]) @ direction

    inside, outside = (
        np.asarray(draw(jax.random.fold_in(key, side), jnp.asarray(sums.values[side, SHORT_ROWS])))
        for side in (1, 0)
    )
    return (inside, outside), 0.5 * size


def _first_scores(
    law: SampledStep, options: Options, seed: np.random.SeedSequence
) -> tuple[np.ndarray, np.ndarray]:
    """Log-likelihood ratios of the first step's noisy sum, in independent runs."""
    rng, inside = np.random.default_rng(seed), options.first_steps // _FIRST_SHARE
    return (
        law.scores(rng, inside, present=True),
        law.scores(rng, options.first_steps - inside, present=False),
    )


def _stage_scores(
    law: SampledStep, loss: str, setting: Setting, options: Options, seed: np.random.SeedSequence
) -> tuple[np.ndarray, np.ndarray]:
    """Log-likelihood ratios of each step's noisy sum, added up, in runs of all steps."""
    rng = np.random.default_rng(seed)

    def run(present: bool) -> float:
        return float(np.sum(law.scores(rng, setting.steps, present=present)))

    # The released loss hardly ever errs, ours nearly always: the latter needs as many runs on both sides.
    inside = options.trials // 2 if loss == OURS else options.runs_in
    return (
        np.array([run(True) for _ in range(inside)]),
        np.array([run(False) for _ in range(options.trials - inside)]),
    )
