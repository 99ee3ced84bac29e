"""Selection of indices into a fixed number of slots, against NumPy."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from exactdp.mechanisms.batches import selection


@pytest.mark.parametrize("count", [1, 31, 32, 33, 1_000])
@pytest.mark.parametrize("capacity", [1, 7, 64])
def test_the_first_selected_are_those_of_numpy(count: int, capacity: int) -> None:
    rng = np.random.default_rng(count + capacity)
    select = jax.jit(lambda flags: selection.first_selected(flags, capacity=capacity))
    for share in (0.0, 0.02, 0.5, 1.0):
        flags = rng.random(count) < share
        indices, total = select(jnp.asarray(flags))
        want = np.flatnonzero(flags)
        assert int(total) == len(want)
        padded = np.zeros(capacity, int)
        padded[: len(want)] = want[:capacity]
        np.testing.assert_array_equal(np.asarray(indices), padded)


def test_the_smallest_come_in_order_of_their_index_and_ties_are_broken() -> None:
    values = jnp.array([5, 1, 5, 0, 5, 9], jnp.uint32)
    ties = jnp.array([2, 0, 3, 0, 1, 0], jnp.uint32)
    assert selection.order(values, ties).tolist() == [3, 1, 4, 0, 2, 5]
    assert selection.smallest(values, ties, count=4).tolist() == [0, 1, 3, 4]


@pytest.mark.parametrize("count", [1, 2, 7, 1_001])
def test_uniform_words_have_their_number(count: int) -> None:
    words = selection.uniform_words(jax.random.key(0), count)
    assert words.shape == (count,) and words.dtype == jnp.uint32
    assert len(set(words.tolist())) == count
