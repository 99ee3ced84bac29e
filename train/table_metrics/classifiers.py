"""The two classifiers of "train on synthetic, test on real": boosted trees and logistic regression."""

from __future__ import annotations

import importlib
import importlib.metadata
import importlib.util
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from jaxtyping import Float, Int

from exactdp.train.table_metrics.design import Design

Scores = Callable[[Int[np.ndarray, "rows columns"]], Float[np.ndarray, "rows classes"]]
"""Codes of a table -> probability of each class."""

_SCORED = 2**16  # rows at once
_STEPS = 300


def boosting(
    codes: Int[np.ndarray, "rows columns"], y: Int[np.ndarray, " rows"], design: Design, *, seed: int
) -> tuple[str, Scores]:
    """Boosted trees: XGBoost where it is installed, else scikit-learn's; by default settings.

    Categories are split as such, and missing numbers as such. One thread: several that wait for each other on
    busy cores take ten times as long.

    Args:
      codes: of the rows to train on.
      y: their classes, 0 ... K - 1, all occurring.
      design: of the features.
      seed: of whatever is random.

    Returns:
      What was used, with its version, and the trained classifier.
    """
    if importlib.util.find_spec("xgboost") is not None:
        return _xgboost(codes, y, design, seed=seed)
    ensemble: Any = importlib.import_module("sklearn.ensemble")
    threads: Any = importlib.import_module("threadpoolctl")
    model = ensemble.HistGradientBoostingClassifier(
        categorical_features=[size > 0 for size in design.sizes], random_state=seed
    )
    with threads.threadpool_limits(1):
        model.fit(design.dense(codes), y)
    return f"scikit-learn {_version('scikit-learn')} histogram boosting", _chunked(
        lambda part: model.predict_proba(design.dense(part))
    )


def _xgboost(
    codes: Int[np.ndarray, "rows columns"], y: Int[np.ndarray, " rows"], design: Design, *, seed: int
) -> tuple[str, Scores]:
    xgboost: Any = importlib.import_module("xgboost")
    model = xgboost.XGBClassifier(
        random_state=seed,
        n_jobs=1,
        tree_method="hist",
        enable_categorical=True,
        feature_types=["c" if size else "q" for size in design.sizes],
    )
    model.fit(design.dense(codes), y)
    return f"xgboost {xgboost.__version__}", _chunked(lambda part: model.predict_proba(design.dense(part)))


def logistic(
    codes: Int[np.ndarray, "rows columns"], y: Int[np.ndarray, " rows"], design: Design, *, seed: int
) -> tuple[str, Scores]:
    """Logistic regression with classes weighted to be as if equally frequent; see `boosting`.

    At most 300 steps of L-BFGS (the released code of arXiv 2412.02467 has 50); where they do not converge,
    the name says so.
    """
    linear_model: Any = importlib.import_module("sklearn.linear_model")
    model = linear_model.LogisticRegression(class_weight="balanced", max_iter=_STEPS, random_state=seed)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model.fit(design.one_hot(codes), y)
    stopped = any(problem.category.__name__ == "ConvergenceWarning" for problem in caught)
    name = f"scikit-learn {_version('scikit-learn')} logistic regression"
    return name + (f", stopped after {_STEPS} steps" if stopped else ""), _chunked(
        lambda part: model.predict_proba(design.one_hot(part))
    )


def _version(package: str) -> str:
    return importlib.metadata.version(package)


def _chunked(scores: Scores) -> Scores:
    def run(codes: Int[np.ndarray, "rows columns"]) -> Float[np.ndarray, "rows classes"]:
        parts = [scores(codes[start : start + _SCORED]) for start in range(0, len(codes), _SCORED)]
        return np.concatenate(parts).astype(np.float64)

    return run
