"""Metrics of a synthetic table in the domain that real and synthetic rows have together."""

from __future__ import annotations

import pyarrow as pa

from exactdp.train.table_metrics.evaluate import Metrics, evaluate
from exactdp.train.table_metrics.validity import Validity
from exactdp.train.tables import as_published, csv_file
from exactdp.train.tables.csv_file import RawTable

FEW = 256
"""Made-up rows that the loss is measured on where there are no held-out ones."""


def metrics(
    real_test: RawTable,
    synthetic: RawTable,
    *,
    train: RawTable | None,
    label: str | None,
    validity: Validity | None,
) -> Metrics:
    """All metrics. Private: they are computed on real rows without noise.

    The tables are compared as they stand in their files, in the exact domain of all of them together, and not
    in the released one: there a rare category of a real row would be a missing cell, and be met by any.

    Args:
      real_test: held-out rows.
      synthetic: rows with the same columns.
      train: rows that were trained on, for the distance to the closest; None for none.
      label: name of the label's column, or None.
      validity: of the generation.

    Raises:
      ValueError: a table lacks a column.
    """
    names = list(synthetic.names)
    tables = [synthetic, real_test, *([] if train is None else [train])]
    together = RawTable(pa.concat_tables([table.table.select(names) for table in tables]))
    schema = as_published.exact(together, label=label).schema
    codes = [csv_file.encode(table, schema).codes for table in tables]
    return evaluate(codes[1], codes[0], schema, train=None if train is None else codes[2], validity=validity)
