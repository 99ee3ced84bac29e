"""All metrics together: what they say, of what, on tables fine and odd."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

from exactdp.train.table_metrics import evaluate as module
from exactdp.train.table_metrics.evaluate import evaluate
from exactdp.train.table_metrics.validity import Validity
from exactdp.train.tables.schema import MISSING, Column, Schema
from tests.train.table_metrics.tables import SCHEMA, draw


def test_every_value_names_what_it_is_computed_on() -> None:
    found = evaluate(
        draw(200, seed=1),
        draw(150, seed=2),
        SCHEMA,
        train=draw(180, seed=3),
        validity=Validity(10, 9, {"x": 1}),
    )
    answer = found.as_dict()
    assert json.loads(json.dumps(answer, allow_nan=False)) == answer
    assert answer["rows"] == {"real_test": 200, "synthetic": 150, "train": 180}
    parts = {name: part["computed_on"] for name, part in answer.items() if name != "rows"}
    assert set(parts) == {
        "hist", "pair", "correlation_accuracy", "f1", "auc", "accuracy", "closest", "validity",
    }  # fmt: skip
    assert parts["closest"].startswith("PRIVATE: training rows") and answer["closest"]["private"]
    assert all("not covered by the certificate" in text for name, text in parts.items() if name != "validity")
    assert answer["hist"]["value"] == found.hist == np.mean(list(answer["hist"]["columns"]["50"].values()))
    assert set(answer["hist"]["by_bins"]) == {"20", "50"}
    assert answer["f1"]["value"] == found.f1 and len(answer["f1"]["classifiers"]) == 2
    assert answer["pair"]["value"] == found.pair
    share = answer["correlation_accuracy"]
    assert share["with_diagonal"] == pytest.approx((1 + 5 * share["value"]) / 6)
    assert answer["validity"]["value"] == 0.9


def test_the_real_table_itself_is_perfect() -> None:
    real = draw(300, seed=4)
    found = evaluate(real, real[::-1], SCHEMA)
    assert (found.hist, found.pair, found.correlation_accuracy) == (1.0, 1.0, 1.0)
    assert found.closest is None and found.as_dict()["closest"]["reason"] == "no training rows were given"


@pytest.mark.parametrize("rows", [1, 2])
def test_one_row(rows: int) -> None:
    found = evaluate(draw(rows, seed=1), draw(1, seed=2), SCHEMA, train=draw(1, seed=3))
    assert found.f1 is None and found.utility.reason
    answer = found.as_dict()
    assert answer["f1"]["value"] is None and answer["f1"]["reason"] == found.utility.reason
    json.dumps(answer, allow_nan=False)


def test_one_column_all_missing() -> None:
    schema = Schema((Column("n", "float", minimum=0, maximum=10, decimals=1, missing=True),))
    nothing = np.full((5, 1), MISSING)
    answer = evaluate(nothing, nothing, schema, train=nothing).as_dict()
    assert answer["hist"]["value"] == 1.0
    assert answer["pair"] == {
        "value": None,
        "bins": 50,
        "computed_on": module.HELD_OUT,
        "reason": "a single column has no pair",
    }
    assert answer["closest"]["synthetic"]["copies"] == 1.0


def test_a_category_without_values() -> None:
    schema = Schema((Column("c", "category", missing=True), Column("d", "category", values=("x",))), "d")
    codes = np.array([[MISSING, 0]] * 3)
    assert evaluate(codes, codes, schema).hist == 1.0


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda t: t[:0], "synthetic must have at least one row, got none"),
        (lambda t: t[:, :3], r"must be a table of int64 codes with 6 columns, got int64 of shape \(20, 3\)"),
        (lambda t: t.astype(np.float64), "must be a table of int64 codes with 6 columns, got float64"),
    ],
)
def test_tables_of_another_shape_are_refused(change: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        evaluate(draw(20, seed=1), change(draw(20, seed=2)), SCHEMA)


@pytest.mark.parametrize(("place", "code"), [(0, 4), (1, MISSING), (2, 100), (3, -501)])
def test_cells_outside_the_domain_are_refused_without_being_told(place: int, code: int) -> None:
    codes = draw(20, seed=1)
    codes[13, place] = code
    with pytest.raises(ValueError) as caught:
        evaluate(draw(20, seed=2), codes, SCHEMA)
    name = SCHEMA.names[place]
    assert str(caught.value) == f"synthetic: column {name!r} must be in its domain, row 13 is not"
