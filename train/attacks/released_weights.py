"""Distinguishing two neighbouring data sets from released weights: many whole runs, one score each.

One feature is 0 in every record of the first data set and not in one record of the second. The weights that
read it get a gradient from that record alone: they are where they were initialised exactly as long as no step
drew the record. The score is how far they are from there. Nothing about the noise has to be known.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from exactdp.accounting import validate
from exactdp.mechanisms import keys
from exactdp.train import parallel
from exactdp.train.optimiser import Optimiser
from exactdp.train.state import Parameters, State
from exactdp.train.step import compile_step
from exactdp.train.task import Records, Task

_FIRST = {"linear": "head", "mlp": "hidden"}
"""Model -> its first dense layer."""
MODELS = tuple(_FIRST)
_ROWS = 1024
_LARGEST_RATE = 1e30  # far from the end of float32

Read = Callable[[Parameters], Float[Array, " outputs"]]
"""Parameters -> the weights that read the feature."""


class Scores(NamedTuple):
    """What an adversary computes from each run; higher means that the record has the feature.

    Attributes:
      weights: ||w_T - w_0|| for the weights w that read the feature: from the final weights and the initial
        ones, which do not depend on the data.
      blind: ||w_T||, from the final weights alone.
      updates: the largest ||w_(t+1) - w_t||, from all updates.
      steps: updates made in a run, those of empty batches left out.
    """

    weights: Float[np.ndarray, " runs"]
    blind: Float[np.ndarray, " runs"]
    updates: Float[np.ndarray, " runs"]
    steps: Int[np.ndarray, " runs"]


def reader(model: str, *, feature: int) -> Read:
    """What takes the weights of one feature out of a model's parameters.

    Args:
      model: one of `MODELS`.
      feature: index into the flattened record.

    Raises:
      ValueError: the model has no dense first layer, or `feature` is negative.
    """
    layer = _FIRST[validate.one_of("model", model, MODELS)]
    place = validate.count("feature", feature)

    def read(params: Parameters) -> Float[Array, " outputs"]:
        kernel: Any = params[layer]["kernel"]
        return kernel[...][place]

    return read


def require_rate(learning_rate: float) -> float:
    """The learning rate when it is one that runs are made with.

    Raises:
      ValueError: it is not positive, or above 1e30.
    """
    if validate.positive("learning_rate", learning_rate) > _LARGEST_RATE:
        raise ValueError(f"learning_rate must be at most {_LARGEST_RATE:g}, got {learning_rate}")
    return learning_rate


def run_many(
    task: Task,
    records: Records,
    *,
    read: Read,
    learning_rate: float,
    num_steps: int,
    runs: int,
    key: jax.Array,
    chunk: int = 256,
) -> tuple[Scores, Parameters]:
    """Trains `runs` models by the common loop's step, plain SGD, and scores each.

    A step of `exactdp.train.dirichlet` with an empty batch changes nothing. So the batches of all steps are
    drawn first, and only steps whose batch holds a record are carried out, with the keys of their place: the
    weights are those of the run that carries out every step.

    Args:
      task: the method, whose steps with empty batches must change nothing.
      records: the data set, flat, one record a row.
      read: as `reader` gives it.
      learning_rate: gamma > 0.
      num_steps: T >= 1.
      runs: how many, >= 1; independent of each other, initial weights included.
      key: of all of them, a typed scalar key.
      chunk: runs at a time, >= 1.

    Returns:
      The scores, and the final parameters of the first chunk of runs, with a leading axis of runs.

    Raises:
      ValueError: an argument is out of range, or a score is infinite or NaN, as of weights that diverged.
    """
    keys.require_key(key)
    steps = validate.count("num_steps", num_steps, minimum=1)
    count = validate.count("runs", runs, minimum=1)
    require_rate(learning_rate)
    size = min(validate.count("chunk", chunk, minimum=1), count)
    run_keys = jax.random.split(key, -(-count // size) * size)
    programs = _programs(task, read, Optimiser(learning_rate=learning_rate), steps)
    parts: list[tuple[np.ndarray, ...]] = []
    kept: Parameters = None
    for start in range(0, count, size):
        some = run_keys[start : start + size]
        places, done = _places(np.asarray(programs.drawn(some)), steps)
        params, *scores = programs.train(
            programs.initial(some), some, jnp.asarray(places), jnp.int32(done.max()), records
        )
        parts.append((*(np.asarray(score) for score in scores), done))
        kept = params if kept is None else kept
    weights, blind, updates, done = (np.concatenate(column)[:count] for column in zip(*parts, strict=True))
    if not (np.all(np.isfinite(weights)) and np.all(np.isfinite(updates))):
        raise ValueError(
            f"learning_rate must be small enough for finite scores, got {learning_rate}: "
            f"{int(np.sum(~np.isfinite(weights)))} of {count} runs diverged"
        )
    return Scores(weights, blind, updates, done), kept


class _Programs(NamedTuple):
    drawn: Callable[[Array], Array]
    initial: Callable[[Array], Parameters]
    train: Callable[[Parameters, Array, Array, Array, Records], tuple[Parameters, Array, Array, Array]]


@functools.lru_cache(maxsize=8)
def _programs(task: Task, read: Read, optimiser: Optimiser, num_steps: int) -> _Programs:
    step = compile_step(task, optimiser, num_steps=num_steps, ema_decay=None, layout=parallel.make(1))
    start = optimiser.build(num_steps).init

    @jax.jit
    def drawn(run_keys: Array) -> Array:
        """Which steps of each run have a batch that is not empty, [runs, T]."""

        def one(key: Array) -> Array:
            sizes = jax.vmap(lambda t: task.sampler.draw(key, step=t).size)
            return sizes(jnp.arange(num_steps, dtype=jnp.int32)) > 0

        return jax.lax.map(one, run_keys)

    # A program of its own: computed once more where it is compared, it might be rounded otherwise.
    @jax.jit
    def initial(run_keys: Array) -> Parameters:
        return jax.vmap(lambda key: task.initialise(keys.step_key(key, step=0, purpose="init")))(run_keys)

    @jax.jit
    def train(
        first: Parameters, run_keys: Array, places: Array, longest: Array, records: Records
    ) -> tuple[Parameters, Array, Array, Array]:
        def one(state: State, place: Array) -> tuple[State, Array]:
            after, _ = step(state._replace(step=place), records)
            kept = jax.tree.map(
                lambda new, old: jnp.where(place < num_steps, new, old), after.params, state.params
            )
            moved = jnp.linalg.norm(read(kept) - read(state.params))
            return after._replace(params=kept), moved

        def body(i: Array, carry: tuple[State, Array]) -> tuple[State, Array]:
            states, largest = carry
            states, moved = jax.vmap(one)(states, places[i])
            return states, jnp.maximum(largest, moved)

        states = jax.vmap(lambda params, k: State(params, start(params), (), jnp.int32(0), k))(
            first, run_keys
        )
        last, largest = jax.lax.fori_loop(0, longest, body, (states, jnp.zeros(len(run_keys), jnp.float32)))
        before, after = jax.vmap(read)(first), jax.vmap(read)(last.params)
        far = jnp.linalg.norm(after - before, axis=-1)
        return last.params, far, jnp.linalg.norm(after, axis=-1), largest

    return _Programs(drawn, initial, train)


def _places(
    drawn: np.ndarray, num_steps: int
) -> tuple[Int[np.ndarray, "rows runs"], Int[np.ndarray, " runs"]]:
    """The steps to carry out, a column a run, filled up with T, which stands for none; and how many they are.

    Rows come in thousands, so that few shapes are compiled.
    """
    done = drawn.sum(axis=1)
    rows = max(-(-int(done.max()) // _ROWS), 1) * _ROWS
    places = np.full((rows, len(drawn)), num_steps, np.int32)
    for column, flags in enumerate(drawn):
        places[: done[column], column] = np.flatnonzero(flags)
    return places, done
