"""Names of the features of tabular records, and the groups that belong to one attribute."""

from __future__ import annotations

from collections.abc import Sequence

# Used to list names in a specification, or what a specification would take for an index.
_RESERVED = (",", "+", ":", ">")


def feature_groups(columns: Sequence[str]) -> dict[str, tuple[int, ...]]:
    """What each name stands for: the places of one feature, or of all features of one attribute.

    The attribute of a feature is what its name has before the first `=`: `sex=Female` and `sex=Male` are two
    features of `sex`, and `age` is the one feature of `age`. An attribute goes as a whole: with one of two
    indicators public, the other is no secret.

    Args:
      columns: the names, as in `Dataset.columns`.

    Returns:
      {name: places in ascending order}, for each attribute and for each single feature that is not itself the
      name of an attribute; attributes first, in the order of their first feature.
    """
    groups: dict[str, tuple[int, ...]] = {}
    for place, column in enumerate(columns):
        attribute = column.partition("=")[0]
        groups[attribute] = (*groups.get(attribute, ()), place)
    single = {column: (place,) for place, column in enumerate(columns) if column not in groups}
    return groups | single


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
