"""Keys of a run: no two (step, purpose) share one, and a resumed run has the same."""

from __future__ import annotations

import json

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from exactdp.mechanisms import keys


def data_of(key: jax.Array) -> np.ndarray:
    return np.asarray(jax.random.key_data(key))


@pytest.mark.parametrize("implementation", ["threefry2x32", "rbg"])
def test_no_two_steps_and_purposes_share_a_key(implementation: str) -> None:
    run = jax.random.key(5, impl=implementation)
    steps = jnp.arange(10_000, dtype=jnp.int32)

    @jax.jit
    def of_all_purposes(step: jax.Array) -> list[jax.Array]:
        return [keys.step_key(run, step=step, purpose=purpose) for purpose in keys.PURPOSES]

    found = [data_of(many) for many in jax.vmap(of_all_purposes)(steps)]
    all_keys = np.concatenate([*found, data_of(run)[None]])
    assert len(all_keys) > 1e5
    assert len(np.unique(all_keys, axis=0)) == len(all_keys)


def test_the_numbers_of_purposes_are_distinct_and_fit() -> None:
    numbers = list(keys.PURPOSES.values())
    assert len(set(numbers)) == len(numbers)
    assert max(numbers) < 16 and keys.STEP_LIMIT * 16 == 2**32
    last = keys.step_key(keys.run_key(0), step=keys.STEP_LIMIT - 1, purpose="evaluation")
    assert not np.array_equal(data_of(last), data_of(keys.step_key(keys.run_key(0), step=0, purpose="batch")))


def test_a_resumed_run_has_the_keys_of_an_uninterrupted_one() -> None:
    run = keys.run_key(11)
    resumed = keys.from_record(json.loads(json.dumps(keys.to_record(run))))
    for step in (0, 1, 77_777):
        want = data_of(keys.step_key(run, step=step, purpose="noise"))
        np.testing.assert_array_equal(data_of(keys.step_key(resumed, step=step, purpose="noise")), want)
        traced = jax.jit(lambda s: keys.step_key(resumed, step=s, purpose="noise"))(jnp.int32(step))
        np.testing.assert_array_equal(data_of(traced), want)
        numpy_step = keys.step_key(resumed, step=np.int64(step), purpose="noise")
        np.testing.assert_array_equal(data_of(numpy_step), want)


@pytest.mark.parametrize("implementation", ["threefry2x32", "rbg", "unsafe_rbg"])
def test_a_record_keeps_the_implementation(implementation: str) -> None:
    key = jax.random.key(3, impl=implementation)
    record = keys.to_record(key)
    assert record["implementation"] == implementation
    again = keys.from_record(record)
    assert jax.random.key_impl(again) == jax.random.key_impl(key)
    np.testing.assert_array_equal(data_of(again), data_of(key))


def test_a_seed_is_repeatable_and_none_is_not() -> None:
    np.testing.assert_array_equal(data_of(keys.run_key(7)), data_of(jax.random.key(7)))
    wide = [data_of(keys.run_key(seed)) for seed in (1, 2**32 + 1, 2**64 - 1)]
    assert len({tuple(words) for words in wide}) == 3
    assert len({tuple(data_of(keys.run_key(None))) for _ in range(20)}) == 20


@pytest.mark.parametrize("shape", [(), (0,), (1,), (3, 5)])
def test_words_are_the_halves_of_split_keys(shape: tuple[int, ...]) -> None:
    key = keys.run_key(5)
    data = jax.random.key_data(jax.random.split(key, shape))
    for found, half in zip(keys.words(key, shape), (0, 1), strict=True):
        np.testing.assert_array_equal(found, data[..., half])
    with pytest.raises(ValueError, match="fewer than 2"):
        keys.words(key, (2**16, 2**16))


def test_words_are_uniform_and_independent() -> None:
    first, second = (np.asarray(w) for w in keys.words(jax.random.key(1), (1 << 15,)))
    both = np.concatenate([first, second])
    assert both.dtype == np.uint32
    bits = (both[:, None] >> np.arange(32, dtype=np.uint32)) & 1
    assert np.all(np.abs(bits.mean(axis=0) - 0.5) < 5 * 0.5 / np.sqrt(len(both)))
    scaled = np.stack([first, second]) / 2.0**32
    assert abs(np.corrcoef(scaled)[0, 1]) < 5 / np.sqrt(len(first))
    assert abs(np.corrcoef(scaled[0][1:], scaled[0][:-1])[0, 1]) < 5 / np.sqrt(len(first))


@pytest.mark.parametrize("seed", [-1, 2**64, 0.5, "seed", True, float("nan")])
def test_a_bad_seed_is_refused(seed: object) -> None:
    with pytest.raises(ValueError, match="seed must be"):
        keys.run_key(seed)  # type: ignore[arg-type]


def test_bad_arguments_are_refused() -> None:
    run = keys.run_key(0)
    with pytest.raises(ValueError, match="purpose must be one of"):
        keys.step_key(run, step=0, purpose="nois")
    for step in (-1, keys.STEP_LIMIT, 0.5, "1", jnp.float32(1.0), jnp.arange(2)):
        with pytest.raises(ValueError, match="step must be"):
            keys.step_key(run, step=step, purpose="noise")  # type: ignore[arg-type]
    for key in (jax.random.PRNGKey(0), 0, jax.random.split(run, 2)):
        with pytest.raises(ValueError, match="key must be one typed key"):
            keys.step_key(key, step=0, purpose="noise")  # type: ignore[arg-type]
    for record in (
        {},
        {"implementation": "none such", "data": [0, 1]},
        {"implementation": "rbg", "data": [0]},
    ):
        with pytest.raises(ValueError, match="record must be"):
            keys.from_record(record)
