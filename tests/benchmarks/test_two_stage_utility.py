"""The experiments of DP-2Stage: their settings, the rows they keep, and the committed figure."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from exactdp.benchmarks import two_stage_baselines
from exactdp.benchmarks import two_stage_utility as script
from exactdp.benchmarks.curves import store
from exactdp.benchmarks.experiments import tables
from exactdp.benchmarks.experiments.tables import Size, Variant
from exactdp.train.tables import csv_file, sources
from exactdp.train.tables.csv_file import RawTable
from exactdp.train.tables.sources import Source

FIGURES = Path(__file__).resolve().parents[2] / "docs" / "papers" / "figures" / "two_stage_training"


def source(rows: int = 600) -> Source:
    rng = np.random.default_rng(0)

    def part() -> RawTable:
        label = rng.random(rows) < 0.4
        age = np.where(label, rng.integers(20, 50, rows), rng.integers(40, 80, rows))
        columns = {"age": age.astype(str), "income": np.where(label, ">50K", "<=50K")}
        return RawTable(pa.table({name: pa.array(list(values)) for name, values in columns.items()}))

    return Source("adult", "income", part(), part(), "made up")


@pytest.mark.parametrize("study", script.STUDIES)
def test_every_variant_can_be_asked_for(study: str) -> None:
    variants = script.STUDIES[study](1.0)
    assert len({(one.series, one.x) for one in variants}) == len(variants)
    for variant in variants:
        assert study != "methods" or variant.series in script._NAMES
        if not variant.without_model:
            Size("adult").settings(label="income", **variant.settings)


def test_rows_without_a_model_and_resuming(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sources, "load", lambda *_, **__: source())
    size = Size("adult", rows=300, num_seeds=1)
    variants = [
        Variant("real", 0.0, {}, without_model="real"),
        Variant("statistics", 8.0, {"epsilon": 8.0}, without_model="marginals"),
        Variant("independent", 8.0, {"epsilon": 8.0}, without_model="independent"),
    ]
    path, header = tmp_path / "rows.csv", tables.header(size, study="methods", epsilon=8.0)
    rows = tables.carry_out(path, variants, size=size, header=header)
    found = {row["series"]: row for row in rows}
    f1 = {name: float(row["f1"]) for name, row in found.items()}
    assert f1["real"] > 0.7
    assert f1["statistics"] > 0.6
    assert f1["independent"] < f1["statistics"]
    assert 7.9 < float(found["statistics"]["epsilon_upper"]) <= 8.0
    assert found["statistics"]["end_to_end"] == "True"

    def never(*_: Any) -> Any:
        raise AssertionError

    monkeypatch.setattr(tables, "_one", never)
    assert tables.carry_out(path, variants, size=size, header=header) == rows
    with pytest.raises(ValueError, match="differs in epsilon, study"):
        tables.carry_out(path, variants, size=size, header=tables.header(size, study="share"))


def test_each_first_stage_reads_its_own_public_table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []

    def load(name: str, **_: Any) -> Source:
        asked.append(name)
        return source(20)

    monkeypatch.setattr(sources, "load", load)
    variants = [one for one in script.methods(1.0) if one.settings.get("first_stage") == "table"]
    assert {one.first_table for one in variants} == {"other", "text"}
    files = tables._written(tmp_path, source(20), variants)
    assert asked == ["airline"]
    assert csv_file.read(files["other"]).names == ("age", "income")
    assert len(csv_file.read(files["text"]).names) == 15
    assert set(tables._written(tmp_path, source(20), script.shares(1.0))) == {"train", "test"}


def test_sizes_are_checked() -> None:
    for given, message in (
        ({"train_rows": -1}, "train_rows"),
        ({"num_seeds": 0}, "num_seeds"),
        ({"model": "huge"}, "model"),
        ({"num_steps": 0}, "num_steps"),
    ):
        with pytest.raises(ValueError, match=message):
            Size("adult", **given)  # type: ignore[arg-type]


def test_the_committed_figure_is_drawn_from_its_rows(tmp_path: Path) -> None:
    name = "two_stage_utility_adult_methods.csv"
    (tmp_path / name).write_bytes((FIGURES / name).read_bytes())
    written = script.draw(tmp_path / name)
    assert [path.suffix for path in written] == [".pdf", ".png"]
    drawn, kept = (folder / name.replace(".csv", ".png") for folder in (tmp_path, FIGURES))
    assert abs(drawn.stat().st_size - kept.stat().st_size) < 0.2 * kept.stat().st_size
    header, rows = store.read_csv(tmp_path / name)
    assert json.dumps(header["dataset"]) == '"adult"'
    assert "F1" in script.table(rows)
    for row in rows:
        private = row["epsilon_upper"]
        assert not private or float(private) <= 1.0


def baselines(path: Path, *, rows: int = 300, **given: object) -> Path:
    """A table as two_stage_baselines writes it: one method that gave rows, one that is missing."""
    about = {"epsilon": 8.0, "delta": 1e-5, "train_rows": 600, "test_rows": 600, "seed": 3} | given
    ok = {
        "status": "ok",
        "epsilon_claimed_by_package": "8.0",
        "rows": rows,
        "hist_50": 0.9,
        "pair": 0.8,
        "correlation_accuracy": 0.5,
        "f1": 0.6,
        "auc": 0.7,
        "accuracy": 0.65,
    }
    lines = [
        {"method": "real training rows", **ok},
        {"method": "aim", **ok, "seconds": 12.5},
        {"method": "mst", "status": "not installed"},
    ]
    columns = two_stage_baselines.COLUMNS
    store.write_csv(path, about, columns, [[line.get(name, "") for name in columns] for line in lines])
    return path


def test_baselines_stand_beside(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sources, "load", lambda *_, **__: source())
    monkeypatch.setitem(
        script.STUDIES,
        "methods",
        lambda _: [Variant("real", 0.0, {}, without_model="real")],  # type: ignore[index]
    )
    size, path = Size("adult", rows=300, num_seeds=1), tmp_path / "rows.csv"
    for seed in (3, 4, 4):  # the last in place of the one before
        other = baselines(tmp_path / "other.csv", seed=seed)
        rows = script.compute(path, size, study="methods", epsilon=8.0, baselines=other)
    assert [(row["series"], row["seed"]) for row in rows] == [("real", "0"), ("aim", "3"), ("aim", "4")]
    assert (rows[1]["f1"], rows[1]["hist"], rows[1]["epsilon_upper"]) == ("0.6", "0.9", "8.0")
    assert (rows[1]["end_to_end"], rows[1]["epsilon_lower"]) == ("", "")
    assert store.read_csv(path)[1] == rows
    assert script.compute(path, size, study="methods", epsilon=8.0) == rows
    assert all(made.is_file() for made in script.draw(path))


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"epsilon": 1.0}, "made at epsilon 8.0, got 1.0"),
        ({"delta": 1e-6}, "made at delta 1e-05, got 1e-06"),
        ({"train_rows": 599}, "made at train_rows 600, got 599"),
        ({"rows": 299}, "of 300 rows each, got 299 of aim"),
    ],
)
def test_baselines_of_another_setting_are_refused(
    given: dict[str, Any], message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sources, "load", lambda *_, **__: source())
    size, path = Size("adult", rows=300, num_seeds=1), tmp_path / "rows.csv"
    other = baselines(tmp_path / "other.csv", **given)
    with pytest.raises(ValueError, match=message):
        script.compute(path, size, study="methods", epsilon=8.0, baselines=other)
    assert not path.exists()
    with pytest.raises(ValueError, match="must be a file that two_stage_baselines wrote"):
        script.compute(path, size, study="methods", epsilon=8.0, baselines=tmp_path / "none.csv")


@pytest.mark.parametrize("study", ["share", "order"])
def test_curves_are_drawn(study: str, tmp_path: Path) -> None:
    path = tmp_path / "curve.csv"
    variants = script.STUDIES[study](1.0)
    header = tables.header(Size("adult"), study=study, epsilon=1.0)
    lines = [
        [
            {
                "split": "test",
                "series": one.series,
                "x": repr(one.x),
                "seed": seed,
                "f1": 0.5,
                "hist": 0.9,
            }.get(column, "")
            for column in tables.COLUMNS
        ]
        for one in variants
        for seed in (0, 1)
    ]
    store.write_csv(path, header, tables.COLUMNS, lines)
    assert all(made.is_file() for made in script.draw(path))
