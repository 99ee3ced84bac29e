"""Time and memory of Algorithm 1's clipped residual, beside the same two passes without clipping.

Two models: the perceptron 784-128-10 on 1024 records, and the diffusion U-Net on 64 images of 25x25 pixels.
Each record goes through the model twice, as it is and as its blurred public view, and the gradient of the
difference of its two losses is clipped as one vector. The non-private step takes the gradient of the same
two losses of every record, once with record and view as rows of one batch and once in a pass each; ratios are
over the faster of the two. Making the views is in neither. How the steps are timed is said in
`training_speed`.

Command:       python -m exactdp.benchmarks.feature_speed --out speed
Expected time: about five minutes on one core; compiling the U-Net is most of it.
Expected:      aimed at is "clipped" over non-private at most 1.3 for both.

Source: arXiv 2506.19836v1, Algorithm 1.
"""

from __future__ import annotations

import dataclasses
import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import jax
from absl import app, flags, logging
from jax import Array

from exactdp.benchmarks import training_speed
from exactdp.benchmarks.curves import store
from exactdp.benchmarks.speed.models import Case
from exactdp.benchmarks.training_speed import Row
from exactdp.mechanisms.public import Blur, Public
from exactdp.train.classification import Classification
from exactdp.train.diffusion import Diffusion
from exactdp.train.network import Network
from exactdp.train.objective import Objective
from exactdp.train.task import Records

TARGET = 1.3
RECORDS = {"mlp": 1024, "unet": 64}
_CLASSES = 10


def _objective(name: str) -> Objective:
    if name == "mlp":
        return Classification(Network("mlp", (28, 28, 1), _CLASSES))
    if name == "unet":
        return Diffusion((25, 25, 1), pixel_range=(0.0, 1.0))
    raise ValueError(f"cases must be of {', '.join(RECORDS)}, got {name!r}")


def case(name: str, *, records: int | None = None) -> Case:
    """The residual of a model on random images whose blurred view is public.

    Args:
      name: mlp or unet.
      records: batch size; that of `RECORDS` by default.

    Raises:
      ValueError: another name.
    """
    objective = _objective(name)
    count = RECORDS[name] if records is None else records
    first, second, third, fourth = jax.random.split(jax.random.key(0), 4)
    x = jax.random.uniform(first, (count, *objective.input_shape))
    y = jax.random.randint(second, (count,), 0, _CLASSES)
    residual = objective.residual(Public(Blur(2.0), label=True))
    batch = jax.jit(residual.examples)(Records(x, y), third)

    def apart(params: Any, found: Any) -> Array:
        own, view = (jax.tree.map(lambda leaf, k=k: leaf[:, k], found) for k in (0, 1))
        return objective.losses(params, own) - objective.losses(params, view)

    return Case(name, residual.losses, apart, objective.initialise(fourth), batch)


def measure(name: str, *, repeats: int, budget: float, records: int | None = None) -> list[Row]:
    """The two non-private steps and the clipped one, run in turns.

    Args:
      name: mlp or unet.
      repeats: timed runs of each at most.
      budget: seconds of one kind after which it is not run again.
      records: as for `case`.

    Raises:
      ValueError: another name.
    """
    rows = training_speed.measure(case(name, records=records), ["clipped"], repeats=repeats, budget=budget)
    # What is tuned elsewhere is here the other order of the same two passes.
    return [dataclasses.replace(row, step=row.step.replace("tuned", "apart")) for row in rows]


def table(rows: Sequence[Row]) -> str:
    """The rows as text, with the target."""
    lines = [
        f"{'model':5} {'step':18} {'ms':>9} {'ratio':>7} {'peak MB':>9} {'ratio':>7} {'compile s':>9} runs"
    ]
    for row in rows:
        target = f"  aimed at {TARGET}" if row.step == "clipped" else ""
        lines.append(
            f"{row.case:5} {row.step:18} {row.milliseconds:9.2f} {row.ratio:7.2f} {row.peak_megabytes:9.1f} "
            f"{row.memory_ratio:7.2f} {row.compile_seconds or 0.0:9.1f} {row.runs:4}{target}"
        )
    return "\n".join(lines)


def write(rows: Sequence[Row], directory: Path, *, repeats: int) -> Path:
    """Writes feature_speed.csv; returns its path."""
    path = store.prepare_directory("out", directory) / "feature_speed.csv"
    names = [field.name for field in dataclasses.fields(Row) if not field.name.startswith("own_")]
    about = training_speed.header(repeats=repeats, peers={})
    del about["peers"]
    store.write_csv(path, about, names, [[getattr(row, name) for name in names] for row in rows])
    return path


def main(arguments: Sequence[str]) -> None:
    """Times the models that the flags name."""
    given = flags.FLAGS
    if len(arguments) > 1:
        raise app.UsageError(f"unexpected arguments {arguments[1:]}")
    unknown = sorted(set(given.cases) - set(RECORDS))
    if unknown:
        raise app.UsageError(f"cases must be among {list(RECORDS)}, got {unknown}")
    if hasattr(os, "sched_setaffinity"):
        # Before the first computation, which is when the thread pool gets its size.
        os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
    rows: list[Row] = []
    for name in given.cases:
        rows += measure(name, repeats=given.repeats, budget=given.budget)
        logging.info("%s done", name)
    write(rows, Path(given.out), repeats=given.repeats)
    print(json.dumps([dataclasses.asdict(row) for row in rows]) if given.json else table(rows))


def run() -> None:
    """Entry point. The flags are defined here, so that importing the script defines none."""
    flags.DEFINE_string("out", "speed", "Directory for feature_speed.csv.")
    flags.DEFINE_boolean("json", False, "Print one JSON object instead of the table.")
    flags.DEFINE_list("cases", list(RECORDS), "Models to time.")
    flags.DEFINE_integer("repeats", 15, "Most timed steps of each kind; medians.", lower_bound=1)
    flags.DEFINE_float(
        "budget", 60.0, "Seconds of one kind of step after which it is not repeated.", lower_bound=0.0
    )
    app.run(main)


if __name__ == "__main__":
    run()
