"""Tables as matrices that classifiers read; everything fitted on the rows to train on."""

from __future__ import annotations

import dataclasses
import math
from typing import Any

import numpy as np
from jaxtyping import Float, Int
from scipy import sparse

from exactdp.train.tables.schema import MISSING, Column, Schema

MOST_VALUES = 254
"""Most values of a category that are told apart: the most frequent ones among the rows trained on. All
others, and those never seen there, are one more. Boosting in scikit-learn has room for 255."""


@dataclasses.dataclass(frozen=True)
class _Category:
    column: Column
    kept: Int[np.ndarray, " kept"]  # codes, ascending, the missing one perhaps among them

    @classmethod
    def of(cls, column: Column, codes: Int[np.ndarray, " rows"]) -> _Category:
        values, counts = np.unique(codes, return_counts=True)
        frequent = np.argsort(-counts, kind="stable")[:MOST_VALUES]
        return cls(column, np.sort(values[frequent]))

    @property
    def size(self) -> int:
        return len(self.kept) + 1

    def places(self, codes: Int[np.ndarray, " rows"]) -> Int[np.ndarray, " rows"]:
        """Place among the kept ones; the number of these for any other."""
        found = np.minimum(np.searchsorted(self.kept, codes), len(self.kept) - 1)
        return np.where(self.kept[found] == codes, found, len(self.kept))


@dataclasses.dataclass(frozen=True)
class _Number:
    column: Column
    centre: float
    scale: float

    @classmethod
    def of(cls, column: Column, codes: Int[np.ndarray, " rows"]) -> _Number:
        present = codes[codes != MISSING].astype(np.float64)
        if not present.size:
            return cls(column, 0.0, math.inf)
        return cls(column, float(present.mean()), float(present.std()) or 1.0)

    def standardised(self, codes: Int[np.ndarray, " rows"]) -> Float[np.ndarray, " rows"]:
        """Mean 0 and deviation 1 on the rows fitted on; nan where missing; 0 if that is everywhere."""
        missing = (codes == MISSING) & (self.scale < math.inf)
        return np.where(missing, np.nan, (codes - self.centre) / self.scale)


@dataclasses.dataclass(frozen=True)
class Design:
    """How the columns but the label's become features.

    Attributes:
      label: place of the label's column.
      parts: of each other column its place, and how it is coded.
    """

    label: int
    parts: tuple[tuple[int, _Category | _Number], ...]

    @classmethod
    def of(cls, codes: Int[np.ndarray, "rows columns"], schema: Schema, *, label: int) -> Design:
        """Fitted on these rows."""
        parts = tuple(
            (place, (_Category if column.kind == "category" else _Number).of(column, codes[:, place]))
            for place, column in enumerate(schema.columns)
            if place != label
        )
        return cls(label, parts)

    @property
    def sizes(self) -> list[int]:
        """For each feature of `dense` how many values it has, if a category, else 0."""
        return [part.size if isinstance(part, _Category) else 0 for _, part in self.parts]

    def dense(self, codes: Int[np.ndarray, "rows columns"]) -> Float[np.ndarray, "rows features"]:
        """One feature a column: a category's place, or a standardised number, nan where missing."""
        found = np.empty((len(codes), len(self.parts)), np.float32)
        for feature, (place, part) in enumerate(self.parts):
            own = codes[:, place]
            found[:, feature] = part.places(own) if isinstance(part, _Category) else part.standardised(own)
        return found

    def one_hot(self, codes: Int[np.ndarray, "rows columns"]) -> Any:
        """A sparse matrix, a block for each column.

        Of a category an indicator for each value, `MOST_VALUES` + 1 at most. Of a number itself, standardised
        and 0 where missing, and an indicator of its being missing.
        """
        rows, blocks = np.arange(len(codes)), list[Any]()
        for place, part in self.parts:
            own = codes[:, place]
            if isinstance(part, _Category):
                at = rows, part.places(own)
                blocks.append(sparse.csr_array((np.ones(len(codes)), at), shape=(len(codes), part.size)))
                continue
            values = part.standardised(own)
            missing = np.isnan(values)
            pair = np.stack([np.where(missing, 0.0, values), missing.astype(np.float64)], axis=1)
            blocks.append(sparse.csr_array(pair))
        return sparse.hstack(blocks, format="csr")
