"""Runs the queries, each in a fresh single-threaded process, libraries taking turns."""

from __future__ import annotations

import dataclasses
import json
import math
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from exactdp.benchmarks.speed.cases import Case

OURS = "exactdp"
WORKER = Path(__file__).with_name("worker.py")
_ONE_THREAD = ("OMP_NUM", "OPENBLAS_NUM", "MKL_NUM", "NUMEXPR_NUM", "RAYON_NUM", "VECLIB_MAXIMUM")

Report = dict[str, Any]
Ask = Callable[[str, Case, float | None], Report]
"""Library, case and tolerance -> what one process reports."""


@dataclasses.dataclass
class Job:
    """One library on one case, with the reports of its runs.

    Attributes:
      case: the query.
      library: who answers.
      tolerance: width asked of exactdp; None for its default.
      reports: one a run.
      spent: seconds so far, start and import of the process included.
    """

    case: Case
    library: str
    tolerance: float | None = None
    reports: list[Report] = dataclasses.field(default_factory=list[Report])
    spent: float = 0.0

    @property
    def status(self) -> str:
        """Of the first run; it does not change from run to run."""
        return str(self.reports[0]["status"])

    def median(self, name: str) -> float | None:
        """Median over the runs of one measurement, None where there is none."""
        values = [float(r[name]) for r in self.reports if r.get("status") == "ok" and name in r]
        return statistics.median(values) if values else None

    def upper(self) -> float | list[float] | None:
        """The answer reported as a guarantee."""
        return self.reports[0].get("upper") if self.reports else None

    def lower(self) -> float | list[float] | None:
        """The lower end, of a library that has one."""
        return self.reports[0].get("lower") if self.reports else None


def environment(base: Mapping[str, str]) -> dict[str, str]:
    """`base` with one thread for every library that has threads, and no warnings on stderr."""
    one = {f"{name}_THREADS": "1" for name in _ONE_THREAD}
    return {**base, **one, "PYTHONWARNINGS": "ignore", "CUDA_VISIBLE_DEVICES": ""}


def ask_process(peers_python: str | None, limit: float) -> Ask:
    """An `Ask` that starts a process: exactdp under this interpreter, the others under `peers_python`.

    Args:
      peers_python: interpreter that has the peers; None where there is none.
      limit: seconds after which a run is given up.
    """

    def ask(library: str, case: Case, tolerance: float | None) -> Report:
        python = sys.executable if library == OURS else peers_python
        if python is None:
            return {"status": "not installed", "note": "no interpreter with the peers: see --peers_python"}
        request = json.dumps({"library": library, "case": case.request(), "tolerance": tolerance})
        try:
            done = subprocess.run(
                [python, "-P", str(WORKER)], input=request, capture_output=True, text=True, check=False,
                timeout=limit, env=environment(os.environ),
            )  # fmt: skip
        except subprocess.TimeoutExpired:
            return {"status": "too slow", "note": f"no answer within {limit:g} s"}
        if done.returncode != 0:
            tail = done.stderr.strip().splitlines()[-1:] or [""]
            return {"status": "error", "note": f"exit status {done.returncode}: {tail[0]}"[:200]}
        return dict(json.loads(done.stdout.splitlines()[-1]))

    return ask


def error(case: Case, upper: float | Sequence[float], truth: float | Sequence[float]) -> float:
    """Signed error of an answer: of epsilon absolute, of a noise multiplier relative.

    Of a curve it is the largest relative one. A negative error means that less privacy loss (or noise) was
    reported than there is.
    """
    if isinstance(upper, Sequence) or isinstance(truth, Sequence):
        if not (isinstance(upper, Sequence) and isinstance(truth, Sequence) and len(upper) == len(truth)):
            raise ValueError("upper and truth must both be curves of the same length")
        return max((u / t - 1.0 for u, t in zip(upper, truth, strict=True)), key=abs)
    return upper - truth if case.query == "epsilon" else upper / truth - 1.0


def truth_of(case: Case, ours: Sequence[Job], known: float | None) -> float | list[float] | None:
    """The reference: 40 known digits, or the middle of exactdp's narrowest interval."""
    if known is not None and case.query == "epsilon":
        return known
    answered = [job for job in ours if job.reports and job.status == "ok"]
    if case.query == "delta_curve":
        ends = [(job.lower(), job.upper()) for job in answered]
        for low, high in ends:
            if isinstance(low, list) and isinstance(high, list):
                return [0.5 * (a + b) for a, b in zip(low, high, strict=True)]
        return None
    intervals = [(float(job.reports[0]["lower"]), float(job.reports[0]["upper"])) for job in answered]
    if not intervals:
        return None
    low, high = min(intervals, key=lambda ends: ends[1] - ends[0])
    return 0.5 * (low + high)


def doubt(case: Case, ours: Sequence[Job], known: float | None) -> float:
    """How far the reference may be from the truth, in the units of `error`."""
    if case.query == "delta_curve":
        return 1e-6
    if known is not None and case.query == "epsilon":
        return 1e-12 * max(known, 1.0)
    widths = [
        float(job.reports[0]["upper"]) - float(job.reports[0]["lower"])
        for job in ours
        if job.reports and job.status == "ok"
    ]
    return 0.5 * min((abs(width) for width in widths), default=math.inf) + 1e-12


def matched_tolerance(case: Case, peer_error: float, ours: Job) -> float | None:
    """The width to ask exactdp for so that its error is at most the peer's; None where its default serves.

    Half-decades, so that several peers share a run. A closed form is accurate to rounding at once.
    """
    if case.query == "delta_curve":
        return None
    size = max(abs(peer_error), 1e-12)
    low, high = ours.lower(), ours.upper()
    if ours.reports[0].get("engine") == "closed form" and isinstance(low, float) and isinstance(high, float):
        if high - low <= size:
            return None
    tolerance = 10.0 ** (0.5 * math.floor(2.0 * math.log10(size) + 1e-9))
    return min(tolerance, 0.1) if case.query == "noise_multiplier" else tolerance


def run(
    cases: Sequence[Case],
    libraries: Sequence[str],
    ask: Ask,
    *,
    known: Callable[[Case], float | None],
    repeats: int,
    budget: float,
    say: Callable[[str], None],
) -> list[Job]:
    """Every library on every case, then exactdp once more at each peer's error.

    Args:
      cases: the queries.
      libraries: their names, exactdp not among them.
      ask: runs one query.
      known: 40-digit epsilon of a case, or None.
      repeats: runs of each job; medians are taken.
      budget: a job that has used this many seconds is not repeated.
      say: told about progress.

    Returns:
      The jobs, exactdp's first for each case.
    """
    jobs = [Job(case, library) for case in cases for library in (OURS, *libraries)]
    _round(jobs, ask, say, "1")
    for case in cases:
        ours = next(j for j in jobs if j.case is case and j.library == OURS)
        truth = truth_of(case, [ours], known(case))
        wanted: set[float] = set()
        for job in (j for j in jobs if j.case is case and j.library != OURS):
            upper = job.upper()
            if truth is None or upper is None or not _finite(upper):
                continue
            tolerance = matched_tolerance(case, error(case, upper, truth), ours)
            if tolerance is not None:
                wanted.add(tolerance)
        jobs += [Job(case, OURS, tolerance) for tolerance in sorted(wanted)]
    _round([j for j in jobs if not j.reports], ask, say, "1, at the peers' errors")
    for number in range(2, repeats + 1):
        again = [j for j in jobs if j.status == "ok" and j.spent < budget]
        _round(again, ask, say, str(number))
    return jobs


def _finite(value: float | list[float]) -> bool:
    return all(math.isfinite(x) for x in (value if isinstance(value, list) else [value]))


def _round(jobs: Iterable[Job], ask: Ask, say: Callable[[str], None], name: str) -> None:
    for job in list(jobs):
        started = time.perf_counter()
        job.reports.append(ask(job.library, job.case, job.tolerance))
        job.spent += time.perf_counter() - started
        say(f"round {name}: {job.case.name}: {job.library}: {job.reports[-1]['status']} in {job.spent:.1f} s")
