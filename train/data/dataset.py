"""A data set in memory, checked when it is made."""

from __future__ import annotations

import dataclasses

import numpy as np
from jaxtyping import Float, Int, Integer, Num, Shaped

from exactdp.accounting import validate
from exactdp.train.data.columns import require_names


@dataclasses.dataclass(frozen=True, eq=False)
class Dataset:
    """Training and test records with their labels; made by `exactdp.train.data.load` or `from_pixels`.

    Attributes:
      x: training records, float32 [n, *input_shape].
      y: training labels, int32 [n], in 0 ... num_classes - 1, each of them at least once.
      x_test: test records, float32 [m, *input_shape].
      y_test: test labels, int32 [m], in 0 ... num_classes - 1.
      num_classes: K >= 2.
      name: as asked for.
      source: where the records come from, and their licence where it is known.
      columns: the name of each feature of tabular records (`input_shape` is then (d,)), such as `age` or
        `sex=Female`; empty where features have no names. See `exactdp.mechanisms.public.feature_groups`.

    Raises:
      ValueError: naming the data set and the rule: an empty split; records and labels of different number;
        other shapes of record in the two splits; NaN or infinite values; a label outside of 0 ... K - 1; a
        class without a training record (so that a test label is unseen, or a class empty); names of columns
        that are not one a feature, all different, and fit for a list of names.
    """

    x: Float[np.ndarray, "n ..."]
    y: Int[np.ndarray, " n"]
    x_test: Float[np.ndarray, "m ..."]
    y_test: Int[np.ndarray, " m"]
    num_classes: int
    name: str
    source: str
    columns: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        validate.count(f"{self.name}: num_classes", self.num_classes, 2)
        _check_split(self.name, "training", self.x, self.y, num_classes=self.num_classes)
        _check_split(self.name, "test", self.x_test, self.y_test, num_classes=self.num_classes)
        if self.x.shape[1:] != self.x_test.shape[1:]:
            raise ValueError(
                f"{self.name}: training and test records must have one shape, got {self.x.shape[1:]} and "
                f"{self.x_test.shape[1:]}"
            )
        empty = np.flatnonzero(np.bincount(self.y, minlength=self.num_classes) == 0)
        if empty.size:
            raise ValueError(
                f"{self.name}: each of the {self.num_classes} classes must have a training record, class "
                f"{int(empty[0])} has none"
            )
        if self.columns:
            require_names(self.name, self.columns, input_shape=self.input_shape)

    @property
    def input_shape(self) -> tuple[int, ...]:
        """The shape of one record."""
        return self.x.shape[1:]

    def made_up(self, random: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
        """Two records of uniform numbers in [0, 1) and their labels: nothing is looked at but the shape."""
        x = random.random((2, *self.input_shape), np.float32)
        return x, np.arange(2, dtype=np.int32) % self.num_classes


def from_pixels(
    x: Num[np.ndarray, "n ..."],
    y: Integer[np.ndarray, "n ..."],
    x_test: Num[np.ndarray, "m ..."],
    y_test: Integer[np.ndarray, "m ..."],
    *,
    name: str,
    source: str,
    num_classes: int | None = None,
    pixel_max: float = 255.0,
) -> Dataset:
    """The data set of raw pixels and labels, checked and normalised.

    Pixels in 0 ... `pixel_max` become float32: pixel / pixel_max in [0, 1] for one channel, whose background
    is black and so stays 0; 2 pixel / pixel_max - 1 in [-1, 1] for more. These are public constants of the
    format: the mean and the spread of the records are private, and using them would be a release that no
    ledger counts.

    Args:
      x: training pixels, [n, h, w] or [n, h, w, channels].
      y: training labels, [n] or [n, 1].
      x_test: test pixels.
      y_test: test labels.
      name: of the data set.
      source: where it comes from, and its licence.
      num_classes: K; 1 + the largest training label where it is not given.
      pixel_max: the brightest value that the format allows.

    Raises:
      ValueError: labels that are no whole numbers, pixels outside of 0 ... pixel_max, or what `Dataset`
        refuses.
    """
    labels = _labels(name, "training", y)
    return Dataset(
        x=_normalised(name, "training", x, pixel_max=pixel_max),
        y=labels,
        x_test=_normalised(name, "test", x_test, pixel_max=pixel_max),
        y_test=_labels(name, "test", y_test),
        num_classes=int(labels.max(initial=1)) + 1 if num_classes is None else num_classes,
        name=name,
        source=source,
    )


def _labels(name: str, split: str, y: Shaped[np.ndarray, "n ..."]) -> Int[np.ndarray, " n"]:
    y = np.asarray(y)
    if y.ndim == 2 and y.shape[1] == 1:
        y = y[:, 0]
    if y.ndim != 1 or y.dtype.kind not in "iu":
        raise ValueError(
            f"{name}: {split} labels must be one whole number a record, got {y.dtype} of shape {y.shape}"
        )
    # Kept out of int32's range, they would wrap round into it.
    if y.size and (int(y.min()) < 0 or int(y.max()) >= 2**31):
        raise ValueError(
            f"{name}: {split} labels must be >= 0 and < 2^31, got {int(y.min())} to {int(y.max())}"
        )
    return y.astype(np.int32)


def _normalised(
    name: str, split: str, x: Shaped[np.ndarray, "n ..."], *, pixel_max: float
) -> Float[np.ndarray, "n h w c"]:
    x = np.asarray(x)
    if x.ndim == 3:
        x = x[..., None]
    if x.ndim != 4 or x.dtype.kind not in "iuf":
        raise ValueError(
            f"{name}: {split} pixels must be numbers of shape [n, h, w] or [n, h, w, channels], got "
            f"{x.dtype} of shape {x.shape}"
        )
    _check_finite(name, split, x)
    if x.size and (x.min() < 0 or x.max() > pixel_max):
        raise ValueError(f"{name}: {split} pixels must be in [0, {pixel_max:g}], got {x.min()} to {x.max()}")
    scaled = x.astype(np.float32)
    scaled /= np.float32(pixel_max)
    if x.shape[-1] > 1:
        scaled *= np.float32(2.0)
        scaled -= np.float32(1.0)
    return scaled


def _check_finite(name: str, split: str, x: Num[np.ndarray, "n ..."]) -> None:
    if x.dtype.kind != "f":
        return
    bad = ~np.isfinite(x)
    if bad.any():
        record = int(np.argwhere(bad)[0, 0])
        raise ValueError(f"{name}: {split} records must be finite, record {record} holds NaN or infinity")


def _check_split(name: str, split: str, x: np.ndarray, y: np.ndarray, *, num_classes: int) -> None:
    if x.dtype != np.float32 or y.dtype != np.int32 or x.ndim < 2 or y.ndim != 1:
        raise ValueError(
            f"{name}: {split} records must be float32 [n, ...] and labels int32 [n], got {x.dtype} {x.shape} "
            f"and {y.dtype} {y.shape}"
        )
    if len(x) != len(y):
        raise ValueError(f"{name}: {split} records and labels must be as many, got {len(x)} and {len(y)}")
    if not x.size:
        raise ValueError(f"{name}: the {split} set must not be empty, got shape {x.shape}")
    _check_finite(name, split, x)
    outside = (y < 0) | (y >= num_classes)
    if outside.any():
        record = int(np.flatnonzero(outside)[0])
        raise ValueError(
            f"{name}: {split} labels must be in 0 ... {num_classes - 1}, record {record} has {int(y[record])}"
        )
