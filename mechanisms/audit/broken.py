"""Mechanisms that are wrong on purpose: an audit that lets one of them pass is no audit."""

from __future__ import annotations

import jax
import jax.numpy as jnp

from exactdp.mechanisms.audit import targets
from exactdp.mechanisms.audit.target import Target
from exactdp.mechanisms.batches.batch import Batch


def half_noise(*, noise_multiplier: float) -> Target:
    """`targets.gaussian` with half the noise that is accounted for."""

    def add(key: jax.Array, tree: dict[str, jax.Array], std: float) -> dict[str, jax.Array]:
        return targets.add_noise(key, tree, 0.5 * std)

    return targets.gaussian(noise_multiplier=noise_multiplier, add_noise=add)


def reused_key(*, noise_multiplier: float) -> Target:
    """`targets.gaussian` with the noise of the first step at every step."""

    def same(key: jax.Array, step: int) -> jax.Array:
        del step
        return targets.noise_key(key, 0)

    return targets.gaussian(noise_multiplier=noise_multiplier, noise_key=same)


def forgotten_clip(*, noise_multiplier: float) -> Target:
    """`targets.clipped` with gradients that are summed as they are."""

    def total(gradients: jax.Array, mask: jax.Array, clip_norm: float) -> jax.Array:
        del clip_norm
        return jnp.sum(jnp.where(mask[:, None], gradients, 0.0), axis=0)

    return targets.clipped(noise_multiplier=noise_multiplier, gradient_sum=total)


def padding_leak(*, noise_multiplier: float, sampling_probability: float) -> Target:
    """`targets.subsampled` with a sum over all slots of the batch, padding included."""

    def total(batch: Batch, values: jax.Array) -> jax.Array:
        return jnp.sum(values[batch.indices])

    return targets.subsampled(
        noise_multiplier=noise_multiplier, sampling_probability=sampling_probability, batch_sum=total
    )


def sampled_too_often(*, noise_multiplier: float, sampling_probability: float) -> Target:
    """`targets.subsampled` with every record in every batch."""

    def total(batch: Batch, values: jax.Array) -> jax.Array:
        del batch
        return jnp.sum(values)

    return targets.subsampled(
        noise_multiplier=noise_multiplier, sampling_probability=sampling_probability, batch_sum=total
    )


def sharp_dirichlet(*, scaling: float, offset: float, num_classes: int = 10) -> Target:
    """`targets.dirichlet` drawn at twice the scaling that is accounted for."""
    return targets.dirichlet(
        scaling=scaling, offset=offset, num_classes=num_classes, drawn_scaling=2.0 * scaling
    )
