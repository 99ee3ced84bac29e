"""The baseline without privacy: Poisson batches and plain gradients, on the same loop as the others."""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from exactdp.accounting import validate
from exactdp.mechanisms.batches.batch import Sampler
from exactdp.train.accumulate import accumulate
from exactdp.train.augmentation import Augmentation
from exactdp.train.certificate import Certificate
from exactdp.train.check import require_gradient
from exactdp.train.network import Network
from exactdp.train.state import Parameters
from exactdp.train.task import Gradient, Records, Task

_NONE = Augmentation()


def task(
    network: Network,
    *,
    certificate: Certificate,
    sampler: Sampler,
    accumulation: int = 1,
    augmentation: Augmentation = _NONE,
) -> Task:
    """Plain training: the mean of the batch's gradients; an empty batch is skipped.

    Args:
      network: the model.
      certificate: says that nothing is certified.
      sampler: draws the batches.
      accumulation: in how many parts a batch is computed, >= 1.
      augmentation: random views of each record.

    Raises:
      ValueError: an argument is outside its range.
    """
    validate.count("accumulation", accumulation, minimum=1)
    losses = augmentation.loss(network.losses)

    def gradient(
        params: Parameters,
        records: Records,
        mask: Bool[Array, " batch"],
        key: jax.Array,
        step: Int[Array, ""],
    ) -> Gradient:
        views = augmentation.views(records, key=key, step=step)

        def part(rows: Records, counted: Bool[Array, " part"]) -> tuple[Float[Array, ""], Parameters]:
            return jax.value_and_grad(lambda p: jnp.sum(jnp.where(counted, losses(p, rows), 0.0)))(params)

        loss, total = accumulate(part, views, mask, parts=accumulation)
        count = jnp.maximum(jnp.sum(mask), 1)
        return Gradient(jax.tree.map(lambda leaf: leaf / count, total), jnp.any(mask), {"loss": loss / count})

    def check(params: Parameters, records: Records) -> None:
        require_gradient(network.losses, params, records)

    return Task(
        "nonprivate",
        certificate,
        sampler,
        network.initialise,
        gradient,
        network.logits,
        check,
        network.input_shape,
    )
