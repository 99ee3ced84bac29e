"""What is minimised: a loss a record, of which Algorithm 1 makes a private residual and a public loss."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any, Protocol

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int

from exactdp.mechanisms import keys
from exactdp.mechanisms.batches.batch import Sampler
from exactdp.mechanisms.public import Public
from exactdp.train.certificate import Certificate
from exactdp.train.state import Parameters
from exactdp.train.task import GradientOfBatch, Records, Task

Examples = Any
"""Records as a loss takes them, with whatever random numbers it needs: a pytree of arrays, a row a record."""

ExampleLosses = Callable[[Parameters, Examples], Float[Array, " batch"]]


@dataclasses.dataclass(frozen=True)
class Residual:
    """l_priv(x) = l(x) - l_pub(Psi(x)), for the clipper.

    Attributes:
      examples: (records, key) -> what the loss takes.
      losses: (params, examples) -> the residual of each record.
      total: (params, examples) -> the sum of the two losses, where the residual is their difference taken in
        two passes, whose gradients may nearly cancel; None otherwise.
    """

    examples: Callable[[Records, jax.Array], Examples]
    losses: ExampleLosses
    total: ExampleLosses | None = None


class Objective(Protocol):
    """A model with its loss and its measure."""

    @property
    def input_shape(self) -> tuple[int, ...]:
        """Of one record."""
        ...

    @property
    def metric(self) -> str:
        """Name of what `measure` gives, such as `test_accuracy`."""
        ...

    def initialise(self, key: jax.Array) -> Parameters:
        """Parameters for a key."""
        ...

    def examples(self, records: Records, *, key: jax.Array, public: Public | None = None) -> Examples:
        """Records as the loss takes them, every slot with random numbers of its own.

        Args:
          records: the batch.
          key: of one step and purpose; the same key gives a slot the same random numbers, whatever is in it.
          public: give the records' public views in their place.
        """
        ...

    def losses(self, params: Parameters, examples: Examples) -> Float[Array, " batch"]:
        """One loss a record; nothing in it is random, and no record is in another's."""
        ...

    def residual(self, public: Public) -> Residual:
        """The residual loss; `two_passes` is always right."""
        ...

    def measure(self, params: Parameters, x: np.ndarray, y: np.ndarray) -> float:
        """What the parameters reach on test records."""
        ...


def public_sum(
    objective: Objective,
    public: Public,
    *,
    params: Parameters,
    records: Records,
    mask: Bool[Array, " batch"],
    key: jax.Array,
    step: Int[Array, ""],
) -> Parameters:
    """Sum of the public loss's gradients over a batch; the label is read where it is public only.

    Args:
      objective: the model and its loss.
      public: what is public.
      params: where the gradients are taken.
      records: the batch.
      mask: which rows count.
      key: the run key.
      step: of the run.
    """
    view_key = keys.step_key(key, step=step, purpose="public_augment")
    examples = objective.examples(records, key=view_key, public=public)
    return jax.grad(lambda p: jnp.sum(jnp.where(mask, objective.losses(p, examples), 0.0)))(params)


def task_of(
    objective: Objective,
    name: str,
    *,
    certificate: Certificate,
    sampler: Sampler,
    gradient: GradientOfBatch,
    check: Callable[[Parameters, Records], Any],
) -> Task:
    """The task of a method on an objective; arguments as `Task` has them."""
    return Task(
        name,
        certificate,
        sampler,
        objective.initialise,
        gradient,
        objective.measure,
        check,
        objective.input_shape,
        objective.metric,
    )


def two_passes(objective: Objective, public: Public) -> Residual:
    """The residual with the record and its public view as two rows of one batch.

    Both rows have the same random numbers. A layer then sees a record at two positions with output gradients
    of opposite sign, and the clipper takes the norm of their sum as it does for a sequence: no gradient is
    formed for it.

    Source: arXiv 2506.19836v1, Algorithm 1, for the decomposition; the two rows are ours.
    """

    def examples(records: Records, key: jax.Array) -> Examples:
        own = objective.examples(records, key=key)
        view = objective.examples(records, key=key, public=public)
        return jax.tree.map(lambda a, b: jnp.stack([a, b], 1), own, view)

    def both(params: Parameters, found: Examples) -> Float[Array, "batch 2"]:
        rows = jax.tree.map(lambda a: jnp.reshape(a, (-1, *a.shape[2:])), found)
        return jnp.reshape(objective.losses(params, rows), (-1, 2))

    def losses(params: Parameters, found: Examples) -> Float[Array, " batch"]:
        pair = both(params, found)
        return pair[:, 0] - pair[:, 1]

    def total(params: Parameters, found: Examples) -> Float[Array, " batch"]:
        pair = both(params, found)
        return pair[:, 0] + pair[:, 1]

    return Residual(examples, losses, total)
