"""DP-SGD: the sum of clipped gradients with Gaussian noise, divided by a public constant.

    g_t = ( sum over the batch of clip(grad loss_i, C)  +  N(0, (s C)^2 I) ) / (q n)

with C the clip norm, s the noise multiplier, q the sampling probability and n the number of records. The
divisor is the expected batch size, a constant that is public; it is never the size drawn. An empty batch is a
step of noise alone.

Source: Abadi et al. 2016 (arXiv 1607.00133), Algorithm 1.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from exactdp.accounting import validate
from exactdp.mechanisms import clipping, keys, noise
from exactdp.mechanisms.batches.batch import Sampler
from exactdp.train.accumulate import accumulate
from exactdp.train.certificate import Certificate
from exactdp.train.check import require_gradient
from exactdp.train.objective import ExampleLosses, Examples, Objective, task_of
from exactdp.train.state import Parameters
from exactdp.train.task import Gradient, Records, Task

NoisyMean = Callable[
    [Parameters, Examples, Bool[Array, " batch"], jax.Array, Int[Array, ""]],
    tuple[Parameters, Float[Array, ""]],
]


def task(
    objective: Objective,
    *,
    certificate: Certificate,
    sampler: Sampler,
    noise_multiplier: float,
    clip_norm: float,
    expected_batch_size: float,
    accumulation: int = 1,
    name: str = "dpsgd",
) -> Task:
    """DP-SGD on an objective. With labels public it is the same mechanism under another certificate.

    Args:
      objective: the model and its loss.
      certificate: the claim, for this sampler and noise multiplier.
      sampler: draws the batches.
      noise_multiplier: noise standard deviation / clip norm, > 0.
      clip_norm: C > 0.
      expected_batch_size: the divisor, a public constant > 0.
      accumulation: in how many parts a batch is computed, >= 1.
      name: of the method.

    Raises:
      ValueError: an argument is outside its range.
    """
    mean = noisy_mean(
        objective.losses,
        noise_multiplier=noise_multiplier,
        clip_norm=clip_norm,
        expected_batch_size=expected_batch_size,
        accumulation=accumulation,
    )

    def gradient(
        params: Parameters,
        records: Records,
        mask: Bool[Array, " batch"],
        key: jax.Array,
        step: Int[Array, ""],
    ) -> Gradient:
        examples = objective.examples(records, key=keys.step_key(key, step=step, purpose="augment"))
        value, loss = mean(params, examples, mask, key, step)
        return Gradient(value, jnp.bool_(True), {"loss": loss})

    def check(params: Parameters, records: Records) -> Any:
        examples = objective.examples(records, key=jax.random.key(0))
        clipping.verify(objective.losses, params, examples)
        require_gradient(objective.losses, params, examples)

    return task_of(objective, name, certificate=certificate, sampler=sampler, gradient=gradient, check=check)


def noisy_mean(
    losses: ExampleLosses,
    *,
    noise_multiplier: float,
    clip_norm: float,
    expected_batch_size: float,
    accumulation: int = 1,
) -> NoisyMean:
    """The function (params, examples, mask, run key, step) -> (g_t, mean loss of the batch).

    The mean loss is as private as the records.

    Args:
      losses: (params, examples) -> one loss a record.
      noise_multiplier: as in `task`, and likewise the others.
      clip_norm: C.
      expected_batch_size: the divisor.
      accumulation: in how many parts.

    Raises:
      ValueError: an argument is outside its range.
    """
    std = validate.positive("noise_multiplier", noise_multiplier) * validate.positive("clip_norm", clip_norm)
    divisor = validate.positive("expected_batch_size", expected_batch_size)
    validate.count("accumulation", accumulation, minimum=1)
    norm = float(clip_norm)

    def mean(
        params: Parameters,
        examples: Examples,
        mask: Bool[Array, " batch"],
        key: jax.Array,
        step: Int[Array, ""],
    ) -> tuple[Parameters, Float[Array, ""]]:
        clipped_grad = clipping.clipped_grad(losses, clip_norm=norm, added_up=mask.shape[0])

        def part(rows: Examples, counted: Bool[Array, " part"]) -> tuple[Parameters, Float[Array, ""]]:
            clipped = clipped_grad(params, rows, counted)
            return clipped.sum, jnp.sum(jnp.where(counted, clipped.losses, 0.0))

        total, loss = accumulate(part, examples, mask, parts=accumulation)
        noisy = noise.gaussian(keys.step_key(key, step=step, purpose="noise"), total, std=std)
        return jax.tree.map(lambda leaf: leaf / divisor, noisy), loss / jnp.maximum(jnp.sum(mask), 1)

    return mean
