"""Private choice of what a column holds, from a noisy histogram over a public list of cell kinds.

Every cell is of one kind, by its own text alone:

    missing     empty, or a usual mark of a missing value (`MISSING_MARKS`)
    0 ... 6     a number with that many decimals, trailing zeros aside ("18.0" has none); more than 6 count as
                6, and never more than leave its code, number x 10^decimals, within 10^15
    text        anything else; also a number beyond 10^15

so that a record is in one of nine counts. The choice is made of the noisy counts alone. With n the sum of the
positive noisy counts that are not of missing cells, and t the noise's quantile at `failure / 9`:

    category                    if the texts exceed max(n / 20, t), or no count exceeds t
    number with d decimals      d the largest whose count exceeds max(n / 100, t), else the d of the largest

Where every cell is of one kind and there are clearly more of them than t, the choice is wrong with
probability `failure` at most. Whole numbers are never taken for categories: their kind does not tell them
apart.
"""

from __future__ import annotations

import dataclasses
import re
from decimal import Decimal
from typing import Any, cast

import numpy as np
import pyarrow as pa
import pyarrow.compute
from jaxtyping import Int

from exactdp.accounting import validate
from exactdp.mechanisms.statistics import counts
from exactdp.mechanisms.statistics.counts import Noise

MISSING_MARKS = ("", "?", "-", "na", "n/a", "nan", "null", "none")
"""In any case of letters."""

MOST_DECIMALS = 6
MISSING, TEXT = 0, MOST_DECIMALS + 2
CELL_KINDS = ("missing", *(f"{d} decimals" for d in range(MOST_DECIMALS + 1)), "text")
"""The cells of the histogram: `MISSING`, 1 + decimals, `TEXT`."""

_TEXT_SHARE, _DECIMALS_SHARE = 1 / 20, 1 / 100
_MOST_DIGITS = 15
_PLAIN = r"^[+-]?(\d+(\.\d*)?|\.\d+)$"
_ANY = re.compile(r"[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d{1,3})?", re.ASCII)

# Its functions are made at import, and untyped.
_pc: Any = pyarrow.compute


@dataclasses.dataclass(frozen=True)
class Kind:
    """What a column holds.

    Attributes:
      name: "category", "integer" or "float", as of a column of a schema.
      decimals: of a float, 1 to 6; else 0.
    """

    name: str
    decimals: int = 0


def cell_kinds(texts: Any) -> Int[np.ndarray, " rows"]:
    """The kind of each cell, a place in `CELL_KINDS`.

    Args:
      texts: an Arrow array of type string, chunked or not; a null is missing, spaces at its ends are dropped.
    """
    array = _pc.fill_null(_pc.utf8_trim_whitespace(texts), "")
    found = np.full(len(array), TEXT, np.int64)
    plain = _array(_pc.match_substring_regex(array, pattern=_PLAIN)).astype(bool)
    if plain.any():
        digits = _pc.utf8_ltrim(_pc.filter(array, pa.array(plain)), characters="+-")
        whole = _length(
            _pc.utf8_ltrim(_pc.replace_substring_regex(digits, pattern=r"\..*$", replacement=""), "0")
        )
        part = _pc.replace_substring_regex(digits, pattern=r"^\d*\.?", replacement="")
        found[plain] = _kind_of(_length(_pc.utf8_rtrim(part, characters="0")), whole)
    marks = pa.array(MISSING_MARKS, array.type)
    found[_array(_pc.is_in(_pc.utf8_lower(array), value_set=marks)).astype(bool)] = MISSING
    # Numbers with an exponent are rare: one by one.
    for place in np.flatnonzero(
        (found == TEXT) & _array(_pc.match_substring_regex(array, pattern=r"^[+-]?[.\d]"))
    ):
        text = cast("str", array[int(place)].as_py())
        if _ANY.fullmatch(text):
            found[place] = _of_number(Decimal(text))
    return found


def histogram(texts: Any) -> Int[np.ndarray, " kinds"]:
    """How many cells are of each of `CELL_KINDS`. Exact: private."""
    found = _pc.value_counts(texts)
    kinds, numbers = cell_kinds(found.field("values")), _array(found.field("counts"))
    # Weights are floats: exact below 2^53.
    return np.bincount(kinds, weights=numbers, minlength=len(CELL_KINDS)).astype(np.int64)


def choose(noisy: Int[np.ndarray, " kinds"], *, noise: Noise, failure: float = 0.01) -> Kind:
    """The kind that a noisy histogram speaks for, by the rule above.

    Args:
      noisy: counts of `CELL_KINDS` with noise.
      noise: of each count.
      failure: probability that pure noise is taken for cells, in (0, 1).

    Raises:
      ValueError: bad input.
    """
    least = counts.quantile(noise, validate.open_probability("failure", failure) / len(CELL_KINDS))
    values = np.asarray(noisy)
    if values.shape != (len(CELL_KINDS),):
        raise ValueError(f"noisy must hold {len(CELL_KINDS)} counts, got shape {values.shape}")
    present = values[MISSING + 1 :]
    total = float(np.maximum(present, 0).sum())
    if present.max() <= least or values[TEXT] > max(_TEXT_SHARE * total, least):
        return Kind("category")
    numbers = values[MISSING + 1 : TEXT]
    clear = np.flatnonzero(numbers > max(_DECIMALS_SHARE * total, least))
    decimals = int(clear[-1]) if clear.size else int(np.argmax(numbers))
    return Kind("float", decimals) if decimals else Kind("integer")


def release(texts: Any, *, noise: Noise, failure: float = 0.01) -> Kind:
    """The kind of a column, privately.

    Guarantee: dominated by `noise` under add/remove of a record (pure epsilon-DP for discrete Laplace noise
    of scale 1/epsilon): a record is in one count, and the rest is post-processing.

    Args:
      texts: the column, as in `cell_kinds`.
      noise: of each count.
      failure: as in `choose`.

    Raises:
      ValueError: bad input.
    """
    return choose(counts.noisy(histogram(texts), noise=noise), noise=noise, failure=failure)


def _array(values: Any) -> np.ndarray:
    return np.asarray(values.to_numpy() if isinstance(values, pa.ChunkedArray) else values.to_numpy(False))


def _length(texts: Any) -> Int[np.ndarray, " rows"]:
    return _array(_pc.utf8_length(texts)).astype(np.int64)


def _kind_of(decimals: Int[np.ndarray, " rows"], whole: Int[np.ndarray, " rows"]) -> Int[np.ndarray, " rows"]:
    """The kind of numbers with so many decimals and so many digits before the point, leading zeros aside."""
    kept = np.minimum(np.minimum(decimals, MOST_DECIMALS), np.maximum(_MOST_DIGITS - whole, 0))
    return np.where(whole > _MOST_DIGITS, TEXT, 1 + kept)


def _of_number(number: Decimal) -> int:
    if not number:
        return 1
    exponent = cast("int", number.normalize().as_tuple().exponent)
    decimals, whole = max(-exponent, 0), max(number.adjusted() + 1, 0)
    return int(_kind_of(np.array([decimals]), np.array([whole]))[0])
