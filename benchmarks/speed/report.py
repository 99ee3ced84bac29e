"""From the jobs to rows: medians, errors, ratios, and whether the target is met."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from exactdp.benchmarks.speed import measure
from exactdp.benchmarks.speed.cases import Case
from exactdp.benchmarks.speed.measure import OURS, Job

Row = dict[str, Any]

COLUMNS = (
    "case", "query", "num_steps", "delta", "sweep", "library", "version", "tolerance", "status", "engine",
    "upper", "truth", "error", "tight", "seconds", "cpu_seconds", "ours_tolerance", "ours_seconds",
    "ours_error", "ratio", "ratio_default", "target", "import_seconds", "peak_mib", "runs", "note",
)  # fmt: skip
TARGET, RUST_TARGET = 10.0, 3.0
RUST = ("opake-accounting",)
LOOSE = 0.02  # a bound further off than this, relative to epsilon, is not a tight one


def rows(jobs: Sequence[Job], known: Callable[[Case], float | None]) -> list[Row]:
    """One row a job.

    `ratio` is the peer's processor time over exactdp's at the peer's error or a smaller one, `ratio_default`
    over exactdp's at its default tolerance. With one thread, processor time is wall time on an idle machine,
    and is disturbed far less on a busy one; both are in the row.
    """
    found: list[Row] = []
    for job in jobs:
        ours = next(j for j in jobs if j.case is job.case and j.library == OURS and j.tolerance is None)
        mine = [j for j in jobs if j.case is job.case and j.library == OURS]
        truth = measure.truth_of(job.case, mine, known(job.case))
        doubt = measure.doubt(job.case, mine, known(job.case))
        row = _row(job, truth, doubt)
        if job.library != OURS and row["error"] is not None and ours.status == "ok":
            # Asked for by the error known then; the truth may have become sharper since.
            first = measure.truth_of(job.case, [ours], known(job.case))
            wanted = measure.matched_tolerance(job.case, _first_error(job, first, row["error"]), ours)
            matched = next((j for j in mine if j.tolerance == wanted and j.status == "ok"), ours)
            _compare(row, matched, ours, truth, doubt)
        found.append(row)
    return found


def _first_error(job: Job, truth: float | list[float] | None, otherwise: float) -> float:
    upper = job.upper()
    return otherwise if truth is None or upper is None else measure.error(job.case, upper, truth)


def _row(job: Job, truth: float | list[float] | None, doubt: float) -> Row:
    upper = job.upper()
    error = None
    if truth is not None and upper is not None and job.status == "ok":
        error = measure.error(job.case, upper, truth)
    row: Row = dict.fromkeys(COLUMNS)
    row.update(
        case=job.case.name, query=job.case.query, num_steps=job.case.num_steps, delta=job.case.delta,
        sweep=int(job.case.sweep), library=job.library, version=job.reports[0].get("version", ""),
        tolerance=job.tolerance, status=job.status, engine=job.reports[0].get("engine", ""),
        upper=_last(upper), truth=_last(truth), error=error, tight=int(is_tight(job, error, doubt)),
        seconds=job.median("seconds"), cpu_seconds=job.median("cpu_seconds"),
        import_seconds=job.median("import_seconds"), peak_mib=job.median("peak_mib"),
        runs=len(job.reports), note=job.reports[0].get("note", ""),
    )  # fmt: skip
    return row


def is_tight(job: Job, error: float | None, doubt: float) -> bool:
    """Whether the answer is not below the truth, and within 2 % of it (a curve: above it everywhere).

    Args:
      job: what answered.
      error: signed error of the answer.
      doubt: how far the reference may be from the truth.
    """
    if error is None or not math.isfinite(error):
        return False
    upper = job.upper()
    size = max(abs(upper), 0.01) if isinstance(upper, float) and job.case.query == "epsilon" else 1.0
    return -doubt <= error and (job.case.query == "delta_curve" or error <= LOOSE * size)


def _compare(row: Row, matched: Job, default: Job, truth: float | list[float] | None, doubt: float) -> None:
    seconds, ours = row["cpu_seconds"], matched.median("cpu_seconds")
    upper = matched.upper()
    row["ours_seconds"] = ours
    if upper is not None and truth is not None:
        row["ours_error"] = measure.error(matched.case, upper, truth)
    row["ours_tolerance"] = matched.tolerance
    if seconds is None or not ours:
        return
    row["ratio"] = seconds / ours
    row["ratio_default"] = seconds / (default.median("cpu_seconds") or math.inf)
    if row["tight"]:
        wanted = RUST_TARGET if row["library"] in RUST else TARGET
        row["target"] = "met" if row["ratio"] >= wanted else f"missed: {row['ratio']:.1f} < {wanted:g}"
        if abs(row["ours_error"] or 0.0) > max(abs(row["error"]), doubt):
            row["target"] = f"missed: error {row['ours_error']:.1e} is the larger one"


def _last(value: float | list[float] | None) -> float | None:
    return value[-1] if isinstance(value, list) else value


def versions(found: Sequence[Row]) -> dict[str, str]:
    """Version of each library, or why it has none."""
    answer: dict[str, str] = {}
    for row in found:
        answer[row["library"]] = row["version"] or answer.get(row["library"], "") or row["status"]
    return answer


def table(found: Sequence[Row]) -> str:
    """What is printed: a line a row, then a summary a library."""
    lines = [
        f"{'case':<24} {'library':<19} {'error':>9} {'ms':>9} {'ours ms':>8} {'ratio':>7} {'default':>8} "
        f"{'import s':>8} {'MiB':>5}  target"
    ]
    for row in found:
        name = row["library"] if row["tolerance"] is None else f"{OURS} {row['tolerance']:.1e}"
        note = row["target"] or (row["status"] if row["status"] != "ok" else "")
        if row["status"] == "ok" and row["library"] != OURS and not row["target"]:
            note = "not a bound: below the truth" if (row["error"] or 0.0) < 0.0 else "not tight"
        lines.append(
            f"{row['case']:<24} {name:<19} {_show(row['error'], '9.1e')} "
            f"{_show(row['cpu_seconds'], '9.2f', 1e3)} "
            f"{_show(row['ours_seconds'], '8.2f', 1e3)} {_show(row['ratio'], '7.1f')} "
            f"{_show(row['ratio_default'], '8.1f')} {_show(row['import_seconds'], '8.2f')} "
            f"{_show(row['peak_mib'], '5.0f')}  {note}"
        )
    lines += ["", *summary(found)]
    return "\n".join(lines)


def summary(found: Sequence[Row]) -> list[str]:
    """Targets met, least ratios, import time and memory."""
    lines: list[str] = []
    for library in dict.fromkeys(row["library"] for row in found if row["library"] != OURS):
        judged = [row for row in found if row["library"] == library and row["target"]]
        if judged:
            least = min(judged, key=lambda row: float(row["ratio"]))
            met = sum(row["target"] == "met" for row in judged)
            lines.append(
                f"{library}: target met in {met} of {len(judged)} tight answers; "
                f"least ratio {least['ratio']:.1f} ({least['case']})"
            )
        else:
            states = sorted({str(row["status"]) for row in found if row["library"] == library})
            lines.append(f"{library}: no tight answer ({', '.join(states)})")
    ours = [row for row in found if row["library"] == OURS and row["status"] == "ok"]
    if ours:
        imports = sorted(float(row["import_seconds"]) for row in ours)
        peak = max(float(row["peak_mib"]) for row in ours)
        middle = imports[len(imports) // 2]
        lines.append(f"{OURS}: import {middle:.2f} s (median), peak memory {peak:.0f} MiB")
    return lines


def _show(value: float | None, form: str, factor: float = 1.0) -> str:
    width = int(form.split(".")[0])
    return " " * (width - 1) + "-" if value is None else format(value * factor, form)
