"""Makes all files of `exactdp curves`, using again what is finished."""

from __future__ import annotations

import concurrent.futures
import contextlib
import multiprocessing
import sys
import time
from collections.abc import Callable, Generator, Sequence
from pathlib import Path
from typing import Any

from exactdp.benchmarks.curves import compute, figure, ladders, page, panels, store

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


def make(directory: Path, papers: Sequence[str], *, jobs: int = 1, fresh: bool = False) -> Path:
    """Computes, writes and draws everything for `papers`; returns the path of index.html.

    A CSV file that was written with the same versions, code and parameters is used again, unless `fresh`;
    figures are drawn where their CSV file is new or they are missing.
    """
    start = time.perf_counter()
    wanted = [(paper, panel) for paper in papers for panel in (None, *panels.of(paper))]
    with _executor(jobs) as executor:
        submitted = [_submit(executor, directory, paper, panel, fresh) for paper, panel in wanted]
        new: set[Path] = set()
        for i, (path, header, columns, calls) in enumerate(submitted):
            label = f"[{i + 1}/{len(submitted)}, {time.perf_counter() - start:.0f} s] {path.name}"
            if calls is None:
                _say(f"{label}: finished before, used again")
                continue
            parts = []
            for j, call in enumerate(calls):
                if sys.stderr.isatty():
                    _say(f"{label}: {j}/{len(calls)}", end="\r")
                parts.append(call.result())
            rows = compute.in_file_order(parts) if columns is panels.COLUMNS else parts[0]
            store.write_csv(path, header, columns, rows)
            new.add(path)
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
) -> tuple[Path, dict[str, Any], Sequence[str], list[Future] | None]:
    """Path, header and columns of one CSV file, and the calls that give its rows (None: it is finished)."""
    if panel is None:
        path, columns = directory / f"{paper}_ladder.csv", compute.LADDER_COLUMNS
        about: dict[str, Any] = {
            "paper": paper,
            "arxiv": ladders.ARXIV[paper],
            "parameters": ladders.defaults(paper),
        }
    else:
        path, columns, about = directory / f"{panel.stem}.csv", panels.COLUMNS, panel.header()
    header = {**store.versions(), **about}
    if not fresh and store.is_current(path, header):
        return path, header, columns, None
    if panel is None:
        return path, header, columns, [executor.submit(compute.ladder_rows, paper)]
    return (
        path,
        header,
        columns,
        [executor.submit(compute.rows, panel, task) for task in compute.tasks(panel)],
    )


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
