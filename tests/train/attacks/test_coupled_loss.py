"""The released loss of DP-2Stage: by its definition, and how it couples rows."""

from __future__ import annotations

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from exactdp.train.attacks import coupled_loss
from exactdp.train.tables import tokens
from exactdp.train.tables.tokens import KEY, OTHER, VALUE
from exactdp.train.two_stage.objective import RowObjective

END, IS, COMMA, VOCABULARY, LENGTH = 0, 1, 2, 9, 10


def objective(value_weight: float | None = 0.65) -> RowObjective:
    return RowObjective(
        LENGTH,
        lambda key: jax.random.normal(key, (VOCABULARY, VOCABULARY)),
        lambda params, rows: params[rows],
        functools.partial(tokens.classes, is_token=IS, comma_token=COMMA, end=END),
        value_weight,
    )


def row(*texts: int) -> list[int]:
    return [END, *texts, *[END] * (LENGTH - 1 - len(texts))]


ROWS = jnp.array([row(3, IS, 4), row(3, IS, 5, 6, COMMA, 7, IS, 8), row(7, IS, 4, 4, 4, 4)], jnp.int32)
PARAMS = objective().initialise(jax.random.key(0))
EVERY = jnp.ones(len(ROWS), bool)


def parts_of(made: RowObjective, mask: jax.Array, rows: jax.Array = ROWS) -> jax.Array:
    return jax.jit(
        lambda kept: coupled_loss.losses(made)(PARAMS, (rows, coupled_loss.mean_sizes(made, rows, kept)))
    )(mask)


@pytest.mark.parametrize("weight", [0.65, 0.0, 1.0, None])
def test_parts_are_means_over_the_batch(weight: float | None) -> None:
    made = objective(weight)
    parts = parts_of(made, EVERY)
    each, kinds = (np.asarray(part) for part in made.token_losses(PARAMS, ROWS))
    if weight is None:
        expected = each[kinds > 0].mean()
    else:
        means = {kind: each[kinds == kind].mean() for kind in (KEY, OTHER, VALUE)}
        expected = (1.0 - weight) * (means[KEY] + means[OTHER]) + weight * means[VALUE]
    # The batch's loss is the mean of the rows' parts.
    assert float(jnp.mean(parts)) == pytest.approx(expected, rel=1e-5)


@pytest.mark.parametrize("weight", [0.65, None])
def test_a_row_alone_has_its_own_loss(weight: float | None) -> None:
    made = objective(weight)
    for one in range(len(ROWS)):
        mask = jnp.arange(len(ROWS)) == one
        parts = parts_of(made, mask)
        assert float(parts[one]) == pytest.approx(float(made.losses(PARAMS, ROWS)[one]), rel=1e-5)


def test_clipped_sum_is_that_of_the_rows_gradients() -> None:
    made, clip_norm = objective(), 0.5
    found = jax.jit(coupled_loss.clipped_sum(made, clip_norm=clip_norm))(PARAMS, ROWS, EVERY).sum
    sizes = coupled_loss.mean_sizes(made, ROWS, EVERY)
    parts = coupled_loss.losses(made)
    gradients = jax.jit(jax.jacobian(lambda params: parts(params, (ROWS, sizes))))(PARAMS)
    norms = np.linalg.norm(np.asarray(gradients), axis=(1, 2))
    assert norms.min() < clip_norm < norms.max(), norms
    expected = np.einsum("i,ijk->jk", np.minimum(1.0, clip_norm / norms), np.asarray(gradients))
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)


def test_a_batch_without_a_class_is_finite() -> None:
    made = objective()
    nothing = jnp.full((2, LENGTH), END, jnp.int32)
    mask = jnp.array([True, False])
    sizes = coupled_loss.mean_sizes(made, nothing, mask)
    assert sizes.shape == (2, 3) and float(sizes[0, 2]) == 0.0
    assert np.isfinite(np.asarray(parts_of(made, mask, nothing))).all()
    assert not np.asarray(coupled_loss.mean_sizes(made, ROWS, jnp.zeros(3, bool))).any()


def test_move() -> None:
    assert coupled_loss.move(31, ratio=300) == pytest.approx(31 * 299 / 331)
    assert coupled_loss.move(31, ratio=1e12) == pytest.approx(31.0)
    assert coupled_loss.move(31, ratio=300, norm=0.5) == pytest.approx(0.5 * 31 * 299 / 331)
    assert coupled_loss.move(31, ratio=1.0) == coupled_loss.move(0, ratio=9.0) == 0.0


def test_refused() -> None:
    with pytest.raises(ValueError, match="ratio must be at least 1, got 0.5"):
        coupled_loss.move(1, ratio=0.5)
    with pytest.raises(ValueError, match="num_rows must be a whole number >= 0"):
        coupled_loss.move(-1, ratio=2.0)
    with pytest.raises(ValueError, match="norm must be"):
        coupled_loss.move(1, ratio=2.0, norm=-1.0)
    with pytest.raises(ValueError, match="clip_norm must be finite and > 0"):
        coupled_loss.clipped_sum(objective(), clip_norm=0.0)
