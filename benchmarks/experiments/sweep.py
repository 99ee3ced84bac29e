"""Training runs as rows of a CSV file: a run that is in the file already is not carried out again."""

from __future__ import annotations

import dataclasses
import functools
import json
import math
import sys
import time
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import sklearn.metrics

from exactdp import __version__
from exactdp.accounting.printed import dirichlet as printed
from exactdp.benchmarks.curves import store
from exactdp.benchmarks.experiments import runs
from exactdp.benchmarks.experiments.experiment import Experiment
from exactdp.benchmarks.experiments.label_noise import LabelNoise
from exactdp.train import methods
from exactdp.train.data import Dataset
from exactdp.train.public_map import public_map
from exactdp.train.result import Result
from exactdp.train.settings import Settings

_TYPICAL = 0.9  # softmax output at the label, as the paper takes it for kappa
COLUMNS = (
    "split",
    "series",
    "x",
    "seed",
    "method",
    "noise",
    "offset",
    "sampling_probability",
    "num_steps",
    "learning_rate",
    "effective_learning_rate",
    "epsilon_lower",
    "epsilon_upper",
    "rule_epsilon",
    "adjacency",
    "coins",
    "released",
    "covers_weights",
    "public",
    "clip_norm",
    "accuracy",
    "auc",
    "seconds",
    "reason",
)
"""Of the CSV file.

`noise` is the scaling of dirichlet, the noise multiplier of the others. `epsilon_lower` and `epsilon_upper`
are what the run's ledger certifies, under the threat model in `adjacency`, `coins` and `released`;
`rule_epsilon` is what the rule of arXiv 2607.19580 with the repaired conversion says of a dirichlet run.
`auc` is the area under the ROC curve on the test records, where there are two classes. `reason` says why
there is no accuracy.
"""


@dataclasses.dataclass(frozen=True)
class Point:
    """One point of a figure.

    Attributes:
      series: which curve it belongs to.
      x: where it is on the axis.
      settings: what is run; None where there is nothing to run.
      split: of `exactdp.benchmarks.experiments.experiment.SPLITS`.
      reason: why there is nothing to run.
      view: public feature map of which only the views are trained and tested on; empty for the records.
      labels: randomises the labels before they are trained on; its guarantee is then the row's.
    """

    series: str
    x: float
    settings: Settings | None
    split: str = "test"
    reason: str = ""
    view: str = ""
    labels: LabelNoise | None = None


def header(experiment: Experiment, data: Mapping[str, Dataset], **more: object) -> dict[str, object]:
    """What the rows depend on; a file with another header is not continued."""
    return {
        "versions": {"exactdp": __version__, "jax": jax.__version__, "numpy": np.__version__},
        "device": jax.devices()[0].device_kind,
        **dataclasses.asdict(experiment),
        "train_records": len(data["test"].y),
        "test_records": len(data["test"].y_test),
        "source": data["test"].source,
        **more,
    }


def carry_out(
    path: Path,
    points: Iterable[Point],
    *,
    experiment: Experiment,
    data: Mapping[str, Dataset],
    header: Mapping[str, object],
) -> list[store.Row]:
    """Runs what is missing of the points, all seeds of each; after every run the file is complete.

    Args:
      path: of the CSV file; its folder exists.
      points: what is wanted.
      experiment: model and seeds.
      data: as `Experiment.load` gives it.
      header: of the file.

    Returns:
      All rows of the file.

    Raises:
      ValueError: the file is there with another header, or a setting cannot be run.
    """
    rows = kept(path, header)
    for point in points:
        have = {row["seed"] for row in rows if _key(row) == (point.split, point.series, repr(float(point.x)))}
        missing = [seed for seed in range(experiment.num_seeds) if str(seed) not in have]
        if point.settings is None:
            if not have:
                rows.append(_empty(point))
                write(path, header, rows)
            continue
        if not missing:
            continue
        chosen = viewed(data[point.split], point.view) if point.view else data[point.split]
        prepare = functools.lru_cache(maxsize=1)(
            functools.partial(methods.prepare, point.settings, model=experiment.model)
        )
        for seed in missing:
            start, labelled = time.perf_counter(), chosen
            if point.labels is not None:
                labelled = point.labels.randomised(
                    chosen, settings=point.settings, model=experiment.model, seed=seed
                )
            # Seeds with the same labels share what was prepared, and so what is compiled.
            prepared = prepare(data=labelled)
            result = runs.run(prepared, seed=seed)
            rows.append(_row(point, prepared, result, seed, time.perf_counter() - start))
            write(path, header, rows)
            print(
                f"{point.split}: {point.series} at {point.x:g}, seed {seed}: accuracy "
                f"{result.measured:.4f}, epsilon <= {float(rows[-1]['epsilon_upper']):.4g}",
                file=sys.stderr,
                flush=True,
            )
    return rows


def viewed(data: Dataset, text: str) -> Dataset:
    """The data set with every input's public view in its place, labels as they are.

    Raises:
      ValueError: the map does not take the records.
    """
    found = public_map(text, data=data)
    x, x_test = (np.asarray(found.view(jnp.asarray(part))) for part in (data.x, data.x_test))
    return dataclasses.replace(data, x=x, x_test=x_test)


def kept(path: Path, header: Mapping[str, object]) -> list[store.Row]:
    """The rows of a file that is to be continued; none where there is no file.

    Raises:
      ValueError: the file is there with another header.
    """
    if not path.is_file():
        return []
    found, rows = store.read_csv(path)
    wanted = json.loads(json.dumps(header))
    if found != wanted:
        changed = sorted(k for k in {*found, *wanted} if found.get(k) != wanted.get(k))
        raise ValueError(
            f"out must hold no file made with other settings, got {path}, which differs in "
            f"{', '.join(changed)}; remove it or choose another folder"
        )
    return rows


def _row(point: Point, prepared: methods.Prepared, result: Result, seed: int, seconds: float) -> store.Row:
    plan, settings = prepared.plan, prepared.settings
    values: dict[str, Any] = {
        "split": point.split,
        "series": point.series,
        "x": float(point.x),
        "seed": seed,
        "method": settings.method,
        "noise": plan.noise,
        "sampling_probability": plan.sampler.sampling_probability,
        "num_steps": plan.num_steps,
        "learning_rate": plan.learning_rate,
        **certified(prepared, result),
        "public": settings.feature.public if settings.feature is not None else point.view,
        "clip_norm": settings.clip if plan.noise is not None and settings.method != "dirichlet" else None,
        "accuracy": result.measured,
        "auc": _auc(prepared, result),
        "seconds": round(seconds, 2),
    }
    if settings.method == "dirichlet" and plan.noise is not None:
        q = plan.sampler.sampling_probability
        values |= {
            "offset": settings.alpha,
            "effective_learning_rate": printed.effective_learning_rate(
                plan.learning_rate,
                scaling=plan.noise,
                offset=settings.alpha,
                true_class_probability=_TYPICAL,
            ),
            "rule_epsilon": printed.epsilon(
                plan.noise,
                offset=settings.alpha,
                sampling_probability=q,
                num_steps=plan.num_steps,
                delta=settings.delta,
                conversion="balle",
            ).value,
        }
    if point.labels is not None:
        values |= point.labels.claim(delta=settings.delta)
    return row_of(values)


def certified(prepared: methods.Prepared, result: Result) -> dict[str, Any]:
    """The columns of a row that say what is guaranteed: by the run's ledger, under its threat model."""
    return {
        "epsilon_lower": result.epsilon.lower,
        "epsilon_upper": result.epsilon.upper,
        "adjacency": result.threat_model.adjacency,
        "coins": result.threat_model.coins,
        "released": result.threat_model.released,
        "covers_weights": prepared.plan.certificate.covers_weights,
    }


def _auc(prepared: methods.Prepared, result: Result) -> float | None:
    if prepared.data.num_classes != 2 or prepared.network is None:
        return None
    logits = np.asarray(prepared.network.logits(result.state.weights, jnp.asarray(prepared.data.x_test)))
    return float(sklearn.metrics.roc_auc_score(prepared.data.y_test, logits[:, 1] - logits[:, 0]))


def _empty(point: Point) -> store.Row:
    return row_of({"split": point.split, "series": point.series, "x": float(point.x), "reason": point.reason})


def cell(value: object) -> str:
    """A value as a field of the CSV file."""
    return "" if value is None else repr(value) if isinstance(value, float) else str(value)


def _key(row: store.Row) -> tuple[str, str, str]:
    return row["split"], row["series"], row["x"]


def write(
    path: Path,
    header: Mapping[str, object],
    rows: Sequence[store.Row],
    *,
    columns: Sequence[str] = COLUMNS,
) -> None:
    """The whole CSV file, atomically; what a row lacks is empty."""
    store.write_csv(path, header, columns, [[row.get(name, "") for name in columns] for row in rows])


def row_of(values: Mapping[str, object], *, columns: Sequence[str] = COLUMNS) -> store.Row:
    """Values as a row of the CSV file."""
    return {name: cell(values.get(name)) for name in columns}


@dataclasses.dataclass(frozen=True)
class Summary:
    """The seeds of one point, together.

    Attributes:
      series: curve.
      x: place on the axis.
      mean: of the accuracy, or of another column.
      deviation: standard deviation over the seeds (n - 1), 0 for one seed.
      count: how many seeds.
      row: of the first seed, for what does not depend on it.
    """

    series: str
    x: float
    mean: float
    deviation: float
    count: int
    row: store.Row


def summaries(rows: Sequence[store.Row], *, split: str = "test", measure: str = "accuracy") -> list[Summary]:
    """One summary a point of that split that was measured, in the order of the file."""
    groups: dict[tuple[str, str], list[store.Row]] = {}
    for row in rows:
        if row["split"] == split and row.get(measure):
            groups.setdefault((row["series"], row["x"]), []).append(row)
    made: list[Summary] = []
    for (series, x), group in groups.items():
        values = np.array([float(row[measure]) for row in group])
        deviation = float(values.std(ddof=1)) if len(values) > 1 else 0.0
        made.append(Summary(series, float(x), float(values.mean()), deviation, len(values), group[0]))
    return made


def table(rows: Sequence[store.Row]) -> str:
    """The summaries as text."""
    lines = [f"{'series':44} {'x':>10} {'accuracy':>9} {'+-':>7} {'noise':>10} {'epsilon <=':>10} reason"]
    for one in summaries(rows):
        noise, epsilon = one.row["noise"], one.row["epsilon_upper"]
        lines.append(
            f"{one.series:44} {one.x:10.4g} {one.mean:9.4f} {one.deviation:7.4f} "
            f"{float(noise) if noise else math.nan:10.4g} {float(epsilon):10.4g}"
        )
    lines += [
        f"{row['series']:44} {float(row['x']):10.4g} {row['reason']}"
        for row in rows
        if row["split"] == "test" and row["reason"]
    ]
    return "\n".join(lines)
