"""Makes all files of `exactdp curves`, using again what is finished."""

from __future__ import annotations

import concurrent.futures
import contextlib
import dataclasses
import multiprocessing
import sys
import time
from collections.abc import Callable, Generator, Sequence
from pathlib import Path
from typing import Any

from exactdp.benchmarks.curves import audits, compute, figure, ladders, page, panels, store
from exactdp.benchmarks.curves.audits import Audit
from exactdp.benchmarks.curves.compute import Row

Future = concurrent.futures.Future[Any]


class _Inline(concurrent.futures.Executor):
    """Runs each call when its result is asked for, in this process."""

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future:
        future = _Lazy(lambda: fn(*args, **kwargs))
        return future


class _Lazy(concurrent.futures.Future[Any]):
    def __init__(self, call: Callable[[], Any]) -> None:
        super().__init__()
        self._call = call

    def result(self, timeout: float | None = None) -> Any:
        if not self.done():
            self.set_result(self._call())
        return super().result(timeout)


@contextlib.contextmanager
def _executor(jobs: int) -> Generator[concurrent.futures.Executor]:
    if jobs == 1:
        yield _Inline()
        return
    # Fresh processes: a fork of one that has started threads may hang.
    pool = concurrent.futures.ProcessPoolExecutor(jobs, mp_context=multiprocessing.get_context("spawn"))
    try:
        yield pool
    finally:
        pool.shutdown(cancel_futures=True)


@dataclasses.dataclass(frozen=True)
class _File:
    """One CSV file to be.

    Attributes:
      path, header, columns: as in `store.write_csv`.
      calls: that give its rows; none where the file is there but for its audits; None where it is finished.
      audited: rows that audits add.
    """

    path: Path
    header: dict[str, Any]
    columns: Sequence[str]
    calls: list[Future] | None
    audited: list[Row]


def make(
    directory: Path,
    papers: Sequence[str],
    *,
    jobs: int = 1,
    fresh: bool = False,
    audited: Sequence[Audit] = (),
) -> Path:
    """Computes, writes and draws everything for `papers`; returns the path of index.html.

    A CSV file that was written with the same versions, code and parameters is used again, unless `fresh`;
    with other audits, all but their rows. Figures are drawn where their CSV file is new or they are missing.

    Args:
      directory: where the files go.
      papers: names in `ladders.PAPERS`.
      jobs: number of processes.
      fresh: whether to compute what is finished again.
      audited: results to show beside the curves.
    """
    start = time.perf_counter()
    wanted = [(paper, panel) for paper in papers for panel in (None, *panels.of(paper))]
    with _executor(jobs) as executor:
        submitted = [_submit(executor, directory, paper, panel, fresh, audited) for paper, panel in wanted]
        new: set[Path] = set()
        for i, file in enumerate(submitted):
            label = f"[{i + 1}/{len(submitted)}, {time.perf_counter() - start:.0f} s] {file.path.name}"
            if file.calls is None:
                _say(f"{label}: finished before, used again")
                continue
            parts = []
            for j, call in enumerate(file.calls):
                if sys.stderr.isatty():
                    _say(f"{label}: {j}/{len(file.calls)}", end="\r")
                parts.append(call.result())
            if not parts:
                rows = _without_audits(file.path)
            elif file.columns is panels.COLUMNS:
                rows = compute.in_file_order(parts)
            else:
                rows = parts[0]
            store.write_csv(file.path, file.header, file.columns, [*rows, *file.audited])
            new.add(file.path)
            _say(f"{label}: written")
        _draw(directory, papers, new)
    index = page.write(directory)
    _say(f"{index} written, {time.perf_counter() - start:.0f} s")
    return index


def _submit(
    executor: concurrent.futures.Executor,
    directory: Path,
    paper: str,
    panel: panels.Panel | None,
    fresh: bool,
    audited: Sequence[Audit],
) -> _File:
    if panel is None:
        path, columns = directory / f"{paper}_ladder.csv", compute.LADDER_COLUMNS
        added, entries = audits.in_ladder(paper, audited)
        about: dict[str, Any] = {
            "paper": paper,
            "arxiv": ladders.ARXIV[paper],
            "parameters": ladders.defaults(paper),
        }
    else:
        path, columns, about = directory / f"{panel.stem}.csv", panels.COLUMNS, panel.header()
        added, entries = audits.in_panel(panel, audited)
    header = {**store.versions(), **about}
    if entries:
        header[audits.HEADER] = entries
    calls: list[Future] | None
    if not fresh and store.is_current(path, header):
        calls = None
    elif not fresh and store.is_current(path, header, but_for=audits.HEADER):
        calls = []
    elif panel is None:
        calls = [executor.submit(compute.ladder_rows, paper)]
    else:
        calls = [executor.submit(compute.rows, panel, task) for task in compute.tasks(panel)]
    return _File(path, header, columns, calls, added)


def _without_audits(path: Path) -> list[Row]:
    """The rows that a file had before any audit: the audited rung is open in them."""
    _, rows = store.read_csv(path)
    return [list(row.values()) for row in rows if row["kind"] != "audited" or not row["lower"]]


def _draw(directory: Path, papers: Sequence[str], new: set[Path]) -> None:
    """Draws the panels whose CSV file is new or whose figures are missing, then the papers they belong to."""
    for paper in papers:
        paths = [directory / f"{panel.stem}.csv" for panel in panels.of(paper)]
        stale = [path for path in paths if path in new or not _drawn(path.with_suffix(""))]
        for path in stale:
            _say(f"drawing {path.with_suffix('.pdf').name}")
            figure.draw_panel(path)
        if stale or not _drawn(directory / paper):
            _say(f"drawing {paper}.pdf")
            figure.draw_paper(paths, directory / paper)


def _drawn(stem: Path) -> bool:
    return all(stem.with_name(stem.name + suffix).is_file() for suffix in (".pdf", ".png"))


def _say(text: str, end: str = "\n") -> None:
    """Progress on stderr; on a terminal, lines that end in a carriage return are written over."""
    clear = "\x1b[K" if sys.stderr.isatty() else ""
    print(text + clear, file=sys.stderr, flush=True, end=end)
