"""Tables as the baselines take them, and back."""

from __future__ import annotations

import numpy as np
import pytest

from exactdp.benchmarks.table_baselines.coding import Discrete, Mixed
from exactdp.train.tables.schema import MISSING, Column, Schema
from tests.train.table_metrics.tables import SCHEMA, draw


@pytest.mark.parametrize("bins", [1, 7, 32])
def test_bins_come_back_as_the_same_bins(bins: int) -> None:
    codes, coding = draw(500, seed=1), Discrete(SCHEMA, bins)
    places = coding.encode(codes)
    sizes = [column["size"] for column in coding.columns()]
    assert sizes == [5, 2, bins, bins + 1, 12, 2]
    assert (places >= 0).all() and (places < sizes).all()
    back = coding.decode(places, seed=3)
    np.testing.assert_array_equal(coding.encode(back), places)
    categories = [0, 1, 4, 5]
    np.testing.assert_array_equal(back[:, categories], codes[:, categories])
    np.testing.assert_array_equal(back == MISSING, codes == MISSING)


def test_few_codes_have_a_place_each_and_come_back_exactly() -> None:
    schema = Schema((Column("n", "integer", minimum=-3, maximum=5, missing=True),))
    codes = np.array([[*range(-3, 6), MISSING]]).T
    coding = Discrete(schema, 32)
    assert coding.columns() == [{"kind": "category", "size": 10}]
    assert coding.encode(codes).ravel().tolist() == list(range(10))
    np.testing.assert_array_equal(coding.decode(coding.encode(codes), seed=0), codes)


def test_every_code_of_a_bin_is_drawn() -> None:
    schema = Schema((Column("n", "integer", minimum=0, maximum=10),))
    coding = Discrete(schema, 3)  # 0-3, 4-7, 8-10
    drawn = coding.decode(np.repeat([[0.0], [1.0], [2.0]], 200, axis=0), seed=1).ravel()
    parts = [set(drawn[k * 200 : (k + 1) * 200].tolist()) for k in range(3)]
    assert parts == [{0, 1, 2, 3}, {4, 5, 6, 7}, {8, 9, 10}]


def test_numbers_stay_numbers() -> None:
    codes, coding = draw(200, seed=2), Mixed(SCHEMA)
    values = coding.encode(codes)
    kinds = [column["kind"] for column in coding.columns()]
    assert kinds == ["category", "category", "number", "number", "category", "category", "category"]
    assert coding.columns()[3] == {"kind": "number", "low": -500.0, "high": 5000.0}
    assert not np.isnan(values).any()
    np.testing.assert_array_equal(coding.decode(values, seed=0), codes)
    values[:, 2], values[:, 3], values[:, 4] = 1e9, 12.4, 0
    back = coding.decode(values, seed=0)
    assert (back[:, 2] == 99).all() and (back[:, 3] == 12).all()


def test_an_empty_category() -> None:
    schema = Schema((Column("c", "category", missing=True),))
    codes = np.full((2, 1), MISSING)
    for coding in (Discrete(schema, 4), Mixed(schema)):
        assert coding.columns()[0]["size"] == 1
        np.testing.assert_array_equal(coding.decode(coding.encode(codes), seed=0), codes)


def test_bins_must_be_a_count() -> None:
    with pytest.raises(ValueError, match="bins must be a whole number >= 1, got 0"):
        Discrete(SCHEMA, 0)
