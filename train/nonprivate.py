"""The baseline without privacy: Poisson batches and plain gradients, on the same loop as the others."""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from exactdp.accounting import validate
from exactdp.mechanisms import keys
from exactdp.mechanisms.batches.batch import Sampler
from exactdp.train.accumulate import accumulate
from exactdp.train.certificate import Certificate
from exactdp.train.check import require_gradient
from exactdp.train.objective import Examples, Objective, task_of
from exactdp.train.state import Parameters
from exactdp.train.task import Gradient, Records, Task


def task(
    objective: Objective,
    *,
    certificate: Certificate,
    sampler: Sampler,
    accumulation: int = 1,
) -> Task:
    """Plain training: the mean of the batch's gradients; an empty batch is skipped.

    Args:
      objective: the model and its loss.
      certificate: says that nothing is certified.
      sampler: draws the batches.
      accumulation: in how many parts a batch is computed, >= 1.

    Raises:
      ValueError: an argument is outside its range.
    """
    validate.count("accumulation", accumulation, minimum=1)

    def gradient(
        params: Parameters,
        records: Records,
        mask: Bool[Array, " batch"],
        key: jax.Array,
        step: Int[Array, ""],
    ) -> Gradient:
        examples = objective.examples(records, key=keys.step_key(key, step=step, purpose="augment"))

        def part(rows: Examples, counted: Bool[Array, " part"]) -> tuple[Float[Array, ""], Parameters]:
            def total(p: Parameters) -> Float[Array, ""]:
                return jnp.sum(jnp.where(counted, objective.losses(p, rows), 0.0))

            return jax.value_and_grad(total)(params)

        loss, total = accumulate(part, examples, mask, parts=accumulation)
        count = jnp.maximum(jnp.sum(mask), 1)
        return Gradient(jax.tree.map(lambda leaf: leaf / count, total), jnp.any(mask), {"loss": loss / count})

    def check(params: Parameters, records: Records) -> None:
        require_gradient(objective.losses, params, objective.examples(records, key=jax.random.key(0)))

    return task_of(
        objective, "nonprivate", certificate=certificate, sampler=sampler, gradient=gradient, check=check
    )
