"""The loss of a row: by hand, apart from the rows beside it, and clipped as a sum over rows."""

from __future__ import annotations

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from exactdp.mechanisms import clipping
from exactdp.mechanisms.public import Public
from exactdp.train.attacks import coupled_loss
from exactdp.train.tables import tokens
from exactdp.train.tables.tokens import KEY, OTHER, VALUE
from exactdp.train.task import Records
from exactdp.train.two_stage.objective import RowObjective

END, IS, COMMA, VOCABULARY, LENGTH = 0, 1, 2, 12, 14
CLIP_NORM = 1.0


def logits(params: jax.Array, rows: jax.Array) -> jax.Array:
    """A table of bigrams: small, and its gradient is dense enough."""
    return params[rows]


def objective(value_weight: float | None = 0.65) -> RowObjective:
    return RowObjective(
        LENGTH,
        lambda key: jax.random.normal(key, (VOCABULARY, VOCABULARY)),
        logits,
        functools.partial(tokens.classes, is_token=IS, comma_token=COMMA, end=END),
        value_weight,
    )


def row(*texts: int) -> np.ndarray:
    return np.array([END, *texts, *[END] * (LENGTH - 1 - len(texts))], np.int32)


ROWS = np.stack(
    [
        row(3, IS, 4, 5, COMMA, 6, IS, 7),
        row(3, IS, 8, COMMA, 6, 6, IS, 9, 10, 11),
        row(3, IS, 4),
    ]
)
PARAMS = objective().initialise(jax.random.key(0))


def by_hand(tokens_of_row: np.ndarray, weight: float | None) -> float:
    """The definition, token by token."""
    found: dict[int, list[float]] = {KEY: [], OTHER: [], VALUE: []}
    in_value, table = False, np.asarray(jax.nn.log_softmax(PARAMS), np.float64)
    for before, token in zip(tokens_of_row[:-1], tokens_of_row[1:], strict=True):
        separator = token in (IS, COMMA, END)
        kind = OTHER if separator else VALUE if in_value else KEY
        found[kind].append(float(-table[before, token]))
        in_value = token == IS if separator else in_value
        if token == END:
            break
    if weight is None:
        return float(np.mean([loss for losses in found.values() for loss in losses]))
    outside = float(np.mean(found[KEY])) + float(np.mean(found[OTHER]))
    return (1.0 - weight) * outside + weight * float(np.mean(found[VALUE]))


@pytest.mark.parametrize("weight", [0.0, 0.65, 1.0, None])
def test_the_loss_is_its_definition(weight: float | None) -> None:
    losses = objective(weight).losses(PARAMS, jnp.asarray(ROWS))
    np.testing.assert_allclose(losses, [by_hand(one, weight) for one in ROWS], rtol=1e-5)


def test_padding_and_the_rows_beside_it_change_nothing() -> None:
    made = objective()
    alone = [float(made.losses(PARAMS, jnp.asarray(one[None]))[0]) for one in ROWS]
    np.testing.assert_allclose(made.losses(PARAMS, jnp.asarray(ROWS)), alone, rtol=1e-6)
    # What stands behind the end is not read, however long the row is padded.
    other = ROWS.copy()
    other[2, 6:] = 9
    np.testing.assert_allclose(made.losses(PARAMS, jnp.asarray(other))[2], alone[2], rtol=1e-6)
    gradient = jax.jacobian(made.losses)(PARAMS, jnp.asarray(ROWS))
    assert not np.asarray(gradient)[2, 8].any()  # token 8 stands in another row


def test_one_row_moves_the_clipped_sum_by_the_clip_norm_at_most() -> None:
    """Ours does; with means over the batch a long row changes what its neighbours add."""
    made = objective()
    rng = np.random.default_rng(0)
    short = np.stack([row(int(3 + rng.integers(9)), IS, int(3 + rng.integers(9))) for _ in range(12)])
    long = row(3, IS, 4, 5, 6, 7, 8, 9, 10, 11, 4, 5)
    both = np.concatenate([short, long[None]])
    grad = jax.jit(clipping.clipped_grad(made.losses, clip_norm=CLIP_NORM))
    sums = [grad(PARAMS, jnp.asarray(both), jnp.arange(len(both)) < n).sum for n in (len(short), len(both))]
    assert float(jnp.linalg.norm(sums[1] - sums[0])) <= CLIP_NORM * (1.0 + 1e-5)
    # Flatter parameters, where no gradient is clipped away, show it plainly.
    coupled = jax.jit(coupled_loss.clipped_sum(made, clip_norm=CLIP_NORM))
    flat = 0.05 * PARAMS
    moved = [coupled(flat, jnp.asarray(both), jnp.arange(len(both)) < n).sum for n in (len(short), len(both))]
    assert float(jnp.linalg.norm(moved[1] - moved[0])) > 1.3 * CLIP_NORM


def test_measures() -> None:
    made = objective()
    rows = ROWS.astype(np.uint16)
    expected = float(np.mean([by_hand(one, 0.65) for one in ROWS]))
    assert made.measure(PARAMS, rows, np.zeros(3)) == pytest.approx(expected, rel=1e-5)
    found = made.perplexities(PARAMS, rows)
    each, kinds = (np.asarray(part) for part in made.token_losses(PARAMS, jnp.asarray(ROWS)))
    for name, kind in (("key", KEY), ("value", VALUE), ("other", OTHER)):
        assert found[name] == pytest.approx(np.exp(each[kinds == kind].mean()), rel=1e-5)


def test_there_is_no_public_view() -> None:
    made = objective()
    records = Records(jnp.asarray(ROWS), jnp.zeros(3, jnp.int32))
    assert made.examples(records, key=jax.random.key(0)).dtype == jnp.int32
    public = Public(None, label=True)
    with pytest.raises(ValueError, match="no public view"):
        made.examples(records, key=jax.random.key(0), public=public)
    with pytest.raises(ValueError, match="no public view"):
        made.residual(public)
    with pytest.raises(ValueError, match="value_weight"):
        objective(1.5)
