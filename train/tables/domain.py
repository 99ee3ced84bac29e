"""The domain of a table whose columns are not all declared: what is missing is released privately.

Of each undeclared column its kind first, then its range or its list of categories. Every such column may be
missing, since a text outside a list, or no number, is coded as missing; numbers outside a range are clamped.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any, cast

import numpy as np
from jaxtyping import Int

from exactdp.accounting import validate
from exactdp.accounting.pairs.discrete_gaussian import DiscreteGaussian
from exactdp.mechanisms.statistics import bounds, categories, kind
from exactdp.mechanisms.statistics.bounds import Bounds
from exactdp.train.tables import cells
from exactdp.train.tables.budget import Budget
from exactdp.train.tables.csv_file import RawTable
from exactdp.train.tables.schema import MISSING, Column, Schema

MOST_CATEGORIES = 1000
_LARGEST_CODE = 10**15


@dataclasses.dataclass(frozen=True)
class Domain:
    """A table's domain, and what was released to find it.

    Attributes:
      schema: columns in the order of the table.
      bounds: noisy bucket counts of the released ranges, by name of column.
    """

    schema: Schema
    bounds: dict[str, Bounds]


def discover(
    raw: RawTable,
    *,
    declared: Sequence[Column],
    label: str | None,
    budget: Budget,
    most_categories: int = MOST_CATEGORIES,
) -> Domain:
    """The domain of all columns: declared where it is declared, else released under the budget.

    Guarantee: dominated by the kind and domain releases of `budget.releases()` under add/remove of a row.
    Draws noise: announce them first.

    Args:
      raw: the table.
      declared: domains of some columns, all, or none.
      label: name of the label's column; None where there is none.
      budget: for that many columns and undeclared ones.
      most_categories: kept of an undeclared column.

    Raises:
      ValueError: a declared column or the label is not in the table, one is declared twice, or the budget is
        for another number of columns.
    """
    known = _known(raw, declared, label)
    given, wanted = (budget.num_columns, budget.num_undeclared), (len(raw.names), len(raw.names) - len(known))
    if given != wanted:
        raise ValueError(
            f"budget must be for {wanted[0]} columns of which {wanted[1]} are undeclared, got {given[0]} and "
            f"{given[1]}"
        )
    validate.count("most_categories", most_categories, minimum=1)
    released: dict[str, Bounds] = {}
    columns: list[Column] = []
    for name in raw.names:
        if name in known:
            columns.append(known[name])
            continue
        column, found = _release(name, raw.column(name), budget=budget, limit=most_categories)
        columns.append(column)
        if found is not None:
            released[name] = found
    return Domain(Schema(tuple(columns), label), released)


def _known(raw: RawTable, declared: Sequence[Column], label: str | None) -> dict[str, Column]:
    known = {column.name: column for column in declared}
    if len(known) < len(declared):
        names = [column.name for column in declared]
        twice = next(name for name in names if names.count(name) > 1)
        raise ValueError(f"declared must hold each column once, got {twice!r} twice")
    for name in (*known, *([] if label is None else [label])):
        if name not in raw.names:
            raise ValueError(f"column must be one of {', '.join(map(repr, raw.names))}, got {name!r}")
    return known


def _release(name: str, texts: Any, *, budget: Budget, limit: int) -> tuple[Column, Bounds | None]:
    kind_noise = cast("DiscreteGaussian", budget.kind_noise)
    noise = cast("DiscreteGaussian", budget.domain_noise)
    found = kind.release(texts, noise=kind_noise)
    if found.name == "category":
        values = categories.release(texts, noise=noise, delta=budget.list_delta, limit=limit)
        return Column(name, "category", values=tuple(sorted(values)), missing=True), None
    ends = bounds.release(numbers(texts, decimals=found.decimals), noise=noise)
    column = Column(
        name,
        found.name,
        minimum=max(ends.minimum, -_LARGEST_CODE),
        maximum=min(ends.maximum, _LARGEST_CODE),
        decimals=found.decimals,
        missing=True,
    )
    return column, ends


def numbers(texts: Any, *, decimals: int) -> Int[np.ndarray, " numbers"]:
    """The codes of the cells that hold a number, clamped to those a schema may have.

    Args:
      texts: a chunked Arrow array of type string, without nulls.
      decimals: of the codes; 0 for whole numbers.
    """
    kind_name = "float" if decimals else "integer"
    wide = Column(
        "any", kind_name, minimum=-_LARGEST_CODE, maximum=_LARGEST_CODE, decimals=decimals, missing=True
    )
    found = [cells.codes(wide, chunk)[0] for chunk in texts.chunks]
    codes = np.concatenate([*found, np.empty(0, np.int64)])
    return codes[codes != MISSING]
