"""Cells of a whole column at once: from texts to codes, and back."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute
from jaxtyping import Bool, Int

from exactdp.train.tables.schema import MISSING, NUMBER, Column, Schema

# Its functions are made at import, and untyped.
_compute: Any = pyarrow.compute

# The plain ones among them, and in plain spaces: these are computed in int64.
_PLAIN = r"^ *(?P<sign>[+-]?)0*(?P<whole>[0-9]{1,15})(?:\.(?P<fraction>[0-9]{0,18}))? *$"
_PLACES = 18
_LARGEST = 10**15
_MOST_DIGITS = 28  # beyond, decimal arithmetic rounds twice


def codes(column: Column, texts: Any) -> tuple[Int[np.ndarray, " n"], Bool[np.ndarray, " n"]]:
    """The codes of texts, and which of the texts are outside the domain.

    A text of the domain gets `column.code(text)`. Any other gets a code that depends on that text and the
    domain alone:

        a number                    the nearest number of the domain
        no number, or no category   MISSING, where the column allows it
        where it does not           the first category, or the number nearest 0

    Args:
      column: the domain.
      texts: an Arrow array of type string, without nulls.

    Returns:
      Codes, and a mask of the texts that were outside.
    """
    encoded: Any = texts.dictionary_encode()
    distinct: Any = encoded.dictionary
    if column.kind == "category":
        found, outside = _each(column, distinct.to_pylist())
    else:
        found, outside = _numbers(column, distinct)
    places = encoded.indices.to_numpy(zero_copy_only=False)
    return found[places], outside[places]


def texts(column: Column, codes: Int[np.ndarray, " n"]) -> np.ndarray:
    """`column.text` of each code, as an array of str objects.

    Raises:
      ValueError: a code is outside the domain.
    """
    if column.kind == "category":
        distinct, places = np.unique(codes, return_inverse=True)
        return np.array([column.text(int(code)) for code in distinct], object)[places]
    missing = codes == MISSING
    known = np.where(missing, column.low, codes)
    if (known < column.low).any() or (known > column.high).any() or (missing.any() and not column.missing):
        raise ValueError(f"column {column.name!r}: code must be in the column's domain")
    found = pa.array(known).cast(pa.string())
    if column.decimals:
        whole, fraction = (
            pa.array(part).cast(pa.string()) for part in divmod(abs(known), 10**column.decimals)
        )
        fraction = _compute.utf8_lpad(fraction, width=column.decimals, padding="0")
        sign = pa.array(np.where(known < 0, "-", ""), pa.string())
        # The last argument stands between the others.
        found = _compute.binary_join_element_wise(sign, whole, ".", fraction, "")
    found = found.to_numpy(zero_copy_only=False)
    found[missing] = ""
    return found


def require_columns(codes: Int[np.ndarray, "rows columns"], schema: Schema) -> None:
    """Checks the shape of a table.

    Raises:
      ValueError: there are not as many columns as in the schema.
    """
    if codes.ndim != 2 or codes.shape[1] != len(schema.columns):
        raise ValueError(f"codes must have {len(schema.columns)} columns, got shape {codes.shape}")


def is_number(text: str) -> bool:
    """Whether a cell holds a number, in or outside any domain."""
    return NUMBER.fullmatch(text.strip()) is not None


def _each(column: Column, distinct: list[str]) -> tuple[np.ndarray, np.ndarray]:
    found = np.empty(len(distinct), np.int64)
    outside = np.zeros(len(distinct), bool)
    for place, text in enumerate(distinct):
        code = column.code(text)
        outside[place] = code is None
        found[place] = _nearest(column, text) if code is None else code
    return found, outside


def _nearest(column: Column, text: str) -> int:
    """The code of a text outside the domain."""
    if column.kind != "category" and is_number(text):
        scaled = Decimal(text.strip()).scaleb(column.decimals)
        # Clamped first: a large power of ten has no use for its digits.
        return int(min(max(scaled, Decimal(column.low)), Decimal(column.high)).to_integral_value())
    if column.missing:
        return MISSING
    return min(max(0, column.low), column.high)


def _numbers(column: Column, distinct: Any) -> tuple[np.ndarray, np.ndarray]:
    parts = _compute.extract_regex(distinct, _PLAIN)
    sign, whole, fraction = parts.flatten()
    whole_digits = _lengths(whole)
    plain = parts.is_valid().to_numpy(zero_copy_only=False)
    plain &= whole_digits + _lengths(fraction) <= _MOST_DIGITS
    plain &= whole_digits + column.decimals <= 17
    found = np.zeros(len(distinct), np.int64)
    outside = np.zeros(len(distinct), bool)

    chosen = pa.array(plain)
    padded = _compute.utf8_rpad(fraction.filter(chosen), width=_PLACES, padding="0")
    quotient, rest = np.divmod(_integers(padded), 10 ** (_PLACES - column.decimals))
    number = _integers(whole.filter(chosen)) * 10**column.decimals + quotient
    # Half to even.
    half = 5 * 10 ** (_PLACES - column.decimals - 1)
    number += (rest > half) | ((rest == half) & (number % 2 == 1))
    negative = _compute.equal(sign.filter(chosen), "-").to_numpy(zero_copy_only=False)
    number = np.where(negative, -number, number)
    found[plain] = np.clip(number, column.low, column.high)
    outside[plain] = (number < column.low) | (number > column.high)
    if column.kind == "integer":
        outside[plain] |= rest > 0

    large = np.zeros(len(distinct), bool)
    large[plain] = np.abs(number) >= _LARGEST
    other = np.flatnonzero(~plain | large)
    if other.size:
        found[other], outside[other] = _each(column, distinct.take(pa.array(other)).to_pylist())
    return found, outside


def _lengths(digits: Any) -> np.ndarray:
    found = _compute.binary_length(digits)
    return found.fill_null(0).to_numpy(zero_copy_only=False)


def _integers(digits: Any) -> np.ndarray:
    found = _compute.cast(digits, pa.int64())
    return found.to_numpy(zero_copy_only=False)
