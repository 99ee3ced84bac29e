"""Metrics of a run: a CSV file and TensorBoard, both cut back to the checkpoint on resuming."""

from __future__ import annotations

import contextlib
import csv
import io
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType

from exactdp.train.board import Board
from exactdp.train.folder import owner_only


def public(metric: str) -> tuple[str, ...]:
    """Columns that a certificate for the noisy gradients covers, the test set being public, and `seconds`.

    No certificate covers the time that steps take, wherever it is seen or written.

    Args:
      metric: name of what is measured on the test set.
    """
    return ("step", "epsilon", "learning_rate", "gradient_norm", metric, "seconds")


class Metrics:
    """Writes rows of numbers, one a step reported.

    Args:
      folder: of the run; gets metrics.csv and tensorboard/.
      columns: names, "step" first.
      step: the run goes on from here: rows of later steps, of a run that was killed, are taken out.
      private: whether what is written is as private as the data: then it is for its owner alone.

    Raises:
      ValueError: the file has other columns.
      OSError: the disk refuses.
    """

    def __init__(self, folder: Path, *, columns: Sequence[str], step: int = 0, private: bool = False) -> None:
        self._columns = tuple(columns)
        path = folder / "metrics.csv"
        kept = _rows(path, self._columns, step) if path.exists() else []
        text = io.StringIO(newline="")
        writer = csv.writer(text, lineterminator="\n")
        writer.writerows([self._columns, *kept])
        fresh = path.with_suffix(".csv.new")
        with owner_only() if private else contextlib.nullcontext():
            fresh.write_text(text.getvalue())
            os.replace(fresh, path)
            self._board = Board(folder / "tensorboard", step=step)
        self._file = path.open("a", newline="")

    def write(self, values: Mapping[str, float | int | None]) -> None:
        """One row; what is not known is left empty.

        Raises:
          OSError: the disk refuses.
        """
        row = [values.get(name) for name in self._columns]
        csv.writer(self._file, lineterminator="\n").writerow(["" if x is None else repr(x) for x in row])
        self._file.flush()
        known = {name: value for name, value in values.items() if name != "step" and value is not None}
        self._board.write(known, step=int(values["step"] or 0))

    def close(self) -> None:
        """Ends both files."""
        with contextlib.closing(self._board), self._file:
            pass

    def __enter__(self) -> Metrics:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def _rows(path: Path, columns: tuple[str, ...], step: int) -> list[list[str]]:
    """The whole rows up to `step`; a torn last line is no row."""
    lines = path.read_text().split("\n")[:-1]
    rows = list(csv.reader(lines))
    if rows and tuple(rows[0]) != columns:
        raise ValueError(f"metrics.csv must have the columns {', '.join(columns)}, got {', '.join(rows[0])}")
    return [row for row in rows[1:] if len(row) == len(columns) and int(row[0]) <= step]
