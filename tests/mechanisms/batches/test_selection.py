"""Selection of indices into a fixed number of slots, against NumPy."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from exactdp.mechanisms.batches import FixedSize, Poisson, selection


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


@pytest.mark.parametrize("number", [1, 33, 500])
@pytest.mark.parametrize("limit", [1, 2, 5, 2**32])
def test_the_smallest_are_those_of_a_stable_sort(number: int, limit: int) -> None:
    rng = np.random.default_rng(number)
    # Few values, few ties and the largest words of all: every rule of the order decides somewhere.
    values = (2**32 - 1 - rng.integers(0, limit, number)).astype(np.uint32)
    ties = rng.integers(0, min(limit, 3), number).astype(np.uint32)
    order = np.lexsort((ties, values))
    select = jax.jit(selection.smallest, static_argnames="count")
    for count in sorted({1, number // 3 + 1, number}):
        found = select(jnp.asarray(values), jnp.asarray(ties), count=count)
        np.testing.assert_array_equal(np.asarray(found), np.sort(order[:count]))


@pytest.mark.parametrize("sampler", [Poisson(50_000, 0.01, 512), FixedSize(50_000, 512), FixedSize(100, 60)])
def test_no_draw_sorts(sampler: Poisson | FixedSize) -> None:
    # The compiler for TPUs takes 20 seconds for a sort of 50 000 pairs.
    text = jax.jit(sampler.draw).lower(jax.random.key(0), step=jnp.int32(0)).as_text()
    assert "stablehlo.while" in text and "stablehlo.sort" not in text


@pytest.mark.parametrize("count", [1, 2, 7, 1_001])
def test_uniform_words_have_their_number(count: int) -> None:
    words = selection.uniform_words(jax.random.key(0), count)
    assert words.shape == (count,) and words.dtype == jnp.uint32
    assert len(set(words.tolist())) == count
