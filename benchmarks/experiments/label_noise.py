"""Label differential privacy by randomised response, in one stage or two.

One stage: every label goes through randomised response once. Two stages (LP-2ST): a model trained on the
randomised labels of one half of the records guesses the labels of the other half, and those go through
randomised response with the guess as prior. Each label is answered for once, so that the whole is
(epsilon, 0)-DP in every label; all inputs are public.

Source: Ghazi, Golowich, Kumar, Manurangsi and Zhang 2021 (arXiv 2102.06062), LP-MST with T = 1 and 2.
"""

from __future__ import annotations

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from exactdp.accounting import prv, validate
from exactdp.accounting.threat import Adjacency, Coins
from exactdp.benchmarks.experiments import runs
from exactdp.mechanisms import keys, randomised_response
from exactdp.train import methods
from exactdp.train.data import Dataset
from exactdp.train.network import Network
from exactdp.train.settings import Settings

_ROWS = 1024


@dataclasses.dataclass(frozen=True)
class LabelNoise:
    """Randomised response of the training labels.

    Attributes:
      epsilon: of each label, > 0.
      stages: 1 or 2.

    Raises:
      ValueError: an argument is outside its range.
    """

    epsilon: float
    stages: int

    def __post_init__(self) -> None:
        validate.positive("epsilon", self.epsilon)
        validate.one_of("stages", str(self.stages), ("1", "2"))

    def randomised(self, data: Dataset, *, settings: Settings, model: str, seed: int) -> Dataset:
        """The data set with randomised training labels.

        Args:
          data: with its labels.
          settings: of the run that guesses the other half's labels.
          model: its model.
          seed: of the noise; a run with the same seed draws nothing from the same key.
        """
        key = keys.run_key(seed)
        classes = data.num_classes
        uniform = jnp.full((len(data.y), classes), 1.0 / classes)
        y = self._respond(data.y, uniform, keys.step_key(key, step=0, purpose="statistics"))
        if self.stages == 2:
            order = np.asarray(
                jax.random.permutation(keys.step_key(key, step=0, purpose="shuffle"), len(data.y))
            )
            first, second = np.split(order, [len(order) // 2])
            half = dataclasses.replace(data, x=data.x[first], y=y[first])
            prepared = methods.prepare(settings, data=half, model=model)
            result = runs.run(prepared, seed=seed)
            if prepared.network is None:
                raise ValueError(f"model must be a classifier, got {model}")
            guess = _probabilities(prepared.network, result.state.weights, data.x[second])
            y[second] = self._respond(data.y[second], guess, keys.step_key(key, step=1, purpose="statistics"))
        return dataclasses.replace(data, y=y)

    def _respond(self, y: np.ndarray, prior: Array, key: jax.Array) -> np.ndarray:
        found = randomised_response.respond(key, jnp.asarray(y), prior=prior, epsilon=self.epsilon)
        return np.array(found, np.int32)

    def claim(self, *, delta: float) -> dict[str, object]:
        """The columns of a row that say what is guaranteed.

        Args:
          delta: at which epsilon is stated.
        """
        found = prv.epsilon([(randomised_response.pair(self.epsilon), 1)], delta=delta)
        return {
            "epsilon_lower": found.lower,
            "epsilon_upper": found.upper,
            "adjacency": Adjacency.REPLACE_FEATURES_PUBLIC,
            "coins": Coins.NONE,
            "released": "all randomised labels; all inputs are public",
            "covers_weights": True,
            "public": "features",
        }


def _probabilities(
    network: Network, weights: object, x: Float[np.ndarray, "n ..."]
) -> Float[Array, "n classes"]:
    compiled = jax.jit(lambda rows: jax.nn.softmax(network.logits(weights, rows)))
    return jnp.concatenate([compiled(jnp.asarray(x[k : k + _ROWS])) for k in range(0, len(x), _ROWS)])
