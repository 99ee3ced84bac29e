"""Compares certified intervals of `exactdp` with independent references, and prints the count.

    python -m exactdp.benchmarks.soundness.run --count 10000 --out soundness.csv [--seed 1] [--resume]
    python -m exactdp.benchmarks.soundness.run --references soundness.csv --out again.csv
    python -m exactdp.benchmarks.soundness.run --noreference --out widths.csv

A row is a miss when the reference, give or take its error, lies outside the interval. The random references
need python-flint and take most of the time (about an hour on two cores for 10 000); the second command takes
them from an earlier run's CSV and checks this version's intervals against them, which takes minutes.
The third asks for no reference, and so also reaches the inputs that the references leave out for being slow:
it tells how wide the intervals are, and how long they take, in about half an hour on two cores.
`--count 0` checks the data file alone. Exit status 1 when an interval misses or an answer is an error.
"""

from __future__ import annotations

import csv
import dataclasses
import json
import os
import sys
import time
from typing import Any

import numpy as np
from absl import app, flags, logging

from exactdp.benchmarks.soundness.compare import composition, contains, supported

_COUNT = flags.DEFINE_integer("count", 10_000, "Random configurations.", lower_bound=0)
_SEED = flags.DEFINE_integer("seed", 1, "Seed; row i depends on the seed and i alone.")
_OUT = flags.DEFINE_string("out", "soundness.csv", "CSV to write, a row a configuration.")
_RESUME = flags.DEFINE_boolean("resume", False, "Keep the rows already in --out and go on.")
_TRUTHS = flags.DEFINE_string("truths", "", "Also check every entry of this truths.json first.")
_REFERENCES = flags.DEFINE_string("references", "", "Take inputs and references from this earlier CSV.")
_REFERENCE = flags.DEFINE_boolean("reference", True, "Find a reference for each random configuration.")
_SECONDS = flags.DEFINE_float("seconds", 3.0, "A reference that takes longer is drawn again.")


@dataclasses.dataclass
class Row:
    """One line of the CSV."""

    name: str
    families: str
    delta: str
    truth: str
    error: float
    lower: str
    upper: str
    engine: str
    verdict: str
    seconds_engine: float
    seconds_reference: float
    mechanisms: str


def check(
    name: str, mechanisms: list[dict[str, Any]], delta: str, truth: str, error: float, spent: float
) -> Row:
    """Runs the engine on one input and compares."""
    from exactdp.accounting import prv

    row = Row(
        name=name,
        families="+".join(sorted({m["family"] + "/" + m.get("coins", "none") for m in mechanisms})),
        delta=delta,
        truth=truth,
        error=error,
        lower="",
        upper="",
        engine="",
        verdict="unsupported",
        seconds_engine=0.0,
        seconds_reference=spent,
        mechanisms=json.dumps(mechanisms),
    )
    if not supported(mechanisms):
        return row
    started = time.perf_counter()
    try:
        interval = prv.epsilon(composition(mechanisms), delta=float(delta))
    except Exception as failure:  # noqa: BLE001  (an error is a result here: it is counted and written down)
        row.verdict = f"error: {type(failure).__name__}: {failure}"
        return row
    finally:
        row.seconds_engine = time.perf_counter() - started
    inside = not truth or contains(interval.lower, interval.upper, truth, error)
    wide = interval.width > 1e-3 * max(interval.upper, 0.01)
    row.verdict = "miss" if not inside else "wide" if wide else "ok"
    row.lower, row.upper, row.engine = repr(interval.lower), repr(interval.upper), interval.engine
    return row


def _file_rows(path: str) -> list[tuple[str, list[dict[str, Any]], str, str, float]]:
    with open(path, encoding="utf-8") as file:
        entries = json.load(file)["configurations"]
    return [(e["name"], e["mechanisms"], e["delta"], e["epsilon"], 10.0 ** -e["digits"]) for e in entries]


def _given_rows(path: str) -> list[tuple[str, list[dict[str, Any]], str, str, float]]:
    with open(path, encoding="utf-8", newline="") as file:
        return [
            (r["name"], json.loads(r["mechanisms"]), r["delta"], r["truth"], float(r["error"]))
            for r in csv.DictReader(file)
        ]


def main(argv: list[str]) -> None:
    """Runs the comparison, prints the counts and exits with status 1 on a miss."""
    del argv
    done: set[tuple[str, str]] = set()
    counts: dict[str, int] = {}
    if _RESUME.value and os.path.exists(_OUT.value):
        with open(_OUT.value, encoding="utf-8", newline="") as file:
            for row in csv.DictReader(file):
                done.add((row["name"], row["delta"]))
                _tally(counts, row["verdict"])
    mode = "a" if done else "w"
    fields = [f.name for f in dataclasses.fields(Row)]
    with open(_OUT.value, mode, encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, fieldnames=fields)
        if mode == "w":
            writer.writeheader()
        given = _file_rows(_TRUTHS.value) if _TRUTHS.value else []
        given += _given_rows(_REFERENCES.value) if _REFERENCES.value else []
        for name, mechanisms, delta, truth, error in given:
            if (name, delta) not in done:
                _write(writer, counts, check(name, mechanisms, delta, truth, error, 0.0))
                file.flush()
        finished = {name for name, _ in done}
        redrawn = 0
        for index in range(0 if _REFERENCES.value else _COUNT.value):
            name = f"seed {_SEED.value} row {index}"
            if name in finished:
                continue
            row, again = _random_row(name, index)
            redrawn += again
            _write(writer, counts, row)
            file.flush()
            if (index + 1) % 100 == 0:
                logging.info("%d of %d: %s", index + 1, _COUNT.value, _summary(counts))
    print(
        f"{sum(counts.values())} configurations: {_summary(counts)}; "
        f"{redrawn} inputs were out of the reference's reach"
    )
    print(_widths(_OUT.value))
    misses, errors = counts.get("miss", 0), counts.get("error", 0)
    print(f"intervals that miss the reference: {misses}; answers that are errors: {errors}")
    if misses or errors:
        sys.exit(1)


def _random_row(name: str, index: int) -> tuple[Row, int]:
    from exactdp.benchmarks.soundness.configurations import random_configuration
    from exactdp.benchmarks.soundness.fast import fast_reference

    rng = np.random.default_rng([_SEED.value, index])
    if not _REFERENCE.value:
        return check(name, *random_configuration(rng), "", 0.0, 0.0), 0
    for attempt in range(1000):
        mechanisms, delta = random_configuration(rng)
        started = time.perf_counter()
        truth = fast_reference(mechanisms, delta, seconds=_SECONDS.value)
        if truth is not None:
            spent = time.perf_counter() - started
            return check(name, mechanisms, delta, *truth, spent), attempt
    raise RuntimeError(f"{name}: no random input within reach of the reference")


def _write(writer: csv.DictWriter[str], counts: dict[str, int], row: Row) -> None:
    writer.writerow(dataclasses.asdict(row))
    _tally(counts, row.verdict)
    if row.verdict == "miss" or row.verdict.startswith("error"):
        logging.warning("%s: %s: [%s, %s] truth %s: %s", row.verdict, row.name, row.lower, row.upper,
                        row.truth, row.mechanisms)  # fmt: skip


def _widths(path: str) -> str:
    """How many intervals of ten steps or more are wider than the default aim, and how long they took."""
    widths, seconds = [], []
    with open(path, encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            if row["upper"] in ("", "inf") or sum(m["count"] for m in json.loads(row["mechanisms"])) < 10:
                continue
            lower, upper = float(row["lower"]), float(row["upper"])
            widths.append((upper - lower) / max(upper, 0.01))
            seconds.append(float(row["seconds_engine"]))
    if not widths:
        return "no interval of ten steps or more"
    wide = sum(width > 1e-6 for width in widths)
    return (
        f"intervals of ten steps or more wider than 1e-6 max(epsilon, 0.01): {wide} of {len(widths)}, the "
        f"widest {max(widths):.2g}; seconds: median {np.median(seconds):.2g}, 99 % "
        f"{np.quantile(seconds, 0.99):.2g}, longest {max(seconds):.2g}"
    )


def _tally(counts: dict[str, int], verdict: str) -> None:
    key = verdict.split(":")[0]
    counts[key] = counts.get(key, 0) + 1


def _summary(counts: dict[str, int]) -> str:
    return ", ".join(f"{n} {key}" for key, n in sorted(counts.items())) or "none"


if __name__ == "__main__":
    app.run(main)
