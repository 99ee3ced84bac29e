"""The loss of a row's tokens, normalised within the row.

    l = (1 - w) (mean over key tokens + mean over other tokens) + w (mean over value tokens)

of the cross-entropy of each token given those before it, w the value weight. The means are over the row's own
tokens, and padding counts nothing: a row's gradient does not depend on the rows beside it, so that clipping
it bounds what one row adds to the sum. (The released code takes means over the batch: its clipping does not.)

Source: arXiv 2412.02467v2, released code, for the weights; the normalisation is repaired.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
from jaxtyping import Array, Float, Int

from exactdp.accounting import validate
from exactdp.mechanisms.public import Public
from exactdp.train.objective import Examples, Residual
from exactdp.train.state import Parameters
from exactdp.train.tables.tokens import KEY, OTHER, VALUE
from exactdp.train.task import Records

_BATCH = 256
_FEW = 256  # rows that are measured while a run goes on
_MOST = 4096  # rows that perplexities are computed of

Classes = Callable[[Int[Array, "batch length"]], Int[Array, "batch length"]]
Logits = Callable[[Parameters, Int[Array, "batch length"]], Float[Array, "batch length vocabulary"]]


@dataclasses.dataclass(frozen=True, eq=False)
class RowObjective:
    """A language model of rows; see the module.

    Attributes:
      length: tokens of a padded row.
      start: parameters of a key.
      logits: (params, tokens) -> logits of the next token at each position.
      classes: tokens -> class of each, 0 for padding, as `exactdp.train.tables.tokens.classes`.
      value_weight: w in [0, 1]; None for the mean over all of the row's tokens, as in stage 1.

    Raises:
      ValueError: an argument is outside its range.
    """

    length: int
    start: Callable[[jax.Array], Parameters]
    logits: Logits
    classes: Classes
    value_weight: float | None = None

    def __post_init__(self) -> None:
        validate.count("length", self.length, 2)
        if self.value_weight is not None:
            validate.probability("value_weight", self.value_weight)

    @property
    def input_shape(self) -> tuple[int, ...]:
        """Of one record: a row of tokens."""
        return (self.length,)

    @property
    def metric(self) -> str:
        """What `measure` gives: the mean loss on test rows."""
        return "test_loss"

    def initialise(self, key: jax.Array) -> Parameters:
        """Parameters for a key."""
        return self.start(key)

    def examples(self, records: Records, *, key: jax.Array, public: Public | None = None) -> Examples:
        """The rows as int32; nothing is random.

        Raises:
          ValueError: `public` is given.
        """
        if public is not None:
            raise ValueError("public must be none: rows of tokens have no public view")
        return records.x.astype(jnp.int32)

    def losses(self, params: Parameters, examples: Examples) -> Float[Array, " batch"]:
        """One loss a row."""
        return self.weighted(*self.token_losses(params, examples))

    def token_losses(
        self, params: Parameters, tokens: Int[Array, "batch length"]
    ) -> tuple[Float[Array, "batch shorter"], Int[Array, "batch shorter"]]:
        """Cross-entropy and class of every token but the first."""
        logits = self.logits(params, tokens[:, :-1])
        each = optax.softmax_cross_entropy_with_integer_labels(logits, tokens[:, 1:])
        return each, self.classes(tokens)[:, 1:]

    def weighted(
        self, each: Float[Array, "batch shorter"], classes: Int[Array, "batch shorter"]
    ) -> Float[Array, " batch"]:
        """The loss of each row from those of its tokens."""

        def mean(counted: Array) -> Array:
            return jnp.sum(jnp.where(counted, each, 0.0), 1) / jnp.maximum(jnp.sum(counted, 1), 1)

        if self.value_weight is None:
            return mean(classes > 0)
        outside = mean(classes == KEY) + mean(classes == OTHER)
        return (1.0 - self.value_weight) * outside + self.value_weight * mean(classes == VALUE)

    def residual(self, public: Public) -> Residual:
        """Not defined.

        Raises:
          ValueError: always.
        """
        raise ValueError("public must be none: rows of tokens have no public view")

    def measure(self, params: Parameters, x: np.ndarray, y: np.ndarray) -> float:
        """Mean loss on the first 256 rows."""
        del y
        return float(np.mean(np.asarray(self._compiled(params, x[:_FEW]))))

    def perplexities(self, params: Parameters, x: np.ndarray) -> dict[str, float]:
        """exp of the mean cross-entropy over the first 4096 rows' tokens of each class, by its name."""
        names = {"key": KEY, "value": VALUE, "other": OTHER}
        totals = dict.fromkeys(names, 0.0)
        counts = dict.fromkeys(names, 0)
        for rows in _batches(x):
            each, classes = (np.asarray(part) for part in self._by_token(params, rows))
            for name, number in names.items():
                counted = classes == number
                totals[name] += float(each[counted].sum(dtype=np.float64))
                counts[name] += int(counted.sum())
        return {name: float(np.exp(totals[name] / counts[name])) for name in names if counts[name]}

    @functools.cached_property
    def _compiled(self) -> Callable[..., Any]:
        return jax.jit(lambda p, t: self.losses(p, t.astype(jnp.int32)))

    @functools.cached_property
    def _by_token(self) -> Callable[..., Any]:
        return jax.jit(lambda p, t: self.token_losses(p, t.astype(jnp.int32)))


def _batches(x: np.ndarray) -> list[np.ndarray]:
    """The first rows, in batches."""
    rows = x[:_MOST]
    return [rows[start : start + _BATCH] for start in range(0, len(rows), _BATCH)]
