"""Names of the features of tabular records."""

from __future__ import annotations

from collections.abc import Sequence

# Used to list names in a specification, or what a specification would take for an index.
_RESERVED = (",", "+", ":", ">")


def require_names(name: str, columns: Sequence[str], *, input_shape: tuple[int, ...]) -> None:
    """Checks names of columns against the shape of a record.

    Args:
      name: of the data set, for messages.
      columns: one name a feature.
      input_shape: of one record; must be (d,).

    Raises:
      ValueError: records are not flat, the names are not as many as features or not all different, or one is
        empty, only digits (an index), begins with `=`, or holds a space or one of , + : >.
    """
    if len(input_shape) != 1 or len(columns) != input_shape[0]:
        raise ValueError(
            f"{name}: columns must be one name a feature of flat records, got {len(columns)} names for "
            f"records of shape {input_shape}"
        )
    seen: set[str] = set()
    for column in columns:
        if not column or column.isdigit() or column[0] == "=" or column.split() != [column]:
            raise ValueError(
                f"{name}: a column's name must be a word that does not begin with '=' and is no number, got "
                f"{column!r}"
            )
        if any(mark in column for mark in _RESERVED):
            raise ValueError(
                f"{name}: a column's name must hold none of {' '.join(_RESERVED)}, got {column!r}"
            )
        if column in seen:
            raise ValueError(f"{name}: columns must have different names, {column!r} comes twice")
        seen.add(column)
