"""A subset of the columns of tabular records."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from exactdp.accounting import validate

_LARGEST_FILL = 1e15


@dataclasses.dataclass(frozen=True)
class Columns:
    """Some columns of a record are public; the others are replaced by a constant.

    Attributes:
      indices: of the public columns, from 0, ascending, each once; one at least.
      fill: what stands for a private column, a public constant.

    Raises:
      ValueError: an index is negative or named twice, there is none, or `fill` is not finite.
    """

    indices: tuple[int, ...]
    fill: float = 0.0

    def __post_init__(self) -> None:
        found = sorted(validate.count("columns", index) for index in self.indices)
        if not found:
            raise ValueError("columns must name one column at least, got none")
        twice = next((a for a, b in zip(found, found[1:], strict=False) if a == b), None)
        if twice is not None:
            raise ValueError(f"columns must name each column once, got {twice} twice")
        require_fill(self.fill)
        object.__setattr__(self, "indices", tuple(found))

    def view(self, x: Float[Array, "batch columns"]) -> Float[Array, "batch columns"]:
        """x with `fill` in place of the private columns."""
        kept = np.zeros(x.shape[-1], bool)
        kept[list(self.indices)] = True
        return jnp.where(kept, x, jnp.asarray(self.fill, x.dtype))

    def require_shape(self, shape: tuple[int, ...]) -> None:
        """Takes tabular records that have all the columns.

        Raises:
          ValueError: records are not tabular, or a column is not there.
        """
        if len(shape) != 1:
            raise ValueError(f"columns must be of tabular records, got records of shape {shape}")
        if self.indices[-1] >= shape[0]:
            raise ValueError(f"columns must be below the {shape[0]} that there are, got {self.indices[-1]}")

    @property
    def text(self) -> str:
        """`columns:` with ranges, and the constant where it is not 0."""
        fill = "" if self.fill == 0.0 else f",fill={self.fill:g}"
        return f"columns:{_ranges(self.indices)}{fill}"


def require_fill(fill: float) -> None:
    """Refuses a constant that float32 records cannot hold.

    Raises:
      ValueError: it is refused.
    """
    if not abs(fill) <= _LARGEST_FILL:
        raise ValueError(f"fill must be finite, of size {_LARGEST_FILL:g} at most, got {fill}")


def attributes(columns: Sequence[str]) -> dict[str, tuple[int, ...]]:
    """The places of each attribute's features, attributes in the order of their first feature.

    The attribute of a feature is what its name has before the first `=`: `sex=Female` and `sex=Male` are two
    features of `sex`, and `age` is the one feature of `age`. An attribute goes as a whole: with one of two
    indicators public, the other is no secret.

    Args:
      columns: names of the features.
    """
    groups: dict[str, tuple[int, ...]] = {}
    for place, column in enumerate(columns):
        attribute = column.partition("=")[0]
        groups[attribute] = (*groups.get(attribute, ()), place)
    return groups


def feature_groups(columns: Sequence[str]) -> dict[str, tuple[int, ...]]:
    """What each name stands for: the places of one feature, or of all features of one attribute.

    Args:
      columns: names of the features.

    Returns:
      {name: places in ascending order}, for each attribute and for each single feature that is not itself the
      name of an attribute; attributes first, in the order of their first feature.
    """
    groups = attributes(columns)
    single = {column: (place,) for place, column in enumerate(columns) if column not in groups}
    return groups | single


def named(words: Sequence[str], *, names: Sequence[str], num_columns: int) -> tuple[int, ...]:
    """Indices of the columns that words name.

    Args:
      words: each an index, a range `0-99` (both ends are taken), a column's name, or the name of a group:
        `sex` for all columns named `sex=...`.
      names: of the columns; empty where they have none.
      num_columns: how many there are; 0 where records are not tabular.

    Raises:
      ValueError: records are not tabular, or a word names no column, or one that another names.
    """
    if num_columns == 0:
        raise ValueError(f"columns must be of tabular records, got {','.join(words)} for others")
    found: list[int] = []
    for word in words:
        new = _one(word, names, num_columns)
        twice = sorted(set(new) & set(found))
        if twice:
            raise ValueError(f"columns must name each column once, got {twice[0]} twice")
        found += new
    return tuple(sorted(found))


def _one(word: str, names: Sequence[str], num_columns: int) -> list[int]:
    groups = feature_groups(names)
    if word in groups:
        return list(groups[word])
    first, dash, last = word.partition("-")
    if first.isdecimal() and (last.isdecimal() if dash else True):
        start, stop = int(first), int(last) if dash else int(first)
        if stop < start:
            raise ValueError(f"columns must be ascending ranges, got {word}")
        if stop >= num_columns:
            raise ValueError(f"columns must be below the {num_columns} that there are, got {word}")
        return list(range(start, stop + 1))
    known = list(attributes(names))
    said = ", ".join(known[:20]) + (", ..." if len(known) > 20 else "") if known else "no names"
    raise ValueError(f"columns must be indices, ranges or names ({said}), got {word!r}")


def _ranges(indices: Sequence[int]) -> str:
    parts: list[list[int]] = []
    for index in indices:
        if parts and index == parts[-1][1] + 1:
            parts[-1][1] = index
        else:
            parts.append([index, index])
    return ",".join(str(a) if a == b else f"{a}-{b}" for a, b in parts)
