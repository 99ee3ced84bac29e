"""UCI's Adult: does a person earn more than 50 000 dollars, from the census of 1994."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
from jaxtyping import Float, Int

from exactdp.train.data import root as data_root
from exactdp.train.data.adult_schema import CATEGORIES, CELLS, LABELS, LEFT_OUT, LOGARITHMIC, NUMBERS
from exactdp.train.data.dataset import Dataset

_HOW = "Put adult.data and adult.test there, as published at https://archive.ics.uci.edu/dataset/2/adult."
_FILES = ("adult.data", "adult.test")
_ATTRIBUTES = tuple(cell for cell in CELLS if cell not in LEFT_OUT)


def _columns() -> tuple[str, ...]:
    return tuple(
        column
        for attribute in _ATTRIBUTES
        for column in (
            [f"{attribute}={value}" for value in CATEGORIES[attribute]]
            if attribute in CATEGORIES
            else [attribute]
        )
    )


COLUMNS = _columns()
"""The features of a record: `age`, `sex=Female`, ..."""


def load(folder_name: str, *, name: str, source: str, root: str | Path | None) -> Dataset:
    """Adult in UCI's own split: adult.data (32 561) to train on, adult.test (16 281) to test with.

    Categories become one indicator each, by the lists of UCI's documentation, `?` being a category; age and
    hours are divided by 100, capital gains and losses become log(1 + x) / log(1 + 99 999). These are public
    constants: nothing is taken from the records, so that coding one record tells nothing about another. The
    label is 1 for more than 50K. `fnlwgt` (a weight of the survey) and `education-num` (a function of
    education) are left out.

    Before an attribute is called private, look for others that give it away: `relationship` is Husband or
    Wife for most of the married, so that `sex` is private only if `relationship` is too.

    Args:
      folder_name: the folder of the data root that holds both files.
      name: of the data set.
      source: where it comes from, and its licence.
      root: the data root; None for EXACTDP_DATA.

    Raises:
      ValueError: a file is missing; a line has another number of cells, a category that the documentation
        does not list, a number that is none or is out of its range, or an unknown label; or what `Dataset`
        refuses.
    """
    folder = data_root.find(name, root=root, candidates=[folder_name], how=_HOW)
    parts = [_read(folder / file, name=name) for file in _FILES]
    return Dataset(*parts[0], *parts[1], num_classes=len(LABELS), name=name, source=source, columns=COLUMNS)


def _read(path: Path, *, name: str) -> tuple[Float[np.ndarray, "n d"], Int[np.ndarray, " n"]]:
    if not path.is_file():
        raise ValueError(f"{name}: {path.parent} must hold {path.name}, it does not. {_HOW}")
    rows: list[list[str]] = []
    for number, line in enumerate(path.read_text(encoding="utf-8", errors="replace").splitlines(), start=1):
        # adult.test opens with a line of its own, and both files end with an empty one.
        if not line.strip() or line.startswith("|"):
            continue
        cells = [cell.strip() for cell in line.split(",")]
        if len(cells) != len(CELLS):
            raise ValueError(
                f"{name}: {path} must have {len(CELLS)} cells a line, line {number} has {len(cells)} (a file "
                "cut short?)"
            )
        rows.append(cells)
    if not rows:
        raise ValueError(f"{name}: {path} must hold at least one record, it holds none")
    by_cell: dict[str, tuple[str, ...]] = dict(zip(CELLS, zip(*rows, strict=True), strict=True))
    parts = [
        _indicators(by_cell[attribute], name=name, path=path, attribute=attribute)
        if attribute in CATEGORIES
        else _numbers(by_cell[attribute], name=name, path=path, attribute=attribute)
        for attribute in _ATTRIBUTES
    ]
    # The test file writes its labels with a full stop.
    labels = [label.removesuffix(".") for label in by_cell["income"]]
    y = _places(labels, LABELS, name=name, path=path, attribute="income")
    return np.concatenate(parts, axis=1), y


def _places(
    cells: list[str] | tuple[str, ...], known: tuple[str, ...], *, name: str, path: Path, attribute: str
) -> Int[np.ndarray, " n"]:
    index = {value: place for place, value in enumerate(known)}
    places = np.array([index.get(cell, -1) for cell in cells], np.int32)
    unknown = np.flatnonzero(places < 0)
    if unknown.size:
        record = int(unknown[0])
        raise ValueError(
            f"{name}: {attribute} must be one of {', '.join(known)}, record {record} of {path} has "
            f"{cells[record]!r}"
        )
    return places


def _indicators(cells: tuple[str, ...], *, name: str, path: Path, attribute: str) -> Float[np.ndarray, "n k"]:
    known = CATEGORIES[attribute]
    return np.eye(len(known), dtype=np.float32)[
        _places(cells, known, name=name, path=path, attribute=attribute)
    ]


def _numbers(cells: tuple[str, ...], *, name: str, path: Path, attribute: str) -> Float[np.ndarray, "n 1"]:
    largest = NUMBERS[attribute]
    values = np.empty((len(cells), 1))
    for record, cell in enumerate(cells):
        # Whole numbers only: this refuses nan and inf as well.
        if not cell.isascii() or not cell.isdigit() or int(cell) > largest:
            raise ValueError(
                f"{name}: {attribute} must be a whole number in 0 ... {largest}, record {record} of {path} "
                f"has {cell!r}"
            )
        values[record] = int(cell)
    if attribute in LOGARITHMIC:
        return (np.log1p(values) / math.log1p(largest)).astype(np.float32)
    return (values / largest).astype(np.float32)
