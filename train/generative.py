"""Diffusion models by the methods of the common loop."""

from __future__ import annotations

import dataclasses

from exactdp.accounting import validate
from exactdp.train.augmentation import Augmentation
from exactdp.train.data import Dataset
from exactdp.train.diffusion import Diffusion
from exactdp.train.settings import Settings, whole

UNET = "unet"
_DROPOUT = 0.1
METHODS = ("dpsgd", "feature", "label_public", "nonprivate")
"""The methods that a diffusion model can be trained by: those that need no classifier."""


@dataclasses.dataclass(frozen=True)
class Generative:
    """How a diffusion model is trained.

    Attributes:
      draws: draws of noise level and noise a record and step, >= 1; its loss is their mean, so that it has
        one gradient.
      conditional: whether the model is told the class. Of a record's public view it is told it only where the
        label is public.

    Raises:
      ValueError: an argument is outside its range.
    """

    draws: int = 1
    conditional: bool = False

    def __post_init__(self) -> None:
        whole("draws", self.draws, minimum=1)

    def require_plain(self, model: str) -> None:
        """Refuses what a classifier does not have.

        Raises:
          ValueError: it is refused.
        """
        for name, value, default in (("draws", self.draws, 1), ("conditional", self.conditional, False)):
            if value != default:
                raise ValueError(f"{name} must be left out for the model {model}, got {value}")

    def objective(
        self, settings: Settings, *, data: Dataset, augmentation: Augmentation, bfloat16: bool
    ) -> Diffusion:
        """The diffusion model for a data set of images.

        Args:
          settings: of the run.
          data: images.
          augmentation: may mirror, and nothing else.
          bfloat16: whether the model computes in bfloat16.

        Raises:
          ValueError: the method needs a classifier, the records are no images, or they would be shifted.
        """
        validate.one_of("method", settings.method, METHODS)
        shape = data.input_shape
        if len(shape) != 3:
            raise ValueError(f"model must be a classifier for records of shape {shape}, got {UNET}")
        for name, value, default in (
            ("padding", augmentation.padding, 0),
            ("augmentation", augmentation.multiplicity, 1),
        ):
            if value != default:
                raise ValueError(f"{name} must be left out for {UNET} (see draws), got {value}")
        return Diffusion(
            (shape[0], shape[1], shape[2]),
            data.num_classes if self.conditional else None,
            multiplicity=int(self.draws),
            label_dropout=_DROPOUT if self.conditional else 0.0,
            flip=augmentation.flip,
            # As `exactdp.train.data.dataset.from_pixels` scales them.
            pixel_range=(0.0, 1.0) if shape[2] == 1 else (-1.0, 1.0),
            bfloat16=bfloat16,
        )
