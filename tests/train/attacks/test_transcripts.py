"""Many runs of a task's own step: what is added up is what a loop by hand adds up."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jaxtyping import Array

from exactdp.mechanisms import keys
from exactdp.mechanisms.batches import Poisson
from exactdp.train import certificates, dpsgd, parallel
from exactdp.train.attacks import transcripts
from exactdp.train.classification import Classification
from exactdp.train.network import Network
from exactdp.train.optimiser import Optimiser
from exactdp.train.state import Parameters, State
from exactdp.train.step import compile_step
from exactdp.train.task import Records, Task

RATE, STEPS = 0.5, 4
DATA = Records(
    jnp.asarray(np.random.default_rng(0).normal(size=(6, 3)), jnp.float32), jnp.arange(6, dtype=jnp.int32) % 2
)


def task() -> Task:
    sampler = Poisson(6, 0.5, 6)
    return dpsgd.task(
        Classification(Network("linear", (3,), 2)),
        certificate=certificates.dpsgd(1.0, sampler=sampler),
        sampler=sampler,
        noise_multiplier=1.0,
        clip_norm=1.0,
        expected_batch_size=3.0,
    )


def moved(before: Parameters, after: Parameters) -> Array:
    """Two numbers a step, so that two canaries stand in for one."""
    squares = [
        jnp.sum((a - b) ** 2) for a, b in zip(jax.tree.leaves(before), jax.tree.leaves(after), strict=True)
    ]
    return jnp.stack([sum(squares, jnp.float32(0.0)), jnp.float32(1.0)])


def total(params: Parameters) -> Array:
    return jnp.stack([jnp.sum(leaf) for leaf in jax.tree.leaves(params)])[:2]


def test_against_a_loop_by_hand() -> None:
    made, key = task(), jax.random.key(3)
    found = transcripts.run_many(
        made, DATA, increment=moved, last=total, learning_rate=RATE, num_steps=STEPS, runs=5, key=key, chunk=2
    )
    assert found.steps.shape == found.last.shape == (5, 2)
    np.testing.assert_array_equal(found.steps[:, 1], STEPS)
    optimiser = Optimiser(learning_rate=RATE)
    step = compile_step(made, optimiser, num_steps=STEPS, ema_decay=None, layout=parallel.make(1))
    for index in (0, 3, 4):
        own = jax.random.split(key, 6)[index]  # three chunks of two
        params = made.initialise(keys.step_key(own, step=0, purpose="init"))
        state = State(params, optimiser.build(STEPS).init(params), (), jnp.int32(0), own)
        along = 0.0
        for _ in range(STEPS):
            before = jax.tree.map(jnp.copy, state.params)
            state, _ = step(state, DATA)
            along += float(moved(before, state.params)[0])
        np.testing.assert_allclose(found.steps[index, 0], along, rtol=1e-5)
        np.testing.assert_allclose(found.last[index], total(state.params), rtol=1e-5)
    assert len(np.unique(found.steps[:, 0])) == 5  # runs differ


@pytest.mark.parametrize(
    ("name", "value"), [("num_steps", 0), ("runs", 0), ("chunk", 0), ("learning_rate", 0.0)]
)
def test_bad_input(name: str, value: float) -> None:
    given = {"num_steps": 1, "runs": 1, "chunk": 1, "learning_rate": 1.0} | {name: value}
    with pytest.raises(ValueError, match=name):
        transcripts.run_many(
            task(),
            DATA,
            increment=moved,
            last=total,
            key=jax.random.key(0),
            **given,  # type: ignore[arg-type]
        )


def test_scores_that_are_not_numbers_are_refused() -> None:
    def lost(before: Parameters, after: Parameters) -> Array:
        return moved(before, after) * jnp.nan

    with pytest.raises(ValueError, match="learning_rate"):
        transcripts.run_many(
            task(),
            DATA,
            increment=lost,
            last=total,
            learning_rate=RATE,
            num_steps=2,
            runs=2,
            key=jax.random.key(0),
        )
