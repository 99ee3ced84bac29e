"""The public domain of a table: which columns there are, and which values each may take.

Every value of a domain has an integer code, and a table is a matrix of codes: int64 [rows, columns].

    category   code = position in `values`
    integer    code = the integer
    float      code = the number times 10^decimals
    missing    code = MISSING, whatever the kind

A schema is public: declared by the user, or made of private statistics.
"""

from __future__ import annotations

import dataclasses
import functools
import json
import re
from collections.abc import Mapping
from decimal import Decimal
from pathlib import Path
from typing import Any, cast

import numpy as np

from exactdp.accounting import validate

MISSING = int(np.iinfo(np.int64).min)
KINDS = ("category", "integer", "float")

_LARGEST_CODE = 10**15  # codes are exact in float64, and so are their differences
_MOST_DECIMALS = 12
NUMBER = re.compile(r"[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d{1,3})?", re.ASCII)
"""What a cell of a number looks like, spaces around it aside."""


@dataclasses.dataclass(frozen=True)
class Column:
    """One column's domain.

    Attributes:
      name: in the header; not empty.
      kind: one of `KINDS`.
      values: of a category, all different and none empty; may be none where `missing` is set.
      minimum: smallest code of a number.
      maximum: largest code of a number.
      decimals: of a float, digits after the point, 1 to 12.
      missing: whether a cell may be empty.

    Raises:
      ValueError: an attribute is outside its range, or of another kind.
    """

    name: str
    kind: str
    values: tuple[str, ...] = ()
    minimum: int | None = None
    maximum: int | None = None
    decimals: int = 0
    missing: bool = False

    def __post_init__(self) -> None:
        where = f"column {self.name!r}"
        if not self.name or _unwritable(self.name):
            raise ValueError(f"name of a column must be a text that a file can hold, got {self.name!r}")
        validate.one_of(f"{where}: kind", self.kind, KINDS)
        # As a user's JSON file may have it.
        if self.missing not in (True, False):
            raise ValueError(f"{where}: missing must be true or false, got {self.missing!r}")
        if self.kind == "category":
            self._check_values(where)
        elif self.values:
            raise ValueError(f"{where}: values must be left out for kind {self.kind}, got {len(self.values)}")
        else:
            self._check_range(where)
        if self.kind == "float":
            if not 1 <= validate.count(f"{where}: decimals", self.decimals) <= _MOST_DECIMALS:
                raise ValueError(f"{where}: decimals must be in 1 ... {_MOST_DECIMALS}, got {self.decimals}")
        elif self.decimals:
            raise ValueError(f"{where}: decimals must be left out for kind {self.kind}, got {self.decimals}")

    def _check_values(self, where: str) -> None:
        for name in ("minimum", "maximum"):
            if getattr(self, name) is not None:
                raise ValueError(f"{where}: {name} must be left out for a category")
        if any(type(value) is not str or not value or _unwritable(value) for value in self.values):
            raise ValueError(
                f"{where}: values must be texts that a file can hold and that are not empty (see missing)"
            )
        if len(set(self.values)) < len(self.values):
            raise ValueError(f"{where}: values must be all different, got one twice")
        if not self.values and not self.missing:
            raise ValueError(f"{where}: values must not be none where missing is false")

    def _check_range(self, where: str) -> None:
        for name in ("minimum", "maximum"):
            value = getattr(self, name)
            if not isinstance(value, int) or isinstance(value, bool) or abs(value) > _LARGEST_CODE:
                raise ValueError(
                    f"{where}: {name} must be a number of at most {_LARGEST_CODE:.0e} units of the last "
                    f"digit, got {value!r}"
                )
        if cast("int", self.minimum) > cast("int", self.maximum):
            raise ValueError(
                f"{where}: minimum must be at most maximum, got {self.minimum} and {self.maximum}"
            )

    @property
    def low(self) -> int:
        """Smallest code."""
        return 0 if self.kind == "category" else cast("int", self.minimum)

    @property
    def high(self) -> int:
        """Largest code; below `low` where there is none."""
        return len(self.values) - 1 if self.kind == "category" else cast("int", self.maximum)

    @property
    def size(self) -> int:
        """How many codes there are, without the missing one."""
        return self.high - self.low + 1

    def holds(self, code: int) -> bool:
        """Whether a code is in the domain."""
        return self.missing if code == MISSING else self.low <= code <= self.high

    def text(self, code: int) -> str:
        """A code as it stands in a CSV file; empty where missing.

        Raises:
          ValueError: it is outside the domain.
        """
        if not self.holds(code):
            raise ValueError(f"column {self.name!r}: code must be in the column's domain")
        if code == MISSING:
            return ""
        if self.kind == "category":
            return self.values[code]
        if self.kind == "integer":
            return str(code)
        digits = f"{abs(code):0{self.decimals + 1}d}"
        return f"{'-' if code < 0 else ''}{digits[: -self.decimals]}.{digits[-self.decimals :]}"

    def code(self, text: str) -> int | None:
        """The code of a text, spaces around it aside; None where the domain has none.

        A float is rounded to `decimals`, half to even.
        """
        if self.kind == "category":
            found = self._positions.get(text, self._positions.get(text.strip()))
            if found is not None:
                return found
        text = text.strip()
        if not text:
            return MISSING if self.missing else None
        if self.kind == "category" or not NUMBER.fullmatch(text):
            return None
        scaled = Decimal(text).scaleb(self.decimals)
        if abs(scaled) > _LARGEST_CODE or (self.kind == "integer" and scaled != scaled.to_integral_value()):
            return None
        code = int(scaled.to_integral_value())
        return code if self.holds(code) else None

    @functools.cached_property
    def _positions(self) -> Mapping[str, int]:
        return {value: place for place, value in enumerate(self.values)}

    def as_dict(self) -> dict[str, Any]:
        """For JSON: name, kind and what that kind has; a float's ends as numbers."""
        found: dict[str, Any] = {"name": self.name, "kind": self.kind, "missing": self.missing}
        if self.kind == "category":
            return found | {"values": list(self.values)}
        ends = {"minimum": self.text(self.low), "maximum": self.text(self.high)}
        return found | ends | ({"decimals": self.decimals} if self.kind == "float" else {})


def _unwritable(text: str) -> bool:
    """Whether no UTF-8 file has the text: NUL, or half of a surrogate pair."""
    return "\0" in text or any("\ud800" <= letter <= "\udfff" for letter in text if letter > "\x7f")


def column(record: Any) -> Column:
    """The column that `Column.as_dict` describes; ends of a range may be JSON numbers too.

    Raises:
      ValueError: it describes none.
    """
    if not isinstance(record, dict) or not isinstance(record.get("name"), str):
        raise ValueError("each column must be a JSON object with a name")
    where = f"column {record['name']!r}"
    unknown = sorted(set(record) - {f.name for f in dataclasses.fields(Column)})
    if unknown:
        raise ValueError(f"{where}: must have known properties only, got {', '.join(map(repr, unknown))}")
    given = cast("dict[str, Any]", record).copy()
    if given.get("kind") in ("integer", "float"):
        decimals = given.get("decimals", 0)
        scale = decimals if isinstance(decimals, int) and 0 <= decimals <= _MOST_DECIMALS else 0
        for end in ("minimum", "maximum"):
            given[end] = _end(f"{where}: {end}", given.get(end), scale)
    if not isinstance(given.get("values", []), (list, tuple)):
        raise ValueError(f"{where}: values must be a list")
    given["values"] = tuple(given.get("values", ()))
    given.setdefault("kind", "")
    return Column(**given)


def _end(name: str, value: Any, decimals: int) -> int:
    text = str(value).strip()
    if isinstance(value, bool) or not NUMBER.fullmatch(text):
        raise ValueError(f"{name} must be a number, got {value!r}")
    scaled = Decimal(text).scaleb(decimals)
    if abs(scaled) > _LARGEST_CODE or scaled != scaled.to_integral_value():
        raise ValueError(f"{name} must be a number of {decimals} decimals and moderate size, got {value!r}")
    return int(scaled)


@dataclasses.dataclass(frozen=True)
class Schema:
    """The columns of a table, in the order of its header.

    Attributes:
      columns: one at least, with different names.
      label: name of the column that a classifier is to predict; None where there is none.

    Raises:
      ValueError: there is no column, two have one name, or none has the label's.
    """

    columns: tuple[Column, ...]
    label: str | None = None

    def __post_init__(self) -> None:
        if not self.columns:
            raise ValueError("columns must be one at least, got none")
        names = self.names
        if len(set(names)) < len(names):
            twice = next(name for name in names if names.count(name) > 1)
            raise ValueError(f"columns must have different names, got {twice!r} twice")
        if self.label is not None and self.label not in names:
            raise ValueError(f"label must be one of the columns {', '.join(names)}, got {self.label!r}")

    @property
    def names(self) -> tuple[str, ...]:
        """Of the columns."""
        return tuple(column.name for column in self.columns)

    def index(self, name: str) -> int:
        """Place of a column.

        Raises:
          ValueError: there is none of that name.
        """
        if name not in self.names:
            raise ValueError(f"column must be one of {', '.join(self.names)}, got {name!r}")
        return self.names.index(name)

    def column(self, name: str) -> Column:
        """The column of that name.

        Raises:
          ValueError: there is none.
        """
        return self.columns[self.index(name)]

    def as_dict(self) -> dict[str, Any]:
        """For JSON."""
        return {"label": self.label, "columns": [column.as_dict() for column in self.columns]}


def schema(record: Any) -> Schema:
    """The schema that `Schema.as_dict` describes.

    Raises:
      ValueError: it describes none; the message names what is wrong.
    """
    if not isinstance(record, dict) or not isinstance(record.get("columns"), list):
        raise ValueError('schema must be a JSON object with a list "columns"')
    label = record.get("label")
    if label is not None and not isinstance(label, str):
        raise ValueError(f"schema: label must be the name of a column, got {label!r}")
    return Schema(tuple(column(entry) for entry in record["columns"]), label)


def read(path: Path) -> Schema:
    """The schema in a JSON file.

    Raises:
      ValueError: there is no such file, or it holds no schema.
    """
    try:
        return schema(json.loads(path.read_text(encoding="utf-8")))
    except (OSError, ValueError) as error:
        raise ValueError(f"schema must be a file that describes the columns, got {path}: {error}") from None
