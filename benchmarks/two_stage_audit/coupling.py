"""The audit of stage 2's loss: noisy clipped sums of one step and of all, with and without a long row."""

from __future__ import annotations

import dataclasses
import math
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float
from scipy import special, stats

from exactdp.accounting.audit import threshold
from exactdp.accounting.audit.result import AuditResult
from exactdp.accounting.ladder.two_stage_setting import STAGE_2, Setting
from exactdp.accounting.pairs.gaussian import Gaussian
from exactdp.accounting.printed import two_stage as printed
from exactdp.accounting.threat import Adjacency, Coins, ThreatModel
from exactdp.benchmarks.two_stage_audit.leak import CERTAINTY
from exactdp.benchmarks.two_stage_audit.options import Options
from exactdp.benchmarks.two_stage_audit.short_and_long import OURS, ClippedSums, clipped_sums
from exactdp.mechanisms import noise
from exactdp.mechanisms.audit import check
from exactdp.mechanisms.audit.check import Verdict

STEP = ThreatModel(Adjacency.ADD_REMOVE, Coins.NONE, "the noisy gradient sum of one step, every row in it")

SHORT_ROWS = printed.BATCH_SIZE - 1
"""Beside the long one in the single step: a batch of the paper's size."""

_MOST = 80  # short rows in a batch; more have probability 1e-12 a step on Adult, and count as so many
_STEP_TAIL = 2.0  # noise standard deviations beyond the middle
_STAGE_THRESHOLDS = (0.0, 1.0, 2.0)  # of the logarithm of the likelihood ratio
_GRID = 4096
_POINTS = 5


@dataclasses.dataclass(frozen=True)
class Coupled:
    """What was found for one loss and length.

    Attributes:
      loss: one of `short_and_long.LOSSES`.
      ratio: value tokens of the long row to those of a short one.
      moved: how far it moves the clipped sum beside `SHORT_ROWS` short ones, in clip norms.
      step: of one step's sum, without sampling.
      stage: of the sums of all steps, with the paper's sampling, steps and noise.
      verdict: whether the step refutes a Gaussian of sensitivity one clip norm, with the confidence
        `CERTAINTY`.
    """

    loss: str
    ratio: int
    moved: float
    step: AuditResult
    stage: AuditResult
    verdict: Verdict

    @property
    def name(self) -> str:
        """Unique."""
        return f"{self.loss}, {self.ratio} : 1"

    def as_dict(self) -> dict[str, Any]:
        """For JSON; each of `step` and `stage` is an `AuditResult`."""
        return {
            "loss": self.loss,
            "ratio": self.ratio,
            "moved": self.moved,
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
      options: draws, trials, delta, confidence.
      seed: of the stage's runs.
      key: of the step's noise.
    """
    sums = clipped_sums(loss, ratio=ratio)
    note = f"Loss: {loss}. A row of {ratio} value tokens beside short ones of one; noise {setting.noise:.4f}."
    scores, middle = _step_scores(sums, setting.noise, draws=options.draws // 2, key=key)
    cuts = [middle, middle + _STEP_TAIL * setting.noise]
    step = threshold.fixed_thresholds(*scores, thresholds=cuts, confidence=options.confidence)
    sure = threshold.fixed_thresholds(*scores, thresholds=cuts[:1], confidence=CERTAINTY)
    stage = threshold.fixed_thresholds(
        *_stage_scores(sums, loss, setting, options, seed),
        thresholds=_STAGE_THRESHOLDS,
        confidence=options.confidence,
    )
    return Coupled(
        loss=loss,
        ratio=ratio,
        moved=float(np.linalg.norm(sums.move(SHORT_ROWS))),
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


def _stage_scores(
    sums: ClippedSums, loss: str, setting: Setting, options: Options, seed: np.random.SeedSequence
) -> tuple[np.ndarray, np.ndarray]:
    """Runs of all steps: log-likelihood ratios of two projections of each step's noisy sum, added up.

    Every row is in a step's batch with the paper's probability, so that the number of short rows is binomial;
    large batches are split as in the released code. All short rows add alike. Along the two directions that
    the sums span Gaussian noise is Gaussian with the same standard deviation, so that these two numbers are
    drawn for each step rather than all parameters. The first direction is the short rows', whose likelihood
    is a mixture over their number; the second is what the long row adds beside it. The score takes both for
    independent given the long row: it is a likelihood ratio up to that.
    """
    first, second = _directions(sums)
    split = sums.split(_MOST).values
    along, beside = split @ first, split @ second  # [2, counts]
    q, sigma = setting.data.sampling_probability, setting.noise * printed.CLIP_NORM
    size = setting.data.train_rows
    weights = stats.binom.logpmf(np.arange(_MOST + 1), size, q)
    grid = np.linspace(along.min() - 8.0 * sigma, along.max() + 8.0 * sigma, _GRID)
    densities = [
        special.logsumexp(weights - 0.5 * ((grid[:, None] - means) / sigma) ** 2, axis=1) for means in along
    ]
    ratio = densities[1] - densities[0]
    step_of = float(beside[1, min(round(q * size), _MOST)])
    rng = np.random.default_rng(seed)

    def run(present: bool) -> float:
        counts = np.minimum(rng.binomial(size, q, setting.steps), _MOST)
        long = (rng.random(setting.steps) < q).astype(np.int64) if present else np.zeros_like(counts)
        x = along[long, counts] + sigma * rng.standard_normal(setting.steps)
        y = beside[long, counts] + sigma * rng.standard_normal(setting.steps)
        each = np.interp(x, grid, ratio) + step_of * (y - 0.5 * step_of) / sigma**2
        return float(np.sum(np.logaddexp(math.log1p(-q), math.log(q) + each)))

    # The released loss hardly ever errs, ours nearly always: the latter needs as many runs on both sides.
    inside = options.trials // 2 if loss == OURS else options.runs_in
    return (
        np.array([run(True) for _ in range(inside)]),
        np.array([run(False) for _ in range(options.trials - inside)]),
    )


def _directions(sums: ClippedSums) -> tuple[Float[np.ndarray, " n"], Float[np.ndarray, " n"]]:
    """Unit vectors: of a short row's gradient, and of what the long row adds at right angles to it."""
    first = sums.short / np.linalg.norm(sums.short)
    rest = sums.move(SHORT_ROWS)
    rest = rest - (rest @ first) * first
    return first, rest / np.linalg.norm(rest)
