"""Rows as tokens: for training, and back from generation."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Sequence
from typing import Protocol

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Int, Int8

from exactdp.accounting import validate
from exactdp.train.tables import cells, template
from exactdp.train.tables.schema import MISSING, Column
from exactdp.train.tables.template import Template

PADDING, KEY, OTHER, VALUE = range(4)
"""Classes of tokens, see `classes`."""

_ROWS = 1 << 14  # assembled at once
_REMEMBERED = 1 << 17  # the pieces of a column of at most so many values are kept
_ENUMERATED = 1 << 12  # the numbers of a column of at most so many are all tokenised to find the longest


class Tokenizer(Protocol):
    """What is needed of a byte-level tokenizer; `encode` reads no special tokens in a text."""

    @property
    def vocabulary(self) -> int:
        """Number of tokens; ids are below it."""
        ...

    @property
    def end(self) -> int:
        """Id of the end-of-text token."""
        ...

    def encode(self, text: str, /) -> tuple[int, ...]:
        """The ids of a text; their bytes are the text's in UTF-8."""
        ...

    def decode(self, ids: Sequence[int], /) -> str:
        """The text of ids."""
        ...

    def token_bytes(self, token: int, /) -> bytes:
        """The bytes that a token stands for."""
        ...


class RowTokens:
    """Rows of a template as tokens.

        end  (key  " is"  value  ",")*  key  " is"  value  end  end ...

    Keys, " is", values and "," are tokenised apart, so that " is" and "," are always tokens of their own and
    a prompt "label is v," has the tokens that it has in training. The end-of-text token stands before each
    row and after it, and fills it up.

    Args:
      layout: the schema, and the order of its columns.
      tokenizer: byte-level, with " is" and "," among its tokens.

    Raises:
      ValueError: the tokenizer is not; the message names the column where it changes a text.
    """

    def __init__(self, layout: Template, tokenizer: Tokenizer) -> None:
        self.template = layout
        self.tokenizer = tokenizer
        self._bytes = [tokenizer.token_bytes(token) for token in range(tokenizer.vocabulary)]
        self.is_token, self.comma_token = self._single(template.IS), self._single(template.COMMA)
        columns = layout.schema.columns
        self.keys = tuple(self._piece(column, template.key(column)) for column in columns)
        self._remembered: tuple[dict[int, tuple[int, ...]], ...] = tuple({} for _ in columns)

    @property
    def dtype(self) -> type[np.uint16] | type[np.int32]:
        """Of arrays of tokens."""
        return np.uint16 if self.tokenizer.vocabulary <= 1 << 16 else np.int32

    @functools.cached_property
    def longest(self) -> int:
        """The most tokens that a row of the domain has, or a bound of it: a public number.

        For a number of a long range, as many tokens as bytes.
        """
        columns = enumerate(self.template.schema.columns)
        return 1 + sum(
            len(self.keys[place]) + 1 + self._longest_value(place, column) + 1 for place, column in columns
        )

    def values(self, place: int, codes: Int[np.ndarray, " n"]) -> list[tuple[int, ...]]:
        """The tokens of values of the column at `place` in the schema.

        Raises:
          ValueError: a code is outside the domain.
        """
        column = self.template.schema.columns[place]
        known = self._remembered[place]
        asked: list[int] = codes.tolist()
        unknown = [code for code in asked if code not in known]
        texts = template.values(column, np.array(unknown, np.int64))
        found = {code: self._piece(column, text) for code, text in zip(unknown, texts, strict=True)}
        if column.size <= _REMEMBERED:
            known |= found
            found = known
        return [found[code] for code in asked]

    def prompt(self, code: int) -> tuple[int, ...]:
        """The tokens of a row up to the first comma, where its first column has that code.

        Raises:
          ValueError: the code is outside its domain.
        """
        place = self.template.places[0]
        (value,) = self.values(place, np.array([code]))
        return (self.tokenizer.end, *self.keys[place], self.is_token, *value, self.comma_token)

    def encode(
        self,
        codes: Int[np.ndarray, "rows columns"],
        *,
        length: int | None = None,
        orders: Int[np.ndarray, "rows columns"] | None = None,
    ) -> Int[np.ndarray, "rows length"]:
        """The tokens of rows, filled up with the end-of-text token.

        A row's tokens depend on that row and on `length` alone.

        Args:
          codes: a table.
          length: of all rows; None for `longest`, which depends on the schema alone.
          orders: for each row, places in the schema in the order of its text; None for the template's.

        Returns:
          An array of `dtype`.

        Raises:
          ValueError: there are not as many codes as columns, one is outside its domain, or a row has more
            tokens than `length`; the message has the row's number.
        """
        cells.require_columns(codes, self.template.schema)
        length = self.longest if length is None else validate.count("length", length, 1)
        out = np.full((len(codes), length), self.tokenizer.end, self.dtype)
        for begin in range(0, len(codes), _ROWS):
            rows = slice(begin, begin + _ROWS)
            order = np.array([self.template.places]) if orders is None else orders[rows]
            self._assemble(codes[rows], order, out[rows], begin)
        return out

    def texts(self, tokens: Int[np.ndarray, "rows length"]) -> list[str]:
        """The texts of rows between their first token and the next end-of-text.

        Args:
          tokens: rows that begin with one token of their own, as those of `encode` do.

        Returns:
          Texts for `Template.parse`; empty, so that it refuses them, where no end-of-text follows.
        """
        ends = tokens[:, 1:] == self.tokenizer.end
        lengths = np.where(ends.any(1), ends.argmax(1), 0)
        flat, starts, sizes = self._flat_bytes
        found: list[str] = []
        for begin in range(0, len(tokens), _ROWS):
            rows = slice(begin, begin + _ROWS)
            kept = np.arange(tokens.shape[1] - 1) < lengths[rows, None]
            ids = tokens[rows, 1:][kept]
            text = _gather(flat, starts[ids], sizes[ids]).tobytes()
            # Where each row's bytes end.
            bounds = np.concatenate([[0], np.cumsum(sizes[ids])])[
                np.concatenate([[0], np.cumsum(lengths[rows])])
            ]
            pairs = itertools.pairwise(bounds.tolist())
            found += [text[first:last].decode("utf-8", errors="replace") for first, last in pairs]
        return found

    def _assemble(self, codes: np.ndarray, order: np.ndarray, out: np.ndarray, begin: int) -> None:
        starts, sizes = np.empty(codes.shape, np.int64), np.empty(codes.shape, np.int64)
        flat: list[int] = []
        for place, key in enumerate(self.keys):
            distinct, indices = np.unique(codes[:, place], return_inverse=True)
            head = (*key, self.is_token)
            pieces = [(*head, *value, self.comma_token) for value in self.values(place, distinct)]
            lengths = np.array([len(piece) for piece in pieces], np.int64)
            starts[:, place] = (len(flat) + np.cumsum(lengths) - lengths)[indices]
            sizes[:, place] = lengths[indices]
            flat += itertools.chain.from_iterable(pieces)
        starts, sizes = (np.take_along_axis(array, order, 1) for array in (starts, sizes))
        ends = sizes.sum(1)
        if ends.size and ends.max() >= out.shape[1]:
            row = begin + int(np.argmax(ends >= out.shape[1])) + 1
            raise ValueError(
                f"length must be at least the tokens of a row ({self.longest} suffice for all the domain), "
                f"row {row} has more than {out.shape[1]}"
            )
        places = np.arange(out.shape[1])
        tokens = np.array(flat, out.dtype)
        out[(places > 0) & (places <= ends[:, None])] = _gather(tokens, starts.ravel(), sizes.ravel())
        # The comma after the last value.
        out[np.arange(len(out)), ends] = self.tokenizer.end

    @functools.cached_property
    def _flat_bytes(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        sizes = np.array([len(token) for token in self._bytes])
        return np.frombuffer(b"".join(self._bytes), np.uint8), np.cumsum(sizes) - sizes, sizes

    def _single(self, text: str) -> int:
        found = self.tokenizer.encode(text)
        if len(found) != 1:
            raise ValueError(f"tokenizer must have {text!r} as one token, got {len(found)}")
        return found[0]

    def _piece(self, column: Column, text: str) -> tuple[int, ...]:
        found = self.tokenizer.encode(text)
        if b"".join([self._bytes[token] for token in found]) != text.encode() or self.tokenizer.end in found:
            raise ValueError(
                f"column {column.name!r}: tokenizer must give a text's own bytes and no special token, got "
                "others"
            )
        return found

    def _longest_value(self, place: int, column: Column) -> int:
        codes = [MISSING] if column.missing else []
        longest = 0
        if column.kind == "category" or column.size <= _ENUMERATED:
            codes += range(column.low, column.high + 1)
        else:
            longest = max(map(len, template.values(column, np.array([column.low, column.high]))))
        return max([longest, *map(len, self.values(place, np.array(codes, np.int64)))])


def classes(
    tokens: Int[jax.Array, "*rows length"], *, is_token: int, comma_token: int, end: int
) -> Int8[jax.Array, "*rows length"]:
    """The class of each token of rows: KEY before " is", VALUE after it, up to ","; the separators OTHER.

    Args:
      tokens: rows that begin with one token of their own, as those of `RowTokens.encode` do.
      is_token: id of " is".
      comma_token: id of ",".
      end: id of the end-of-text token.

    Returns:
      int8. The first token and the end-of-text that follows are OTHER; what follows that is PADDING.

    Source: arXiv 2412.02467, the released code (which counts the padding too).
    """
    places = jnp.arange(tokens.shape[-1])
    axis = tokens.ndim - 1

    def last(found: jax.Array) -> jax.Array:
        return jax.lax.cummax(jnp.where(found, places, -1), axis=axis)

    separator = tokens == is_token, (tokens == comma_token) | (places == 0)
    in_value = last(separator[0]) > last(separator[1])
    ends = (tokens == end) & (places > 0)
    found = jnp.where(in_value, VALUE, KEY)
    found = jnp.where(separator[0] | separator[1] | ends, OTHER, found)
    past = jnp.cumsum(ends, axis=axis) - ends > 0
    return jnp.where(past, PADDING, found).astype(jnp.int8)


def _gather(flat: np.ndarray, starts: np.ndarray, sizes: np.ndarray) -> np.ndarray:
    """The slices flat[start : start + size], one after another."""
    before = np.cumsum(sizes) - sizes
    return flat[np.repeat(starts - before, sizes) + np.arange(int(sizes.sum()))]
