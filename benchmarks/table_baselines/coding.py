"""Tables as the baselines take them: categories only, or categories and numbers; from public facts alone."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
from jaxtyping import Float, Int

from exactdp.accounting import validate
from exactdp.train.tables.schema import MISSING, Column, Schema


@dataclasses.dataclass(frozen=True)
class Discrete:
    """Every column a category: numbers in equally wide bins of the public range, missing a value of its own.

    Attributes:
      schema: of the table.
      bins: of a number; fewer where the range has fewer codes.

    Raises:
      ValueError: `bins` is below one.
    """

    schema: Schema
    bins: int

    def __post_init__(self) -> None:
        validate.count("bins", self.bins, minimum=1)

    def columns(self) -> list[dict[str, Any]]:
        """For each column how many values it has."""
        return [
            {"kind": "category", "size": self._present(column) + column.missing}
            for column in self.schema.columns
        ]

    def _present(self, column: Column) -> int:
        return column.size if column.kind == "category" else min(self.bins, column.size)

    def encode(self, codes: Int[np.ndarray, "rows columns"]) -> Float[np.ndarray, "rows columns"]:
        """Places 0, 1, ..."""
        found = np.empty(codes.shape)
        for k, column in enumerate(self.schema.columns):
            size, missing = self._present(column), codes[:, k] == MISSING
            inside = np.where(missing, column.low, codes[:, k]) - column.low
            found[:, k] = np.where(missing, size, inside * size // max(column.size, 1))
        return found

    def decode(
        self, places: Float[np.ndarray, "rows columns"], *, seed: int
    ) -> Int[np.ndarray, "rows columns"]:
        """Codes; a number is uniform within its bin."""
        generator = np.random.default_rng(seed)
        found = np.empty(places.shape, np.int64)
        for k, column in enumerate(self.schema.columns):
            size, place = self._present(column), places[:, k].astype(np.int64)
            # Bin b holds the codes from ceil(b width / bins) on.
            first = -(-place * column.size // max(size, 1))
            last = -(-(place + 1) * column.size // max(size, 1)) - 1
            inside = column.low + generator.integers(first, np.maximum(first, last), endpoint=True)
            found[:, k] = np.where(place == size, MISSING, inside)
        return found


@dataclasses.dataclass(frozen=True)
class Mixed:
    """Numbers stay numbers; beside one that may be missing stands a category that says whether it is.

    Attributes:
      schema: of the table.
    """

    schema: Schema

    def columns(self) -> list[dict[str, Any]]:
        """For each column of `encode`: a category's number of values, or a number's public range."""
        found: list[dict[str, Any]] = []
        for column in self.schema.columns:
            if column.kind == "category":
                found.append({"kind": "category", "size": column.size + column.missing})
                continue
            found.append({"kind": "number", "low": float(column.low), "high": float(column.high)})
            if column.missing:
                found.append({"kind": "category", "size": 2})
        return found

    def encode(self, codes: Int[np.ndarray, "rows columns"]) -> Float[np.ndarray, "rows features"]:
        """Numbers as their codes, a missing one as the middle of its range."""
        found: list[np.ndarray] = []
        for k, column in enumerate(self.schema.columns):
            missing = codes[:, k] == MISSING
            if column.kind == "category":
                found.append(np.where(missing, column.size, codes[:, k]))
                continue
            found.append(np.where(missing, (column.low + column.high) // 2, codes[:, k]))
            if column.missing:
                found.append(missing)
        return np.stack(found, axis=1).astype(np.float64)

    def decode(
        self, values: Float[np.ndarray, "rows features"], *, seed: int
    ) -> Int[np.ndarray, "rows columns"]:
        """Codes: numbers rounded, and clipped to the public range; nothing is drawn."""
        del seed
        found = np.empty((len(values), len(self.schema.columns)), np.int64)
        features = iter(values.T)
        for k, column in enumerate(self.schema.columns):
            own = np.rint(next(features))
            if column.kind == "category":
                found[:, k] = np.where(own == column.size, MISSING, own)
                continue
            found[:, k] = np.clip(own, column.low, column.high)
            if column.missing:
                found[next(features) == 1, k] = MISSING
        return found
