"""Tokenizers for tests: a small one, and GPT-2's own."""

from __future__ import annotations

import functools

from exactdp.train.gpt2 import tokenizer
from exactdp.train.gpt2.tokenizer import Tokenizer
from tests.train.tables import real_tables

_WORDS = (
    "income age workclass education sex Male Female Private State-gov Bachelors HS-grad Satisfied neutral"
)


@functools.cache
def small() -> Tokenizer:
    """Trained on a few words; digits stand alone."""
    words = _WORDS.split()
    texts = [text for word in words for text in (f" {word}", " is", ",")]
    return tokenizer.train(texts * 9, vocabulary=400)


@functools.cache
def gpt2() -> Tokenizer:
    """GPT-2's; skips the test where it is not there."""
    return tokenizer.load(real_tables.folder("gpt2_tokenizer"))
