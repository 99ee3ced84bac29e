"""Small private tables, and short runs on them."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

import numpy as np

from exactdp.train.two_stage import pipeline
from exactdp.train.two_stage.inputs import Files
from exactdp.train.two_stage.outcome import Outcome
from exactdp.train.two_stage.pipeline import Prepared
from exactdp.train.two_stage.settings import TwoStageSettings

SCHEMA = """{"label": "bought", "columns": [
 {"name": "bought", "kind": "category", "values": ["yes", "no"]},
 {"name": "age", "kind": "integer", "minimum": 18, "maximum": 90},
 {"name": "city, is it", "kind": "category", "values": ["Rome", "Bern, CH", "Paris"], "missing": true}]}"""
SHORT: dict[str, Any] = {
    "label": "bought",
    "epsilon": 4.0,
    "delta": 1e-4,
    "batch_size": 32,
    "first_batch_size": 32,
    "first_steps": 6,
    "num_steps": 6,
    "rows": 40,
    "vocabulary": 300,
}


def write(folder: Path, *, rows: int = 400, seed: int = 0, name: str = "private.csv") -> Path:
    """A table in which age and city tell what was bought."""
    rng = np.random.default_rng(seed)
    path = folder / name
    with path.open("w", newline="", encoding="utf-8") as file:
        out = csv.writer(file)
        out.writerow(["bought", "age", "city, is it"])
        for _ in range(rows):
            yes = rng.random() < 0.4
            age = int(rng.integers(20, 50) if yes else rng.integers(40, 88))
            city = ("Rome", "Bern, CH", "Paris", "")[int(rng.integers(0, 4))]
            out.writerow(["yes" if yes else "no", age, city])
    return path


def files(folder: Path, *, declared: bool = True, **more: Any) -> Files:
    """The table's files in a folder, written where they are not there."""
    path = folder / "private.csv"
    if not path.is_file():
        write(folder)
    schema = None
    if declared:
        schema = folder / "schema.json"
        schema.write_text(SCHEMA, encoding="utf-8")
    return Files(path, schema=schema, **more)


def prepared(folder: Path, *, declared: bool = True, **given: Any) -> Prepared:
    """A short run on them."""
    more = {name: given.pop(name) for name in ("test", "first_csv", "weights") if name in given}
    return pipeline.prepare(TwoStageSettings(**(SHORT | given)), files(folder, declared=declared, **more))


def run(
    folder: Path,
    out: Path,
    *,
    seed: int | None = 5,
    resume: bool = False,
    devices: int = 1,
    **given: Any,
) -> Outcome:
    """Carries it out."""
    ready = prepared(folder, **given)
    return pipeline.run(ready, out=out, seed=seed, resume=resume, progress=False, devices=devices)
