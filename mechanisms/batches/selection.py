"""Which records of many are selected: their indices, in a fixed number of slots."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Int32, UInt32

from exactdp.mechanisms import keys

_WORD = 32


def uniform_words(key: jax.Array, count: int) -> UInt32[Array, " count"]:
    """`count` independent uniform 32-bit words."""
    first, second = keys.words(key, ((count + 1) // 2,))
    # Computed once: without the barrier every consumer would encipher again.
    return jax.lax.optimization_barrier(jnp.concatenate([first, second]))[:count]


def first_selected(
    selected: Bool[Array, " records"], *, capacity: int
) -> tuple[Int32[Array, " capacity"], Int32[Array, ""]]:
    """The first `capacity` selected indices, in order, and how many there are in all; 0 in the rest.

    No sort and no scatter: flags are packed 32 a word, a running sum of their counts is searched for each
    slot's word, and five halvings find the bit within.
    """
    (count,) = selected.shape
    flags = jnp.pad(selected, (0, -count % _WORD)).reshape(-1, _WORD)
    packed = (flags.astype(jnp.uint32) << np.arange(_WORD, dtype=np.uint32)).sum(axis=1, dtype=jnp.uint32)
    ends = jnp.cumsum(jax.lax.population_count(packed).astype(jnp.int32))
    slots = jnp.arange(capacity, dtype=jnp.int32)
    at = jnp.minimum(jnp.searchsorted(ends, slots, side="right"), packed.shape[0] - 1).astype(jnp.int32)
    word = packed[at]
    rank = slots - (ends[at] - jax.lax.population_count(word).astype(jnp.int32))
    bit = jnp.zeros_like(slots)
    for width in (16, 8, 4, 2, 1):
        part = (word >> bit.astype(jnp.uint32)) & np.uint32((1 << width) - 1)
        below = jax.lax.population_count(part).astype(jnp.int32)
        above = rank >= below
        rank = rank - jnp.where(above, below, 0)
        bit = bit + jnp.where(above, width, 0)
    total = ends[-1]
    return jnp.where(slots < total, at * _WORD + bit, 0), total


def order(values: UInt32[Array, " records"], ties: UInt32[Array, " records"]) -> Int32[Array, " records"]:
    """The permutation that sorts the (value, tie) pairs."""
    index = jnp.arange(values.shape[0], dtype=jnp.int32)
    return jax.lax.sort((values, ties, index), num_keys=2)[2]


def smallest(
    values: UInt32[Array, " records"], ties: UInt32[Array, " records"], *, count: int
) -> Int32[Array, " count"]:
    """Indices of the `count` smallest (value, tie) pairs, in increasing order of the index.

    Pairs that agree come in order of the index, as in a stable sort. Nothing is sorted: the largest triple
    (value, tie, index) that belongs is found bit by bit, by counting those below. A sort takes several times
    as long on a CPU, and the compiler for TPUs takes 20 seconds for one of 50 000 pairs.
    """
    index = jnp.arange(values.shape[0], dtype=jnp.uint32)
    chosen, level, missing = jnp.zeros(values.shape, bool), jnp.ones(values.shape, bool), jnp.int32(count)
    for word in (values, ties, index):
        last = _smallest_but(missing - 1, word, level)
        below = level & (word < last)
        chosen, level = chosen | below, level & (word == last)
        missing -= below.sum(dtype=jnp.int32)
    return first_selected(chosen | level, capacity=count)[0]


def _smallest_but(
    rank: Int32[Array, ""], word: UInt32[Array, " records"], level: Bool[Array, " records"]
) -> UInt32[Array, ""]:
    """Of the words at `level`, the one with `rank` before it: the largest with at most so many below."""

    def bit(number: Int32[Array, ""], found: UInt32[Array, ""]) -> UInt32[Array, ""]:
        more = found | (jnp.uint32(1 << (_WORD - 1)) >> number.astype(jnp.uint32))
        return jnp.where(jnp.sum(level & (word < more), dtype=jnp.int32) <= rank, more, found)

    return jax.lax.fori_loop(0, _WORD, bit, jnp.uint32(0))
