"""The language model of a table: tokenizer, rows as tokens, network. No private row is looked at."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from exactdp.train.gpt2 import config as configs
from exactdp.train.gpt2 import model as gpt2
from exactdp.train.gpt2.config import Config
from exactdp.train.state import Parameters
from exactdp.train.tables import grammar, tokens
from exactdp.train.tables.grammar import Grammar
from exactdp.train.tables.template import Template
from exactdp.train.tables.tokens import RowTokens
from exactdp.train.two_stage.objective import RowObjective

_MULTIPLE = 8  # lengths are rounded up to it


@dataclasses.dataclass(frozen=True, eq=False)
class Language:
    """A GPT-2 for the rows of a schema.

    Attributes:
      rows: rows of the schema as tokens.
      config: sizes of the network.
      length: tokens of a padded row, start and end included: of the longest row of the domain, and of any
        other table that is trained on.
      bfloat16: compute activations in bfloat16.

    Raises:
      ValueError: the network has fewer positions than a row has tokens.
    """

    rows: RowTokens
    config: Config
    length: int
    bfloat16: bool = False

    def __post_init__(self) -> None:
        if self.length > self.config.positions:
            raise ValueError(
                f"model must have {self.length} positions, as many as the longest row of the domain has "
                f"tokens, got {self.config.positions}; fewer columns or shorter values would help"
            )

    @property
    def template(self) -> Template:
        """Of the rows' text."""
        return self.rows.template

    @functools.cached_property
    def graph(self) -> gpt2.Graph:
        """Of the network."""
        return gpt2.abstract(self.config, dtype=self._dtype)[0]

    def initialise(self, key: jax.Array) -> Parameters:
        """Fresh parameters."""
        return gpt2.build(self.config, key=key, dtype=self._dtype)[1]

    def logits(
        self, params: Parameters, rows: Int[Array, "batch length"]
    ) -> Float[Array, "batch length vocabulary"]:
        """Of the next token at each position."""
        return gpt2.logits(self.graph, params, rows)

    def classes(self, rows: Int[Array, "batch length"]) -> Int[Array, "batch length"]:
        """Of each token; see `tokens.classes`."""
        return tokens.classes(
            rows,
            is_token=self.rows.is_token,
            comma_token=self.rows.comma_token,
            end=self.rows.tokenizer.end,
        )

    def objective(
        self, *, initialise: Callable[[jax.Array], Parameters], value_weight: float | None
    ) -> RowObjective:
        """What a stage minimises.

        Args:
          initialise: where it starts.
          value_weight: of the loss; None for all tokens alike.
        """
        return RowObjective(self.length, initialise, self.logits, self.classes, value_weight)

    @functools.cached_property
    def grammar(self) -> Grammar:
        """The rows of the schema as paths, for a constrained decoder."""
        return grammar.build(self.rows)

    def encoded(self, codes: Int[np.ndarray, "rows columns"]) -> np.ndarray:
        """Rows of the schema as padded tokens."""
        return self.rows.encode(codes, length=self.length)

    @property
    def _dtype(self) -> jnp.dtype:
        return jnp.dtype(jnp.bfloat16 if self.bfloat16 else jnp.float32)


def fresh(model: str, *, rows: RowTokens, length: int, bfloat16: bool) -> Language:
    """A language model that is trained here.

    Args:
      model: name of its size.
      rows: of the schema.
      length: tokens of the longest row, start and end included.
      bfloat16: compute activations in bfloat16.
    """
    positions = -(-length // _MULTIPLE) * _MULTIPLE
    sizes = configs.named(model, vocabulary=rows.tokenizer.vocabulary, positions=positions)
    return Language(rows, sizes, positions, bfloat16)
