"""Randomised response of labels: its law, its privacy, its choice of labels, bad input."""

from __future__ import annotations

import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

from exactdp.accounting import prv
from exactdp.mechanisms import randomised_response

DRAWS = 200_000


def law(label: int, prior: list[float], epsilon: float, seed: int = 0) -> np.ndarray:
    """How often each answer comes."""
    found = randomised_response.respond(
        jax.random.key(seed),
        jnp.full(DRAWS, label, jnp.int32),
        prior=jnp.tile(jnp.array(prior), (DRAWS, 1)),
        epsilon=epsilon,
    )
    return np.bincount(np.asarray(found), minlength=len(prior))


def expected(label: int, prior: list[float], epsilon: float) -> np.ndarray:
    """By the definition, in double precision."""
    order = sorted(range(len(prior)), key=lambda y: (-prior[y], y))
    keep = [math.exp(epsilon) / (math.exp(epsilon) + k - 1) for k in range(1, len(prior) + 1)]
    gains = [keep[k] * sum(prior[y] for y in order[: k + 1]) for k in range(len(prior))]
    k = gains.index(max(gains)) + 1
    chance = np.zeros(len(prior))
    for y in order[:k]:
        if label in order[:k]:
            chance[y] = keep[k - 1] if y == label else (1 - keep[k - 1]) / (k - 1)
        else:
            chance[y] = 1 / k
    return chance


@pytest.mark.parametrize("epsilon", [0.3, 1.0, 3.0])
@pytest.mark.parametrize(
    "prior",
    [[0.25] * 4, [0.6, 0.3, 0.05, 0.05], [0.05, 0.05, 0.3, 0.6], [0.01, 0.97, 0.01, 0.01], [0.5, 0.5]],
)
def test_the_law_is_that_of_the_definition(prior: list[float], epsilon: float) -> None:
    for label in range(len(prior)):
        counts, chance = law(label, prior, epsilon, seed=label), expected(label, prior, epsilon)
        assert not np.any(counts[chance == 0])
        there = chance > 0
        if there.sum() > 1:
            assert stats.chisquare(counts[there], chance[there] * DRAWS).pvalue > 1e-5


@pytest.mark.parametrize("epsilon", [0.5, 2.0])
def test_no_answer_is_likelier_than_epsilon_allows(epsilon: float) -> None:
    for prior in ([0.25] * 4, [0.4, 0.35, 0.2, 0.05]):
        chances = np.stack([expected(label, prior, epsilon) for label in range(4)])
        for answers in chances.T:
            assert answers.max() <= math.exp(epsilon) * answers.min() * (1 + 1e-12)
    assert prv.epsilon([(randomised_response.pair(epsilon), 1)], delta=1e-12).upper <= epsilon * (1 + 1e-9)


def test_choosing_below_is_exact() -> None:
    words = np.random.default_rng(0).integers(0, 2**32, 2000, dtype=np.uint32)
    words = np.concatenate([words, np.array([0, 1, 2**31, 2**32 - 1], np.uint32)])
    for count in (0, 1, 2, 3, 10, 999, 65_535):
        found = randomised_response._below(jnp.asarray(words), jnp.full(words.shape, count))
        np.testing.assert_array_equal(found, (words.astype(object) * count) // 2**32)


@pytest.mark.parametrize(
    ("labels", "prior", "message"),
    [
        ([-1, 0, 1], np.ones((3, 4)), "labels must be in 0 ... 3"),
        ([4, 0, 1], np.ones((3, 4)), "labels must be in 0 ... 3"),
        ([0.5, 0, 1], np.ones((3, 4)), "labels whole numbers"),
        ([True, False, True], np.ones((3, 4)), "labels whole numbers"),
        ([0, 1, 2], np.ones(4), "prior must be"),
        ([0, 1, 2], np.full((3, 4), np.nan), "prior must be finite"),
        ([0, 1, 2], np.full((3, 4), np.inf), "prior must be finite"),
        ([0, 1, 2], np.zeros((3, 4)), "prior must be finite"),
        ([0, 1, 2], np.array([[1.0, -0.5, 1.0, 1.0]] * 3), "prior must be finite"),
    ],
)
def test_values_that_say_nothing_are_refused(labels: list[float], prior: np.ndarray, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        randomised_response.respond(
            jax.random.key(0), jnp.asarray(labels), prior=jnp.asarray(prior, jnp.float32), epsilon=1.0
        )


def test_an_old_style_key_is_refused() -> None:
    with pytest.raises(ValueError, match="key must be one typed key"):
        randomised_response.respond(
            jax.random.PRNGKey(0), jnp.zeros(3, jnp.int32), prior=jnp.ones((3, 4)), epsilon=1.0
        )


@pytest.mark.parametrize(
    ("labels", "classes", "epsilon", "message"),
    [
        (3, 1, 1.0, "prior must be over 2 to 1000 classes"),
        (3, 1001, 1.0, "prior must be over 2 to 1000 classes"),
        (3, 4, 0.0, "epsilon must be"),
        (3, 4, math.nan, "epsilon must be"),
        (3, 4, 1e-6, "epsilon must be at least"),
        (4, 4, 1.0, "labels must be one for each row"),
    ],
)
def test_bad_input_is_refused(labels: int, classes: int, epsilon: float, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        randomised_response.respond(
            jax.random.key(0), jnp.zeros(labels, jnp.int32), prior=jnp.ones((3, classes)), epsilon=epsilon
        )
