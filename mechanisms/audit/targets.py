"""Our own samplers as targets. Each takes the part that can go wrong as an argument; the default is ours."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp

from exactdp.accounting import validate
from exactdp.accounting.pairs.gaussian import Gaussian
from exactdp.accounting.threat import Adjacency, Coins, ThreatModel
from exactdp.mechanisms import keys, noise
from exactdp.mechanisms.audit.target import Target
from exactdp.mechanisms.batches.batch import Batch
from exactdp.mechanisms.batches.poisson import Poisson
from exactdp.mechanisms.clipping.clipped import clipped_grad
from exactdp.mechanisms.dirichlet_mechanism import DirichletMechanism

AddNoise = Callable[[jax.Array, dict[str, jax.Array], float], dict[str, jax.Array]]
NoiseKey = Callable[[jax.Array, int], jax.Array]
BatchSum = Callable[[Batch, jax.Array], jax.Array]
GradientSum = Callable[[jax.Array, jax.Array, float], jax.Array]

_FAR = 200.0  # a logit that float32 softmax rounds to a vertex
_GRADIENT = (3.0, -4.0)  # of the record whose clipping is tested; norm 5


def add_noise(key: jax.Array, tree: dict[str, jax.Array], std: float) -> dict[str, jax.Array]:
    """`noise.gaussian`."""
    return noise.gaussian(key, tree, std=std)


def noise_key(key: jax.Array, step: int) -> jax.Array:
    """The key of a step's noise."""
    return keys.step_key(key, step=step, purpose="noise")


def batch_sum(batch: Batch, values: jax.Array) -> jax.Array:
    """Sum over the records of a batch."""
    return jnp.sum(jnp.where(batch.mask, values[batch.indices], 0.0))


def gradient_sum(gradients: jax.Array, mask: jax.Array, clip_norm: float) -> jax.Array:
    """Sum of clipped gradients, shape [d], of losses that have these gradients, shape [B, d]."""

    def loss(params: dict[str, jax.Array], batch: jax.Array) -> jax.Array:
        return batch @ params["w"]

    params = {"w": jnp.zeros(gradients.shape[1], jnp.float32)}
    total: dict[str, Any] = clipped_grad(loss, clip_norm=clip_norm)(params, gradients, mask).sum
    return total["w"]


def gaussian(
    *, noise_multiplier: float, add_noise: AddNoise = add_noise, noise_key: NoiseKey = noise_key
) -> Target:
    """Two noisy sums at consecutive steps, the record's gradient being +1 and then -1.

    The score is x_1 - x_2, a monotone function of the likelihood ratio: 2 against 0 with noise of standard
    deviation sqrt(2) sigma. As the signs differ, noise that both steps share cancels in it.

    Args:
      noise_multiplier: sigma > 0.
      add_noise: (key, tree, std) -> noisy tree.
      noise_key: (run key, step) -> key of the step's noise.

    Raises:
      ValueError: `noise_multiplier` is not positive.
    """
    sigma = validate.positive("noise_multiplier", noise_multiplier)

    def scores(key: jax.Array, present: jax.Array, size: int) -> jax.Array:
        signal = jnp.full(size, present, jnp.float32)
        first = add_noise(noise_key(key, 0), {"w": signal}, sigma)["w"]
        second = add_noise(noise_key(key, 1), {"w": -signal}, sigma)["w"]
        return first - second

    return Target(
        "Gaussian noise, two steps",
        scores,
        [(Gaussian(sigma), 2)],
        ThreatModel(Adjacency.ADD_REMOVE, Coins.NONE, "the noisy sums of two steps"),
    )


def clipped(
    *, noise_multiplier: float, clip_norm: float = 1.0, gradient_sum: GradientSum = gradient_sum
) -> Target:
    """One noisy sum of clipped gradients, the record's gradient being five times the clip norm or more.

    The score is the component along the record's gradient.

    Args:
      noise_multiplier: sigma > 0, noise standard deviation over clip norm.
      clip_norm: in (0, 1].
      gradient_sum: (gradients [B, d], mask [B], clip norm) -> sum [d].

    Raises:
      ValueError: an argument is out of range.
    """
    sigma = validate.positive("noise_multiplier", noise_multiplier)
    bound = validate.positive("clip_norm", clip_norm)
    if bound > 1.0:
        raise ValueError(f"clip_norm must be at most 1, got {clip_norm}")

    def scores(key: jax.Array, present: jax.Array, size: int) -> jax.Array:
        record = jnp.array(_GRADIENT, jnp.float32)
        gradients = jnp.stack([record, jnp.array([0.1, 0.2], jnp.float32), -record])
        total = gradient_sum(gradients, jnp.stack([present, jnp.array(True), jnp.array(False)]), bound)
        many = jnp.broadcast_to(total, (size, 2))
        noisy = add_noise(noise_key(key, 0), {"w": many}, sigma * bound)["w"]
        return noisy @ (record / jnp.linalg.norm(record))

    return Target(
        "clipped gradients with Gaussian noise",
        scores,
        [(Gaussian(sigma), 1)],
        ThreatModel(Adjacency.ADD_REMOVE, Coins.NONE, "the noisy sum of clipped gradients"),
    )


def subsampled(
    *, noise_multiplier: float, sampling_probability: float, batch_sum: BatchSum = batch_sum
) -> Target:
    """One noisy sum over a Poisson batch; the record is the first of four, which have value 0 but for it.

    Batches have room for all records, and a slot that holds none points at the first one. The score is the
    sum itself, of which the likelihood ratio is a monotone function.

    Args:
      noise_multiplier: sigma > 0.
      sampling_probability: q in (0, 1].
      batch_sum: (batch, value of each record [4]) -> sum.

    Raises:
      ValueError: an argument is out of range.
    """
    sigma = validate.positive("noise_multiplier", noise_multiplier)
    q = validate.probability("sampling_probability", sampling_probability)
    sampler = Poisson(num_records=4, sampling_probability=q, capacity=4)

    def scores(key: jax.Array, present: jax.Array, size: int) -> jax.Array:
        values = jnp.zeros(4, jnp.float32).at[0].set(present.astype(jnp.float32))
        coins, rest = jax.random.split(key)
        draw = jax.vmap(lambda one: batch_sum(sampler.draw(one, step=0), values))
        return add_noise(noise_key(rest, 0), {"w": draw(jax.random.split(coins, size))}, sigma)["w"]

    return Target(
        "Poisson-subsampled Gaussian",
        scores,
        list(sampler.releases(Gaussian(sigma), num_steps=1)),
        ThreatModel(Adjacency.ADD_REMOVE, Coins.HIDDEN, "the noisy sum of one batch"),
    )


def dirichlet(
    *, scaling: float, offset: float, num_classes: int = 10, drawn_scaling: float | None = None
) -> Target:
    """One Dirichlet draw at the two vertex inputs e_1 and e_2; the score is log rho_1 - log rho_2.

    Args:
      scaling: r > 0, as accounted for.
      offset: alpha > 0.
      num_classes: >= 2.
      drawn_scaling: of the draws; as accounted for when None.

    Raises:
      ValueError: an argument is out of range.
    """
    claimed = DirichletMechanism(scaling, offset)
    drawn = claimed if drawn_scaling is None else DirichletMechanism(drawn_scaling, offset)
    classes = validate.count("num_classes", num_classes, minimum=2)

    def scores(key: jax.Array, present: jax.Array, size: int) -> jax.Array:
        logits = _FAR * jax.nn.one_hot(jnp.where(present, 0, 1), classes, dtype=jnp.float32)
        log_rho = drawn.log_draw(key, jnp.broadcast_to(logits, (size, classes)))
        return log_rho[:, 0] - log_rho[:, 1]

    return Target("Dirichlet draw", scores, [(claimed.pair(), 1)], claimed.threat_model)
