"""A task: what one method adds to the common loop."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import jax
import numpy as np
from jaxtyping import Array, Bool, Float, Int, Num

from exactdp.mechanisms.batches.batch import Sampler
from exactdp.train.certificate import Certificate
from exactdp.train.state import Parameters


class Records(NamedTuple):
    """Records with their labels, on the device.

    Attributes:
      x: one record a row; float32, or whole numbers for tokens.
      y: labels, int32.
    """

    x: Num[Array, "batch ..."]
    y: Int[Array, " batch"]


class Gradient(NamedTuple):
    """What a task makes of a batch.

    Attributes:
      value: a pytree like the parameters, the descent direction's negative.
      usable: whether the step updates anything; an update that is undefined (a mean over nothing) is skipped.
      private: numbers that no certificate covers, such as the mean loss, by name.
    """

    value: Parameters
    usable: Bool[Array, ""]
    private: Mapping[str, Float[Array, ""]]


GradientOfBatch = Callable[[Parameters, Records, Bool[Array, " batch"], jax.Array, Int[Array, ""]], Gradient]
"""(params, records of the batch, mask, run key, step) -> `Gradient`."""


@dataclasses.dataclass(frozen=True)
class PublicPart:
    """What a step adds from a second batch, of public features alone.

    Attributes:
      sampler: draws that batch, independently of the private one.
      gradient: (params, records of the batch, mask, run key, step) -> what is added to the private gradient.
        It must use nothing of the records but what is public.
    """

    sampler: Sampler
    gradient: Callable[[Parameters, Records, Bool[Array, " batch"], jax.Array, Int[Array, ""]], Parameters]


@dataclasses.dataclass(frozen=True)
class Task:
    """One method on one model.

    Attributes:
      name: of the method.
      certificate: its privacy claim.
      sampler: draws a batch from (run key, step).
      initialise: parameters from a key.
      gradient: (params, records of the batch, mask, run key, step) -> `Gradient`. Masked records must not
        matter. A pure function, compiled with the rest of the step.
      measure: (params, test inputs, test labels) -> what they reach, without noise.
      check: refuses a model that the method would treat wrongly, on made-up records, before anything is
        released. It sees no private data.
      input_shape: of one record, as `gradient` takes it. A step's data set may have its records flat.
      metric: what `measure` gives, by name.
      public: the second batch; None where there is none.
    """

    name: str
    certificate: Certificate
    sampler: Sampler
    initialise: Callable[[jax.Array], Parameters]
    gradient: GradientOfBatch
    measure: Callable[[Parameters, np.ndarray, np.ndarray], float]
    check: Callable[[Parameters, Records], Any]
    input_shape: tuple[int, ...]
    metric: str = "test_accuracy"
    public: PublicPart | None = None
