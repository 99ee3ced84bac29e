"""What an experiment trains on: data set, its size here, model, number of steps, seeds."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

import numpy as np

from exactdp.accounting import validate
from exactdp.train import data, models
from exactdp.train.data import Dataset
from exactdp.train.generative import UNET
from exactdp.train.settings import Settings

SPLITS = ("test", "held_out")
_HELD_OUT = 5
"""One training record in so many is held out to choose hyper-parameters on."""
_SPLIT_SEED = 20_260_719


@dataclasses.dataclass(frozen=True)
class Experiment:
    """Data, model and length of the runs of one figure.

    Attributes:
      dataset: name, as `exactdp.train.data.load` takes it.
      model: one of `exactdp.train.models.NAMES`, or "unet" for a diffusion model.
      train_records: how many training records are used, the first of a fixed shuffle; 0 for all.
      test_records: likewise.
      num_steps: T >= 1.
      sampling_probability: q in (0, 1); None for each method's default.
      delta: in (0, 1).
      num_seeds: runs of each point, >= 1; their run keys are 0, 1, ...
      paper: arXiv id and version of the paper whose experiment it is.

    Raises:
      ValueError: an argument is outside its range.
    """

    dataset: str
    model: str
    train_records: int
    test_records: int
    num_steps: int
    sampling_probability: float | None = None
    delta: float = 1e-5
    num_seeds: int = 3
    paper: str = dataclasses.field(kw_only=True)

    def __post_init__(self) -> None:
        validate.one_of("model", self.model, (*models.NAMES, UNET))
        for name in ("train_records", "test_records"):
            validate.count(name, getattr(self, name))
        for name in ("num_steps", "num_seeds"):
            validate.count(name, getattr(self, name), minimum=1)
        if self.sampling_probability is not None:
            validate.open_probability("sampling_probability", self.sampling_probability)
        validate.open_probability("delta", self.delta)

    def settings(self, method: str, **given: Any) -> Settings:
        """Settings of a run of this experiment: its delta, q and number of steps, with what is given.

        Raises:
          ValueError: as `exactdp.train.settings.Settings`.
        """
        own: dict[str, Any] = {
            "delta": self.delta,
            "sampling_probability": self.sampling_probability,
            "num_steps": self.num_steps,
        }
        return Settings(method, **{**own, **given})

    def load(self) -> dict[str, Dataset]:
        """The records by split: what is trained on, with what is measured on as its test set.

        "test" trains on all training records and measures on the test records. "held_out" trains on four
        fifths of the training records and measures on the other fifth, so that what is chosen by it has seen
        no test record.

        Raises:
          ValueError: an unknown or missing data set, or more records wanted than there are.
        """
        found = data.load(self.dataset)
        random = np.random.default_rng(_SPLIT_SEED)
        chosen = _some("train_records", self.train_records, len(found.y), random)
        tested = _some("test_records", self.test_records, len(found.y_test), random)
        held = np.zeros(len(chosen), dtype=bool)
        held[: len(chosen) // _HELD_OUT] = True
        x, y = found.x[chosen], found.y[chosen]
        return {
            "test": dataclasses.replace(
                found, x=x, y=y, x_test=found.x_test[tested], y_test=found.y_test[tested]
            ),
            "held_out": dataclasses.replace(found, x=x[~held], y=y[~held], x_test=x[held], y_test=y[held]),
        }


def _some(name: str, wanted: int, there: int, random: np.random.Generator) -> np.ndarray:
    if wanted > there:
        raise ValueError(f"{name} must be at most the {there} that the data set has, got {wanted}")
    return random.permutation(there)[: wanted or there]


def of(presets: Mapping[str, Experiment], dataset: str, **changes: object) -> Experiment:
    """The preset of a data set, with what is not None of `changes` in place of its own.

    Raises:
      ValueError: no preset has that name, or a change is outside its range.
    """
    validate.one_of("dataset", dataset, presets)
    kept = {name: value for name, value in changes.items() if value is not None}
    return dataclasses.replace(presets[dataset], **kept)  # pyright: ignore[reportArgumentType]
