"""Synthetic tables as rows of a CSV file: a run that is in the file already is not carried out again."""

from __future__ import annotations

import dataclasses
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import jax
import numpy as np
import pyarrow.csv

from exactdp import __version__
from exactdp.accounting import validate
from exactdp.benchmarks.curves import store
from exactdp.benchmarks.experiments import sweep, text_table
from exactdp.train.tables import csv_file, pseudo, sources, statistics
from exactdp.train.tables.budget import Budget
from exactdp.train.tables.csv_file import RawTable
from exactdp.train.tables.sources import Source
from exactdp.train.two_stage import measured, pipeline
from exactdp.train.two_stage.inputs import Files
from exactdp.train.two_stage.measured import Comparison
from exactdp.train.two_stage.settings import TwoStageSettings

PAPER = "arXiv 2412.02467v2"
METRICS = ("f1", "auc", "accuracy", "hist", "pair", "correlation_accuracy")
COLUMNS = (
    "split",
    "series",
    "x",
    "seed",
    "end_to_end",
    "epsilon_lower",
    "epsilon_upper",
    "noise",
    "sampling_probability",
    "num_steps",
    *METRICS,
    "perplexity_value",
    "validity",
    "rows",
    "rows_per_second",
    "seconds",
)
"""Of the CSV file. `split` is test always, `x` the series' place on an axis."""

OTHERS = ("aim", "mst", "dp-ctgan", "ctgan", "tvae")
"""Series of other packages, see `baselines`."""
_TEXT_ROWS = 20_000
_STATISTICS = ("marginals", "independent")
OTHER = {"adult": "airline", "airline": "adult", "texas": "adult"}
"""The public table of stage 1 for each private one (the paper's pairs; one of two for Texas)."""


@dataclasses.dataclass(frozen=True)
class Size:
    """What the runs of a figure have in common.

    Attributes:
      dataset: "adult", "airline" or "texas".
      model: as `TwoStageSettings.model`.
      train_rows: 0 for all.
      test_rows: 0 for all.
      first_steps: of stage 1.
      num_steps: of stage 2.
      batch_size: expected, of stage 2.
      first_batch_size: of stage 1.
      rows: synthetic rows; 0 for as many as are trained on.
      num_seeds: runs of each point, with the seeds 0, 1, ...
      delta: in (0, 1).

    Raises:
      ValueError: a number is outside its range.
    """

    dataset: str
    model: str = "tiny"
    train_rows: int = 0
    test_rows: int = 0
    first_steps: int = 1000
    num_steps: int = 40
    batch_size: int = 512
    first_batch_size: int = 32
    rows: int = 5000
    num_seeds: int = 2
    delta: float = 1e-5

    def __post_init__(self) -> None:
        for name in ("train_rows", "test_rows", "rows"):
            validate.count(name, getattr(self, name))
        validate.count("num_seeds", self.num_seeds, minimum=1)
        self.settings()

    def settings(self, **given: Any) -> TwoStageSettings:
        """Settings of a run, with what is given in place of these."""
        own: dict[str, Any] = {
            "delta": self.delta,
            "model": self.model,
            "first_steps": self.first_steps,
            "num_steps": self.num_steps,
            "batch_size": self.batch_size,
            "first_batch_size": self.first_batch_size,
            "rows": self.rows or None,
        }
        return TwoStageSettings(**(own | given))


@dataclasses.dataclass(frozen=True)
class Variant:
    """One point of a figure.

    Attributes:
      series: which it is.
      x: its place on an axis.
      settings: of the run, beside the common ones; with `without_model`, epsilon alone counts.
      without_model: "marginals" or "independent" for rows drawn from private statistics with no language
        model, "real" for training rows; empty for a run.
      first_table: which public table first_stage "table" reads: "other" for the other data set's, "text" for
        one of words, see `text_table`.
    """

    series: str
    x: float
    settings: Mapping[str, Any]
    without_model: str = ""
    first_table: str = "other"


def header(size: Size, **more: object) -> dict[str, object]:
    """What the rows depend on; a file with another header is not continued."""
    return {
        "versions": {"exactdp": __version__, "jax": jax.__version__, "numpy": np.__version__},
        "device": jax.devices()[0].device_kind,
        "paper": PAPER,
        **dataclasses.asdict(size),
        **more,
    }


def carry_out(
    path: Path, variants: Sequence[Variant], *, size: Size, header: Mapping[str, object]
) -> list[store.Row]:
    """Runs what is missing, seed by seed; after every run the file is complete.

    Args:
      path: of the CSV file; its folder exists.
      variants: what is wanted.
      size: of all runs.
      header: of the file.

    Returns:
      All rows of the file.

    Raises:
      ValueError: the file is there with another header, data is missing, or a setting cannot be run.
    """
    rows = sweep.kept(path, header)
    have = {(row["series"], row["x"], row["seed"]) for row in rows}
    source = sources.load(size.dataset, train_rows=size.train_rows, test_rows=size.test_rows)
    with tempfile.TemporaryDirectory() as folder:
        files = _written(Path(folder), source, variants)
        for seed in range(size.num_seeds):
            for variant in variants:
                if (variant.series, repr(float(variant.x)), str(seed)) in have:
                    continue
                start = time.perf_counter()
                found = _one(variant, size, source, files, seed)
                values = {
                    "split": "test",
                    "series": variant.series,
                    "x": float(variant.x),
                    "seed": seed,
                    **found,
                    "seconds": round(time.perf_counter() - start, 1),
                }
                rows.append(sweep.row_of(values, columns=COLUMNS))
                sweep.write(path, header, rows, columns=COLUMNS)
                shown = [rows[-1][name][:6] or "none" for name in ("f1", "hist", "epsilon_upper")]
                print(
                    f"{variant.series} at {variant.x:g}, seed {seed}: F1 {shown[0]}, Hist {shown[1]}, "
                    f"epsilon <= {shown[2]}",
                    file=sys.stderr,
                    flush=True,
                )
    return rows


def baselines(path: Path, *, size: Size, epsilon: float) -> list[store.Row]:
    """Rows of a table that `two_stage_baselines` wrote, as rows of a figure; methods that gave none left out.

    Their epsilon is what the packages themselves claim, with the domain of the table taken as public, and no
    interval of ours: `end_to_end` and `epsilon_lower` are empty.

    Args:
      path: of two_stage_baselines.csv.
      size: of the runs that they stand beside.
      epsilon: of those runs.

    Raises:
      ValueError: there is no such file, or it was made at another epsilon or delta, with another number of
        rows or on another split.
    """
    if not path.is_file():
        raise ValueError(f"baselines must be a file that two_stage_baselines wrote, got {path}")
    found, rows = store.read_csv(path)
    source = sources.load(size.dataset, train_rows=size.train_rows, test_rows=size.test_rows)
    wanted = {
        "epsilon": epsilon,
        "delta": size.delta,
        "train_rows": source.train.num_rows,
        "test_rows": source.test.num_rows,
    }
    asked = size.rows or source.train.num_rows
    for name, value in wanted.items():
        if found.get(name) != value:
            raise ValueError(f"baselines must be made at {name} {value}, got {found.get(name)} in {path}")
    made: list[store.Row] = []
    for row in rows:
        if row["method"] not in OTHERS or row["status"] != "ok":
            continue
        if int(row["rows"]) != asked:
            raise ValueError(f"baselines must be of {asked} rows each, got {row['rows']} of {row['method']}")
        values = {
            "split": "test",
            "series": row["method"],
            "x": epsilon if row["epsilon_claimed_by_package"] else 0.0,
            "seed": found["seed"],
            "epsilon_upper": row["epsilon_claimed_by_package"],
            "hist": row["hist_50"],
            "validity": "1.0",
            **{name: row[name] for name in ("f1", "auc", "accuracy", "pair", "correlation_accuracy")},
            "rows": row["rows"],
            "seconds": row["seconds"],
        }
        made.append(sweep.row_of(values, columns=COLUMNS))
    return made


def _written(folder: Path, source: Source, variants: Sequence[Variant]) -> dict[str, Path]:
    """The tables as files, as a run reads them."""
    tables = {"train": source.train, "test": source.test}
    wanted = {one.first_table for one in variants if one.settings.get("first_stage") == "table"}
    if "other" in wanted:
        tables["other"] = sources.load(OTHER[source.name]).train
    if "text" in wanted:
        tables["text"] = text_table.make(_TEXT_ROWS)
    files: dict[str, Path] = {}
    for name, table in tables.items():
        files[name] = folder / f"{name}.csv"
        pyarrow.csv.write_csv(table.table, files[name])
    return files


def _one(
    variant: Variant, size: Size, source: Source, files: Mapping[str, Path], seed: int
) -> dict[str, Any]:
    if variant.without_model:
        return _without_model(variant, size, source, seed)
    settings = size.settings(label=source.label, **variant.settings)
    prepared = pipeline.prepare(
        settings,
        Files(
            files["train"],
            test=files["test"],
            first_csv=files[variant.first_table] if settings.stage_1 == "table" else None,
        ),
    )
    with tempfile.TemporaryDirectory() as folder:
        found = pipeline.run(prepared, out=Path(folder) / "run", seed=seed, progress=False)
    values: dict[str, Any] = {
        "end_to_end": found.end_to_end,
        "noise": prepared.plan.noise,
        "sampling_probability": prepared.plan.sampler.sampling_probability,
        "num_steps": prepared.plan.num_steps,
        "validity": found.validity.rate,
        "rows": found.rows,
        "rows_per_second": found.rows_per_second,
    }
    if found.epsilon is not None:
        values |= {"epsilon_lower": found.epsilon.lower, "epsilon_upper": found.epsilon.upper}
    return values | _measured(found.comparison)


def _without_model(variant: Variant, size: Size, source: Source, seed: int) -> dict[str, Any]:
    """Rows drawn from private statistics alone, or real ones."""
    if variant.without_model == "real":
        return {"rows": source.train.num_rows} | _measured(_compared(source, source.train))
    validate.one_of("without_model", variant.without_model, _STATISTICS)
    budget = Budget(
        float(variant.settings["epsilon"]),
        size.delta,
        num_columns=len(source.train.names),
        num_undeclared=len(source.train.names),
    )
    measured_ = statistics.measure(source.train, declared=(), label=source.label, budget=budget)
    codes = pseudo.draw(
        measured_,
        num_rows=size.rows or source.train.num_rows,
        method=variant.without_model,
        rng=np.random.default_rng(seed),
    )
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "synthetic.csv"
        csv_file.write(path, codes, measured_.schema)
        comparison = _compared(source, csv_file.read(path))
    spent = budget.interval()
    return {
        "end_to_end": True,
        "epsilon_lower": spent.lower,
        "epsilon_upper": spent.upper,
        "validity": 1.0,
        "rows": len(codes),
    } | _measured(comparison)


def _compared(source: Source, synthetic: RawTable) -> Comparison:
    return measured.compare(
        source.test, synthetic, train=None, label=source.label, validity=None, perplexities={}
    )


def _measured(found: Comparison | None) -> dict[str, Any]:
    if found is None:
        return {}
    record = found.as_dict()
    values = {name: record[name]["value"] for name in METRICS}
    return values | {"perplexity_value": found.perplexities.get("value")}
