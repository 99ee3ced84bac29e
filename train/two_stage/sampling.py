"""Synthetic rows from the trained model, of the label's released frequencies."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

import jax
import numpy as np
from jaxtyping import Int

from exactdp.accounting import validate
from exactdp.mechanisms import keys
from exactdp.train.gpt2.automaton import Automaton
from exactdp.train.gpt2.generate import generate
from exactdp.train.state import Parameters
from exactdp.train.table_metrics.validity import Validity
from exactdp.train.tables.template import REASONS
from exactdp.train.two_stage.language import Language

_BATCH = {"cpu": 64}  # beyond, a CPU waits for the cache of keys and values
_LARGE_BATCH = 512
_MOST_ATTEMPTS = 20  # batches for each one that would do, were every row valid


Labels = Callable[[int, np.random.Generator], Int[np.ndarray, " rows"]]
"""(number of rows, generator) -> codes of the label."""


@dataclasses.dataclass(frozen=True)
class Sampling:
    """How tokens are drawn.

    Attributes:
      temperature: divides the logits, > 0.
      top_k: among so many tokens; None for all.
      top_p: among the most likely tokens of this probability.
    """

    temperature: float = 1.0
    top_k: int | None = None
    top_p: float = 1.0


@dataclasses.dataclass(frozen=True, eq=False)
class Drawn:
    """Synthetic rows.

    Attributes:
      codes: int64 [rows, columns], all in the domain.
      validity: of all rows that were drawn.
    """

    codes: Int[np.ndarray, "rows columns"]
    validity: Validity


def draw(
    language: Language,
    params: Parameters,
    *,
    num_rows: int,
    labels: Labels | None,
    key: jax.Array,
    sampling: Sampling,
    constrained: bool,
    progress: Callable[[int], None] = lambda _: None,
) -> Drawn:
    """Rows of the schema. Post-processing of weights and frequencies: reads nothing private.

    Each row begins with the prompt of its label. Constrained, every row is of the domain; else rows
    that `Template.parse` refuses are drawn again, in at most 20 times as many batches as valid rows
    would need: what is then missing is missing.

    Args:
      language: the model's rows.
      params: its weights.
      num_rows: wanted, >= 1.
      labels: draws codes of the label by its released frequencies; None without a label.
      key: a typed key; a row is a function of it, its label and its number, but for rounding.
      sampling: temperature and the like.
      constrained: write rows of the domain only, rather than reject others.
      progress: told how many rows there are after each batch.

    Raises:
      ValueError: bad input.
    """
    validate.count("num_rows", num_rows, 1)
    automaton, most_tokens = None, language.length
    if constrained:
        automaton = language.grammar.automaton
        most_tokens = min(max(most_tokens, language.grammar.longest), language.config.positions)
    size = _BATCH.get(jax.default_backend(), _LARGE_BATCH)
    random = np.random.default_rng([int(word) for word in jax.random.key_data(key)])
    found: list[np.ndarray] = []
    kept, validity = 0, Validity(0, 0, dict.fromkeys(REASONS, 0))
    most = _MOST_ATTEMPTS * -(-num_rows // size)
    for number in range(most):
        drawn = None if labels is None else labels(size, random)
        prompts, lengths, states = _prompts(language, drawn, automaton, size)
        rows = generate(
            language.graph,
            params,
            prompts=prompts,
            prompt_lengths=lengths,
            max_tokens=most_tokens,
            key=keys.step_key(key, step=0, purpose="sample"),
            temperature=sampling.temperature,
            end=language.tokenizer.end,
            top_k=sampling.top_k,
            top_p=None if sampling.top_p == 1.0 else sampling.top_p,
            automaton=automaton,
            states=states,
            numbers=size * number + np.arange(size),
        )
        parsed = language.template.parse_rows(language.rows.texts(np.asarray(rows)))
        validity += Validity(size, len(parsed.codes), parsed.reasons)
        found.append(parsed.codes)
        kept += len(parsed.codes)
        progress(min(kept, num_rows))
        if kept >= num_rows:
            break
    return Drawn(np.concatenate(found)[:num_rows], validity)


def _prompts(
    language: Language, labels: Int[np.ndarray, " rows"] | None, automaton: Automaton | None, size: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray | None]:
    """The prompt of each row, its length, and the state that it leads to."""
    if labels is None:
        texts = [(language.tokenizer.end,)]
        places = np.zeros(size, np.int64)
    else:
        distinct, places = np.unique(labels, return_inverse=True)
        texts = [language.rows.prompt(int(code)) for code in distinct]
    lengths = np.array([len(text) for text in texts])
    table = np.zeros((len(texts), int(lengths.max())), np.int32)
    for number, text in enumerate(texts):
        table[number, : len(text)] = text
    states = None
    if automaton is not None:
        ends = [automaton.follow(text) for text in texts]
        if None in ends:
            raise ValueError("automaton must have a path for every prompt, got one without")
        states = np.array(ends, np.int32)[places]
    return table[places], lengths[places], states
