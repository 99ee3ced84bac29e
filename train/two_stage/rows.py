"""Rows of tokens as the common loop trains on them."""

from __future__ import annotations

import dataclasses

import numpy as np
from jaxtyping import Integer, UInt16

from exactdp.accounting import validate


@dataclasses.dataclass(frozen=True, eq=False)
class TokenRows:
    """Rows of tokens, all padded to one length that depends on the public domain alone.

    Attributes:
      x: training rows, uint16 [n, length].
      x_test: rows to measure on, uint16 [m, length].
      vocabulary: tokens are below it; at most 65536.
      name: of the table.

    Raises:
      ValueError: there is no training row or none to measure on, lengths differ, or a token is not below
        `vocabulary`.
    """

    x: UInt16[np.ndarray, "n length"]
    x_test: UInt16[np.ndarray, "m length"]
    vocabulary: int
    name: str

    def __post_init__(self) -> None:
        validate.count("vocabulary", self.vocabulary, 2)
        for name, rows in (("training", self.x), ("test", self.x_test)):
            if rows.dtype != np.uint16 or rows.ndim != 2 or not rows.size:
                raise ValueError(
                    f"{self.name}: {name} rows must be uint16 [one at least, length], got {rows.dtype} "
                    f"{rows.shape}"
                )
            if int(rows.max()) >= self.vocabulary:
                raise ValueError(f"{self.name}: {name} tokens must be below {self.vocabulary}")
        if self.x.shape[1] != self.x_test.shape[1]:
            raise ValueError(
                f"{self.name}: training and test rows must be as long, got {self.x.shape[1]} and "
                f"{self.x_test.shape[1]}"
            )

    @property
    def y(self) -> Integer[np.ndarray, " n"]:
        """Zeros: a row's label is among its tokens."""
        return np.zeros(len(self.x), np.int32)

    @property
    def y_test(self) -> Integer[np.ndarray, " m"]:
        """Zeros likewise."""
        return np.zeros(len(self.x_test), np.int32)

    def made_up(self, random: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
        """Two rows of random tokens: nothing is looked at but length and vocabulary."""
        rows = random.integers(0, self.vocabulary, (2, self.x.shape[1]), dtype=np.uint16, endpoint=False)
        return rows, np.zeros(2, np.int32)
