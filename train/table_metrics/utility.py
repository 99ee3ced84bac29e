"""What a synthetic table teaches: classifiers trained on it and tested on held-out real rows."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import numpy as np
from jaxtyping import Float, Int
from scipy import stats

from exactdp.train.table_metrics import classifiers
from exactdp.train.table_metrics.design import Design
from exactdp.train.tables.schema import MISSING, Schema

MOST_CLASSES = 50
MOST_ROWS = 200_000
"""Rows trained on at most; a subsample by a fixed seed beyond."""

_SEED = 1000


@dataclasses.dataclass(frozen=True)
class Scores:
    """What one classifier, or the mean of several, has on the real rows; all in [0, 1].

    Attributes:
      classifier: what it is, with its version.
      f1: of the minority class of the real rows, the first of two equally frequent ones; with more than two
        classes the unweighted mean over those of the real rows (macro).
      auc: area under the ROC curve; with more than two classes the mean over "this one or another".
      accuracy: share of rows right.
    """

    classifier: str
    f1: float
    auc: float
    accuracy: float


@dataclasses.dataclass(frozen=True)
class Utility:
    """Of a synthetic table.

    Attributes:
      mean: of the two classifiers; None where there is no result.
      parts: of each of them.
      reason: why there is no result; empty where there is.
      label: name of the label's column.
      positive: the class that `f1` is of; None with more than two.
      trained: rows trained on.
      tested: rows tested on.
    """

    mean: Scores | None
    parts: tuple[Scores, ...] = ()
    reason: str = ""
    label: str | None = None
    positive: str | None = None
    trained: int = 0
    tested: int = 0


def utility(
    real: Int[np.ndarray, "rows columns"],
    synthetic: Int[np.ndarray, "others columns"],
    schema: Schema,
    *,
    most_rows: int = MOST_ROWS,
) -> Utility:
    """Trains boosted trees and a class-balanced logistic regression on synthetic rows; tests on real ones.

    Rows whose label is missing take no part. Features are fitted on the synthetic rows, the real ones
    choosing nothing: see `exactdp.train.table_metrics.design`, also for categories with many values. Each
    classifier predicts its most probable class.

    There is no result, and a reason, where the schema has no label or one that is no category, where there
    is no other column, where the real rows have fewer than two classes or more than `MOST_CLASSES`, and
    where the synthetic table lacks one of them: a classifier that cannot predict a class has no score worth
    the name.

    Args:
      real: codes of held-out rows.
      synthetic: codes.
      schema: of both.
      most_rows: to train on; a subsample by a fixed seed beyond.

    Source: arXiv 2412.02467, which has XGBoost on one-hot features.
    """
    if schema.label is None:
        return Utility(None, reason="the schema names no label")
    place, name = schema.index(schema.label), schema.label
    column = schema.columns[place]
    if column.kind != "category":
        return Utility(None, reason=f"the label is of kind {column.kind}, not a category", label=name)
    if len(schema.columns) < 2:
        return Utility(None, reason="the label is the only column", label=name)
    real = real[real[:, place] != MISSING]
    train = np.flatnonzero(synthetic[:, place] != MISSING)
    if len(train) > most_rows:
        train = np.sort(np.random.default_rng(_SEED).choice(train, most_rows, replace=False))
    known, truth, counts = np.unique(real[:, place], return_inverse=True, return_counts=True)
    lessons = synthetic[train]
    taught, y = np.unique(lessons[:, place], return_inverse=True)
    reason = _no_result(known, taught)
    if reason:
        return Utility(None, reason=reason, label=name, trained=len(train), tested=len(real))
    design = Design.of(lessons, schema, label=place)
    parts: list[Scores] = []
    for train_one in (classifiers.boosting, classifiers.logistic):
        title, classify = train_one(lessons, y, design, seed=_SEED)
        probabilities = classify(real)
        right = np.searchsorted(taught, known)  # where the real rows' classes stand among those taught
        parts.append(_scores(title, probabilities, truth, right, counts))
    average = Scores("mean of both", *(_mean(parts, field) for field in ("f1", "auc", "accuracy")))
    positive = column.values[known[np.argmin(counts)]] if len(known) == 2 else None
    return Utility(average, tuple(parts), "", name, positive, len(train), len(real))


def _no_result(known: Int[np.ndarray, " k"], taught: Int[np.ndarray, " t"]) -> str:
    if len(known) < 2:
        return f"the real rows have {len(known)} classes, 2 are needed"
    if max(len(known), len(taught)) > MOST_CLASSES:
        return f"the label has {max(len(known), len(taught))} classes, more than {MOST_CLASSES}"
    lacking = len(np.setdiff1d(known, taught))
    return f"the synthetic rows lack {lacking} of the {len(known)} classes" if lacking else ""


def _mean(parts: list[Scores], field: str) -> float:
    values: list[Any] = [getattr(part, field) for part in parts]
    return float(np.mean(values))


def _scores(
    title: str,
    probabilities: Float[np.ndarray, "rows taught"],
    truth: Int[np.ndarray, " rows"],
    right: Int[np.ndarray, " k"],
    counts: Int[np.ndarray, " k"],
) -> Scores:
    guess = probabilities.argmax(axis=1)
    hits = guess == right[truth]
    # With two classes the rarer one alone counts.
    judged = [int(np.argmin(counts))] if len(counts) == 2 else list(range(len(counts)))
    return Scores(
        title,
        _average(lambda k: _f1(guess == right[k], truth == k), judged),
        _average(lambda k: _auc(probabilities[:, right[k]], truth == k), judged),
        float(hits.mean()),
    )


def _average(value: Callable[[int], float], judged: list[int]) -> float:
    return float(np.mean([value(k) for k in judged]))


def _f1(guessed: np.ndarray, true: np.ndarray) -> float:
    """2 TP / (2 TP + FP + FN); the denominator is positive, for each class judged occurs."""
    return 2.0 * float((guessed & true).sum()) / float(guessed.sum() + true.sum())


def _auc(score: Float[np.ndarray, " rows"], true: np.ndarray) -> float:
    """Mann and Whitney's: the share of pairs of a true and another row in order, ties counting half."""
    positives, others = int(true.sum()), int((~true).sum())
    ranks = stats.rankdata(score)
    return float(ranks[true].sum() - positives * (positives + 1) / 2.0) / (positives * others)
