"""Metrics of a synthetic table in the domain that real and synthetic rows have together."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

import numpy as np
import pyarrow as pa
from jaxtyping import Int

from exactdp.train.table_metrics.evaluate import HELD_OUT, Metrics, evaluate
from exactdp.train.table_metrics.validity import Validity
from exactdp.train.tables import as_published, csv_file
from exactdp.train.tables.csv_file import RawTable
from exactdp.train.tables.schema import Schema

FEW = 256
"""Made-up rows that the loss is measured on where there are no held-out ones."""


@dataclasses.dataclass(frozen=True, eq=False)
class Comparison:
    """Synthetic rows beside held-out real ones. Private: nothing of it is covered by a certificate.

    Attributes:
      schema: the exact domain of all rows together.
      real_test: codes of the held-out rows in it.
      synthetic: codes of the synthetic ones.
      metrics: of both.
      perplexities: of the model, over the tokens of held-out rows of each class, by its name.
    """

    schema: Schema
    real_test: Int[np.ndarray, "rows columns"]
    synthetic: Int[np.ndarray, "others columns"]
    metrics: Metrics
    perplexities: Mapping[str, float]

    def as_dict(self) -> dict[str, Any]:
        """The metrics for JSON, see `Metrics.as_dict`, and the perplexities."""
        return self.metrics.as_dict() | {
            "perplexity": {"value": dict(self.perplexities), "computed_on": HELD_OUT}
        }


def compare(
    real_test: RawTable,
    synthetic: RawTable,
    *,
    train: RawTable | None,
    label: str | None,
    validity: Validity | None,
    perplexities: Mapping[str, float],
) -> Comparison:
    """All metrics, of the tables as they stand in their files.

    They are compared in the exact domain of all of them together, and not in the released one: there a rare
    category of a real row would be a missing cell, and be met by any.

    Args:
      real_test: held-out rows.
      synthetic: rows with the same columns.
      train: rows that were trained on, for the distance to the closest; None for none.
      label: name of the label's column, or None.
      validity: of the generation.
      perplexities: of the model.

    Raises:
      ValueError: a table lacks a column.
    """
    names = list(synthetic.names)
    tables = [synthetic, real_test, *([] if train is None else [train])]
    together = RawTable(pa.concat_tables([table.table.select(names) for table in tables]))
    schema = as_published.exact(together, label=label).schema
    codes = [csv_file.encode(table, schema).codes for table in tables]
    found = evaluate(codes[1], codes[0], schema, train=None if train is None else codes[2], validity=validity)
    return Comparison(schema, codes[1], codes[0], found, perplexities)
