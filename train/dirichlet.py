"""Dirichlet softmax training, arXiv 2607.19580v1, Algorithm 1.

Each step draws a Poisson batch B and, for each of its records, one

    rho ~ Dir(r softmax(f_theta(x)) + alpha 1),    loss = -log rho_y,

and moves theta by plain SGD along the mean of the losses' gradients over the batch drawn. As printed the
draw does not depend on theta and the gradient is zero; the reading under which the paper's Theorem 11 holds
takes the gradient through the draw (pathwise), and so does this file. The mean over an empty batch is
undefined: the step is skipped.

What the paper certifies is the draws. The update contains the network's Jacobian at the raw record besides,
so that the certificate does not cover the weights. The mean is over the size drawn, which visible coins give
away in any case.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from exactdp.mechanisms import keys
from exactdp.mechanisms.batches.batch import Sampler
from exactdp.mechanisms.dirichlet_mechanism import DirichletMechanism
from exactdp.train import evaluate
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
    scaling: float,
    offset: float,
    augmentation: Augmentation = _NONE,
) -> Task:
    """Algorithm 1 on a network.

    Args:
      network: the model.
      certificate: the claim about the draws, for this sampler, scaling and offset.
      sampler: draws the batches.
      scaling: r > 0.
      offset: alpha > 0.
      augmentation: a random view of each record, one.

    Raises:
      ValueError: an argument is outside its range.
    """
    mechanism = DirichletMechanism(scaling=scaling, offset=offset)
    capacity = sampler.capacity

    def gradient(
        params: Parameters,
        records: Records,
        mask: Bool[Array, " batch"],
        key: jax.Array,
        step: Int[Array, ""],
    ) -> Gradient:
        draw_key = keys.step_key(key, step=step, purpose="draw")
        view = augmentation.view(records, key=key, step=step)
        count = jnp.maximum(jnp.sum(mask), 1)

        def mean(p: Parameters) -> Float[Array, ""]:
            # Rows that only make the devices divide the batch are left out, so that the draws do not depend
            # on how many devices there are.
            logits = network.logits(p, view.x)[:capacity]
            log_rho = mechanism.log_draw(draw_key, logits)
            losses = -jnp.take_along_axis(log_rho, records.y[:capacity, None], axis=-1)[:, 0]
            return jnp.sum(jnp.where(mask[:capacity], losses, 0.0)) / count

        loss, value = jax.value_and_grad(mean)(params)
        return Gradient(value, jnp.any(mask), {"loss": loss})

    def check(params: Parameters, records: Records) -> None:
        require_gradient(network.losses, params, records)

    return Task(
        "dirichlet",
        certificate,
        sampler,
        network.initialise,
        gradient,
        evaluate.accuracy(network.logits),
        check,
        network.input_shape,
    )
