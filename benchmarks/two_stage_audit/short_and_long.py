"""A crafted case of the loss: many short rows that pull alike, and a long one; a model that they are fed to.

The model has learned the template, as after stage 1, and not the values: every value it takes for another, so
that each short row has the same gradient, of almost the value weight times sqrt(2) in norm. It is a table of
bigrams: the logits of the next token are a row of the parameters.
"""

from __future__ import annotations

import dataclasses
import functools

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from exactdp.accounting import validate
from exactdp.accounting.printed import two_stage as printed
from exactdp.mechanisms import clipping
from exactdp.train.attacks import coupled_loss
from exactdp.train.attacks.coupled_loss import ClippedSum
from exactdp.train.tables import tokens
from exactdp.train.two_stage.objective import RowObjective

LONGEST = 1024
"""Tokens of the longest row: GPT-2's context."""

PHYSICAL_BATCH = printed.BATCH_SIZE
"""Rows that the released code takes means over at most; it splits a larger batch evenly (Opacus).

Inferred: its scheduler steps once a physical batch and ends after 0.69 of the steps, so that there are 1.45
of them a step, as with batches of mean 32 that are split above 32 rows.
"""

RELEASED, OURS = "means over the batch", "means over the row"
LOSSES = (RELEASED, OURS)

_END, _IS, _COMMA, _KEY, _VALUE, _WRONG, _LONG, _VOCABULARY = range(8)
_VALUE_WEIGHT = 0.65
_SURE = 12.0  # a logit above all others by so much is as good as certain


def objective(length: int) -> RowObjective:
    """The loss of stage 2 on rows of at most so many tokens."""
    return RowObjective(
        length,
        lambda _: _params(),
        lambda params, rows: params[rows],
        functools.partial(tokens.classes, is_token=_IS, comma_token=_COMMA, end=_END),
        _VALUE_WEIGHT,
    )


@dataclasses.dataclass(frozen=True, eq=False)
class ClippedSums:
    """Clipped sums of 0, 1, ... short rows, without and with the long one; clip norm 1.

    Attributes:
      values: float32 [2, counts, parameters]; the first index is the long row's presence.
    """

    values: Float[np.ndarray, "two counts parameters"]

    def move(self, num_rows: int) -> Float[np.ndarray, " parameters"]:
        """What the long row changes beside so many short ones."""
        return self.values[1, num_rows] - self.values[0, num_rows]

    @property
    def short(self) -> Float[np.ndarray, " parameters"]:
        """What one short row adds, alone in its batch."""
        return self.values[0, 1]

    def split(self, most: int) -> ClippedSums:
        """Sums of up to `most` short rows, in physical batches of even size; the long row is in the first.

        Args:
          most: >= 0.
        """
        count = validate.count("most", most)
        values = np.zeros((2, count + 1, self.values.shape[2]), self.values.dtype)
        for long in (0, 1):
            for number in range(count + 1):
                rows = np.arange(number + long)
                for part in np.array_split(rows, max(-(-len(rows) // PHYSICAL_BATCH), 1)):
                    has = int(long == 1 and 0 in part)
                    values[long, number] += self.values[has, len(part) - has]
        return ClippedSums(values)


@functools.lru_cache(maxsize=8)
def clipped_sums(loss: str, *, ratio: int) -> ClippedSums:
    """The sums of 0 ... `PHYSICAL_BATCH` short rows in one physical batch, by the product's own clipping.

    Args:
      loss: one of `LOSSES`.
      ratio: value tokens of the long row, in 1 ... 1020; a short row has one.

    Raises:
      ValueError: an argument is outside its range.
    """
    validate.one_of("loss", loss, LOSSES)
    count = PHYSICAL_BATCH
    tokens_of_long = validate.count("ratio", ratio, minimum=1) + 4
    if tokens_of_long > LONGEST:
        raise ValueError(f"ratio must be at most {LONGEST - 4}, got {ratio}")
    made = objective(tokens_of_long)
    rows = np.full((count + 1, tokens_of_long), _END, np.int32)
    rows[:, 1:3] = _KEY, _IS
    rows[:count, 3] = _VALUE
    # Begun as the model expects, so that where a short row is wrong the long one adds nothing.
    rows[count, 3], rows[count, 4:-1] = _WRONG, _LONG
    given, params = jnp.asarray(rows), _params()
    gradient = _gradient(made, loss)
    place = jnp.arange(count + 1)

    @jax.jit
    def total(values: Array, batch: Array, number: Array, long: Array) -> Array:
        return gradient(values, batch, (place < number) | ((place == count) & long)).sum.ravel()

    found = [[total(params, given, n, long) for n in range(count + 1)] for long in (False, True)]
    return ClippedSums(np.array(found))


def _gradient(made: RowObjective, loss: str) -> ClippedSum:
    if loss == RELEASED:
        return coupled_loss.clipped_sum(made, clip_norm=printed.CLIP_NORM)
    return clipping.clipped_grad(made.losses, clip_norm=printed.CLIP_NORM)


def _params() -> Float[Array, "vocabulary vocabulary"]:
    follows = {_END: _KEY, _KEY: _IS, _IS: _WRONG, _VALUE: _END, _LONG: _WRONG}
    table = np.zeros((_VOCABULARY + 1, _VOCABULARY + 1), np.float32)
    for before, after in follows.items():
        table[before, after] = _SURE
    return jnp.asarray(table)
