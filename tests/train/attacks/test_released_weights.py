"""Many runs at once: each is the plain loop's, and its weights show the record exactly if it was drawn."""

from __future__ import annotations

import dataclasses
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from exactdp.mechanisms import keys
from exactdp.mechanisms.batches import Poisson
from exactdp.train import certificates, dirichlet, parallel, state
from exactdp.train.attacks import released_weights
from exactdp.train.network import Network
from exactdp.train.optimiser import Optimiser
from exactdp.train.step import compile_step
from exactdp.train.task import Gradient, Records

STEPS, RUNS, RATE = 40, 12, 20.0
SAMPLER = Poisson(3, 0.05, 3)
TASK = dirichlet.task(
    Network("linear", (2, 2), 3),
    certificate=certificates.dirichlet(0.1, offset=3.0, sampler=SAMPLER, num_classes=3),
    sampler=SAMPLER,
    scaling=0.1,
    offset=3.0,
)
ABSENT = Records(jnp.array([[0.0, 1, 0, 1], [0, 0, 1, 1], [0, 1, 1, 0]]), jnp.array([0, 1, 2], jnp.int32))
PRESENT = ABSENT._replace(x=ABSENT.x.at[0, 0].set(1.0))
READ = released_weights.reader("linear", feature=0)
KEY = jax.random.key(7)


def many(records: Records, **given: Any) -> tuple[released_weights.Scores, Any]:
    asked: dict[str, Any] = {
        "task": TASK,
        "learning_rate": RATE,
        "num_steps": STEPS,
        "runs": RUNS,
        "key": KEY,
        "chunk": RUNS,
    }
    return released_weights.run_many(records=records, read=READ, **(asked | given))


def plain(key: jax.Array, records: Records) -> tuple[np.ndarray, np.ndarray, bool]:
    """All steps one by one, empty batches included: kernel at first and at last, and whether 0 was drawn."""
    optimiser = Optimiser(learning_rate=RATE)
    step = compile_step(TASK, optimiser, num_steps=STEPS, ema_decay=None, layout=parallel.make(1))
    params = TASK.initialise(keys.step_key(key, step=0, purpose="init"))
    before = np.asarray(params["head"]["kernel"][...])
    own = jnp.copy(key)  # a step uses up its state's buffers
    now = state.initial(params, optimiser=optimiser.build(STEPS), average=False, key=own)
    drawn = False
    for i in range(STEPS):
        batch = SAMPLER.draw(key, step=i)
        drawn |= bool(jnp.any(batch.mask & (batch.indices == 0)))
        now, _ = step(now, records)
    return before, np.asarray(now.params["head"]["kernel"][...]), drawn


def test_runs_are_the_plain_loops_runs() -> None:
    scores, models = many(PRESENT)
    kernels = np.asarray(models["head"]["kernel"][...])
    seen: list[bool] = []
    for i, key in enumerate(jax.random.split(KEY, RUNS)[:6]):
        before, after, drawn = plain(key, PRESENT)
        np.testing.assert_allclose(kernels[i], after, rtol=1e-4, atol=1e-5)
        assert (scores.weights[i] > 0.0) == drawn
        np.testing.assert_allclose(
            scores.weights[i], np.linalg.norm(after[0] - before[0]), rtol=1e-3, atol=1e-5
        )
        np.testing.assert_allclose(scores.blind[i], np.linalg.norm(after[0]), rtol=1e-3)
        seen.append(drawn)
    assert any(seen)
    assert np.all(scores.steps <= STEPS) and np.all((scores.updates > 0.0) == (scores.weights > 0.0))
    # The same records without the feature: its weights stay where they were, to the last bit.
    without, _ = many(ABSENT)
    assert np.all(without.weights == 0.0) and np.all(without.updates == 0.0) and np.all(without.blind > 0.0)
    np.testing.assert_array_equal(without.steps, scores.steps)


def test_rarely_drawn() -> None:
    # (1 - q)^T = 0.13 of the runs never draw the record.
    scores, _ = many(PRESENT, runs=96)
    missed = int(np.sum(scores.weights == 0.0))
    assert 3 <= missed <= 26
    np.testing.assert_array_equal(scores.weights == 0.0, scores.updates == 0.0)


def test_diverging_runs_are_refused() -> None:
    def gradient(params: Any, records: Records, mask: Any, key: jax.Array, step: Any) -> Gradient:
        del records, key, step
        return Gradient(jax.tree.map(jnp.ones_like, params), jnp.any(mask), {})

    # Its weights are finite; their norm is not.
    with pytest.raises(
        ValueError, match=r"small enough for finite scores, got 1e\+25: 12 of 12 runs diverged"
    ):
        many(PRESENT, task=dataclasses.replace(TASK, gradient=gradient), learning_rate=1e25)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"num_steps": 0}, "num_steps must be a whole number >= 1"),
        ({"runs": 0}, "runs must be a whole number >= 1"),
        ({"chunk": 0}, "chunk must be a whole number >= 1"),
        ({"learning_rate": 1e31}, "learning_rate must be at most 1e\\+30"),
        ({"learning_rate": -1.0}, "learning_rate must be finite and > 0"),
        ({"key": 3}, "key must be one typed key"),
    ],
)
def test_refused(given: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        many(PRESENT, **given)


def test_models_without_a_dense_first_layer() -> None:
    with pytest.raises(ValueError, match="model must be one of linear, mlp, got 'cnn'"):
        released_weights.reader("cnn", feature=0)
    with pytest.raises(ValueError, match="feature must be a whole number >= 0"):
        released_weights.reader("mlp", feature=-1)
