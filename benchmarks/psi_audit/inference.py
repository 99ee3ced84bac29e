"""Attribute inference from the model that a run has trained."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float, Int

from exactdp.benchmarks.psi_audit.sample import View
from exactdp.mechanisms.public import Public
from exactdp.train import folder
from exactdp.train.attacks import Attribute, Inference, infer
from exactdp.train.data import Dataset
from exactdp.train.network import Network
from exactdp.train.task import Records

# Records to guess about, of either kind.
_MOST = 2000
_TABLE_MODEL = "mlp"


@dataclasses.dataclass(frozen=True)
class Attacked:
    """One attribute guessed from one model.

    Attributes:
      attribute: its name.
      members: guesses about records that the model was trained on.
      others: guesses about test records; what succeeds there is no leak of a record.
    """

    attribute: str
    members: Inference
    others: Inference

    def as_dict(self, *, confidence: float) -> dict[str, Any]:
        """The numbers."""
        answer: dict[str, Any] = {"attribute": self.attribute}
        for who, found in (("members", self.members), ("others", self.others)):
            advantage = found.advantage(confidence=confidence)
            answer[who] = {
                "records": found.records,
                "accuracy": found.right / found.records,
                "baseline": found.right_baseline / found.records,
                "advantage": {"lower": advantage.lower, "upper": advantage.upper},
            }
        return answer

    def rows(self, *, confidence: float) -> list[list[object]]:
        """Two rows of the report's CSV file."""
        answer = self.as_dict(confidence=confidence)
        return [
            [
                "inference",
                f"{self.attribute}, {who}",
                None,
                None,
                None,
                answer[who]["advantage"]["lower"],
                answer[who]["accuracy"] - answer[who]["baseline"],
                answer[who]["advantage"]["upper"],
                answer[who]["baseline"],
            ]
            for who in ("members", "others")
        ]


def attack(run: str | Path, data: Dataset, *, public: Public, attribute: str, seed: int) -> Attacked:
    """Guesses an attribute of training and of test records from the weights of a run.

    The adversary knows the public columns, the label and the weights, and has half of the test set as
    reference records; the other half are those who were not trained on.

    Args:
      run: the folder of a run on this data set that has ended.
      data: the data set.
      public: the map; columns that it leaves as they are are known.
      attribute: its name.
      seed: of the records chosen.

    Raises:
      ValueError: records are no table with names, the attribute is unknown or public, or there are no weights
        of a model that takes these records.
    """
    if not data.columns:
        raise ValueError(f"attribute must be of a table with named columns, got {data.name}")
    wanted = Attribute.of(attribute, columns=data.columns)
    known = _kept(public, data.input_shape)
    if set(known) & set(wanted.columns):
        raise ValueError(
            f"attribute must be private, got {attribute}, of which {public.text} shows something"
        )
    loss = _loss(Path(run), data)
    member_key, other_key, key = jax.random.split(jax.random.key(seed), 3)
    chosen = np.asarray(jax.random.permutation(member_key, len(data.y)))[:_MOST]
    shuffled = np.asarray(jax.random.permutation(other_key, len(data.y_test)))
    half = len(shuffled) // 2
    reference, tested = shuffled[:half], shuffled[half:][:_MOST]

    def guesses(x: Float[np.ndarray, "n d"], y: Int[np.ndarray, " n"]) -> Inference:
        return infer(
            loss,
            x,
            y,
            attribute=wanted,
            known=known,
            reference=(data.x_test[reference], data.y_test[reference]),
            key=key,
        )

    return Attacked(
        attribute=attribute,
        members=guesses(data.x[chosen], data.y[chosen]),
        others=guesses(data.x_test[tested], data.y_test[tested]),
    )


def _kept(public: Public, shape: tuple[int, ...]) -> list[int]:
    """The columns that the map leaves as they are."""
    affine = View(public).affine(shape)
    if affine is None:
        return []
    matrix, offset = affine
    unit = np.eye(len(offset))
    return [
        place
        for place in range(len(offset))
        if np.array_equal(matrix[place], unit[place]) and offset[place] == 0.0
    ]


def _loss(run: Path, data: Dataset) -> Any:
    name = folder.description(run).get("settings", {}).get("model") or _TABLE_MODEL
    network = Network(name, data.input_shape, data.num_classes)
    params = folder.read_weights(run, like=network.initialise(jax.random.key(0)))
    losses = jax.jit(network.losses)

    def loss(x: Float[np.ndarray, "n d"], y: Int[np.ndarray, " n"]) -> Float[np.ndarray, " n"]:
        return np.asarray(losses(params, Records(jnp.asarray(x), jnp.asarray(y))))

    return loss
