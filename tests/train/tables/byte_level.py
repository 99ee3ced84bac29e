"""Byte-level tokenizers for tests: a small one, and GPT-2's own."""

from __future__ import annotations

import functools
import json
from collections.abc import Sequence

import tokenizers
from tokenizers import decoders, models, pre_tokenizers, trainers

from tests.train.tables import real_tables

END = "<|endoftext|>"
_WORDS = (
    "income age workclass education sex Male Female Private State-gov Bachelors HS-grad Satisfied neutral"
)


class ByteLevel:
    """A `tokenizers.Tokenizer` as RowTokens wants it."""

    def __init__(self, tokenizer: tokenizers.Tokenizer) -> None:
        self._tokenizer = tokenizer
        letters = pre_tokenizers.ByteLevel.alphabet()
        kept = [b for b in range(256) if 33 <= b <= 126 or 161 <= b <= 172 or 174 <= b <= 255]
        moved = [b for b in range(256) if b not in kept]
        of = {chr(b): b for b in kept} | {chr(256 + n): b for n, b in enumerate(moved)}
        assert set(of) == set(letters)
        self.vocabulary = tokenizer.get_vocab_size()
        texts = [tokenizer.id_to_token(token) for token in range(self.vocabulary)]
        self._tokens = [bytes(of[letter] for letter in text) for text in texts]
        self.end = tokenizer.token_to_id(END)

    def encode(self, text: str) -> tuple[int, ...]:
        return tuple(self._tokenizer.encode(text, add_special_tokens=False).ids)

    def decode(self, ids: Sequence[int]) -> str:
        return self._tokenizer.decode(list(ids), skip_special_tokens=False)

    def token_bytes(self, token: int) -> bytes:
        return self._tokens[token]


@functools.cache
def small() -> ByteLevel:
    """Trained on a few words; digits stand alone."""
    tokenizer = tokenizers.Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.Digits(individual_digits=True), pre_tokenizers.ByteLevel(add_prefix_space=False)]
    )
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=400, initial_alphabet=pre_tokenizers.ByteLevel.alphabet(), show_progress=False
    )
    words = _WORDS.split()
    texts = [f" {word} is {other}," for word in words for other in words]
    tokenizer.train_from_iterator(texts, trainer)
    # The text of the end token is a token like any other, so that no text is read as it.
    vocabulary = tokenizer.get_vocab()
    state = models.BPE(vocab=vocabulary | {END: len(vocabulary)}, merges=_merges(tokenizer))
    tokenizer.model = state
    return ByteLevel(tokenizer)


@functools.cache
def gpt2() -> ByteLevel:
    """GPT-2's; skips the test where it is not there."""
    folder = real_tables.folder("gpt2_tokenizer")
    model = models.BPE.from_file(str(folder / "vocab.json"), str(folder / "merges.txt"))
    tokenizer = tokenizers.Tokenizer(model)
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    return ByteLevel(tokenizer)


def _merges(tokenizer: tokenizers.Tokenizer) -> list[tuple[str, str]]:
    return [tuple(merge) for merge in json.loads(tokenizer.to_str())["model"]["merges"]]
