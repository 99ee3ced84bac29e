"""What the common loop needs of a data set."""

from __future__ import annotations

from typing import Protocol

import numpy as np


class TrainingData(Protocol):
    """Training records, and test records to measure on."""

    @property
    def x(self) -> np.ndarray:
        """Training records, a row each: numbers of one type."""
        ...

    @property
    def y(self) -> np.ndarray:
        """Their labels, int32."""
        ...

    @property
    def x_test(self) -> np.ndarray:
        """Records to measure on."""
        ...

    @property
    def y_test(self) -> np.ndarray:
        """Their labels."""
        ...

    @property
    def name(self) -> str:
        """Of the data set."""
        ...

    def made_up(self, random: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
        """Two records with labels that look like the others, made of nothing but their shape."""
        ...
