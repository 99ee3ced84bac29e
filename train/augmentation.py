"""Random views of the records of a batch, as an option of every method."""

from __future__ import annotations

import dataclasses

import jax
from jaxtyping import Array, Float, Int

from exactdp.mechanisms import keys
from exactdp.train import augment
from exactdp.train.settings import whole
from exactdp.train.task import Records


@dataclasses.dataclass(frozen=True)
class Augmentation:
    """How records are varied. A record's views are drawn for its slot of the batch and the step.

    Attributes:
      multiplicity: views of a record, K >= 1; its loss is their mean, so that it has one gradient.
      padding: pixels by which an image may be shifted, >= 0; 0 for no shift.
      flip: whether images are mirrored with probability 1/2.

    Raises:
      ValueError: an argument is outside its range, or several views would all be the same.
    """

    multiplicity: int = 1
    padding: int = 0
    flip: bool = False

    def __post_init__(self) -> None:
        whole("augmentation", self.multiplicity, minimum=1)
        whole("padding", self.padding, minimum=0)
        if self.multiplicity > 1 and not self.varies:
            raise ValueError(
                f"augmentation must be 1 where neither padding nor flip is set, got {self.multiplicity}"
            )

    @property
    def varies(self) -> bool:
        """Whether there is anything random about a view."""
        return self.padding > 0 or self.flip

    def require_shape(self, shape: tuple[int, ...]) -> None:
        """Refuses records that cannot be varied so.

        Args:
          shape: of one record.

        Raises:
          ValueError: they are no images, or have sides as small as the padding.
        """
        if self.varies and len(shape) != 3:
            name, value = ("padding", self.padding) if self.padding else ("flip", self.flip)
            raise ValueError(f"{name} must be left out where records are no images, got {value}")
        if self.varies and self.padding >= min(shape[:2]):
            raise ValueError(
                f"padding must be below the sides of the images, {shape[0]} and {shape[1]}, got "
                f"{self.padding}"
            )

    def loss(self, losses: augment.Loss) -> augment.Loss:
        """The loss of rows that come as `views` gives them."""
        return augment.averaged(losses) if self.varies else losses

    def views(self, x: Float[Array, "batch ..."], *, key: jax.Array) -> Float[Array, "batch ..."]:
        """Records with an axis of views behind the first, or as they are where nothing varies.

        Args:
          x: inputs of the batch.
          key: of one step and purpose.
        """
        if not self.varies:
            return x
        return augment.views(
            key, x, multiplicity=int(self.multiplicity), padding=int(self.padding), flip=self.flip
        )

    def view(self, records: Records, *, key: jax.Array, step: Int[Array, ""]) -> Records:
        """Records as one view each, for methods that release something of each record once.

        Raises:
          ValueError: there is more than one view.
        """
        if self.multiplicity > 1:
            raise ValueError(f"augmentation must be 1 for this method, got {self.multiplicity}")
        if not self.varies:
            return records
        views = self.views(records.x, key=keys.step_key(key, step=step, purpose="augment"))
        return Records(views[:, 0], records.y)
