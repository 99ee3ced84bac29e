"""The log-likelihood ratio of a step: by hand, clipped as the trainer clips, mixed by the coin."""

from __future__ import annotations

import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from exactdp.train.attacks.likelihood_ratio import (
    Canaries,
    Coins,
    NegativeLoss,
    Projection,
    Ratio,
    Released,
)

PARAMS = {"a": jnp.asarray([0.1, -0.2]), "b": jnp.asarray([[0.3]])}
EXAMPLES = jnp.asarray([[3.0, 0.0, 4.0], [0.1, 0.2, 0.0], [0.0, 0.0, 0.0]])


def losses(params: dict[str, jax.Array], rows: jax.Array) -> jax.Array:
    """Linear, so that a record's gradient is the record."""
    return rows[:, :2] @ params["a"] + rows[:, 2] * params["b"][0, 0]


def after(released: np.ndarray, scale: float) -> dict[str, jax.Array]:
    """The parameters after a step that released this sum, in clip norms."""
    moved = jnp.asarray(released, jnp.float32) / scale
    return {"a": PARAMS["a"] - moved[:2], "b": PARAMS["b"] - moved[2:, None]}


def by_hand(released: np.ndarray, record: np.ndarray, *, clip: float, noise: float, q: float) -> float:
    norm = float(np.linalg.norm(record))
    v = record * min(1.0, clip / norm) / clip if norm else record
    ratio = (released @ v - v @ v / 2.0) / noise**2
    return math.log(1.0 - q + q * math.exp(ratio))


@pytest.mark.parametrize("clip", [0.5, 2.0, 10.0])
@pytest.mark.parametrize("q", [0.05, 1.0])
def test_by_hand(clip: float, q: float) -> None:
    released, scale = np.array([0.7, -1.1, 0.4]), 20.0
    step = Released(scale, clip, 0.8, q)
    found = Ratio(step, Canaries(losses, EXAMPLES))(PARAMS, after(released, scale))
    expected = [by_hand(released, np.asarray(one), clip=clip, noise=0.8, q=q) for one in EXAMPLES]
    np.testing.assert_allclose(found, expected, rtol=2e-4, atol=1e-6)
    others = -EXAMPLES[::-1]
    both = Ratio(step, Canaries(losses, EXAMPLES, others))(PARAMS, after(released, scale))
    against = [by_hand(released, np.asarray(one), clip=clip, noise=0.8, q=q) for one in others]
    np.testing.assert_allclose(both, np.subtract(expected, against), rtol=5e-4, atol=2e-6)


def test_a_coin_that_is_seen_decides_whether_a_step_counts() -> None:
    scale, clip = 10.0, 1.0
    step = Released(scale, clip, 1.0, 0.01)
    views = jnp.asarray([[0.0, 0.0, 50.0]])
    ratio = Ratio(step, Canaries(losses, EXAMPLES[:1], -EXAMPLES[:1]), Coins(losses, views))
    quiet, drawn = np.array([0.5, 0.0, 3.0]), np.array([0.5, 0.0, 51.0])
    assert float(ratio(PARAMS, after(quiet, scale))[0]) == 0.0
    v = np.array([0.6, 0.0, 0.8])
    assert float(ratio(PARAMS, after(drawn, scale))[0]) == pytest.approx(2.0 * float(drawn @ v), rel=1e-4)


def test_the_ratio_is_one_in_the_mean_without_the_record() -> None:
    """E exp(l) = 1 over noise alone, which holds of a log-likelihood ratio and of little else."""
    scale, q, noise = 10.0, 0.3, 0.7
    ratio = Ratio(Released(scale, 1.0, noise, q), Canaries(losses, EXAMPLES[:1]))
    draws = noise * np.random.default_rng(1).normal(size=(20_000, 3))
    moved = jax.vmap(
        lambda z: ratio(PARAMS, {"a": PARAMS["a"] - z[:2] / scale, "b": PARAMS["b"] - z[2:, None] / scale})
    )
    values = np.exp(np.asarray(moved(jnp.asarray(draws, jnp.float32)), np.float64))
    assert values.mean() == pytest.approx(1.0, abs=5.0 * values.std() / math.sqrt(len(draws)))


def test_projection() -> None:
    released, scale, clip = np.array([0.7, -1.1, 0.4]), 20.0, 2.0
    found = Projection(Released(scale, clip, 0.8, 0.1), Canaries(losses, EXAMPLES))(
        PARAMS, after(released, scale)
    )
    norms = np.linalg.norm(EXAMPLES, axis=1)
    units = np.minimum(1.0, clip / np.maximum(norms, 1e-9)) / clip
    np.testing.assert_allclose(found, units * (np.asarray(EXAMPLES) @ released), rtol=2e-4, atol=1e-6)


def test_final_loss() -> None:
    score = NegativeLoss(losses, EXAMPLES)(PARAMS)
    np.testing.assert_allclose(score, -losses(PARAMS, EXAMPLES))
    difference = NegativeLoss(losses, EXAMPLES, EXAMPLES + 1.0)(PARAMS)
    np.testing.assert_allclose(
        difference, losses(PARAMS, EXAMPLES + 1.0) - losses(PARAMS, EXAMPLES), rtol=1e-6
    )


@pytest.mark.parametrize("place", range(4))
def test_bad_input(place: int) -> None:
    values = [1.0, 1.0, 1.0, 0.5]
    names = ["scale", "clip_norm", "noise_multiplier", "sampling_probability"]
    for bad in (0.0, -1.0, float("nan")):
        given = values.copy()
        given[place] = bad
        with pytest.raises(ValueError, match=names[place]):
            Released(*given)
