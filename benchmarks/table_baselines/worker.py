"""One baseline in a process of its own: run by path, `python -P`, by any interpreter that has its package.

Reads one JSON object from stdin:

    method, columns, epsilon, delta, rows, seed, epochs, rounds, data (.npy to read), out (.npy to write)

and prints one: status ("ok", "not installed" or "error"), note, versions, seconds, claimed (epsilon as the
package has it, or null) and caveats (what its accountant does not cover, as read in its source). `columns` is
the public domain: {"kind": "category", "size"} or {"kind": "number", "low", "high"}. Only the standard
library, NumPy and the packages asked for are imported.
"""

from __future__ import annotations

import importlib
import importlib.util
import json
import random
import sys
import time
import traceback
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np

PACKAGES = {
    "aim": ("smartnoise-synth", "mbi", "opendp"),
    "mst": ("smartnoise-synth", "mbi", "opendp"),
    "dp-ctgan": ("smartnoise-synth", "opacus", "packaging", "torch"),
    "ctgan": ("ctgan", "torch"),
    "tvae": ("ctgan", "torch"),
}
"""Distributions that take part, for their versions; the first is the one that is called."""

_MODULES = {"smartnoise-synth": "snsynth"}

CAVEATS = {
    "aim": (),
    "mst": ("uses the exact number of training rows, to which no noise is added",),
    "dp-ctgan": (
        "batches and generation are conditioned on the training rows' category frequencies, outside the "
        "accountant",
        "batches are drawn by category, and accounted for as uniformly subsampled",
        "the budget is checked once an epoch: the last one may exceed it, or be missing from the claim",
    ),
    "ctgan": ("not private",),
    "tvae": ("not private",),
}

Answer = tuple[np.ndarray, float | None]
"""Synthetic rows, and epsilon as claimed."""


def _module(name: str) -> Any:
    return importlib.import_module(name)


def _categories(request: dict[str, Any], data: np.ndarray) -> Answer:
    """AIM and MST: every column is a category, fitted on its public values."""
    pandas, transform = _module("pandas"), _module("snsynth.transform")
    made: list[Any] = []
    for column in request["columns"]:
        one = transform.LabelTransformer(nullable=False)
        one.fit(list(range(column["size"])))
        made.append(one)
    budget = {"epsilon": float(request["epsilon"]), "delta": float(request["delta"])}
    if request["method"] == "aim":
        model = _module("snsynth.aim").AIMSynthesizer(rounds=request["rounds"], **budget)
    else:
        model = _module("snsynth.mst").MSTSynthesizer(**budget)
    frame = pandas.DataFrame(data.astype(int), columns=[f"c{k}" for k in range(data.shape[1])])
    model.fit(frame, transformer=transform.TableTransformer(made))
    return np.asarray(model.sample(request["rows"]), dtype=np.float64), float(request["epsilon"])


def _dp_ctgan(request: dict[str, Any], data: np.ndarray) -> Answer:
    pandas, transform = _module("pandas"), _module("snsynth.transform")
    made: list[Any] = []
    for column in request["columns"]:
        if column["kind"] == "category":
            one = transform.ChainTransformer(
                [transform.LabelTransformer(nullable=False), transform.OneHotEncoder()]
            )
            one.fit(list(range(column["size"])))
        else:
            one = transform.MinMaxTransformer(lower=column["low"], upper=column["high"], nullable=False)
            one.fit([column["low"], column["high"]])
        made.append(one)
    names = [f"c{k}" for k in range(data.shape[1])]
    frame = pandas.DataFrame(
        {
            name: data[:, k].astype(int if column["kind"] == "category" else float)
            for k, (name, column) in enumerate(zip(names, request["columns"], strict=True))
        }
    )
    model = _module("snsynth.pytorch.nn.dpctgan").DPCTGAN(
        epsilon=float(request["epsilon"]),
        delta=float(request["delta"]),
        epochs=request["epochs"],
        batch_size=_batch(len(data)),
        cuda=False,
        verbose=False,
    )
    model.fit(frame, transformer=transform.TableTransformer(made))
    claimed = float(model.epsilon_list[-1]) if model.epsilon_list else None
    return np.asarray(model.sample(request["rows"]), dtype=np.float64), claimed


def _without_privacy(request: dict[str, Any], data: np.ndarray) -> Answer:
    """CTGAN and TVAE."""
    pandas, package = _module("pandas"), _module("ctgan")
    names = [f"c{k}" for k in range(data.shape[1])]
    discrete = [
        name for name, column in zip(names, request["columns"], strict=True) if column["kind"] == "category"
    ]
    kind = package.CTGAN if request["method"] == "ctgan" else package.TVAE
    # CTGAN judges ten rows at once: the size of a batch must be a multiple.
    model = kind(epochs=request["epochs"], batch_size=_batch(len(data)), enable_gpu=False)
    model.fit(pandas.DataFrame(data, columns=names), discrete)
    return model.sample(request["rows"])[names].to_numpy(dtype=np.float64), None


def _batch(rows: int) -> int:
    """500, the packages' own, or what a smaller table allows."""
    return min(500, max(20, rows // 20 * 20))


_RUN = {
    "aim": _categories,
    "mst": _categories,
    "dp-ctgan": _dp_ctgan,
    "ctgan": _without_privacy,
    "tvae": _without_privacy,
}


def answer(request: dict[str, Any]) -> dict[str, Any]:
    """Runs the method and writes its rows."""
    method = request["method"]
    packages = PACKAGES[method]
    module = _MODULES.get(packages[0], packages[0])
    if importlib.util.find_spec(module) is None:
        return {"status": "not installed", "note": f"no {packages[0]}"}
    try:
        random.seed(request["seed"])
        np.random.seed(request["seed"] % 2**32)
        if importlib.util.find_spec("torch") is not None:
            _module("torch").manual_seed(request["seed"])
        start = time.perf_counter()
        rows, claimed = _RUN[method](request, np.load(request["data"]))
        seconds = time.perf_counter() - start
        np.save(request["out"], rows)
    except Exception as problem:  # its text may hold a private cell: where it arose does not
        return {"status": "error", "note": f"{type(problem).__name__} {_place(problem)}"}
    return {
        "status": "ok",
        "note": "",
        "versions": {name: metadata.version(name) for name in packages},
        "seconds": seconds,
        "claimed": claimed,
        "caveats": list(CAVEATS[method]),
    }


def _place(problem: Exception) -> str:
    if isinstance(problem, ModuleNotFoundError):
        return f"({problem.name})"
    frame = traceback.extract_tb(problem.__traceback__)[-1]
    return f"at {Path(frame.filename).name}:{frame.lineno}"


if __name__ == "__main__":
    # What a library prints goes to stderr: stdout is for the answer.
    own, sys.stdout = sys.stdout, sys.stderr
    print(json.dumps(answer(json.load(sys.stdin))), file=own, flush=True)
