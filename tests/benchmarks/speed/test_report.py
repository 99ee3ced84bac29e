"""The logic of the speed comparison, on invented timings: nothing here measures time."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from exactdp.benchmarks import accountant_speed
from exactdp.benchmarks.curves import store
from exactdp.benchmarks.speed import cases, figure, measure, report, worker

A = cases.Case("A", "epsilon", (cases.LETTERS["A"],), 1e-5, sweep=True)
TRUTH_OF_A = 1.828236667
SECONDS = {"dp-accounting": 0.5, "opake-accounting": 0.2, "prv-accountant": 0.4}
UPPER = {"dp-accounting": 1.8283, "opake-accounting": 1.8, "prv-accountant": 1.9}


def answer(library: str, case: cases.Case, tolerance: float | None) -> measure.Report:
    if library == "opacus":
        return {"status": "not installed", "note": "No module named 'opacus'"}
    common = {"status": "ok", "note": "", "version": "1", "import_seconds": 0.1, "peak_mib": 50.0}
    if library == measure.OURS:
        width, seconds = (1e-6, 0.1) if tolerance is None else (tolerance, 0.02)
        ends = {"lower": TRUTH_OF_A - 0.5 * width, "upper": TRUTH_OF_A + 0.5 * width}
        return {**common, **ends, "seconds": seconds, "cpu_seconds": seconds}
    seconds = SECONDS[library]
    return {**common, "upper": UPPER[library], "seconds": 2.0 * seconds, "cpu_seconds": seconds}


def made(*peers: str, repeats: int = 3) -> list[report.Row]:
    def known(case: cases.Case) -> float:
        return TRUTH_OF_A

    jobs = measure.run([A], peers, answer, known=known, repeats=repeats, budget=60.0, say=lambda line: None)
    return report.rows(jobs, known)


def of(rows: list[report.Row], library: str) -> report.Row:
    return next(row for row in rows if row["library"] == library)


def test_ratio_is_taken_at_the_error_of_the_peer() -> None:
    row = of(made("dp-accounting"), "dp-accounting")
    assert row["error"] == pytest.approx(1.8283 - TRUTH_OF_A)
    assert row["ours_tolerance"] == pytest.approx(10**-4.5)  # the half-decade below 6.3e-5
    assert abs(row["ours_error"]) <= row["error"]
    assert row["ratio"] == pytest.approx(0.5 / 0.02)
    assert row["ratio_default"] == pytest.approx(0.5 / 0.1)
    assert row["target"] == "met"
    assert row["runs"] == 3


def test_an_answer_below_the_truth_is_no_bound() -> None:
    row = of(made("opake-accounting"), "opake-accounting")
    assert row["error"] < 0.0
    assert (row["tight"], row["target"]) == (0, None)
    assert "below the truth" in report.table([row])


def test_a_loose_answer_is_not_judged() -> None:
    row = of(made("prv-accountant"), "prv-accountant")
    assert (row["tight"], row["target"]) == (0, None)
    assert row["ratio"] is not None


def test_a_missed_target_is_said() -> None:
    slow = dict(SECONDS)
    try:
        SECONDS["dp-accounting"] = 0.1
        row = of(made("dp-accounting"), "dp-accounting")
    finally:
        SECONDS.update(slow)
    assert row["target"] == "missed: 5.0 < 10"
    assert "0 of 1" in report.summary([row])[0]


def test_what_is_not_installed_stays_in_the_table() -> None:
    rows = made("opacus", "dp-accounting")
    row = of(rows, "opacus")
    assert row["status"] == "not installed"
    assert row["runs"] == 1
    assert "opacus: no tight answer (not installed)" in report.summary(rows)
    assert report.versions(rows)["opacus"] == "not installed"


def test_a_slow_job_is_not_repeated() -> None:
    jobs = measure.run(
        [A], ["dp-accounting"], answer, known=lambda case: None, repeats=4, budget=0.0, say=lambda line: None
    )
    assert {len(job.reports) for job in jobs} == {1}


def test_matched_tolerance_leaves_a_closed_form_alone_where_it_is_exact_enough() -> None:
    report = {"status": "ok", "lower": 1.0, "upper": 1.0 + 1e-11, "engine": "closed form"}
    ours = measure.Job(A, measure.OURS, reports=[report])
    assert measure.matched_tolerance(A, 1e-4, ours) is None
    assert measure.matched_tolerance(A, 1e-12, ours) == pytest.approx(1e-12)
    contour = measure.Job(A, measure.OURS, reports=[report | {"engine": "contour"}])
    assert measure.matched_tolerance(A, 1e-4, contour) == pytest.approx(1e-4)


def test_error_of_a_curve_is_the_worst_relative_one() -> None:
    curve = cases.Case("curve", "delta_curve", A.mechanisms, 1e-5, epsilons=(1.0, 2.0))
    assert measure.error(curve, [1.1, 0.5], [1.0, 1.0]) == pytest.approx(-0.5)
    with pytest.raises(ValueError, match="same length"):
        measure.error(curve, [1.0], [1.0, 1.0])


def test_cases_are_plain_data_with_names_of_their_own() -> None:
    every = cases.cases()
    assert len({case.name for case in every}) == len(every)
    assert {case.num_steps for case in every if case.sweep} >= {1, 10, 100, 1000, 10**4, 10**5, 10**6}
    assert {case.query for case in every} == {"epsilon", "delta_curve", "noise_multiplier"}
    for case in every:
        assert json.loads(json.dumps(case.request()))["name"] == case.name
    twenty = next(case for case in every if case.name == "19 Gaussians + Laplace")
    assert len({json.dumps(m) for m in twenty.mechanisms}) == 20
    assert len(next(case for case in every if case.query == "delta_curve").epsilons) == 200


def test_truths_are_found_whatever_the_spelling() -> None:
    truths = cases.known_truths()
    for letter, expected in (("A", 1.828236667), ("E", 2.594383381)):
        assert truths[cases.key((cases.LETTERS[letter],), 1e-5)] == pytest.approx(expected, abs=1e-9)


def test_one_thread_everywhere() -> None:
    found = measure.environment({"OMP_NUM_THREADS": "8", "HOME": "/"})
    assert {found[name] for name in found if name.endswith("_THREADS")} == {"1"}
    assert found["HOME"] == "/"


def ask(library: str, case: cases.Case) -> dict[str, Any]:
    request = json.dumps({"library": library, "case": case.request(), "tolerance": None})
    done = subprocess.run(
        [sys.executable, "-P", worker.__file__], input=request, capture_output=True, text=True, check=True
    )
    return dict(json.loads(done.stdout))


def test_a_worker_answers() -> None:
    found = ask(measure.OURS, A)
    assert found["lower"] <= 1.8282366665165768839 <= found["upper"]
    assert 10.0 < found["peak_mib"] < 1024.0
    assert found["seconds"] > 0.0 < found["import_seconds"]


def test_a_worker_says_what_a_library_lacks() -> None:
    laplace = cases.Case("Laplace", "epsilon", (cases.laplace(10.0, 20),), 1e-5)
    with pytest.raises(worker.Unsupported, match="no Laplace"):
        worker._gaussians(laplace.request())
    missing = worker.LIBRARIES | {"absent": ("absent", lambda: worker.importlib.import_module("absent_peer"))}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(worker, "LIBRARIES", missing)
        assert worker.measure("absent", A.request(), None)["status"] == "not installed"


def test_processes_that_fail_or_never_end_are_reported(tmp_path: Path) -> None:
    assert measure.ask_process(None, 1.0)("opacus", A, None)["status"] == "not installed"
    stuck = tmp_path / "python"
    stuck.write_text("#!/bin/sh\nexec sleep 30\n")
    stuck.chmod(0o755)
    assert measure.ask_process(str(stuck), 0.2)("opacus", A, None)["status"] == "too slow"
    stuck.write_text("#!/bin/sh\necho broken >&2\nexit 3\n")
    found = measure.ask_process(str(stuck), 5.0)("opacus", A, None)
    assert (found["status"], found["note"]) == ("error", "exit status 3: broken")


def test_the_figure_is_drawn_from_the_csv_alone(tmp_path: Path) -> None:
    rows = made("dp-accounting", "prv-accountant", "opacus")
    path = tmp_path / "accountant_speed.csv"
    store.write_csv(
        path, {"libraries": report.versions(rows)}, report.COLUMNS, [list(r.values()) for r in rows]
    )
    drawn = figure.draw(path)
    assert [p.name for p in drawn] == ["accountant_speed.pdf", "accountant_speed.png"]
    assert all(p.stat().st_size > 3000 for p in drawn)


def test_case_names_can_be_chosen_in_part() -> None:
    assert {case.name for case in accountant_speed.chosen(["Laplace"])} == {
        "20 Laplace",
        "19 Gaussians + Laplace",
    }
    with pytest.raises(ValueError, match="cases must be parts of"):
        accountant_speed.chosen(["no such case"])
