"""Criteo's display advertisements in the layout of its Kaggle contest: was a shown advertisement clicked."""

from __future__ import annotations

import csv
import zlib
from pathlib import Path

import numpy as np
from jaxtyping import Float

from exactdp.train.data import root as data_root
from exactdp.train.data import split
from exactdp.train.data.dataset import Dataset

_HOW = "Put the contest's train.csv there: a header Id,Label,I1,...,I13,C1,...,C26 and one line a record."
_COUNTS = tuple(f"I{place}" for place in range(1, 14))
_CATEGORIES = tuple(f"C{place}" for place in range(1, 27))
_HEADER = ("Id", "Label", *_COUNTS, *_CATEGORIES)
_BUCKETS = 32
# log(1 + x) of a count is below this for x < 22 025; the largest in public samples, near 10^6, gives 1.4.
_LOG_SCALE = 10.0
_LARGEST = 10**12


def columns(*, buckets: int = _BUCKETS) -> tuple[str, ...]:
    """The features: `I1=count` and `I1=missing` for each count, `C1=0` ... for each category's buckets."""
    counts = [f"{count}={part}" for count in _COUNTS for part in ("count", "missing")]
    return (*counts, *(f"{category}={bucket}" for category in _CATEGORIES for bucket in range(buckets)))


def load(
    folder_name: str, *, name: str, source: str, root: str | Path | None, buckets: int = _BUCKETS
) -> Dataset:
    """The labelled file of the contest; four fifths to train on, one fifth to test, by a fixed shuffle.

    The contest's own test file has no labels, so the split is that of `exactdp.train.data.split.fixed`. A
    count x becomes sign(x) log(1 + |x|) / 10, or 0 with its indicator `missing` set where the cell is empty.
    A category is hashed into one of `buckets` indicators by CRC-32 of `column=value`, all 0 where the cell is
    empty. Scale and hash are public constants: nothing is taken from the records.

    Args:
      folder_name: the folder of the data root with train.csv (or guestwalk_train.tiny.csv, a public sample).
      name: of the data set.
      source: where it comes from, and its licence.
      root: the data root; None for EXACTDP_DATA.
      buckets: B >= 1 indicators a category. All records are held in memory: 4 (26 + 26 B) bytes each.

    Raises:
      ValueError: the file is missing, its header is another, a line has another number of cells, a count is
        no whole number, a label is not 0 or 1; or what `Dataset` refuses.
    """
    candidates = [f"{folder_name}/train.csv", f"{folder_name}/guestwalk_train.tiny.csv"]
    path = data_root.find(name, root=root, candidates=candidates, how=_HOW)
    features: list[Float[np.ndarray, " d"]] = []
    labels: list[int] = []
    with path.open(encoding="utf-8", errors="replace", newline="") as stream:
        lines = csv.reader(stream)
        header = tuple(next(lines, ()))
        if header != _HEADER:
            raise ValueError(
                f"{name}: {path} must open with the header Id,Label,I1,...,I13,C1,...,C26, got "
                f"{','.join(header)[:60]!r}"
            )
        for record, cells in enumerate(lines):
            if len(cells) != len(_HEADER):
                raise ValueError(
                    f"{name}: {path} must have {len(_HEADER)} cells a line, record {record} has {len(cells)} "
                    "(a file cut short?)"
                )
            if cells[1] not in ("0", "1"):
                raise ValueError(f"{name}: labels must be 0 or 1, record {record} of {path} has {cells[1]!r}")
            labels.append(int(cells[1]))
            features.append(_record(cells, name=name, path=path, record=record, buckets=buckets))
    if not labels:
        raise ValueError(f"{name}: {path} must hold at least one record, it holds none")
    x, y = np.stack(features), np.array(labels, np.int32)
    train, test = split.fixed(len(y))
    return Dataset(x[train], y[train], x[test], y[test], 2, name, source, columns=columns(buckets=buckets))


def _record(cells: list[str], *, name: str, path: Path, record: int, buckets: int) -> Float[np.ndarray, " d"]:
    counts = np.zeros((len(_COUNTS), 2), np.float32)
    for place, cell in enumerate(cells[2 : 2 + len(_COUNTS)]):
        if not cell:
            counts[place, 1] = 1.0
            continue
        digits = cell.removeprefix("-")
        # A handful of counts are -1 or -2 in the files. What is no whole number, such as nan, is refused.
        if not digits.isascii() or not digits.isdigit() or int(digits) > _LARGEST:
            raise ValueError(
                f"{name}: {_COUNTS[place]} must be empty or a whole number of size <= {_LARGEST:.0e}, record "
                f"{record} of {path} has {cell!r}"
            )
        size = np.log1p(float(digits)) / _LOG_SCALE
        counts[place, 0] = -size if cell.startswith("-") else size
    hashed = np.zeros((len(_CATEGORIES), buckets), np.float32)
    for place, (column, cell) in enumerate(zip(_CATEGORIES, cells[2 + len(_COUNTS) :], strict=True)):
        if cell:
            hashed[place, zlib.crc32(f"{column}={cell}".encode()) % buckets] = 1.0
    return np.concatenate([counts.ravel(), hashed.ravel()])
