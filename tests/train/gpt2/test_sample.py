"""Draws of one of many: their distribution and what they leave out."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

from exactdp.train.gpt2 import sample

KEY = jax.random.key(1)


def drawn(logits: np.ndarray, count: int, **settings: Any) -> np.ndarray:
    """How often each choice is drawn, from the same logits."""
    rows = jnp.broadcast_to(jnp.asarray(logits, jnp.float32), (count, len(logits)))
    chosen = sample.choose(rows, jax.random.uniform(KEY, (count,)), **settings)
    return np.bincount(np.asarray(chosen), minlength=len(logits))


@pytest.mark.parametrize(("choices", "temperature"), [(5, 1.0), (5, 0.5), (300, 1.0)])
def test_distribution(choices: int, temperature: float) -> None:
    logits = np.random.default_rng(choices).normal(size=choices)
    found = drawn(logits, 50_000, temperature=temperature)
    expected = np.exp(logits / temperature) / np.exp(logits / temperature).sum() * 50_000
    assert stats.chisquare(found, expected).pvalue > 1e-3


def _nucleus(probabilities: np.ndarray, top_p: float) -> np.ndarray:
    """The most likely until they have `top_p`, the one that crosses it included."""
    order = np.argsort(-probabilities)
    before = np.cumsum(probabilities[order]) - probabilities[order]
    kept = np.zeros(len(probabilities), bool)
    kept[order[before < top_p]] = True
    return kept


@pytest.mark.parametrize("choices", [9, 200])
@pytest.mark.parametrize(
    ("top_k", "top_p"), [(1, None), (4, None), (500, None), (None, 0.5), (None, 1.0), (None, 1e-6), (6, 0.7)]
)
def test_what_is_left_out(choices: int, top_k: int | None, top_p: float | None) -> None:
    logits = np.random.default_rng(choices).normal(size=choices) * 1.5
    kept = np.ones(choices, bool)
    if top_k is not None:
        kept[np.argsort(-logits)[top_k:]] = False
    probabilities = np.where(kept, np.exp(logits), 0.0)
    probabilities /= probabilities.sum()
    if top_p is not None:
        kept &= _nucleus(probabilities, top_p)
    found = drawn(logits, 20_000, temperature=1.0, top_k=top_k, top_p=top_p)
    assert not found[~kept].any()
    expected = probabilities[kept] / probabilities[kept].sum() * 20_000
    assert expected.size == 1 or stats.chisquare(found[kept], expected).pvalue > 1e-3
    assert found[kept].sum() == 20_000


@pytest.mark.parametrize("top_k", [1, 2, 50, 199])
def test_exactly_the_largest_are_kept(top_k: int) -> None:
    logits = np.random.default_rng(top_k).normal(size=(4, 200)).astype(np.float32) * 0.5
    logits[1, 100:] = -np.inf
    logits[2] *= 40
    uniforms = (jnp.arange(20_000) + 0.5) / 20_000
    for row in logits:
        rows = jnp.broadcast_to(jnp.asarray(row), (20_000, 200))
        found = np.unique(sample.choose(rows, uniforms, temperature=1.0, top_k=top_k))
        # Those that are likely enough that the grid of uniform numbers cannot miss them.
        largest = np.argsort(-row)[:top_k]
        likely = largest[np.exp(row[largest] - row.max()) > 0.03]
        assert set(likely) <= set(found) <= set(largest)


def test_equals_are_kept_together() -> None:
    found = drawn(np.array([0.0, 1.0, 1.0, 1.0, -2.0]), 1000, temperature=1.0, top_k=2)
    assert (found > 0).tolist() == [False, True, True, True, False]


@pytest.mark.parametrize("choices", [3, 130, 1000])
def test_never_what_is_excluded(choices: int) -> None:
    generator = np.random.default_rng(choices)
    logits = generator.normal(size=(400, choices)).astype(np.float32) * 20
    logits[generator.random(logits.shape) < 0.7] = -np.inf
    logits[np.arange(400), generator.integers(choices, size=400)] = 1.0
    ends = np.tile([0.0, 1.0 - 2.0**-23], 200).astype(np.float32)
    chosen = np.asarray(sample.choose(jnp.asarray(logits), jnp.asarray(ends), temperature=0.3))
    assert np.isfinite(logits[np.arange(400), chosen]).all()


def test_largest() -> None:
    logits = jnp.array([[0.0, 3.0, 3.0], [-jnp.inf, -1.0, -2.0], [5.0, 1.0, 2.0]])
    assert sample.largest(logits).tolist() == [1, 1, 0]
