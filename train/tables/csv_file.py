"""Tables in CSV files: read as text, encoded by a schema, written from codes."""

from __future__ import annotations

import codecs
import contextlib
import csv
import dataclasses
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
import pyarrow as pa
import pyarrow.csv
from jaxtyping import Int

from exactdp.train.tables import cells
from exactdp.train.tables.schema import Schema

_BLOCK = 1 << 24  # bytes; a row must fit in one
_ROWS = 1 << 16  # written at once


@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class RawTable:
    """The cells of a CSV file as texts; an empty cell is the empty text. Prints no cell.

    Attributes:
      table: columns of type string with different names, and no nulls.
    """

    table: pa.Table

    def __repr__(self) -> str:
        # Nor a name: the first line of a file without a header is a row.
        return f"RawTable(columns={len(self.names)})"

    @property
    def names(self) -> tuple[str, ...]:
        """Of the columns, as the header has them."""
        return tuple(self.table.column_names)

    @property
    def num_rows(self) -> int:
        """Without the header."""
        return self.table.num_rows

    def column(self, name: str) -> pa.ChunkedArray:  # pyright: ignore[reportUnknownParameterType]
        """The cells of a column.

        Raises:
          ValueError: there is none of that name.
        """
        if name not in self.names:
            raise ValueError(f"column must be one of the header's {len(self.names)} names, got {name!r}")
        return self.table.column(name)

    def select(self, rows: Int[np.ndarray, " m"]) -> RawTable:
        """The table of some rows, by their places from 0."""
        return RawTable(self.table.take(pa.array(rows)))


@dataclasses.dataclass(frozen=True, eq=False)
class Encoded:
    """A table as codes.

    Attributes:
      codes: int64 [rows, columns], all in the schema's domain; a row's codes depend on that row alone.
      replaced: for each column, how many cells were outside its domain. As private as the table: counted
        without noise, so not to be printed or released, and left out of this object's text.
    """

    codes: Int[np.ndarray, "rows columns"] = dataclasses.field(repr=False)
    replaced: tuple[int, ...] = dataclasses.field(repr=False)


def read(path: Path) -> RawTable:
    """The cells of a CSV file, as texts.

    UTF-8 with or without a byte order mark; commas; quotes where needed, doubled inside quotes; line breaks
    inside quotes. The first line is the header. Lines that are empty are no rows.

    Raises:
      ValueError: the file is none, empty, not UTF-8, or holds a NUL byte, a quote that is never closed, a row
        of another number of cells, no row, or a column without a name or with another's. The message names
        file and row (counted from 1, without the header), line or column, and never what the file holds, not
        even in its first line: without a header, that is a row.
    """
    if not path.is_file():
        raise ValueError(f"CSV must be a file, {path} is none")
    try:
        odd = _check_bytes(path)
        names = _header(path)
        if odd:
            _check_quotes(path)
    except OSError as error:
        raise ValueError(f"CSV must be a file that can be read, {path} cannot: {error.strerror}") from None
    table = _parsed(path, names)
    if table is None:
        _refuse_rows(path, len(names))
    if tuple(table.column_names) != names:
        raise ValueError(f"{path} must begin with a header of plain or quoted names")
    if not table.num_rows:
        _refuse_rows(path, len(names))
    return RawTable(table)


def encode(raw: RawTable, schema: Schema) -> Encoded:
    """The codes of a table; columns that the schema leaves out are left out.

    A cell outside its column's domain is replaced as `cells.codes` says, so that each row's codes depend on
    that row and the (public) schema alone: adding or removing a row changes no other.

    Raises:
      ValueError: the table lacks a column of the schema.
    """
    lacking = [name for name in schema.names if name not in raw.names]
    if lacking:
        raise ValueError(
            f"table must have the column {lacking[0]!r} of the schema, its header has not (the first line of "
            "the file must be the header)"
        )
    found = np.empty((raw.num_rows, len(schema.columns)), np.int64)
    replaced: list[int] = []
    for place, column in enumerate(schema.columns):
        begin = count = 0
        for chunk in raw.column(column.name).chunks:
            end = begin + len(chunk)
            found[begin:end, place], outside = cells.codes(column, chunk)
            count += int(outside.sum())
            begin = end
        replaced.append(count)
    return Encoded(found, tuple(replaced))


def write(path: Path, codes: Int[np.ndarray, "rows columns"], schema: Schema) -> None:
    """Writes a table as a CSV file, whole or not at all; `read` and `encode` give the same codes back.

    Raises:
      ValueError: a code is outside its column's domain, or there are not as many columns as in the schema.
      OSError: the disk refuses.
    """
    cells.require_columns(codes, schema)
    handle, fresh = tempfile.mkstemp(prefix=path.name, suffix=".new", dir=path.parent)
    try:
        with open(handle, "w", encoding="utf-8", newline="") as file:
            writer = csv.writer(file, lineterminator="\n")
            writer.writerow(schema.names)
            for begin in range(0, len(codes), _ROWS):
                chunk = codes[begin : begin + _ROWS]
                columns = [
                    cells.texts(column, chunk[:, place]) for place, column in enumerate(schema.columns)
                ]
                writer.writerows(zip(*columns, strict=True))
            file.flush()
            os.fsync(file.fileno())
        os.replace(fresh, path)
    except BaseException:
        os.unlink(fresh)
        raise


def _check_bytes(path: Path) -> bool:
    """Refuses what is no UTF-8 text; whether the number of quotes is odd."""
    decoder = codecs.getincrementaldecoder("utf-8")()
    line, quotes, size = 1, 0, 0
    with path.open("rb") as file:
        while True:
            block = file.read(_BLOCK)
            size += len(block)
            nul = block.find(0)
            begun = len(decoder.getstate()[0])  # of a character that the last block cut in two
            try:
                decoder.decode(block if nul < 0 else block[:nul], final=not block)
            except UnicodeDecodeError as error:
                line += block.count(b"\n", 0, max(error.start - begun, 0))
                raise ValueError(
                    f"{path} must be UTF-8 text, line {line} is not; convert it first, such as by iconv -f "
                    "WINDOWS-1252 -t UTF-8 (or -f UTF-16)"
                ) from None
            if nul >= 0:
                line += block.count(b"\n", 0, nul)
                raise ValueError(
                    f"{path} must be UTF-8 text without NUL bytes, line {line} has one; convert UTF-16 by "
                    "iconv -f UTF-16 -t UTF-8"
                )
            if not block:
                break
            line += block.count(b"\n")
            quotes += block.count(b'"')
    if not size:
        raise ValueError(f"{path} must have a header and rows, it is empty")
    return quotes % 2 == 1


def _rows(path: Path, *, strict: bool = False) -> Iterator[list[str]]:
    """The rows, header first, by Python's own reader: slower, but it knows where it is."""
    with path.open(encoding="utf-8-sig", newline="") as file:
        yield from (row for row in csv.reader(file, strict=strict) if row)


def _header(path: Path) -> tuple[str, ...]:
    try:
        names = next(_rows(path), None)
    except csv.Error:
        raise ValueError(f"{path} must begin with a header, its first line cannot be read as one") from None
    if names is None:
        raise ValueError(f"{path} must have a header and rows, it holds empty lines alone")
    for place, name in enumerate(names, start=1):
        if not name:
            raise ValueError(f"{path} must name every column in its header, column {place} has no name")
        if name in names[: place - 1]:
            raise ValueError(f"{path} must have different names in its header, column {place} has another's")
    return tuple(names)


def _check_quotes(path: Path) -> None:
    number = 0
    try:
        for _ in _rows(path, strict=True):
            number += 1
    except csv.Error:
        raise ValueError(f"{path} must close every quote, row {number} does not") from None


def _parsed(path: Path, names: tuple[str, ...]) -> Any:
    """The table; None where Arrow refuses, whose message quotes a row and so must not be kept."""
    try:
        return pyarrow.csv.read_csv(
            path,
            read_options=pyarrow.csv.ReadOptions(block_size=_BLOCK),
            parse_options=pyarrow.csv.ParseOptions(newlines_in_values=True),
            convert_options=pyarrow.csv.ConvertOptions(
                column_types=dict.fromkeys(names, pa.string()), strings_can_be_null=False
            ),
        )
    except (pa.ArrowException, OSError):
        return None


def _refuse_rows(path: Path, width: int) -> NoReturn:
    """Says what is wrong with the rows of a file that Arrow refused."""
    number = -1
    with contextlib.suppress(csv.Error):
        for number, row in enumerate(_rows(path)):
            if len(row) != width:
                raise ValueError(
                    f"{path} must have {width} cells in every row, row {number} has {len(row)}; a comma "
                    "inside a cell needs quotes"
                )
        if number < 1:
            raise ValueError(f"{path} must hold one row at least below its header, it holds none")
    raise ValueError(
        f"{path} must be a CSV file with rows of at most {_BLOCK >> 20} MiB, it cannot be read as one"
    )
