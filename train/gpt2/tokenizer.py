"""Byte-level BPE: GPT-2's own, or a small one trained on public texts."""

from __future__ import annotations

import importlib
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from exactdp.accounting import validate
from exactdp.train import folder as folders

END = "<|endoftext|>"
"""The text of the token that ends a text."""

FILE = "tokenizer.json"
"""The name of the file that `save` writes."""

_BYTES = 256


def _alphabet() -> dict[str, int]:
    """The character by which byte-level BPE writes a byte -> that byte.

    A byte that is a visible character in Latin-1 stands for itself; the others follow from code point 256 on.
    """
    visible = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    hidden = [byte for byte in range(_BYTES) if byte not in set(visible)]
    return {chr(b): b for b in visible} | {chr(_BYTES + k): b for k, b in enumerate(hidden)}


_ALPHABET = _alphabet()


class Tokenizer:
    """Texts to ids and back, without loss for any Unicode text.

    What stands in a text is never read as a special token: a text that holds the characters of `END` is
    encoded as ordinary tokens, and `encode` never gives `end`.

    Args:
      backend: a `tokenizers.Tokenizer` of byte-level BPE.

    Attributes:
      vocabulary: how many ids there are.
      end: the id that ends a text.

    Raises:
      ValueError: a backend that normalises texts, lacks `END` or a byte, has ids with gaps, or tokens that
        are not written byte by byte.
    """

    def __init__(self, backend: Any) -> None:
        if backend.normalizer is not None:
            raise ValueError("tokenizer must take texts as they are, got one that normalises them")
        ids: dict[str, int] = backend.get_vocab(with_added_tokens=True)
        if sorted(ids.values()) != list(range(len(ids))):
            raise ValueError(f"tokenizer must have ids from 0 to {len(ids) - 1} without gaps, got others")
        if END not in ids:
            raise ValueError(f"tokenizer must have the token {END}, it is missing")
        pieces = [b""] * len(ids)
        for text, number in ids.items():
            if text == END:
                continue
            if not all(character in _ALPHABET for character in text):
                raise ValueError(f"tokenizer must be of byte-level BPE, got a token of other text: {number}")
            pieces[number] = bytes(_ALPHABET[character] for character in text)
        missing = _BYTES - len({piece for piece in pieces if len(piece) == 1})
        if missing:
            raise ValueError(f"tokenizer must have a token for every byte, {missing} are missing")
        backend.encode_special_tokens = True
        self._backend = backend
        self._pieces = pieces
        self.vocabulary = len(pieces)
        self.end: int = ids[END]

    def encode(self, text: str) -> tuple[int, ...]:
        """The ids of `text`; `end` is not added.

        Raises:
          ValueError: a text with surrogates, which no UTF-8 has.
        """
        return self.encode_batch([text])[0]

    def encode_batch(self, texts: Sequence[str]) -> list[tuple[int, ...]]:
        """The ids of each text, on all cores; otherwise as `encode`.

        Raises:
          ValueError: a text with surrogates, by its number.
        """
        for number, text in enumerate(texts):
            # The text itself stays out of the message, and so does the error that holds it.
            if any("\ud800" <= c <= "\udfff" for c in text) if not text.isascii() else False:
                raise ValueError(f"texts must be valid Unicode, got a surrogate in text {number}")
        found: list[Any] = self._backend.encode_batch(list(texts), add_special_tokens=False)
        return [tuple(encoding.ids) for encoding in found]

    def token_bytes(self, token: int) -> bytes:
        """The bytes that `token` stands for; none for `end`.

        Raises:
          ValueError: no such id.
        """
        if not 0 <= token < self.vocabulary:
            raise ValueError(f"token must be an id below {self.vocabulary}, got {token}")
        return self._pieces[token]

    def decode(self, tokens: Iterable[int]) -> str:
        """The text of `tokens`; bytes that are no UTF-8 become U+FFFD, and `end` is nothing.

        Raises:
          ValueError: no such id.
        """
        return b"".join(self.token_bytes(token) for token in tokens).decode("utf-8", errors="replace")

    def save(self, folder: str | Path) -> None:
        """Writes tokenizer.json, whole or not at all, into `folder`, made if it is missing.

        `load` and transformers read it.

        Raises:
          OSError: the disk refuses.
        """
        where = Path(folder)
        where.mkdir(parents=True, exist_ok=True)
        folders.write_bytes(where / FILE, self._backend.to_str(pretty=True).encode())


def load(folder: str | Path) -> Tokenizer:
    """The tokenizer in `folder`: tokenizer.json, else vocab.json with merges.txt as GPT-2 has them.

    Raises:
      ValueError: neither is there, a damaged file, or no byte-level BPE with `END`.
    """
    library = _library()
    where = Path(folder)
    vocabulary, merges = where / "vocab.json", where / "merges.txt"
    try:
        if (where / FILE).is_file():
            return Tokenizer(library.Tokenizer.from_file(str(where / FILE)))
        if vocabulary.is_file() and merges.is_file():
            backend = library.Tokenizer(library.models.BPE.from_file(str(vocabulary), str(merges)))
            backend.pre_tokenizer = library.pre_tokenizers.ByteLevel(add_prefix_space=False)
            backend.decoder = library.decoders.ByteLevel()
            backend.add_special_tokens([END])
            return Tokenizer(backend)
    except ValueError:
        raise
    except Exception as error:  # the library raises bare ones
        raise ValueError(f"{where} must hold a whole tokenizer: {error}") from error
    raise ValueError(f"{where} must hold {FILE}, or vocab.json and merges.txt, there is none")


def train(pieces: Iterable[str], *, vocabulary: int) -> Tokenizer:
    """A byte-level BPE trained on `pieces`, which must be public: the tokens tell what stands in them.

    A piece is what `encode` will be given, such as a column's name or a value: it is not cut into words, so
    that a frequent one becomes a token of its own. Every digit is a token, so that a number is its digits.
    The same pieces give the same tokenizer.

    Args:
      pieces: public texts.
      vocabulary: the most tokens there shall be, `END` and the 256 bytes included, >= 257; fewer where the
        pieces do not give so many pairs that occur twice.

    Raises:
      ValueError: vocabulary below 257.
    """
    library = _library()
    validate.count("vocabulary", vocabulary, _BYTES + 1)
    backend = library.Tokenizer(library.models.BPE())
    parts = library.pre_tokenizers
    backend.pre_tokenizer = parts.Sequence(
        [parts.Digits(individual_digits=True), parts.ByteLevel(add_prefix_space=False, use_regex=False)]
    )
    backend.decoder = library.decoders.ByteLevel()
    trainer = library.trainers.BpeTrainer(
        vocab_size=vocabulary,
        min_frequency=2,
        show_progress=False,
        special_tokens=[END],
        initial_alphabet=sorted(_ALPHABET),
    )
    backend.train_from_iterator(pieces, trainer)
    return Tokenizer(backend)


def _library() -> Any:
    try:
        return importlib.import_module("tokenizers")
    except ImportError as error:
        raise ImportError("GPT-2's texts need the package tokenizers: pip install tokenizers") from error
