"""Feature-DP training, arXiv 2506.19836v1, Algorithm 1, and its variants.

With l_priv(x) = l(x) - l_pub(Psi(x)), clip norm C, noise multiplier s, sampling probability q on n records,

    g_t = ( sum over a Poisson batch of clip(grad l_priv, C) + N(0, (s C)^2 I) ) / (q n)
          + mean over an independent batch of grad l_pub(Psi(x)).

The residual's gradient is clipped as one vector. The noise multiplier is that of the *sum*; the divisor q n
is a public constant. The second term depends on public features alone and costs nothing; being taken on a
batch of its own, it tells nothing of who is in the private one, so that the sampling coins stay hidden. On
one and the same batch (`batches="single"`) it tells, and the certificate is another one.

Variants: `private_loss="whole"` clips the gradient of l in place of the residual's; `mixing_weight` a
weighs the two terms with 1 - a and a; `public_noise_multiplier` adds noise to the public sum, as the
paper's recipe for Purchase100 does, which no guarantee needs. That recipe is printed without its constants
and without saying what its private gradient is: how the parts are put together here is our reading.
"""

from __future__ import annotations

import dataclasses
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Int

from exactdp.mechanisms import clipping, keys, noise
from exactdp.mechanisms.batches import FixedSize
from exactdp.mechanisms.batches.batch import Sampler
from exactdp.mechanisms.public import Public
from exactdp.train import dpsgd
from exactdp.train.certificate import Certificate
from exactdp.train.check import require_gradient
from exactdp.train.feature_settings import FeatureSettings
from exactdp.train.objective import Objective, Residual, public_sum, task_of
from exactdp.train.state import Parameters
from exactdp.train.task import Gradient, PublicPart, Records, Task


def task(
    objective: Objective,
    *,
    public: Public,
    asked: FeatureSettings,
    certificate: Certificate,
    sampler: Sampler,
    noise_multiplier: float,
    clip_norm: float,
    expected_batch_size: float,
    accumulation: int = 1,
) -> Task:
    """Algorithm 1 on an objective.

    Args:
      objective: the model and its loss.
      public: the public feature map.
      asked: which variant.
      certificate: the claim, for this sampler, noise multiplier and variant.
      sampler: draws the private batches.
      noise_multiplier: noise standard deviation on the sum / clip norm, > 0.
      clip_norm: C > 0.
      expected_batch_size: q n, the divisor, a public constant > 0.
      accumulation: in how many parts the private batch is computed, >= 1.

    Raises:
      ValueError: an argument is outside its range; the map does not take the records; the public batch is
        larger than the data set.
    """
    public.require_shape(objective.input_shape)
    private = Residual(lambda r, k: objective.examples(r, key=k), objective.losses)
    if not public.nothing and asked.private_loss == "residual":
        private = objective.residual(public)
    mean = dpsgd.noisy_mean(
        private.losses,
        noise_multiplier=noise_multiplier,
        clip_norm=clip_norm,
        expected_batch_size=expected_batch_size,
        accumulation=accumulation,
    )
    weight = asked.mixing_weight
    private_share, public_share = (1.0, 1.0) if weight is None else (1.0 - weight, weight)
    public_std = float(asked.public_noise_multiplier) * float(clip_norm)

    def public_mean(
        params: Parameters,
        records: Records,
        mask: Bool[Array, " batch"],
        key: jax.Array,
        step: Int[Array, ""],
        *,
        size: float | Array,
    ) -> Parameters:
        total = public_sum(objective, public, params=params, records=records, mask=mask, key=key, step=step)
        if public_std > 0.0:
            total = noise.gaussian(
                keys.step_key(key, step=step, purpose="public_noise"), total, std=public_std
            )
        return jax.tree.map(lambda leaf: public_share * leaf / size, total)

    def gradient(
        params: Parameters,
        records: Records,
        mask: Bool[Array, " batch"],
        key: jax.Array,
        step: Int[Array, ""],
    ) -> Gradient:
        examples = private.examples(records, keys.step_key(key, step=step, purpose="augment"))
        value, loss = mean(params, examples, mask, key, step)
        value = jax.tree.map(lambda leaf: private_share * leaf, value)
        if asked.batches == "single" and not public.nothing:
            added = public_mean(params, records, mask, key, step, size=expected_batch_size)
            value = jax.tree.map(jnp.add, value, added)
        return Gradient(value, jnp.bool_(True), {"loss": loss})

    def public_gradient(
        params: Parameters,
        records: Records,
        mask: Bool[Array, " batch"],
        key: jax.Array,
        step: Int[Array, ""],
    ) -> Parameters:
        return public_mean(params, records, mask, key, step, size=jnp.maximum(jnp.sum(mask), 1))

    def check(params: Parameters, records: Records) -> Any:
        key = jax.random.key(0)
        if not public.nothing:
            _require_defined(objective, public, params=params, records=records, key=key)
        examples = private.examples(records, key)
        clipping.verify(private.losses, params, examples, scale=private.total)
        require_gradient(private.losses, params, examples)
        if not public.nothing:
            require_gradient(objective.losses, params, objective.examples(records, key=key, public=public))

    made = task_of(
        objective, "feature", certificate=certificate, sampler=sampler, gradient=gradient, check=check
    )
    if public.nothing or asked.batches == "single":
        return made
    second = public_sampler(asked, num_records=sampler.num_records, expected=expected_batch_size)
    return dataclasses.replace(made, public=PublicPart(second, public_gradient))


def _require_defined(
    objective: Objective, public: Public, *, params: Parameters, records: Records, key: jax.Array
) -> None:
    """Refuses a public loss without a value or gradient at the views, such as a division by a view's norm."""
    views = objective.examples(records, key=key, public=public)

    def total(p: Parameters) -> tuple[Array, Array]:
        found = objective.losses(p, views)
        return jnp.sum(found), found

    gradient, losses = jax.jit(jax.grad(total, has_aux=True))(params)
    for name, leaves in {"value": [losses], "gradient": jax.tree.leaves(gradient)}.items():
        if not all(bool(jnp.all(jnp.isfinite(leaf))) for leaf in leaves):
            raise ValueError(
                f"public: the loss must have a finite {name} at the public views of records ({public.text}), "
                "without which the residual is undefined, got infinities or NaN"
            )


def public_sampler(asked: FeatureSettings, *, num_records: int, expected: float) -> FixedSize:
    """Draws the public batches: as many records as asked for, or as the private batch is expected to have.

    Raises:
      ValueError: they are more than there are.
    """
    size = asked.public_batch_size
    if size is not None and size > num_records:
        raise ValueError(
            f"public_batch_size must be at most the {num_records} records there are, got {size:.0f}"
        )
    return FixedSize(num_records, min(num_records, max(1, round(expected))) if size is None else int(size))
