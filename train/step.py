"""One compiled step, the same for every task: batch, gradient, update, moving average."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from typing import NamedTuple

import jax
import jax.numpy as jnp
import optax
from jaxtyping import Array, Float

from exactdp.accounting import validate
from exactdp.mechanisms.batches.batch import Batch
from exactdp.mechanisms.batches.two import two_batches
from exactdp.train import parallel
from exactdp.train.optimiser import Optimiser
from exactdp.train.state import Parameters, State
from exactdp.train.task import Records, Task


class Outcome(NamedTuple):
    """What a step tells beside the new state.

    Attributes:
      gradient_norm: of what the optimiser was given. It is computed from the release and the weights, so
        that a certificate which covers those covers it.
      private: see `exactdp.train.task.Gradient.private`; with `batch_size`, records drawn.
    """

    gradient_norm: Float[Array, ""]
    private: Mapping[str, Float[Array, ""]]


Step = Callable[[State, Records], tuple[State, Outcome]]


@functools.lru_cache(maxsize=8)
def compile_step(
    task: Task,
    optimiser: Optimiser,
    *,
    num_steps: int,
    ema_decay: float | None,
    layout: parallel.Layout,
) -> Step:
    """The jitted step of a task. The state given is consumed: its buffers are used for the new one.

    Records are best given flat, one a row: in the layout that a TPU chooses for images, taking a batch would
    move the whole data set at every step.

    Runs of one task in one process, resumed or with other seeds, share what was compiled.

    theta_(t+1) = theta_t - rate * optimiser(gradient); average_(t+1) = d average_t + (1 - d) theta_(t+1) with
    d = min(ema_decay, (1 + t) / (10 + t)), which forgets the initial parameters early on.

    Args:
      task: gives batches and gradients.
      optimiser: what makes updates of gradients.
      num_steps: of the run, for the optimiser's schedule.
      ema_decay: of the moving average, in (0, 1); None for none.
      layout: where the rows of a batch are computed.

    Raises:
      ValueError: `ema_decay` is outside (0, 1).
    """
    if ema_decay is not None:
        validate.open_probability("ema_decay", ema_decay)

    transformation = optimiser.build(num_steps)

    def step(state: State, data: Records) -> tuple[State, Outcome]:
        def rows(drawn: Batch) -> tuple[Records, Array]:
            indices = layout.padded(drawn.indices)
            x = data.x[indices].reshape(-1, *task.input_shape)
            return layout.spread(Records(x, data.y[indices])), layout.spread(layout.padded(drawn.mask))

        key, now = state.key, state.step
        if task.public is None:
            batch = task.sampler.draw(key, step=now)
            gradient = task.gradient(state.params, *rows(batch), key, now)
            value = gradient.value
        else:
            batch, public_batch = two_batches(task.sampler, task.public.sampler, key=key, step=now)
            gradient = task.gradient(state.params, *rows(batch), key, now)
            added = task.public.gradient(state.params, *rows(public_batch), key, now)
            value = jax.tree.map(jnp.add, gradient.value, added)
        updates, opt_state = transformation.update(value, state.opt_state, state.params)
        params = optax.apply_updates(state.params, updates)

        def chosen(new: Parameters, old: Parameters) -> Parameters:
            return jax.tree.map(lambda a, b: jnp.where(gradient.usable, a, b), new, old)

        params = chosen(params, state.params)
        ema = state.ema
        if ema_decay is not None:
            count = state.step.astype(jnp.float32)
            decay = jnp.minimum(ema_decay, (1.0 + count) / (10.0 + count))
            ema = jax.tree.map(lambda a, p: decay * a + (1.0 - decay) * p, state.ema, params)
        private = {**gradient.private, "batch_size": batch.size.astype(jnp.float32)}
        outcome = Outcome(optax.tree.norm(value), private)
        following = State(params, chosen(opt_state, state.opt_state), ema, state.step + 1, state.key)
        return layout.kept(following), outcome

    return jax.jit(step, donate_argnums=0)
