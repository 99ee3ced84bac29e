"""What feature-DP training really releases, counted: its delta, its coins, its two batches."""

from __future__ import annotations

import math
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

from exactdp.accounting import prv
from exactdp.accounting.prv.account import Direction
from exactdp.mechanisms import keys
from exactdp.mechanisms.batches import FixedSize, Poisson
from exactdp.mechanisms.batches.two import two_batches
from exactdp.mechanisms.public import parse
from exactdp.train import feature, feature_certificate, parallel, state, step
from exactdp.train.feature_settings import FeatureSettings
from exactdp.train.optimiser import Optimiser
from exactdp.train.task import PublicPart, Records, Task
from tests.train.scalar import Scalar

KEY = keys.run_key(3)

# One parameter, gradients +-1, Poisson batches of 8 records at 1/4.
_RECORDS, _RATE, _NOISE = 8, 0.25, 1.0
_RUNS = 30_000


def scalar_task(adjacency: str, batches: str) -> Task:
    sampler = Poisson(_RECORDS, _RATE, _RECORDS)
    public, asked = parse("columns:1", num_columns=2), FeatureSettings("columns:1", adjacency, batches)
    return feature.task(
        Scalar(),
        public=public,
        asked=asked,
        certificate=feature_certificate.feature(_NOISE, sampler=sampler, public=public, asked=asked),
        sampler=sampler,
        noise_multiplier=_NOISE,
        clip_norm=1.0,
        expected_batch_size=1.0,
    )


def released(
    task: Task, private: float, *, num_steps: int, seed: int, others: float = 3.0, own: float = 3.0
) -> np.ndarray:
    """What many runs release [runs, steps]: the first record's private column is given, the others' are 0.

    The public columns are `own` and `others`; the step's public gradient is in the sum, as it is in a run's.
    """
    x = jnp.zeros((_RECORDS, 2)).at[:, 1].set(others).at[0].set(jnp.array([private, own]))
    data = Records(x, jnp.zeros(_RECORDS, jnp.int32))
    theta = {"theta": jnp.zeros(())}

    def one(key: jax.Array, now: jax.Array) -> jax.Array:
        def rows(drawn: Any) -> tuple[Records, jax.Array]:
            return Records(data.x[drawn.indices], data.y[drawn.indices]), drawn.mask

        if task.public is None:
            return task.gradient(theta, *rows(task.sampler.draw(key, step=now)), key, now).value["theta"]
        first, second = two_batches(task.sampler, task.public.sampler, key=key, step=now)
        value = task.gradient(theta, *rows(first), key, now).value["theta"]
        return value + task.public.gradient(theta, *rows(second), key, now)["theta"]

    every = jax.jit(jax.vmap(jax.vmap(one, (None, 0)), (0, None)))
    keys_of_runs = jax.random.split(jax.random.key(seed), _RUNS)
    return np.asarray(every(keys_of_runs, jnp.arange(num_steps)), np.float64)


def log_ratio(values: np.ndarray, upper: float, lower: float) -> np.ndarray:
    """Log of (1-q) N(0) + q N(upper) over (1-q) N(0) + q N(lower), summed over the steps."""

    def density(mean: float) -> np.ndarray:
        own = _RATE * stats.norm.pdf(values, mean, _NOISE) if mean else 0.0
        rest = (1.0 - _RATE if mean else 1.0) * stats.norm.pdf(values, 0.0, _NOISE)
        return own + rest

    return np.sum(np.log(density(upper)) - np.log(density(lower)), axis=1)


@pytest.mark.parametrize(
    ("adjacency", "direction", "private", "other"),
    [("add_remove", "remove", 1.0, 0.0), ("add_remove", "add", 0.0, 1.0), ("replace", "worst", 1.0, -1.0)],
)
def test_delta_is_what_is_counted(adjacency: str, direction: Direction, private: float, other: float) -> None:
    """The exact delta of 1 and 20 steps is within five standard errors of what the compiled steps release."""
    task = scalar_task(adjacency, "two")
    # A fixed public column: the public gradient is 3 whichever records are in its batch.
    whole = [
        released(task, value, num_steps=20, seed=seed) - 3.0 for value, seed in ((private, 1), (other, 2))
    ]
    (mechanism,) = task.certificate.mechanisms
    for num_steps in (1, 20):
        p, q = (values[:, :num_steps] for values in whole)
        for epsilon in (0.03, 0.1):
            hits = [np.mean(log_ratio(values, private, other) > epsilon) for values in (p, q)]
            counted = hits[0] - math.exp(epsilon) * hits[1]
            weights = (1.0, math.exp(2 * epsilon))
            error = math.sqrt(sum(w * h * (1 - h) / _RUNS for w, h in zip(weights, hits, strict=True)))
            exact = prv.delta([(mechanism, num_steps)], epsilon=epsilon, direction=direction)
            assert exact.lower - 5 * error <= counted <= exact.upper + 5 * error
            assert counted > 5 * error  # so that an answer of 0 would not pass


def test_a_shared_batch_gives_the_coins_away() -> None:
    """On one batch the public gradient tells who is in it: more than hidden coins allow, as visible ones do.

    The first record's public column is 1000, the others' 0: whoever sees the sum knows whether that record is
    in, and takes the public part off.
    """
    epsilon = 1.0
    naive = scalar_task("add_remove", "single")

    def attack(private: float, seed: int) -> np.ndarray:
        values = released(naive, private, num_steps=1, seed=seed, others=0.0, own=1000.0)[:, 0]
        return (values > 500.0) & (values - 1000.0 > 0.5 + epsilon)

    p, q = np.mean(attack(1.0, 5)), np.mean(attack(0.0, 6))
    counted = p - math.exp(epsilon) * q
    error = 5.0 * math.sqrt((p + math.exp(2 * epsilon) * q) / _RUNS)
    hidden, visible = (
        prv.delta([(task.certificate.mechanisms[0], 1)], epsilon=epsilon)
        for task in (scalar_task("add_remove", "two"), naive)
    )
    assert counted - error > hidden.upper
    assert counted - error <= visible.upper and counted + error >= visible.lower


def test_two_batches_are_independent() -> None:
    """Over the compiled step itself: who is in the private batch says nothing of who is in the public one."""
    records = 12
    sampler = Poisson(records, 0.4, records)

    def members(weight: float) -> Any:
        def gradient(p: Any, rows: Records, mask: jax.Array, key: jax.Array, now: jax.Array) -> Any:
            inside = jax.nn.one_hot(rows.y, records) * mask[:, None]
            return {"members": weight * jnp.sum(inside, 0)}

        return gradient

    def private(p: Any, rows: Records, mask: jax.Array, key: jax.Array, now: jax.Array) -> Any:
        from exactdp.train.task import Gradient

        return Gradient(members(1.0)(p, rows, mask, key, now), jnp.bool_(True), {})

    task = Task(
        "members",
        scalar_task("replace", "two").certificate,
        sampler,
        lambda key: {"members": jnp.zeros(records)},
        private,
        lambda p, x, y: 0.0,
        lambda p, r: None,
        (1,),
        public=PublicPart(FixedSize(records, 5), members(2.0)),
    )
    count = 1500
    optimiser = Optimiser(learning_rate=1.0)
    layout = parallel.make(1)
    compiled = step.compile_step(task, optimiser, num_steps=count, ema_decay=None, layout=layout)
    now = state.initial(
        task.initialise(KEY), optimiser=optimiser.build(count), average=False, key=keys.run_key(11)
    )
    data = Records(jnp.zeros((records, 1)), jnp.arange(records, dtype=jnp.int32))
    table = np.zeros((2, 2))
    before = np.zeros(records)
    for _ in range(count):
        now, _ = compiled(now, data)
        after = np.asarray(now.params["members"])
        drawn = np.round(before - after).astype(int)
        np.add.at(table, (drawn % 2, drawn // 2), 1)
        before = after
    assert (
        abs(table[1].sum() / table.sum() - 0.4) < 0.02
        and abs(table[:, 1].sum() / table.sum() - 5 / 12) < 1e-9
    )
    assert stats.chi2_contingency(table).pvalue > 1e-4
