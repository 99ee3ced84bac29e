"""A baseline asked for rows: it gets a table on the public domain, and says what epsilon it claims."""

from __future__ import annotations

import dataclasses
import json
import subprocess
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Int

from exactdp.accounting import validate
from exactdp.benchmarks.table_baselines.coding import Discrete, Mixed
from exactdp.benchmarks.table_baselines.worker import PACKAGES
from exactdp.train.table_metrics.cells import require_table
from exactdp.train.tables.schema import Schema

WORKER = Path(__file__).with_name("worker.py")
METHODS = tuple(PACKAGES)
DISCRETE = ("aim", "mst")
"""These take categories only."""


@dataclasses.dataclass(frozen=True)
class Baseline:
    """What a baseline gave.

    Attributes:
      method: one of `METHODS`.
      status: ok, not installed or error.
      note: what went wrong; of an error its kind alone, for its text may quote a private cell.
      codes: synthetic rows; none unless ok.
      claimed: epsilon as the package itself has it; None where it claims none. Not ours, and not certified.
      delta: at which it is claimed.
      caveats: what the package's accountant does not cover, as read in its source.
      versions: of its packages.
      seconds: for fitting and sampling.
    """

    method: str
    status: str
    note: str
    codes: Int[np.ndarray, "rows columns"] | None = None
    claimed: float | None = None
    delta: float | None = None
    caveats: tuple[str, ...] = ()
    versions: Mapping[str, str] = dataclasses.field(default_factory=dict[str, str])
    seconds: float | None = None

    def as_dict(self) -> dict[str, Any]:
        """For JSON; without the rows."""
        return {
            "method": self.method,
            "status": self.status,
            "note": self.note,
            "rows": 0 if self.codes is None else len(self.codes),
            "epsilon_claimed_by_package": self.claimed,
            "delta": self.delta,
            "caveats": list(self.caveats),
            "versions": dict(self.versions),
            "seconds": self.seconds,
        }


def run(
    method: str,
    train: Int[np.ndarray, "records columns"],
    schema: Schema,
    *,
    python: str,
    epsilon: float,
    delta: float,
    rows: int,
    seed: int,
    bins: int = 32,
    epochs: int = 300,
    rounds: int | None = None,
    timeout: float | None = None,
) -> Baseline:
    """Fits a baseline to training rows and draws rows from it.

    The domain that it sees is the schema's: no range or list of values is taken from the rows, except by
    CTGAN and TVAE, which are not private.

    Args:
      method: one of `METHODS`.
      train: codes of the private training rows.
      schema: of the table, taken as public.
      python: interpreter that has the method's package.
      epsilon: budget asked for.
      delta: of it.
      rows: to draw.
      seed: of what can be seeded; OpenDP's noise, in AIM and MST, cannot.
      bins: of a number, for AIM and MST.
      epochs: of the networks, at most.
      rounds: of AIM, which splits its budget over them, as many as columns at least, for it measures each of
        them first; None for the package's 16 a column.
      timeout: seconds after which it is ended, with the status "error".

    Raises:
      ValueError: an argument is outside its range, or the table is none of this schema.
    """
    validate.one_of("method", method, METHODS)
    require_table("train", train, schema)
    validate.positive("epsilon", epsilon)
    validate.open_probability("delta", delta)
    coding = Discrete(schema, bins) if method in DISCRETE else Mixed(schema)
    request: dict[str, Any] = {
        "method": method,
        "columns": coding.columns(),
        "epsilon": epsilon,
        "delta": delta,
        "rows": validate.count("rows", rows, minimum=1),
        "seed": validate.count("seed", seed),
        "epochs": validate.count("epochs", epochs, minimum=1),
        "rounds": None if rounds is None else validate.count("rounds", rounds, minimum=len(schema.columns)),
    }
    # A directory for its owner alone, gone afterwards: the rows are private.
    with tempfile.TemporaryDirectory() as folder:
        data, out = Path(folder) / "data.npy", Path(folder) / "out.npy"
        np.save(data, coding.encode(train))
        answer = _ask(python, request | {"data": str(data), "out": str(out)}, timeout)
        if answer["status"] != "ok":
            return Baseline(method, str(answer["status"]), str(answer["note"]))
        codes = coding.decode(np.load(out), seed=seed)
    require_table(f"{method}'s rows", codes, schema)
    return Baseline(
        method,
        "ok",
        "",
        codes,
        answer["claimed"],
        None if answer["claimed"] is None else delta,
        tuple(answer["caveats"]),
        answer["versions"],
        float(answer["seconds"]),
    )


def _ask(python: str, request: Mapping[str, Any], timeout: float | None) -> dict[str, Any]:
    try:
        done = subprocess.run(
            [python, "-P", str(WORKER)],
            input=json.dumps(request),
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,  # may quote a private cell
            text=True,
            timeout=timeout,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return {"status": "error", "note": f"not done after {timeout:g} seconds"}
    except OSError as problem:
        return {"status": "not installed", "note": f"no interpreter {python} ({problem.strerror})"}
    try:
        return dict(json.loads(done.stdout))
    except ValueError:
        return {"status": "error", "note": f"ended with exit status {done.returncode}"}
