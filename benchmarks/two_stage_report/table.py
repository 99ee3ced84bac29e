"""The report's numbers as rows of a CSV file."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence

from exactdp.benchmarks.two_stage_report.measurement import Measurement
from exactdp.train.table_metrics.evaluate import (
    BINS,
    GENERATED,
    HELD_OUT,
    TRAIN_ON_SYNTHETIC,
    TRAINING,
    Metrics,
)

COLUMNS = ("metric", "part", "value", "computed_on")
"""`part` is empty for the headline number, else the column, the pair of columns, or what else it is of."""


def headline(metrics: Metrics) -> list[tuple[str, float | None, str, str]]:
    """The numbers to quote: name, value, what it is computed on, and why there is no value."""
    found, label = metrics.utility, metrics.utility.label
    single = "" if metrics.pair is not None else "a single column has no pair"
    mean = found.mean
    of = f"F1 of {found.positive!r}" if found.positive else "macro F1"
    validity = metrics.validity
    return [
        (f"Hist, {BINS[0]} bins", metrics.hist, HELD_OUT, ""),
        (f"Hist, {BINS[1]} bins", float(metrics.histograms[BINS[1]].mean()), HELD_OUT, ""),
        (f"Pair, {BINS[0]} bins", metrics.pair, HELD_OUT, single),
        ("CorAcc", metrics.correlation_accuracy, HELD_OUT, single),
        (
            f"{of}, label {label!r}" if mean else "F1",
            mean.f1 if mean else None,
            TRAIN_ON_SYNTHETIC,
            found.reason,
        ),
        ("AUC", mean.auc if mean else None, TRAIN_ON_SYNTHETIC, found.reason),
        ("Accuracy", mean.accuracy if mean else None, TRAIN_ON_SYNTHETIC, found.reason),
        ("Validity", validity.rate if validity else None, GENERATED, "" if validity else "not measured"),
    ]


def closest(metrics: Metrics) -> list[tuple[str, float]]:
    """Distances to the closest training record, in words; none where no training rows were given."""
    found = metrics.closest
    if found is None:
        return []
    return [
        ("median distance of synthetic rows", found.synthetic.median),
        ("median distance of held-out real rows", found.test.median),
        ("5 % quantile, synthetic rows", found.synthetic.low),
        ("5 % quantile, held-out real rows", found.test.low),
        ("synthetic rows that copy a training row", found.synthetic.copies),
        ("held-out real rows that equal a training row", found.test.copies),
        ("a synthetic row is closer than a held-out one", found.closer),
    ]


def rows(metrics: Metrics, measurements: Sequence[Measurement]) -> list[tuple[object, ...]]:
    """All numbers, in the order of `COLUMNS`."""
    return [
        *((name, reason, value, computed) for name, value, computed, reason in headline(metrics)),
        *(
            (name, part.classifier, getattr(part, name), TRAIN_ON_SYNTHETIC)
            for part in metrics.utility.parts
            for name in ("f1", "auc", "accuracy")
        ),
        *(("closest record", name, value, TRAINING) for name, value in closest(metrics)),
        *(("rows", name, count, GENERATED) for name, count in generated(metrics)),
        *((one.name, "", one.value, one.computed_on) for one in measurements),
        *(
            (f"Hist, {bins} bins", name, float(value), HELD_OUT)
            for bins, values in metrics.histograms.items()
            for name, value in zip(metrics.columns, values, strict=True)
        ),
        *_pairs(metrics),
    ]


def generated(metrics: Metrics) -> list[tuple[str, int]]:
    """Rows asked for, kept and rejected; none where it is not known."""
    found = metrics.validity
    if found is None:
        return []
    rejected = [(f"rejected: {name}", count) for name, count in found.reasons.items()]
    return [("asked for", found.asked), ("accepted", found.accepted), *rejected]


def _pairs(metrics: Metrics) -> Iterator[tuple[object, ...]]:
    parts = (
        (f"Pair, {BINS[0]} bins", metrics.pairs),
        ("association, real", metrics.real_associations),
        ("association, synthetic", metrics.synthetic_associations),
    )
    for i, k in itertools.combinations(range(len(metrics.columns)), 2):
        pair = f"{metrics.columns[i]} | {metrics.columns[k]}"
        for name, matrix in parts:
            yield name, pair, float(matrix[i, k]), HELD_OUT
