"""Random words, one pair a lane, that the compiler fuses with whatever consumes them."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax, random

# Threefry-2x32, 20 rounds (Salmon, Moraes, Dror, Shaw 2011): rotations, and the parity word of its key.
_ROTATIONS = ((13, 15, 26, 6), (17, 29, 16, 24))
_PARITY = np.uint32(0x1BD11BDA)


def pair(key: jax.Array, *, stream: int | jax.Array, lanes: int) -> tuple[jax.Array, jax.Array]:
    """Two independent uniform 32-bit words for every lane: Threefry-2x32 of the counters (stream, lane).

    `jax.random.bits` runs the same cipher for a threefry key, but in a loop that nothing fuses with, and
    spends a whole block on every word. For an `rbg` key it is a generator that under vmap reads the first key
    of the batch alone: a rejection loop then waits for ever once that key's element is done. Here a key of
    more than two words is first folded to two, by the cipher, and the rest is the same for every kind.

    Args:
      key: one typed PRNG key, consumed by the caller: its streams are used here and nowhere else.
      stream: which words, 0 <= stream < 2^32; may be traced.
      lanes: how many lanes, < 2^32.

    Returns:
      Two uint32 arrays of shape (lanes,), functions of key, stream and lane alone: the same under vmap, for
      another number of lanes, and on any number of devices.
    """
    data = random.key_data(key)
    k0, k1 = data[0], data[1]
    for j in range(2, data.size, 2):
        k0, k1 = _threefry(k0, k1, data[j], data[j + 1])
    return _threefry(k0, k1, jnp.asarray(stream, jnp.uint32), lax.iota(jnp.uint32, lanes))


def _threefry(
    key_0: jax.Array, key_1: jax.Array, counter_0: jax.Array, counter_1: jax.Array
) -> tuple[jax.Array, jax.Array]:
    schedule = (key_0, key_1, key_0 ^ key_1 ^ _PARITY)
    x, y = counter_0 + schedule[0], counter_1 + schedule[1]
    for group in range(5):
        for distance in _ROTATIONS[group % 2]:
            x = x + y
            y = x ^ ((y << np.uint32(distance)) | (y >> np.uint32(32 - distance)))
        x = x + schedule[(group + 1) % 3]
        y = y + schedule[(group + 2) % 3] + np.uint32(group + 1)
    return x, y
