"""Metrics of a run: a CSV file and TensorBoard, both cut back to the checkpoint on resuming."""

from __future__ import annotations

import csv
import io
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType

from tensorboardX import SummaryWriter

PUBLIC = ("step", "epsilon", "learning_rate", "gradient_norm", "test_accuracy", "seconds")
"""Columns that a certificate for the noisy gradients covers, the test set being public."""


class Metrics:
    """Writes rows of numbers, one a step reported.

    Args:
      folder: of the run; gets metrics.csv and tensorboard/.
      columns: names, "step" first.
      step: the run goes on from here: rows of later steps, of a run that was killed, are taken out.

    Raises:
      ValueError: the file has other columns.
      OSError: the disk refuses.
    """

    def __init__(self, folder: Path, *, columns: Sequence[str], step: int = 0) -> None:
        self._columns = tuple(columns)
        path = folder / "metrics.csv"
        kept = _rows(path, self._columns, step) if path.exists() else []
        text = io.StringIO(newline="")
        writer = csv.writer(text, lineterminator="\n")
        writer.writerows([self._columns, *kept])
        fresh = path.with_suffix(".csv.new")
        fresh.write_text(text.getvalue())
        os.replace(fresh, path)
        self._file = path.open("a", newline="")
        self._board = SummaryWriter(str(folder / "tensorboard"), purge_step=step + 1 if step else None)

    def write(self, values: Mapping[str, float | int | None]) -> None:
        """One row; what is not known is left empty.

        Raises:
          OSError: the disk refuses.
        """
        row = [values.get(name) for name in self._columns]
        csv.writer(self._file, lineterminator="\n").writerow(["" if x is None else repr(x) for x in row])
        self._file.flush()
        step = int(values["step"] or 0)
        for name, value in values.items():
            if name != "step" and value is not None:
                self._board.add_scalar(name, value, step)

    def close(self) -> None:
        """Ends both files."""
        self._file.close()
        self._board.close()

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
