"""Train on synthetic, test on real: scores against scikit-learn's, and every case that has none."""

from __future__ import annotations

import dataclasses
import sys

import numpy as np
import pytest
from sklearn import metrics

from exactdp.train.table_metrics import classifiers
from exactdp.train.table_metrics.design import MOST_VALUES, Design
from exactdp.train.table_metrics.utility import utility
from exactdp.train.tables.schema import MISSING, Column, Schema
from tests.train.table_metrics.tables import SCHEMA, draw

THREE = Schema(
    (
        Column("x", "integer", minimum=-100, maximum=100),
        Column("y", "category", values=("a", "b", "c", "d"), missing=True),
    ),
    label="y",
)


def three(rows: int, *, seed: int) -> np.ndarray:
    generator = np.random.default_rng(seed)
    y = generator.choice(3, rows, p=[0.5, 0.3, 0.2])
    return np.stack([np.clip(np.rint(30 * y + 20 * generator.normal(size=rows)), -100, 100), y], 1).astype(
        int
    )


@pytest.mark.parametrize(("schema", "make"), [(SCHEMA, draw), (THREE, three)])
def test_scores_are_those_of_scikit_learn(schema: Schema, make: type) -> None:
    real, synthetic = make(400, seed=1), make(300, seed=2)
    found = utility(real, synthetic, schema)
    assert found.mean is not None and not found.reason
    place = schema.index(str(schema.label))
    truth, y = real[:, place], synthetic[:, place]
    design = Design.of(synthetic, schema, label=place)
    for part, train in zip(found.parts, (classifiers.boosting, classifiers.logistic), strict=True):
        name, classify = train(synthetic, y, design, seed=1000)
        probability = classify(real)
        guess = probability.argmax(axis=1)
        assert part.classifier == name
        assert part.accuracy == pytest.approx(metrics.accuracy_score(truth, guess))
        if schema is SCHEMA:
            rarer = int(np.argmin(np.bincount(truth)))
            assert part.f1 == pytest.approx(metrics.f1_score(truth, guess, pos_label=rarer))
            assert part.auc == pytest.approx(metrics.roc_auc_score(truth == rarer, probability[:, rarer]))
            assert found.positive == SCHEMA.columns[place].values[rarer]
        else:
            assert part.f1 == pytest.approx(metrics.f1_score(truth, guess, average="macro"))
            auc = metrics.roc_auc_score(truth, probability, multi_class="ovr", average="macro")
            assert part.auc == pytest.approx(auc)
            assert found.positive is None
    for field in ("f1", "auc", "accuracy"):
        average = np.mean([getattr(part, field) for part in found.parts])
        assert getattr(found.mean, field) == pytest.approx(average)
    assert (found.trained, found.tested) == (300, 400)


def test_what_is_learnt_is_what_is_there() -> None:
    """Near perfect where the label is a column's, near chance where the synthetic table is noise."""
    real, noise = draw(500, seed=3), draw(500, seed=4, strength=0.0)
    real[:, 5] = real[:, 1]
    copied = draw(300, seed=5)
    copied[:, 5] = copied[:, 1]
    good, bad = utility(real, copied, SCHEMA).mean, utility(real, noise, SCHEMA).mean
    assert good is not None and bad is not None
    assert good.f1 > 0.99 and good.auc > 0.99 and good.accuracy > 0.99
    assert bad.auc < 0.75


def test_balanced_weights_change_the_regression_and_not_the_trees() -> None:
    schema, real = THREE, three(300, seed=1)
    rare = np.concatenate([three(300, seed=2)[:, :], three(40, seed=3)])
    design = Design.of(rare, schema, label=1)
    name, classify = classifiers.logistic(rare, np.minimum(rare[:, 1], 1), design, seed=0)
    assert "logistic" in name
    # Balanced classes: the intercept puts the mean probability near one half.
    assert abs(classify(real).mean(axis=0)[0] - 0.5) < 0.1


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"label": None}, "the schema names no label"),
        ({"label": "age"}, "the label is of kind integer, not a category"),
    ],
)
def test_no_label_no_score(change: dict[str, str | None], reason: str) -> None:
    codes = draw(50, seed=1)
    found = utility(codes, codes, dataclasses.replace(SCHEMA, **change))
    assert found.mean is None and found.parts == () and found.reason == reason


def test_lacking_classes_give_no_score() -> None:
    real, synthetic = three(60, seed=1), three(60, seed=2)
    assert utility(real, synthetic[synthetic[:, 1] != 2], THREE).reason == (
        "the synthetic rows lack 1 of the 3 classes"
    )
    missing = synthetic.copy()
    missing[:, 1] = MISSING
    assert utility(real, missing, THREE).reason == "the synthetic rows lack 3 of the 3 classes"
    assert utility(missing, synthetic, THREE).reason == "the real rows have 0 classes, 2 are needed"
    assert utility(real[real[:, 1] == 0], synthetic, THREE).reason == (
        "the real rows have 1 classes, 2 are needed"
    )
    alone = Schema(THREE.columns[1:], "y")
    assert utility(real[:, 1:], real[:, 1:], alone).reason == "the label is the only column"
    many = Schema((THREE.columns[0], Column("y", "category", values=tuple(map(str, range(60))))), "y")
    codes = np.stack([np.zeros(120, int), np.arange(120) % 60], axis=1)
    assert utility(codes, codes, many).reason == "the label has 60 classes, more than 50"


def test_a_class_that_only_the_synthetic_table_has_is_no_hindrance() -> None:
    real, synthetic = three(80, seed=1), three(80, seed=2)
    real = real[real[:, 1] != 1]
    found = utility(real, synthetic, THREE)
    assert found.mean is not None and found.positive in ("a", "c")


def test_unseen_values_missing_cells_and_constants() -> None:
    """Whatever the real rows have that the synthetic ones lack is scored, and nothing is infinite."""
    real, synthetic = draw(200, seed=6), draw(150, seed=7)
    synthetic[:, 4] = 0  # towns are all one
    synthetic[:, 3] = MISSING  # pay is never there
    synthetic[:, 2] = 30  # a constant number
    synthetic[synthetic[:, 0] == MISSING, 0] = 1  # no missing job
    found = utility(real, synthetic, SCHEMA)
    assert found.mean is not None
    assert 0.0 <= found.mean.f1 <= 1.0 and 0.5 < found.mean.auc <= 1.0


def test_features_by_hand() -> None:
    codes = np.array([[0, 0, 10, 100, 3, 0], [MISSING, 1, 30, MISSING, 3, 1]])
    design = Design.of(codes, SCHEMA, label=5)
    assert design.sizes == [3, 3, 0, 0, 2]
    np.testing.assert_array_equal(
        design.dense(codes), np.array([[1, 0, -1, 0, 0], [0, 1, 1, np.nan, 0]], np.float32)
    )
    #        missing  0  other | f  m  other | age 0 | pay 0 | town 3, other
    first = [0, 1, 0, 1, 0, 0, -1, 0, 0, 0, 1, 0]
    second = [1, 0, 0, 0, 1, 0, 1, 0, 0, 1, 1, 0]
    np.testing.assert_array_equal(design.one_hot(codes).toarray(), [first, second])
    fresh = np.array([[2, 0, 20, 100, 0, 0]])
    assert design.one_hot(fresh).toarray().tolist() == [[0, 0, 1, 1, 0, 0, 0, 0, 0, 0, 0, 1]]
    assert design.dense(fresh).tolist() == [[2, 0, 0, 0, 1]]


def test_many_values_stay_few_features() -> None:
    many = Column("m", "category", values=tuple(f"v{k}" for k in range(100_000)))
    schema = Schema((many, Column("y", "category", values=("a", "b"))), "y")
    generator = np.random.default_rng(1)
    codes = np.stack([generator.integers(0, 100_000, 2_000), generator.integers(0, 2, 2_000)], axis=1)
    codes[:300, 0], codes[:300, 1] = 99_999, 1
    design = Design.of(codes, schema, label=1)
    assert design.sizes == [MOST_VALUES + 1]
    assert design.one_hot(codes[:1]).toarray().nonzero()[1].tolist() == [MOST_VALUES - 1]  # the frequent one
    assert utility(codes, codes, schema).mean is not None


def test_large_tables_are_trained_on_a_subsample() -> None:
    real, synthetic = three(100, seed=1), three(500, seed=2)
    found = utility(real, synthetic, THREE, most_rows=200)
    assert found.trained == 200
    assert found == utility(real, synthetic, THREE, most_rows=200)  # by a fixed seed


def test_scikit_learn_takes_the_place_of_xgboost(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    monkeypatch.setitem(sys.modules, "xgboost", None)
    found = utility(three(60, seed=1), three(60, seed=2), THREE)
    assert [part.classifier.split()[0] for part in found.parts] == ["scikit-learn", "scikit-learn"]
    assert "histogram boosting" in found.parts[0].classifier


def test_xgboost_is_used_where_there_is_one() -> None:
    xgboost = pytest.importorskip("xgboost")
    found = utility(three(60, seed=1), three(60, seed=2), THREE)
    assert found.parts[0].classifier == f"xgboost {xgboost.__version__}"
