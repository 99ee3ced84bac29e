"""Keys of a run: one key, and one fold of it for every (step, purpose)."""

from __future__ import annotations

import math
import secrets
from collections.abc import Mapping
from typing import Any, cast

import jax
import jax.numpy as jnp
import numpy as np

from exactdp.accounting import validate
from exactdp.mechanisms import lane_bits

PURPOSES: Mapping[str, int] = {
    "batch": 0,
    "public_batch": 1,
    "noise": 2,
    "public_noise": 3,
    "draw": 4,
    "augment": 5,
    "dropout": 6,
    "init": 7,
    "shuffle": 8,
    "clip_norm": 9,
    "statistics": 10,
    "evaluation": 11,
    "public_augment": 12,
    "first_stage": 13,
    "sample": 14,
}
"""What a key may be for, and its number. Numbers are never reused: old runs must resume as they began."""

_SLOTS = 16  # numbers kept for purposes, so that a new one leaves every old key as it was
STEP_LIMIT = 2**32 // _SLOTS
"""Steps are below 2^28: (step, purpose) has to fit the 32 bits that a fold takes."""

_IMPLEMENTATION = "threefry2x32"


def run_key(seed: int | None) -> jax.Array:
    """The key of a run, from which all its randomness comes.

    A seed makes a run repeatable, and whoever knows it can subtract the noise: publish no seed of a run whose
    guarantee matters. None takes 64 bits from the operating system.

    Args:
      seed: in [0, 2^64), or None. Below 2^32 the key equals `jax.random.key(seed)`.

    Returns:
      A typed scalar key (Threefry 2x32). Draw nothing from it: take `step_key`.

    Guarantee: noise and batches are pseudo-random, so the privacy guarantees of this package hold against
    adversaries who cannot tell Threefry's output from random bits; its key has 64 bits.

    Raises:
      ValueError: `seed` is no whole number in range.
    """
    if seed is None:
        seed = secrets.randbits(64)
    elif validate.count("seed", seed) >= 2**64:
        raise ValueError(f"seed must be < 2^64, got {seed}")
    data = np.array([int(seed) >> 32, int(seed) & 0xFFFFFFFF], np.uint32)
    return jax.random.wrap_key_data(jnp.asarray(data), impl=_IMPLEMENTATION)


def step_key(key: jax.Array, *, step: int | jax.Array, purpose: str) -> jax.Array:
    """The key of one purpose at one step: fold_in(key, 16 step + number of the purpose).

    It depends on its arguments alone, so a resumed run draws what an uninterrupted one would have drawn and
    uses no key twice. No two (step, purpose) of a run share a key: for a fixed key the fold is a block
    cipher, a permutation of the numbers it takes.

    Args:
      key: the run key, a typed scalar key.
      step: in [0, 2^28). A JAX array may be traced and is not checked: at 2^28 the numbers start again.
      purpose: one of `PURPOSES`.

    Raises:
      ValueError: `key` is no typed scalar key, the purpose is unknown, `step` is no integer, or a
        Python or NumPy step is out of range.
    """
    require_key(key)
    number = PURPOSES[validate.one_of("purpose", purpose, PURPOSES)]
    if isinstance(step, jax.Array):
        if step.shape != () or not jnp.issubdtype(step.dtype, jnp.integer):
            raise ValueError(f"step must be one integer, got {step.dtype}{list(step.shape)}")
        return jax.random.fold_in(key, step.astype(jnp.uint32) * np.uint32(_SLOTS) + np.uint32(number))
    if validate.count("step", step) >= STEP_LIMIT:
        raise ValueError(f"step must be < {STEP_LIMIT}, got {step}")
    return jax.random.fold_in(key, np.uint32(int(step) * _SLOTS + number))


def require_key(key: Any) -> None:
    """Refuses anything but a typed scalar key.

    Raises:
      ValueError: `key` is none.
    """
    typed = isinstance(key, jax.Array) and jnp.issubdtype(key.dtype, jax.dtypes.prng_key)
    if not typed or key.shape != ():
        raise ValueError(f"key must be one typed key, as of run_key or jax.random.key, got {key!r}")


def words(key: jax.Array, shape: tuple[int, ...]) -> tuple[jax.Array, jax.Array]:
    """Two independent uniform uint32 arrays of `shape`, each word a function of key and place alone.

    They are the halves of the keys that `jax.random.split(key, shape)` makes, by a cipher that fuses with
    what consumes them (`lane_bits`). `key` is used up: neither fold nor split it.

    Raises:
      ValueError: `shape` has 2^32 elements or more.
    """
    count = math.prod(shape)
    if count >= 2**32:
        raise ValueError(f"shape must have fewer than 2^32 elements, got {shape}")
    first, second = lane_bits.pair(key, stream=0, lanes=count)
    return first.reshape(shape), second.reshape(shape)


def to_record(key: jax.Array) -> dict[str, Any]:
    """A key as JSON types: `{"implementation": name, "data": [words]}`.

    Raises:
      ValueError: `key` is no typed scalar key.
    """
    require_key(key)
    data = np.asarray(jax.random.key_data(key))
    return {"implementation": str(jax.random.key_impl(key)), "data": [int(word) for word in data]}


def from_record(record: Mapping[str, Any]) -> jax.Array:
    """The key of a record that `to_record` made.

    Raises:
      ValueError: the record is none, or its implementation is unknown here.
    """
    try:
        data = np.array(record["data"], np.uint32)
        key = jax.random.wrap_key_data(jnp.asarray(data), impl=cast(str, record["implementation"]))
    except (KeyError, TypeError, OverflowError, ValueError) as error:
        raise ValueError(f"record must be a key's implementation and data, got {record!r}") from error
    require_key(key)
    return key
