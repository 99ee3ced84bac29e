"""What a user asks of a feature-DP run beside what every run has; needs no JAX."""

from __future__ import annotations

import dataclasses

from exactdp.accounting import validate

ADJACENCIES = ("replace", "add_remove")
BATCHES = ("two", "single")
PRIVATE_LOSSES = ("residual", "whole")
_LEAST, _LARGEST = 1e-15, 1e15
_STEP_LIMIT = 2**28  # as `exactdp.mechanisms.keys.STEP_LIMIT`, without JAX


@dataclasses.dataclass(frozen=True)
class FeatureSettings:
    """Algorithm 1 of arXiv 2506.19836 and its variants.

    Attributes:
      public: the public feature map, as `exactdp.mechanisms.public.parse` takes it.
      adjacency: "replace" (Definition 5: a record is replaced by one with the same public features) or
        "add_remove" (Definition 6: it is added or removed, the simulator knowing its public features).
      batches: "two", independent, as Algorithm 1 has them; or "single", the naive variant whose public
        gradient is taken on the private batch, so that the sampling coins are visible.
      public_batch_size: records of the public batch, >= 1; None for the expected private batch. Two batches
        only.
      private_loss: "residual", l - l_pub, as in Algorithm 1; or "whole", l itself, beside the public one.
      mixing_weight: a in (0, 1): the update is (1 - a) private + a public; None for their sum.
      public_noise_multiplier: noise on the sum of the public batch's gradients over the clip norm, >= 0. No
        guarantee needs it; the paper's Purchase100 recipe has the private one's.
      public_steps: steps of pre-training on public features, >= 0; they are free (Remark 2).
      public_learning_rate: of pre-training, by the run's optimiser; None for the run's own.

    Raises:
      ValueError: an argument is out of range or contradicts another.
    """

    public: str
    adjacency: str = "replace"
    batches: str = "two"
    public_batch_size: int | None = None
    private_loss: str = "residual"
    mixing_weight: float | None = None
    public_noise_multiplier: float = 0.0
    public_steps: int = 0
    public_learning_rate: float | None = None

    def __post_init__(self) -> None:
        if not self.public.strip():
            raise ValueError("public must be given for feature, got an empty text")
        validate.one_of("adjacency", self.adjacency, ADJACENCIES)
        validate.one_of("batches", self.batches, BATCHES)
        validate.one_of("private_loss", self.private_loss, PRIVATE_LOSSES)
        if self.public_batch_size is not None:
            _whole("public_batch_size", self.public_batch_size, minimum=1)
            if self.batches == "single":
                raise ValueError(
                    f"public_batch_size must be left out with a single batch, got {self.public_batch_size}"
                )
        if self.mixing_weight is not None:
            validate.open_probability("mixing_weight", self.mixing_weight)
        if validate.non_negative("public_noise_multiplier", self.public_noise_multiplier) > _LARGEST:
            raise ValueError(
                f"public_noise_multiplier must be at most {_LARGEST:g}, got {self.public_noise_multiplier}"
            )
        _whole("public_steps", self.public_steps, minimum=0)
        if self.public_learning_rate is not None:
            rate = validate.positive("public_learning_rate", self.public_learning_rate)
            if not _LEAST <= rate <= _LARGEST:
                raise ValueError(f"public_learning_rate must be in [{_LEAST:g}, {_LARGEST:g}], got {rate}")
            if not self.public_steps:
                raise ValueError("public_learning_rate must be left out without public_steps, got one")


def _whole(name: str, value: float, *, minimum: int) -> None:
    if validate.count(name, value, minimum=minimum) >= _STEP_LIMIT:
        raise ValueError(f"{name} must be below {_STEP_LIMIT}, got {float(value):g}")
