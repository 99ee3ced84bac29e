"""A row as text, and back: " income is <=50K, age is 39, ..."."""

from __future__ import annotations

import dataclasses
import functools
import re
from collections.abc import Mapping, Sequence
from typing import cast

import numpy as np
from jaxtyping import Bool, Int

from exactdp.accounting import validate
from exactdp.train.tables import cells
from exactdp.train.tables.schema import MISSING, Column, Schema

IS = " is"
COMMA = ","
MISSING_TEXT = "\\?"
ORDERS = ("alphabetical", "header")

REASONS: tuple[str, ...] = (
    "malformed",
    "unknown column",
    "repeated column",
    "missing column",
    "missing value",
    "unknown category",
    "not a number",
    "out of range",
)
"""Why `Template.parse` refuses a text."""

_ESCAPED = {"\\": "\\", "c": COMMA, "n": "\n", "r": "\r", "i": "i", "|": "|"}
_MOST_REMEMBERED = 1 << 20


def escape(text: str) -> str:
    r"""A name or value without what separates: no comma, no line break, and no " is" even after a space.

        \  ,  LF  CR   become   \\  \c  \n  \r
        is             becomes  \is, at the beginning and after a space
        <|             becomes  <\|, so that no text is read as a special token

    `unescape` undoes it, for every text.
    """
    text = text.replace("\\", "\\\\").replace(",", "\\c").replace("\n", "\\n").replace("\r", "\\r")
    return (" " + text.replace("<|", "<\\|")).replace(IS, " \\is")[1:]


def unescape(text: str) -> str | None:
    """The text that `escape` made this of; None where it is of none."""
    found = re.sub(r"\\(.?)", lambda match: _ESCAPED.get(match[1], "\0"), text, flags=re.DOTALL)
    return found if escape(found) == text else None


@dataclasses.dataclass(frozen=True)
class Parsed:
    """What a text says.

    Attributes:
      codes: in the order of the schema, all in its domain; None where the text is no row of it.
      reason: then, one of `REASONS`; else None.
    """

    codes: tuple[int, ...] | None
    reason: str | None = None


@dataclasses.dataclass(frozen=True)
class ParsedRows:
    """What many texts say.

    Attributes:
      codes: int64 [valid, columns], the rows of those that are valid.
      valid: bool [texts].
      reasons: for each of `REASONS`, how many texts it refused.
    """

    codes: Int[np.ndarray, "valid columns"]
    valid: Bool[np.ndarray, " texts"]
    reasons: Mapping[str, int]


@dataclasses.dataclass(frozen=True)
class Template:
    """Rows of a schema as texts: " key is value" for each column, with "," between.

    Every table of every schema comes back: names and values are escaped (`escape`), and a missing value is a
    backslash and a question mark, which no escaped value is.

    Attributes:
      schema: of the rows.
      order: of the columns in the text. "alphabetical" or "header": the label first, then the others; or the
        names of all columns, in the order wanted.

    Raises:
      ValueError: `order` is none of these.

    Source: arXiv 2412.02467, the released code (without the escapes).
    """

    schema: Schema
    order: str | tuple[str, ...] = "alphabetical"

    def __post_init__(self) -> None:
        if isinstance(self.order, str):
            validate.one_of("order", self.order, ORDERS)
        elif sorted(self.order) != sorted(self.schema.names):
            raise ValueError(f"order must name each column once, got {', '.join(map(repr, self.order))}")

    @functools.cached_property
    def places(self) -> tuple[int, ...]:
        """Places in the schema, in the order of the text."""
        if not isinstance(self.order, str):
            return tuple(self.schema.index(name) for name in self.order)
        names = self.schema.names
        others = sorted(names) if self.order == "alphabetical" else names
        label = self.schema.label
        return tuple(names.index(name) for name in sorted(others, key=lambda name: name != label))

    @property
    def columns(self) -> tuple[Column, ...]:
        """In the order of the text."""
        return tuple(self.schema.columns[place] for place in self.places)

    def row_text(self, codes: Sequence[int]) -> str:
        """The text of a row.

        Args:
          codes: in the order of the schema.

        Raises:
          ValueError: there are not as many as columns, or one is outside its domain.
        """
        return self.row_texts(np.array([codes], np.int64))[0]

    def row_texts(
        self, codes: Int[np.ndarray, "rows columns"], *, orders: Int[np.ndarray, "rows columns"] | None = None
    ) -> list[str]:
        """The text of each row.

        Args:
          codes: in the order of the schema.
          orders: for each row, places in the schema in the order of its text (`shuffled`); None for `places`.

        Raises:
          ValueError: there are not as many codes as columns, or one is outside its domain.
        """
        cells.require_columns(codes, self.schema)
        pieces = np.empty(codes.shape, object)
        for place, column in enumerate(self.schema.columns):
            distinct, indices = np.unique(codes[:, place], return_inverse=True)
            texts = [f"{key(column)}{IS}{value}" for value in values(column, distinct)]
            pieces[:, place] = np.array(texts, object)[indices]
        ordered = pieces[:, self.places] if orders is None else np.take_along_axis(pieces, orders, 1)
        return [COMMA.join(row) for row in ordered.tolist()]

    def shuffled(self, rows: int, *, rng: np.random.Generator) -> Int[np.ndarray, "rows columns"]:
        """For each row a random order of its columns, after the label where the schema has one."""
        label = [] if self.schema.label is None else [self.schema.index(self.schema.label)]
        others = np.delete(np.arange(len(self.schema.columns)), label)
        orders = np.tile(np.concatenate([np.array(label, np.int64), others]), (rows, 1))
        orders[:, len(label) :] = rng.permuted(orders[:, len(label) :], axis=1)
        return orders

    def prompt(self, code: int) -> str:
        """The beginning of a row's text whose first column has that code: " label is value,".

        Raises:
          ValueError: the code is outside its domain.
        """
        first = self.columns[0]
        return f"{key(first)}{IS}{values(first, np.array([code]))[0]}{COMMA}"

    def parse(self, text: str) -> Parsed:
        """The row that a text is of: each column once, in any order, with a value of its domain.

        Never raises: a text is what a model wrote.
        """
        codes: list[int | None] = [None] * len(self.schema.columns)
        for piece in text.split(COMMA):
            found = self._remembered.get(piece)
            if found is None:
                found = self._piece(piece)
                if len(self._remembered) < _MOST_REMEMBERED:
                    self._remembered[piece] = found
            place, code = found
            if isinstance(code, str):
                return Parsed(None, code)
            if codes[place] is not None:
                return Parsed(None, "repeated column")
            codes[place] = code
        if None in codes:
            return Parsed(None, "missing column")
        return Parsed(tuple(cast("list[int]", codes)))

    def parse_rows(self, texts: Sequence[str]) -> ParsedRows:
        """`parse` of each text."""
        rows: list[tuple[int, ...]] = []
        valid = np.zeros(len(texts), bool)
        reasons = dict.fromkeys(REASONS, 0)
        for number, text in enumerate(texts):
            parsed = self.parse(text)
            if parsed.codes is not None:
                rows.append(parsed.codes)
                valid[number] = True
            elif parsed.reason is not None:
                reasons[parsed.reason] += 1
        return ParsedRows(
            np.array(rows, np.int64).reshape(len(rows), len(self.schema.columns)), valid, reasons
        )

    @functools.cached_property
    def _remembered(self) -> dict[str, tuple[int, int | str]]:
        return {}

    @functools.cached_property
    def _keys(self) -> dict[str, int]:
        return {key(column): place for place, column in enumerate(self.schema.columns)}

    def _piece(self, piece: str) -> tuple[int, int | str]:
        """Place and code of " key is value"; or why there is none."""
        name, separator, value = piece.partition(IS)
        if not separator or not name.startswith(" ") or not value.startswith(" "):
            return 0, "malformed"
        place = self._keys.get(name)
        if place is None:
            return 0, "malformed" if unescape(name[1:]) is None else "unknown column"
        return place, _code(self.schema.columns[place], value[1:])


def key(column: Column) -> str:
    """A column's name as it stands in a row's text, with the space before it."""
    return " " + escape(column.name)


def values(column: Column, codes: Int[np.ndarray, " n"]) -> list[str]:
    """Values as they stand in a row's text, with the space before them.

    Raises:
      ValueError: a code is outside the domain.
    """
    texts = cells.texts(column, codes)
    return [" " + (escape(text) if text else MISSING_TEXT) for text in texts]


def _code(column: Column, value: str) -> int | str:
    if value == MISSING_TEXT:
        return MISSING if column.missing else "missing value"
    text = unescape(value)
    if text is None:
        return "malformed"
    if not text.strip() and column.kind != "category":
        return "not a number"
    code = column.code(text)
    if code is None or code == MISSING:
        if column.kind == "category":
            return "unknown category"
        return "out of range" if cells.is_number(text) else "not a number"
    return code
