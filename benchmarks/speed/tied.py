"""The GPT-2 that writes tables, with the loss of its private stage, as a model of the training speed."""

from __future__ import annotations

import functools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from flax import nnx
from jax import Array

from exactdp.benchmarks.speed import models
from exactdp.benchmarks.speed.models import Case
from exactdp.train.gpt2 import config, model
from exactdp.train.tables import tokens
from exactdp.train.two_stage.objective import Logits, RowObjective

NAME = "gpt2"
# Of 256 rows stage 2 computes 64 at a time, so that their logits take no more than 32 MiB.
ROWS, LENGTH, SHORTEST, VOCABULARY = 64, 96, 80, 1024
IS, COMMA, END = 1, 2, 0
VALUE_WEIGHT = 0.65


def case(*, records: int = ROWS) -> Case:
    """Two layers of width 128, the token table at both ends, and rows of six tokens a column.

    The loss is `RowObjective`'s, with classes of tokens and padding masked.

    Args:
      records: rows at once.
    """
    sizes = config.named("tiny", vocabulary=VOCABULARY, positions=LENGTH)
    graph = model.abstract(sizes)[0]
    tuned = functools.partial(_tuned_logits, graph)
    plain, faster = (_objective(sizes, logits) for logits in (functools.partial(model.logits, graph), tuned))
    rows = jnp.asarray(_rows(records))
    # Steps take a pair of which the second has one entry a record; this loss reads the first alone.
    return Case(
        NAME,
        lambda p, batch: plain.losses(p, batch[0]),
        lambda p, batch: faster.losses(p, batch[0]),
        plain.initialise(jax.random.key(0)),
        (rows, jnp.zeros(records, jnp.int32)),
    )


def _objective(sizes: config.Config, logits: Logits) -> RowObjective:
    classes = functools.partial(tokens.classes, is_token=IS, comma_token=COMMA, end=END)
    return RowObjective(LENGTH, lambda key: model.build(sizes, key=key)[1], logits, classes, VALUE_WEIGHT)


def _rows(records: int) -> np.ndarray:
    """Random rows " key key is value value ,", of 80 to 95 tokens, `END` before and after."""
    generator = np.random.default_rng(0)
    rows = generator.integers(COMMA + 1, VOCABULARY, (records, LENGTH))
    rows[:, 3::6], rows[:, 6::6] = IS, COMMA
    rows[:, 0] = END
    lengths = generator.integers(SHORTEST, LENGTH, (records, 1))
    return np.where(np.arange(LENGTH) < lengths, rows, END).astype(np.int32)


def _tuned_logits(graph: model.Graph, params: Any, rows: Array) -> Array:
    """The same logits, dense layers over all positions at once."""
    gpt2 = nnx.merge(graph, params)
    for layer in gpt2.layers:
        for dense in (layer.attention.qkv, layer.attention.out, layer.up, layer.down):
            dense.dot_general = models.flat_dot
    features = gpt2.features(rows)
    return models.flat_dot(features, gpt2.tokens.embedding[...], (((2,), (1,)), ((), ())))
