"""Gaussian noise on penultimate features, the baseline that arXiv 2607.19580v1 compares with.

Each step draws a Poisson batch and releases, for each of its records,

    h' = h min(1, C / |h|) + N(0, (s C)^2 I),    h = penultimate features of the record,

with C the clip norm and s the noise multiplier; the loss is the cross-entropy of the head on h', and the
update the mean of its gradients over the batch drawn, taken through the clipping. An empty batch is skipped.

After Monir and Ghinita 2024 as arXiv 2607.19580v1 describes it; no code of theirs was used. As for the
Dirichlet draws, what is certified is what is released in the step, the noisy features, and not the weights:
the update contains the network's Jacobian at the raw record.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
import optax
from jaxtyping import Array, Bool, Float, Int

from exactdp.accounting import validate
from exactdp.mechanisms import keys, noise
from exactdp.mechanisms.batches.batch import Sampler
from exactdp.train import evaluate
from exactdp.train.augmentation import Augmentation
from exactdp.train.certificate import Certificate
from exactdp.train.check import require_gradient
from exactdp.train.network import Network
from exactdp.train.state import Parameters
from exactdp.train.task import Gradient, Records, Task

_SMALLEST_NORM = 1e-12


def clipped(features: Float[Array, "batch width"], *, clip_norm: float) -> Float[Array, "batch width"]:
    """Rows scaled down to norm `clip_norm` where they are longer."""
    square = jnp.sum(jnp.square(features), axis=-1, keepdims=True)
    norm = jnp.sqrt(jnp.maximum(square, _SMALLEST_NORM**2))  # its gradient at 0 stays finite
    return features * jnp.minimum(1.0, clip_norm / norm)


_NONE = Augmentation()


def task(
    network: Network,
    *,
    certificate: Certificate,
    sampler: Sampler,
    noise_multiplier: float,
    clip_norm: float,
    augmentation: Augmentation = _NONE,
) -> Task:
    """The baseline on a network.

    Args:
      network: the model.
      certificate: the claim about the noisy features, for this sampler and noise multiplier.
      sampler: draws the batches.
      noise_multiplier: noise standard deviation / clip norm, > 0.
      clip_norm: C > 0.
      augmentation: a random view of each record, one.

    Raises:
      ValueError: an argument is outside its range.
    """
    std = validate.positive("noise_multiplier", noise_multiplier) * validate.positive("clip_norm", clip_norm)
    capacity = sampler.capacity

    def gradient(
        params: Parameters,
        records: Records,
        mask: Bool[Array, " batch"],
        key: jax.Array,
        step: Int[Array, ""],
    ) -> Gradient:
        noise_key = keys.step_key(key, step=step, purpose="noise")
        view = augmentation.view(records, key=key, step=step)
        count = jnp.maximum(jnp.sum(mask), 1)

        def mean(p: Parameters) -> Float[Array, ""]:
            # As in the Dirichlet trainer: the noise does not depend on how many devices there are.
            features = clipped(network.features(p, view.x), clip_norm=clip_norm)[:capacity]
            logits = network.head(p, noise.gaussian(noise_key, features, std=std))
            losses = optax.softmax_cross_entropy_with_integer_labels(logits, records.y[:capacity])
            return jnp.sum(jnp.where(mask[:capacity], losses, 0.0)) / count

        loss, value = jax.value_and_grad(mean)(params)
        return Gradient(value, jnp.any(mask), {"loss": loss})

    def check(params: Parameters, records: Records) -> None:
        require_gradient(network.losses, params, records)

    def logits(params: Parameters, x: Float[Array, "batch ..."]) -> Float[Array, "batch classes"]:
        return network.head(params, clipped(network.features(params, x), clip_norm=clip_norm))

    return Task(
        "gaussian_features",
        certificate,
        sampler,
        network.initialise,
        gradient,
        evaluate.accuracy(logits),
        check,
        network.input_shape,
    )
