"""Other synthesizers of tables on the same split, budget and public domain, scored by our metrics.

AIM and MST (smartnoise-synth, which brings McKenna's mbi), DP-CTGAN (smartnoise-synth), CTGAN and TVAE
(ctgan) run in processes of their own, by an interpreter that has them. Each gets the training rows coded by
the schema, which is taken as public; AIM and MST get numbers in equally wide bins of their ranges. Each gives
METHOD.csv, its rows, and METHOD.json, with epsilon as the package itself claims it and what its accountant
leaves out; two_stage_baselines.csv has a row of metrics for each, and one for as many training rows, the best
that a synthetic table can be.

Command:       python -m exactdp.benchmarks.two_stage_baselines --train train.csv --test test.csv
                   --schema schema.json --epsilon 1 --out baselines --baselines_python .venv-base/bin/python
Expected time: on Adult's 30 932 rows and one core minutes for DP-CTGAN and MST, tens of minutes for CTGAN and
               TVAE by their 300 epochs, hours for AIM by its 240 rounds (see --rounds).
Expected:      arXiv 2412.02467 at epsilon 1 on Adult, F1: AIM 59.6, MST 39.6, DP-CTGAN 42.2.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from absl import app, flags, logging

from exactdp.benchmarks.curves import store
from exactdp.benchmarks.table_baselines import baseline
from exactdp.train.folder import owner_only
from exactdp.train.table_metrics.evaluate import HELD_OUT, Metrics, evaluate
from exactdp.train.tables import csv_file, schema

COLUMNS = (
    "method", "status", "note", "epsilon_claimed_by_package", "delta", "rows", "seconds",
    "hist_50", "hist_20", "pair", "correlation_accuracy", "f1", "auc", "accuracy", "classifiers", "no_f1",
)  # fmt: skip


def row(claims: dict[str, Any], metrics: Metrics | None) -> list[object]:
    """A baseline's row, in the order of `COLUMNS`."""
    asked = [claims.get(name) for name in COLUMNS[: COLUMNS.index("hist_50")]]
    if metrics is None:
        return [*asked, *([None] * (len(COLUMNS) - len(asked)))]
    mean = metrics.utility.mean
    return [
        *asked,
        metrics.hist,
        float(metrics.histograms[20].mean()),
        metrics.pair,
        metrics.correlation_accuracy,
        *((mean.f1, mean.auc, mean.accuracy) if mean else (None, None, None)),
        "; ".join(part.classifier for part in metrics.utility.parts),
        metrics.utility.reason,
    ]


def main(arguments: Sequence[str]) -> None:
    """Runs the methods that the flags name."""
    given = flags.FLAGS
    if len(arguments) > 1:
        raise app.UsageError(f"unexpected arguments {arguments[1:]}")
    unknown = sorted(set(given.methods) - set(baseline.METHODS))
    if unknown:
        raise app.UsageError(f"methods must be among {list(baseline.METHODS)}, got {unknown}")
    domain = schema.read(Path(given.schema))
    train, test = (
        csv_file.encode(csv_file.read(Path(path)), domain).codes for path in (given.train, given.test)
    )
    count = given.rows or len(train)
    best = {
        "method": "real training rows",
        "status": "ok",
        "note": "not private",
        "rows": min(count, len(train)),
    }
    table = [row(best, evaluate(test, train[:count], domain))]
    with owner_only():  # CTGAN's rows are as private as the training rows
        out = store.prepare_directory("out", given.out)
        for method in given.methods:
            found = baseline.run(
                method,
                train,
                domain,
                python=given.baselines_python,
                epsilon=given.epsilon,
                delta=given.delta,
                rows=count,
                seed=given.seed,
                bins=given.bins,
                epochs=given.epochs,
                rounds=given.rounds,
                timeout=given.timeout,
            )
            claims = found.as_dict() | {"epsilon_asked": given.epsilon, "train_rows": len(train)}
            metrics = None
            if found.codes is not None:
                csv_file.write(out / f"{method}.csv", found.codes, domain)
                metrics = evaluate(test, found.codes, domain)
                claims["metrics"] = metrics.as_dict()
            store.write_atomically(out / f"{method}.json", (json.dumps(claims, indent=2) + "\n").encode())
            table.append(row(claims, metrics))
            logging.info("%s: %s %s", method, found.status, found.note)
        about = {
            **store.versions(),
            "epsilon": given.epsilon,
            "delta": given.delta,
            "train_rows": len(train),
            "test_rows": len(test),
            "bins": given.bins,
            "epochs": given.epochs,
            "rounds": given.rounds,
            "seed": given.seed,
            "computed_on": HELD_OUT,
        }
        store.write_csv(out / "two_stage_baselines.csv", about, COLUMNS, table)
    answers: list[dict[str, Any]] = [dict(zip(COLUMNS, own, strict=True)) for own in table]
    print(json.dumps(answers) if given.json else lines(answers))


def lines(answers: Sequence[Mapping[str, Any]]) -> str:
    """The rows for people."""
    names = ("epsilon_claimed_by_package", "hist_50", "pair", "correlation_accuracy", "f1", "auc", "accuracy")
    text = [
        f"{'method':20} {'epsilon':>8} {'Hist':>7} {'Pair':>7} {'CorAcc':>7} {'F1':>7} {'AUC':>7} {'ACC':>7}"
    ]
    for own in answers:
        if own["status"] != "ok":
            text.append(f"{own['method']:20} {own['status']}: {own['note']}")
            continue
        cells = ["" if own[name] is None else f"{own[name]:.3f}" for name in names]
        text.append(f"{own['method']:20} {cells[0]:>8} " + " ".join(f"{cell:>7}" for cell in cells[1:]))
    return "\n".join(text)


def run() -> None:
    """Entry point. The flags are defined here, so that importing the script defines none."""
    flags.DEFINE_string("train", None, "CSV file of the private training rows.", required=True)
    flags.DEFINE_string("test", None, "CSV file of held-out real rows.", required=True)
    flags.DEFINE_string("schema", None, "JSON file of the public domain.", required=True)
    flags.DEFINE_string("out", "baselines", "Directory for the files.")
    flags.DEFINE_boolean("json", False, "Print one JSON list instead of the table.")
    flags.DEFINE_list("methods", list(baseline.METHODS), "Baselines to run.")
    flags.DEFINE_string("baselines_python", sys.executable, "Interpreter that has the baselines' packages.")
    flags.DEFINE_float("epsilon", 1.0, "Budget.", lower_bound=0.0)
    flags.DEFINE_float("delta", 1e-5, "Of the budget.", lower_bound=0.0, upper_bound=1.0)
    flags.DEFINE_integer("rows", None, "Rows to draw; as many as there are training rows.", lower_bound=1)
    flags.DEFINE_integer("bins", 32, "Bins of a number, for AIM and MST.", lower_bound=1)
    flags.DEFINE_integer("epochs", 300, "Epochs of the networks, at most.", lower_bound=1)
    flags.DEFINE_integer(
        "rounds", None, "Rounds of AIM, one a column at least; the package's 16.", lower_bound=1
    )
    flags.DEFINE_integer("seed", 1, "Of what can be seeded.", lower_bound=0)
    flags.DEFINE_float("timeout", None, "Seconds after which a baseline is ended.", lower_bound=0.0)
    app.run(main)


if __name__ == "__main__":
    run()
