"""How much memory a synthetic table takes from end to end, phase by phase: by default, one of a million rows.

A made-up table of 15 columns is written as a CSV file, and `exactdp train two_stage` is carried out on it
with the smallest model and a few steps: what is measured is what grows with the rows (reading, statistics,
tokens, a step's batch, metrics), and not how long it takes to learn. No domain is declared. The number of
rows that are drawn is a flag: a million take an hour, and no more memory than a batch of them and the codes.

Peak is the most memory that the process ever had, up to the end of the phase (`ru_maxrss`), so that it never
falls from one phase to the next.

Command:       python -m exactdp.benchmarks.two_stage_scale --out scale
Expected time: ten minutes on an idle core.
Expected:      peak below 4 GiB; the last line printed says whether that held.
"""

from __future__ import annotations

import json
import resource
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from absl import app, flags, logging
from jaxtyping import Int

from exactdp.accounting import validate
from exactdp.benchmarks.curves import store
from exactdp.train.tables import csv_file
from exactdp.train.tables.schema import Column, Schema
from exactdp.train.two_stage import pipeline
from exactdp.train.two_stage.inputs import Files
from exactdp.train.two_stage.settings import TwoStageSettings

NAME = "two_stage_scale"
LIMIT = 4.0
"""GiB that are aimed at."""
COLUMNS = ("phase", "seconds", "peak_gib")
_GIB, _KIB = 2.0**30, 2.0**10
_SEED = 7

Row = dict[str, Any]


def schema() -> Schema:
    """Fifteen columns: categories of few and of many values, numbers, and a label that two numbers tell."""
    columns = [Column("many", "category", values=tuple(f"v{k}" for k in range(1_000)))]
    columns += [
        Column(f"c{k}", "category", values=tuple("abcdefghij"), missing=bool(k % 2)) for k in range(6)
    ]
    columns += [Column(f"n{k}", "integer", minimum=0, maximum=1_000, missing=bool(k % 2)) for k in range(6)]
    columns += [Column("x", "float", minimum=0, maximum=99_999, decimals=2)]
    return Schema((*columns, Column("y", "category", values=("no", "yes"))), "y")


def codes(rows: int) -> Int[np.ndarray, "rows columns"]:
    """The made-up table."""
    random = np.random.default_rng(_SEED)
    found = np.empty((rows, len(schema().columns)), np.int64)
    for place, column in enumerate(schema().columns):
        found[:, place] = random.integers(column.low, column.high + 1, rows)
    found[:, -1] = found[:, 7] + random.normal(0.0, 200.0, rows) > 500
    return found


def measure(
    out: Path, *, table_rows: int, rows: int, first_steps: int, num_steps: int, batch_size: int
) -> list[Row]:
    """One run in a folder without a run; a row for each phase, the first being that of the file.

    Args:
      out: folder, where the table and the run are left.
      table_rows: of the private table.
      rows: drawn.
      first_steps: of stage 1.
      num_steps: of stage 2.
      batch_size: expected, of stage 2.

    Raises:
      ValueError: the folder holds a run; a number is out of range.
    """
    validate.count("table_rows", table_rows, minimum=100)
    settings = TwoStageSettings(
        label="y",
        epsilon=1.0,
        rows=rows,
        first_steps=first_steps,
        num_steps=num_steps,
        batch_size=batch_size,
    )
    path = out / "table.csv"
    marks: list[tuple[str, float, float]] = []

    def mark(name: str) -> None:
        marks.append((name, time.perf_counter(), _peak()))

    mark("file")
    csv_file.write(path, codes(table_rows), schema())
    mark("reading")
    prepared = pipeline.prepare(settings, Files(path))
    pipeline.run(prepared, out=out / "run", seed=_SEED, progress=False, begun=mark)
    mark("")
    found: list[Row] = []
    for (name, start, _), (_, end, peak) in zip(marks[:-1], marks[1:], strict=True):
        found.append(dict(zip(COLUMNS, (name, round(end - start, 1), round(peak / _GIB, 3)), strict=True)))
    return found


def _peak() -> float:
    """Bytes; what the system counts in is bytes on macOS and kibibytes elsewhere."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1.0 if sys.platform == "darwin" else _KIB)


def verdict(rows: Sequence[Row]) -> str:
    """Whether the limit was kept."""
    peak = max(row["peak_gib"] for row in rows)
    return f"peak {peak:.2f} GiB, aimed at {LIMIT:g}: {'reached' if peak < LIMIT else 'missed'}"


def table(rows: Sequence[Row]) -> str:
    """The rows as text."""
    lines = [f"{'phase':12} {'seconds':>8} {'peak, GiB':>10}"]
    lines += [f"{row['phase']:12} {row['seconds']:>8.1f} {row['peak_gib']:>10.3f}" for row in rows]
    return "\n".join(lines)


def main(arguments: Sequence[str]) -> None:
    """Measures what the flags name."""
    if len(arguments) > 1:
        raise app.UsageError(f"no positional arguments are taken, got {arguments[1:]}")
    given = flags.FLAGS
    sizes: dict[str, Any] = {name: given[name].value for name in _SIZES}
    try:
        out = store.prepare_directory("out", given.out)
        rows = measure(out, **sizes)
    except ValueError as error:
        raise app.UsageError(str(error)) from error
    values = [[row[column] for column in COLUMNS] for row in rows]
    store.write_csv(out / f"{NAME}.csv", {**sizes, "columns": len(schema().columns)}, list(COLUMNS), values)
    print(json.dumps({"rows": rows, "verdict": verdict(rows)}) if given.json else table(rows))
    if not given.json:
        print(verdict(rows))


_SIZES = {
    "table_rows": (1_000_000, "Rows of the private table."),
    "rows": (20_000, "Synthetic rows."),
    "first_steps": (20, "Steps of stage 1."),
    "num_steps": (5, "Steps of stage 2."),
    "batch_size": (1_024, "Expected rows of a batch of stage 2."),
}


def run() -> None:
    """Entry point. The flags are defined here, so that importing the script defines none."""
    logging.set_verbosity(logging.WARNING)
    for name, (default, text) in _SIZES.items():
        flags.DEFINE_integer(name, default, text, lower_bound=1)
    flags.DEFINE_string("out", "scale", f"Folder for {NAME}.csv, the table and the run.")
    flags.DEFINE_boolean("json", False, "Print one JSON object instead of the table.")
    app.run(main)


if __name__ == "__main__":
    run()
