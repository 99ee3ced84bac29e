"""Classification: cross-entropy of a network, measured by accuracy."""

from __future__ import annotations

import dataclasses
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax
from jaxtyping import Array, Float

from exactdp.mechanisms.public import Public
from exactdp.train import augment, evaluate
from exactdp.train.augmentation import Augmentation
from exactdp.train.network import Network
from exactdp.train.objective import Residual, two_passes
from exactdp.train.state import Parameters
from exactdp.train.task import Records


class Targeted(NamedTuple):
    """Inputs with a weight for each class.

    Attributes:
      x: one record a row; with augmentation, an axis of views behind the first.
      targets: the label as a distribution, or a difference of two.
    """

    x: Float[Array, "batch ..."]
    targets: Float[Array, "batch ... classes"]


@dataclasses.dataclass(frozen=True)
class Classification:
    """l(x, y) = - sum_k w_k log softmax_k f(x), with w the label's indicator.

    The public loss is l at the public view of x, with the label where it is public and the public guess of it
    where it is not. Where the input is public as a whole, both are losses of one pass, and the residual is
    sum_k (guess_k - [k = y]) f_k(x): linear in the logits, as in the logistic case of Theorem 6.

    Attributes:
      network: the model.
      augmentation: random views of each record; of its public view the same ones.

    Raises:
      ValueError: records cannot be varied so.

    Source: arXiv 2506.19836v1, section 5, for the decomposition; the choice of public loss is ours.
    """

    network: Network
    augmentation: Augmentation = Augmentation()

    def __post_init__(self) -> None:
        self.augmentation.require_shape(self.network.input_shape)

    @property
    def input_shape(self) -> tuple[int, ...]:
        """Of one record."""
        return self.network.input_shape

    @property
    def metric(self) -> str:
        """`test_accuracy`."""
        return "test_accuracy"

    def initialise(self, key: jax.Array) -> Parameters:
        """Parameters for a key."""
        return self.network.initialise(key)

    def examples(self, records: Records, *, key: jax.Array, public: Public | None = None) -> Targeted:
        """Inputs and targets, in random views where there is augmentation; or of the public views."""
        whole = Public(None, True)  # whose targets are the labels
        targets = (public or whole).targets(records.y, num_classes=self.network.num_classes)
        x = records.x if public is None else public.view(records.x)
        varied = self.augmentation.views(x, key=key)
        if self.augmentation.varies:
            targets = augment.repeat(targets, multiplicity=int(self.augmentation.multiplicity))
        return Targeted(varied, targets)

    def losses(self, params: Parameters, examples: Targeted) -> Float[Array, " batch"]:
        """Cross-entropy of each record, the mean over its views."""
        return self.augmentation.loss(self._losses)(params, examples)

    def _losses(self, params: Parameters, examples: Targeted) -> Float[Array, " batch"]:
        return optax.softmax_cross_entropy(self.network.logits(params, examples.x), examples.targets)

    def _linear(self, params: Parameters, examples: Targeted) -> Float[Array, " batch"]:
        """- sum_k w_k f_k(x), which is the loss where the weights add up to 0."""
        return -jnp.sum(examples.targets * self.network.logits(params, examples.x), axis=-1)

    def residual(self, public: Public) -> Residual:
        """The residual loss: of one pass where the input is public as a whole."""
        if not public.whole_input:
            return two_passes(self, public)

        def examples(records: Records, key: jax.Array) -> Targeted:
            own = self.examples(records, key=key)
            return own._replace(targets=own.targets - self.examples(records, key=key, public=public).targets)

        return Residual(examples, self.augmentation.loss(self._linear))

    def measure(self, params: Parameters, x: np.ndarray, y: np.ndarray) -> float:
        """Share of test records whose largest logit is their label's."""
        return evaluate.accuracy(self.network.logits)(params, x, y)
