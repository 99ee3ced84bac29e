"""Pre-training on public features alone, which costs no privacy (arXiv 2506.19836v1, Remark 2)."""

from __future__ import annotations

from collections.abc import Callable

import jax
import jax.numpy as jnp
import optax
from jaxtyping import Array, Float, Int
from tqdm import tqdm

from exactdp.mechanisms.batches.batch import Sampler
from exactdp.mechanisms.public import Public
from exactdp.train.data import Dataset
from exactdp.train.interrupt import Watch
from exactdp.train.objective import Objective, public_sum
from exactdp.train.optimiser import Optimiser
from exactdp.train.state import Parameters
from exactdp.train.task import Records


def initialiser(
    objective: Objective,
    *,
    public: Public,
    data: Dataset,
    sampler: Sampler,
    num_steps: int,
    optimiser: Optimiser,
    progress: bool = False,
) -> Callable[[jax.Array], Parameters]:
    """key -> parameters after `num_steps` of an optimiser on the public loss.

    Nothing but the public views of the records and, where they are public, their labels is used, so that the
    result may be released. It is a function of the key and of what is public: a resumed run makes it again.

    Args:
      objective: the model and its loss.
      public: the public feature map.
      data: the training set.
      sampler: draws the batches.
      num_steps: >= 1.
      optimiser: what makes updates of gradients; its schedule is over these steps.
      progress: whether to show a bar on stderr.
    """
    transformation = optimiser.build(num_steps)

    @jax.jit
    def one(
        params: Parameters,
        memory: optax.OptState,
        x: Float[Array, "n ..."],
        y: Int[Array, " n"],
        key: jax.Array,
        step: Int[Array, ""],
    ) -> tuple[Parameters, optax.OptState]:
        batch = sampler.draw(key, step=step, purpose="public_batch")
        rows = Records(x[batch.indices].reshape(-1, *objective.input_shape), y[batch.indices])
        total = public_sum(
            objective, public, params=params, records=rows, mask=batch.mask, key=key, step=step
        )
        count = jnp.maximum(jnp.sum(batch.mask), 1)
        slope = jax.tree.map(lambda leaf: leaf / count, total)
        updates, memory = transformation.update(slope, memory, params)
        return optax.apply_updates(params, updates), memory

    def parameters(key: jax.Array) -> Parameters:
        first, own = jax.random.split(key)  # `own` is the run key of pre-training
        params = objective.initialise(first)
        memory = transformation.init(params)
        x, y = jnp.asarray(data.x.reshape(len(data.x), -1)), jnp.asarray(data.y)
        bar = tqdm(range(num_steps), disable=not progress, unit="step", desc="public pre-training")
        # An interrupt is heard between two steps: within one it would hit the compiler or the device.
        with Watch() as watch, bar:
            for step in bar:
                before = params
                params, memory = one(params, memory, x, y, own, jnp.int32(step))
                jax.block_until_ready(before)
                if watch.asked:
                    raise KeyboardInterrupt(
                        f"interrupted after step {step + 1} of {num_steps} of public pre-training; nothing "
                        "is saved before it ends"
                    )
        return params

    return parameters
