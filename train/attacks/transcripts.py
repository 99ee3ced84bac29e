"""Many whole runs of a trainer's own step, each with what an adversary adds up along the way.

The adversary sees the weights after every step. From two of them in a row it has the noisy gradient that was
released between them, as the optimiser is plain gradient descent, and the gradients that any record would
have had.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from exactdp.accounting import validate
from exactdp.mechanisms import keys
from exactdp.train import parallel
from exactdp.train.optimiser import Optimiser
from exactdp.train.state import Parameters, State
from exactdp.train.step import compile_step
from exactdp.train.task import Records, Task

Increment = Callable[[Parameters, Parameters], Float[Array, " canaries"]]
"""(parameters before a step, after it) -> what the step adds to each canary's score."""

Last = Callable[[Parameters], Float[Array, " canaries"]]
"""Final parameters -> a score of each canary."""


class Transcripts(NamedTuple):
    """Scores of each run; higher means that the record was in.

    Attributes:
      steps: from the weights after every step, [runs, canaries].
      last: from the final weights alone, [runs, canaries].
    """

    steps: Float[np.ndarray, "runs canaries"]
    last: Float[np.ndarray, "runs canaries"]


def run_many(
    task: Task,
    records: Records,
    *,
    increment: Increment,
    last: Last,
    learning_rate: float,
    num_steps: int,
    runs: int,
    key: jax.Array,
    chunk: int = 1024,
) -> Transcripts:
    """Trains `runs` models by the common loop's step and plain gradient descent, and scores each.

    Args:
      task: the method.
      records: the data set, flat, one record a row.
      increment: summed over the steps; what it is for the same arguments must not change.
      last: of the final weights.
      learning_rate: > 0.
      num_steps: T >= 1.
      runs: how many, >= 1; independent of each other, initial weights included.
      key: of all of them, a typed scalar key.
      chunk: runs at a time, >= 1.

    Raises:
      ValueError: an argument is out of range, or a score is NaN, as of weights that diverged.
    """
    keys.require_key(key)
    steps = validate.count("num_steps", num_steps, minimum=1)
    count = validate.count("runs", runs, minimum=1)
    size = min(validate.count("chunk", chunk, minimum=1), count)
    rate = validate.positive("learning_rate", learning_rate)
    program = _program(task, increment, last, Optimiser(learning_rate=rate), steps)
    run_keys = jax.random.split(key, -(-count // size) * size)
    along: list[np.ndarray] = []
    ends: list[np.ndarray] = []
    for start in range(0, count, size):
        total, end = program(run_keys[start : start + size], records)
        along.append(np.asarray(total))
        ends.append(np.asarray(end))
    found = Transcripts(np.concatenate(along)[:count], np.concatenate(ends)[:count])
    lost = int(np.sum(np.isnan(found.steps)) + np.sum(np.isnan(found.last)))
    if lost:
        raise ValueError(
            f"learning_rate must be small enough for scores that are numbers, got {learning_rate}: {lost} "
            "scores are not"
        )
    return found


@functools.lru_cache(maxsize=8)
def _program(
    task: Task, increment: Increment, last: Last, optimiser: Optimiser, num_steps: int
) -> Callable[[Array, Records], tuple[Array, Array]]:
    step = compile_step(task, optimiser, num_steps=num_steps, ema_decay=None, layout=parallel.make(1))
    start = optimiser.build(num_steps).init

    def one(key: Array, records: Records) -> tuple[Array, Array]:
        params = task.initialise(keys.step_key(key, step=0, purpose="init"))
        state = State(params, start(params), (), jnp.int32(0), key)

        def body(_: Array, carry: tuple[State, Array]) -> tuple[State, Array]:
            before, total = carry
            after, _outcome = step(before, records)
            return after, total + increment(before.params, after.params)

        shape = jax.eval_shape(increment, params, params)
        state, total = jax.lax.fori_loop(0, num_steps, body, (state, jnp.zeros(shape.shape, jnp.float32)))
        return total, last(state.params)

    return jax.jit(jax.vmap(one, in_axes=(0, None)))
