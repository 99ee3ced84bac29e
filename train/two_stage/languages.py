"""The language model of a run: trained here from nothing, or loaded with its tokenizer."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

import numpy as np
from jaxtyping import Int

from exactdp.train.gpt2 import tokenizer as tokenizers
from exactdp.train.gpt2 import weights as gpt2_weights
from exactdp.train.gpt2.tokenizer import Tokenizer
from exactdp.train.state import Parameters
from exactdp.train.tables.schema import Schema
from exactdp.train.tables.template import Template
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
        found = _trained(settings, template, place, pseudo, first)
        longest = max(RowTokens(part, found).longest for part in _templates(settings, template, first))
        rows = RowTokens(template, found)
        return language.fresh(settings.model, rows=rows, longest=longest, bfloat16=settings.bfloat16), None
    folder = gpt2_weights.folder(files.weights)
    rows = RowTokens(template, tokenizers.read(folder))
    config, params = gpt2_weights.read(folder)
    longest = max(RowTokens(part, rows.tokenizer).longest for part in _templates(settings, template, first))
    return Language(rows, config, longest, settings.bfloat16), params


def _templates(settings: TwoStageSettings, own: Template, first: Coded | None) -> list[Template]:
    return [own, *([] if first is None else [Template(first.schema, settings.order)])]


def _trained(
    settings: TwoStageSettings,
    template: Template,
    place: RunFolder,
    pseudo: Int[np.ndarray, "rows columns"],
    first: Coded | None,
) -> Tokenizer:
    path = place.path / TOKENIZER
    if not place.has(f"{TOKENIZER}/tokenizer.json"):
        texts: list[str] = _texts(template, pseudo)
        if first is not None:
            texts += _texts(Template(first.schema, settings.order), first.codes)
        tokenizers.train(texts, vocabulary=settings.vocabulary).write(path)
    return tokenizers.read(path)


def _texts(template: Template, codes: Int[np.ndarray, "rows columns"]) -> Sequence[str]:
    return template.row_texts(codes[:_MOST_TEXTS])
