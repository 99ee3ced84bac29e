"""All metrics of a synthetic table, each with what it was computed on."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

import numpy as np
from jaxtyping import Float, Int

from exactdp.train.table_metrics import associations, histograms, pairs
from exactdp.train.table_metrics.cells import require_table
from exactdp.train.table_metrics.closest import Closest, closest
from exactdp.train.table_metrics.utility import MOST_ROWS, Utility, utility
from exactdp.train.table_metrics.validity import Validity
from exactdp.train.tables.schema import Schema

BINS = (50, 20)
"""Bins of a number in histograms; the first is the one to quote, and that of pairs."""

HELD_OUT = "held-out real rows and synthetic rows; not covered by the certificate"
TRAIN_ON_SYNTHETIC = "trained on synthetic rows, tested on held-out real rows; not covered by the certificate"
TRAINING = (
    "PRIVATE: training rows, without noise, beside synthetic and held-out real rows; not covered by the "
    "certificate"
)
GENERATED = "generated rows"


@dataclasses.dataclass(frozen=True)
class Metrics:
    """Of a synthetic table.

    All but validity are computed on real rows, without noise: they are for whoever may see these rows, and no
    certificate of the synthetic table covers them.

    Attributes:
      columns: their names.
      rows: of the tables: real_test, synthetic and, where given, train.
      histograms: for a number of bins each column's overlap; see `histograms.intersections`.
      pairs: see `pairs.similarities`.
      real_associations: see `associations.matrix`; of the real rows.
      synthetic_associations: of the synthetic ones.
      utility: see `utility.utility`.
      closest: see `closest.closest`; None where no training rows were given.
      validity: of the generation; None where it is not known.
    """

    columns: tuple[str, ...]
    rows: Mapping[str, int]
    histograms: Mapping[int, Float[np.ndarray, " columns"]]
    pairs: Float[np.ndarray, "columns columns"]
    real_associations: Float[np.ndarray, "columns columns"]
    synthetic_associations: Float[np.ndarray, "columns columns"]
    utility: Utility
    closest: Closest | None
    validity: Validity | None

    @property
    def hist(self) -> float:
        """Hist at 50 bins."""
        return float(self.histograms[BINS[0]].mean())

    @property
    def pair(self) -> float | None:
        """Pair at 50 bins; None for one column."""
        return pairs.mean(self.pairs)

    @property
    def correlation_accuracy(self) -> float | None:
        """CorAcc; None for one column."""
        return associations.accuracy(self.real_associations, self.synthetic_associations)

    @property
    def f1(self) -> float | None:
        """Mean of the two classifiers' F1; None where there is none, see `utility.reason`."""
        return self.utility.mean.f1 if self.utility.mean else None

    def as_dict(self) -> dict[str, Any]:
        """For JSON. Each entry has its value, or None with a reason, and what it is computed on."""
        share = self.correlation_accuracy
        single = {} if share is not None else {"reason": "a single column has no pair"}
        published = None if share is None else associations.with_diagonal(share, len(self.columns))
        return {
            "rows": dict(self.rows),
            "hist": {
                "value": self.hist,
                "bins": BINS[0],
                "by_bins": {str(bins): float(values.mean()) for bins, values in self.histograms.items()},
                "columns": {
                    str(bins): dict(zip(self.columns, map(float, values), strict=True))
                    for bins, values in self.histograms.items()
                },
                "computed_on": HELD_OUT,
            },
            "pair": {"value": self.pair, "bins": BINS[0], "computed_on": HELD_OUT, **single},
            "correlation_accuracy": {
                "value": share,
                "with_diagonal": published,
                "computed_on": HELD_OUT,
                **single,
            },
            **_utility(self.utility),
            "closest": (
                {"value": None, "reason": "no training rows were given", "computed_on": TRAINING}
                if self.closest is None
                else {**dataclasses.asdict(self.closest), "computed_on": TRAINING}
            ),
            "validity": (
                {"value": None, "reason": "not measured", "computed_on": GENERATED}
                if self.validity is None
                else {
                    "value": self.validity.rate,
                    "asked": self.validity.asked,
                    "accepted": self.validity.accepted,
                    "reasons": dict(self.validity.reasons),
                    "computed_on": GENERATED,
                }
            ),
        }


def _utility(found: Utility) -> dict[str, Any]:
    about = {
        "label": found.label,
        "positive": found.positive,
        "trained": found.trained,
        "tested": found.tested,
        "computed_on": TRAIN_ON_SYNTHETIC,
    }
    if found.reason:
        about["reason"] = found.reason
    return {
        name: {
            "value": getattr(found.mean, name) if found.mean else None,
            "classifiers": {part.classifier: getattr(part, name) for part in found.parts},
            **about,
        }
        for name in ("f1", "auc", "accuracy")
    }


def evaluate(
    real_test: Int[np.ndarray, "rows columns"],
    synthetic: Int[np.ndarray, "others columns"],
    schema: Schema,
    *,
    train: Int[np.ndarray, "records columns"] | None = None,
    validity: Validity | None = None,
    most_rows: int = MOST_ROWS,
) -> Metrics:
    """All metrics of a synthetic table.

    Real rows that nothing was trained on stand for the population. To see what a metric is worth at best,
    give real training rows as `synthetic`.

    Memory beyond the tables is about 100 bytes a row and one to four a cell (1e6 rows of 15 columns: below
    1 GB, tables included); time is mostly that of counting each pair of columns in both tables, and of the
    classifiers, which train on `most_rows` rows at most.

    Args:
      real_test: codes of held-out real rows.
      synthetic: codes.
      schema: of both: each cell is in its column's domain.
      train: codes of the private training rows; only for the distance to closest record.
      validity: of the generation.
      most_rows: see `exactdp.train.table_metrics.utility.utility`.

    Raises:
      ValueError: a table is none of this schema, or has no row.
    """
    tables = {"real_test": real_test, "synthetic": synthetic} | ({} if train is None else {"train": train})
    for name, table in tables.items():
        require_table(name, table, schema)
    return Metrics(
        columns=schema.names,
        rows={name: len(table) for name, table in tables.items()},
        histograms={bins: histograms.intersections(real_test, synthetic, schema, bins=bins) for bins in BINS},
        pairs=pairs.similarities(real_test, synthetic, schema, bins=BINS[0]),
        real_associations=associations.matrix(real_test, schema),
        synthetic_associations=associations.matrix(synthetic, schema),
        utility=utility(real_test, synthetic, schema, most_rows=most_rows),
        closest=None if train is None else closest(real_test, synthetic, train, schema),
        validity=validity,
    )
