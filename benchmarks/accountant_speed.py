"""Time of an exact accountant's query, side by side with every peer that is installed.

Each query runs in a fresh process on one thread, nothing warmed, libraries taking turns; the import is timed
apart. Every answer is compared with the truth, and exactdp is run both at its default tolerance and at an
error no larger than the peer's.

Command:       make peers && python -m exactdp.benchmarks.accountant_speed --out speed
Expected time: about seven minutes on an idle core.
Expected:      aimed at is that a peer with a tight bound takes at least 10 times as long at the same or a
               smaller error, the one written in Rust at least 3 times, that importing takes exactdp under
               0.5 s and no query 1 GiB. The last lines printed say in how many cases that held.
"""

from __future__ import annotations

import datetime
import json
import os
import platform
import sys
from collections.abc import Sequence
from pathlib import Path

from absl import app, flags, logging

from exactdp.benchmarks.speed import cases, measure, report, worker

_OUT = flags.DEFINE_string("out", "speed", "Directory for accountant_speed.csv, .pdf and .png.")
_EVERY_PEER = [name for name in worker.LIBRARIES if name != measure.OURS]
_PEERS = flags.DEFINE_list("peers", _EVERY_PEER, "Peers to compare with.")
_PEERS_PYTHON = flags.DEFINE_string(
    "peers_python", ".venv-peers/bin/python", "Interpreter that has the peers; this one if there is none."
)
_CASES = flags.DEFINE_list("cases", [], "Only cases whose name contains one of these; all by default.")
_REPEATS = flags.DEFINE_integer("repeats", 3, "Processes for each library and case; medians.", lower_bound=1)
_BUDGET = flags.DEFINE_float("budget", 1.5, "Seconds after which a case is not repeated.")
_LIMIT = flags.DEFINE_float("limit", 15.0, "Seconds after which a process is ended.")
_JSON = flags.DEFINE_boolean("json", False, "Print one JSON object instead of the table.")
_REDRAW = flags.DEFINE_boolean("redraw", False, "Only draw the figure again from the CSV file in --out.")


def chosen(names: Sequence[str]) -> list[cases.Case]:
    """The cases whose name contains one of `names`; all where there are none.

    Raises:
      ValueError: a name is part of no case's.
    """
    every = cases.cases()
    for name in names:
        if not any(name in case.name for case in every):
            raise ValueError(f"cases must be parts of {[case.name for case in every]}, got {name!r}")
    return [case for case in every if not names or any(name in case.name for name in names)]


def processor() -> str:
    """Name of the processor, as the system tells it."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return platform.processor() or platform.machine()
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.machine()


def header(found: Sequence[report.Row]) -> dict[str, object]:
    """What the timings depend on."""
    loads = os.getloadavg() if hasattr(os, "getloadavg") else ()
    return {
        "libraries": report.versions(found),
        "processor": processor(),
        "cores": os.cpu_count(),
        "threads": 1,
        "load average at the end": [round(x, 2) for x in loads],
        "date": datetime.datetime.now(datetime.UTC).date().isoformat(),
        "python": platform.python_version(),
        "repeats": _REPEATS.value,
        "grid step of dp-accounting, riskcal, opake-accounting": worker.GRID,
        "epsilon error of prv-accountant, opacus": worker.EPS_ERROR,
    }


def main(argv: list[str]) -> None:
    """Measures, writes the CSV file, prints the table and draws the figure."""
    if len(argv) > 1:
        raise app.UsageError(f"unknown arguments: {argv[1:]}")
    unknown = sorted(set(_PEERS.value) - set(worker.LIBRARIES))
    if unknown:
        raise app.UsageError(f"peers must be among {sorted(worker.LIBRARIES)}, got {unknown}")
    try:
        queries = chosen(_CASES.value)
    except ValueError as problem:
        raise app.UsageError(str(problem)) from problem
    path = Path(_OUT.value) / "accountant_speed.csv"
    if not _REDRAW.value:
        _measure(queries, path)
    # Only now: a process started from a large one would begin with its peak memory on some systems.
    from exactdp.benchmarks.speed import figure

    for drawn in figure.draw(path):
        logging.info("wrote %s", drawn)


def _measure(queries: Sequence[cases.Case], path: Path) -> None:
    truths = cases.known_truths()

    def known(case: cases.Case) -> float | None:
        return truths.get(cases.key(case.mechanisms, case.delta)) if case.query == "epsilon" else None

    there = Path(_PEERS_PYTHON.value)
    peers_python = str(there.absolute()) if there.is_file() else sys.executable
    ask = measure.ask_process(peers_python, _LIMIT.value)
    peers = [name for name in _PEERS.value if name != measure.OURS]
    jobs = measure.run(
        queries, peers, ask, known=known, repeats=_REPEATS.value, budget=_BUDGET.value, say=logging.info
    )
    found = report.rows(jobs, known)
    from exactdp.benchmarks.curves import store

    store.prepare_directory("out", path.parent)
    cells = [[row[name] for name in report.COLUMNS] for row in found]
    store.write_csv(path, header(found), report.COLUMNS, cells)
    if _JSON.value:
        print(json.dumps({"header": header(found), "rows": found, "summary": report.summary(found)}))
    else:
        print(report.table(found))


def run() -> None:
    """Entry point."""
    app.run(main)


if __name__ == "__main__":
    run()
