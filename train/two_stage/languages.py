"""The language model of a run: trained here from nothing, or loaded with its tokenizer."""

from __future__ import annotations

import dataclasses

import numpy as np
from jaxtyping import Int

from exactdp.train.gpt2 import tokenizer as tokenizers
from exactdp.train.gpt2 import weights as gpt2_weights
from exactdp.train.gpt2.tokenizer import Tokenizer
from exactdp.train.state import Parameters
from exactdp.train.tables.schema import Schema
from exactdp.train.tables.template import IS, Template, key, values
from exactdp.train.tables.tokens import RowTokens
from exactdp.train.two_stage import language
from exactdp.train.two_stage.inputs import Files
from exactdp.train.two_stage.language import Language
from exactdp.train.two_stage.run_folder import TOKENIZER, RunFolder
from exactdp.train.two_stage.settings import TwoStageSettings

_MOST_TEXTS = 20_000


@dataclasses.dataclass(frozen=True, eq=False)
class Coded:
    """A table in its domain.

    Attributes:
      schema: the domain.
      codes: int64 [rows, columns].
    """

    schema: Schema
    codes: Int[np.ndarray, "rows columns"]


def make(
    settings: TwoStageSettings,
    files: Files,
    schema: Schema,
    *,
    place: RunFolder,
    pseudo: Int[np.ndarray, "rows columns"],
    first: Coded | None,
) -> tuple[Language, Parameters | None]:
    """The language model, and the weights that it was loaded with.

    A tokenizer that is trained here sees pseudo rows and the public table, and no private row.

    Args:
      settings: sizes, order of columns.
      files: where weights are.
      schema: of the rows.
      place: folder of the run, where a tokenizer that is trained is kept.
      pseudo: rows of the schema, made of released statistics.
      first: the public table of stage 1, or None.

    Raises:
      ValueError: weights or tokenizer cannot be read, or the model is too short for a row.
    """
    template = Template(schema, settings.order)
    if files.weights is None:
        parts = _parts(settings, template, first, _trained(settings, template, place, pseudo, first))
        length = max(part.longest for part in parts)
        return language.fresh(settings.model, rows=parts[0], length=length, bfloat16=settings.bfloat16), None
    folder = gpt2_weights.locate(files.weights)
    tokenizer = tokenizers.load(folder)
    loaded = gpt2_weights.load(folder)
    if loaded.config.vocabulary < tokenizer.vocabulary:
        raise ValueError(
            f"weights must be for all {tokenizer.vocabulary} tokens of their tokenizer, got "
            f"{loaded.config.vocabulary} in {folder}"
        )
    parts = _parts(settings, template, first, tokenizer)
    length = max(part.longest for part in parts)
    found = Language(parts[0], loaded.config, length, bfloat16=settings.bfloat16)
    return found, loaded.params


def _parts(
    settings: TwoStageSettings, own: Template, first: Coded | None, tokenizer: Tokenizer
) -> list[RowTokens]:
    """Rows of the schema as tokens, and those of the public table."""
    others = [] if first is None else [Template(first.schema, settings.order)]
    return [RowTokens(part, tokenizer) for part in (own, *others)]


def _trained(
    settings: TwoStageSettings,
    template: Template,
    place: RunFolder,
    pseudo: Int[np.ndarray, "rows columns"],
    first: Coded | None,
) -> Tokenizer:
    path = place.path / TOKENIZER
    if not place.has(f"{TOKENIZER}/{tokenizers.FILE}"):
        pieces = _pieces(template, pseudo)
        if first is not None:
            pieces += _pieces(Template(first.schema, settings.order), first.codes)
        tokenizers.train(pieces, vocabulary=int(settings.vocabulary)).save(path)
    return tokenizers.load(path)


def _pieces(template: Template, codes: Int[np.ndarray, "rows columns"]) -> list[str]:
    """Names, values and separators as `RowTokens` gives them to the tokenizer, each as often as it occurs."""
    found: list[str] = []
    for place, column in enumerate(template.schema.columns):
        shown = codes[:_MOST_TEXTS, place]
        found += values(column, shown)
        # Each at least twice, so that it is a token however few rows there are.
        found += [key(column), IS] * max(len(shown), 2)
    return found
