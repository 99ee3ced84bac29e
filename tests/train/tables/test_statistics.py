"""The statistics of a table."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from exactdp.mechanisms.statistics import counts
from exactdp.train.tables import csv_file, domain, statistics
from exactdp.train.tables.budget import Budget
from exactdp.train.tables.csv_file import RawTable
from exactdp.train.tables.domain import Domain
from exactdp.train.tables.schema import Column, Schema
from exactdp.train.tables.statistics import Statistics

RNG = np.random.default_rng(11)
ROWS = 3000
LABEL = Column("label", "category", values=("no", "yes"), missing=True)
AGE = Column("age", "integer", minimum=0, maximum=120)


def table(**columns: Any) -> RawTable:
    return RawTable(pa.table({name: pa.array(cells, pa.string()) for name, cells in columns.items()}))


def example() -> RawTable:
    label = RNG.choice(["no", "yes", ""], ROWS, p=[0.6, 0.3, 0.1])
    age = np.where(label == "yes", 50, 20) + RNG.integers(0, 20, ROWS)
    return table(
        age=age.astype(str).tolist(), label=label.tolist(), city=RNG.choice(["a", "b"], ROWS).tolist()
    )


def same(one: Statistics, two: Statistics) -> bool:
    return one.as_dict() == two.as_dict()


def test_tables_are_the_counts_with_noise() -> None:
    raw = example()
    budget = Budget(40.0, 1e-5, 3, 1)
    found = statistics.measure(raw, declared=[LABEL, AGE], label="label", budget=budget)
    assert found.private
    assert found.leaks == ()
    assert found.groups == (0, 1, 2)
    assert found.noise == budget.table_noise.noise_multiplier
    codes = csv_file.encode(raw, found.schema).codes
    label = found.bins[1].of(codes[:, 1])
    for place, own in enumerate(found.bins):
        row = np.zeros(ROWS, np.int64) if place == 1 else label
        exact = np.zeros((1 if place == 1 else 3, own.size), np.int64)
        np.add.at(exact, (row, own.of(codes[:, place])), 1)
        assert found.tables[place].shape == exact.shape
        # Below 10 standard deviations, and not exact.
        assert np.abs(found.tables[place] - exact).max() < 10.0 * found.noise + 1
        assert exact.sum() == ROWS


def test_one_row_changes_one_count_of_each_table(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[np.ndarray] = []

    def exactly(values: np.ndarray, *, noise: object) -> np.ndarray:
        seen.append(values.copy())
        return values

    monkeypatch.setattr(counts, "noisy", exactly)
    raw, budget = example(), Budget(1.0, 1e-5, 3, 0)
    found = Domain(Schema((AGE, LABEL, Column("city", "category", values=("a", "b"))), "label"), {})
    codes = csv_file.encode(raw, found.schema).codes
    for removed in (0, 17, ROWS - 1):
        seen.clear()
        statistics.tabulate(codes, found, budget=budget)
        statistics.tabulate(np.delete(codes, removed, axis=0), found, budget=budget)
        assert len(seen) == 6
        for whole, less in zip(seen[:3], seen[3:], strict=True):
            change = (whole - less).ravel()
            assert sorted(change) == [0] * (change.size - 1) + [1]


def test_the_noise_drawn_is_the_noise_announced(monkeypatch: pytest.MonkeyPatch) -> None:
    drawn: list[object] = []
    honest = counts.noisy

    def spy(values: np.ndarray, *, noise: counts.Noise) -> np.ndarray:
        drawn.append(noise)
        return honest(values, noise=noise)

    monkeypatch.setattr(counts, "noisy", spy)
    budget = Budget(3.0, 1e-5, 3, 2)
    statistics.measure(example(), declared=[AGE], label="label", budget=budget)
    announced = [
        pair for pair, count, _ in budget.releases() for _ in range(count) if hasattr(pair, "sensitivity")
    ]
    assert sorted(map(str, drawn)) == sorted(map(str, announced))


def test_statistics_depend_on_the_releases_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    found = Domain(Schema((AGE, LABEL), "label"), {})
    monkeypatch.setattr(domain, "discover", lambda *_, **__: found)
    monkeypatch.setattr(counts, "noisy", lambda values, **_: np.arange(values.size).reshape(values.shape))
    budget = Budget(1.0, 1e-5, 2, 0)
    one = statistics.measure(
        table(age=["3"] * 50, label=["no"] * 50), declared=[], label="label", budget=budget
    )
    two = statistics.measure(
        table(age=["", "x"] * 25, label=["yes", "?"] * 25), declared=[], label="label", budget=budget
    )
    assert same(one, two)


def test_without_a_label_tables_are_histograms() -> None:
    found = statistics.measure(example(), declared=[], label=None, budget=Budget(20.0, 1e-5, 3, 3))
    assert (found.groups, found.num_groups, found.label_place) == ((), 1, None)
    assert [len(own) for own in found.tables] == [1, 1, 1]


def test_a_label_of_many_bins_is_grouped_by_noisy_mass() -> None:
    label = Column("label", "integer", minimum=0, maximum=49)
    raw = table(label=RNG.integers(0, 50, ROWS).astype(str).tolist(), age=["30"] * ROWS)
    found = statistics.measure(raw, declared=[label, AGE], label="label", budget=Budget(30.0, 1e-5, 2, 0))
    assert found.tables[0].shape == (1, 50)
    assert found.num_groups == statistics.MOST_GROUPS
    assert list(found.groups) == sorted(found.groups)
    assert np.bincount(found.groups).max() <= 5
    assert len(found.tables[1]) == statistics.MOST_GROUPS


def test_odd_tables() -> None:
    for raw in (
        table(label=[""] * 500, b=["?"] * 500),
        table(label=["1"], b=["x"]),
        table(label=["c"] * 500, b=[f"{n}" for n in range(500)]),
        table(label=[f"{n}" for n in range(500)], b=["1e15"] * 500),
    ):
        found = statistics.measure(raw, declared=[], label="label", budget=Budget(5.0, 1e-5, 2, 2))
        assert found.num_rows == raw.num_rows
        assert same(found, statistics.statistics(json.loads(json.dumps(found.as_dict()))))


def test_json_round_trip(tmp_path: Path) -> None:
    budget = Budget(10.0, 1e-5, 3, 2)
    found = statistics.measure(example(), declared=[AGE], label="label", budget=budget)
    found.write(tmp_path / "statistics.json")
    read = statistics.read(tmp_path / "statistics.json")
    assert same(read, found)
    assert read.schema == found.schema
    assert read.bins == found.bins


def test_bad_json(tmp_path: Path) -> None:
    good = statistics.measure(
        example(), declared=[AGE], label="label", budget=Budget(10.0, 1e-5, 3, 2)
    ).as_dict()
    for change in (
        {"edges": good["edges"][:2]},
        {"edges": [3] * 3},
        {"tables": good["tables"][::-1]},
        {"tables": [[["x"]]] * 3},
        {"groups": [0]},
        {"groups": [5] * len(good["groups"])},
        {"num_rows": -1},
        {"noise": None},
        {"leaks": ["one"]},
        {"schema": {}},
    ):
        (tmp_path / "bad.json").write_text(json.dumps(good | change))
        with pytest.raises(ValueError, match="statistics must be a file as written by a run"):
            statistics.read(tmp_path / "bad.json")
    for text in ("", "[]", "3"):
        (tmp_path / "bad.json").write_text(text)
        with pytest.raises(ValueError, match="statistics must be"):
            statistics.read(tmp_path / "bad.json")
    with pytest.raises(ValueError, match="statistics must be"):
        statistics.read(tmp_path / "none.json")


def test_tabulate_refuses_other_codes() -> None:
    found = Domain(Schema((AGE,)), {})
    with pytest.raises(ValueError, match="codes must have 1 columns"):
        statistics.tabulate(np.zeros((3, 2), np.int64), found, budget=Budget(1.0, 1e-5, 1, 0))
    with pytest.raises(ValueError, match="'age': codes must be in the column's domain"):
        statistics.tabulate(np.full((3, 1), 500), found, budget=Budget(1.0, 1e-5, 1, 0))


def test_private_statistics_have_no_leaks() -> None:
    found = statistics.measure(example(), declared=[AGE], label=None, budget=Budget(10.0, 1e-5, 3, 2))
    with pytest.raises(ValueError, match="private statistics must have no leaks"):
        dataclasses.replace(found, leaks=("one",))
