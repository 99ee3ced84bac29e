"""The training steps to compile: every method on every model, as functions of shapes alone."""

from __future__ import annotations

import dataclasses
import functools
import math
from typing import Any

import jax
import jax.numpy as jnp

from exactdp.accounting import validate
from exactdp.mechanisms.batches import Poisson
from exactdp.mechanisms.public import parse
from exactdp.train import (
    certificates,
    dirichlet,
    dpsgd,
    feature,
    feature_certificate,
    gaussian_features,
    nonprivate,
    parallel,
)
from exactdp.train import state as states
from exactdp.train import step as steps
from exactdp.train.classification import Classification
from exactdp.train.diffusion import Diffusion
from exactdp.train.feature_settings import FeatureSettings
from exactdp.train.generative import UNET
from exactdp.train.gpt2 import config as configs
from exactdp.train.gpt2 import model as gpt2
from exactdp.train.gpt2.config import Config
from exactdp.train.network import Network
from exactdp.train.objective import Objective
from exactdp.train.optimiser import Optimiser
from exactdp.train.tables import tokens
from exactdp.train.task import Records, Task
from exactdp.train.two_stage.objective import RowObjective

METHODS = ("nonprivate", "dpsgd", "label_public", "feature", "gaussian_features", "dirichlet")
MODELS: dict[str, tuple[int, ...]] = {
    "linear": (28, 28, 1),
    "mlp": (28, 28, 1),
    "cnn": (28, 28, 1),
    "wrn-16-4": (32, 32, 3),
    "vit-tiny": (32, 32, 3),
    "unet": (32, 32, 3),
    "gpt-tiny": (96,),
    "gpt2": (128,),
}
"""Models, each with the shape of its records; of language models, tokens."""

LANGUAGE: dict[str, Config] = {
    "gpt-tiny": configs.named("tiny", vocabulary=1024, positions=96),
    "gpt2": configs.named("gpt2"),
}
"""Models of a table's rows, with their sizes."""

LANGUAGE_METHODS = ("nonprivate", "dpsgd")
SUMMED = ("nonprivate", "dpsgd", "label_public", "feature")
"""Methods that need no more than losses, whose batches can be computed in parts."""

NUM_CLASSES = 10
_CLIP_NORM, _NOISE_MULTIPLIER = 1.0, 1.0
_SCALING, _OFFSET = 0.235, 3.0
_PUBLIC = "blur:sigma=2+label"
_NUM_STEPS = 1000


@dataclasses.dataclass(frozen=True)
class Case:
    """One step.

    Attributes:
      method: one of `METHODS`.
      model: one of `MODELS`.
      capacity: records a step is computed for, >= 2; 4/5 of them are expected to be drawn.
      num_records: of the training set, >= capacity.
      bfloat16: whether the model computes in bfloat16.
      accumulation: in how many parts a batch is computed, one after the other; > 1 for `SUMMED` alone.

    Raises:
      ValueError: an argument outside of what is said above.
    """

    method: str
    model: str
    capacity: int = 1024
    num_records: int = 50_000
    bfloat16: bool = True
    accumulation: int = 1

    def __post_init__(self) -> None:
        validate.one_of("method", self.method, METHODS)
        validate.one_of("model", self.model, MODELS)
        if self.method not in methods(self.model):
            raise ValueError(
                f"method must be one of {', '.join(methods(self.model))} for {self.model}, got {self.method}"
            )
        if validate.count("accumulation", self.accumulation, 1) > 1 and self.method not in SUMMED:
            raise ValueError(f"accumulation must be 1 for {self.method}, got {self.accumulation}")
        validate.count("capacity", self.capacity, 2)
        validate.count("num_records", self.num_records, self.capacity)

    def task(self) -> Task:
        """The method on the model, for a data set of `num_records` records."""
        expected = 0.8 * self.capacity
        sampler = Poisson(self.num_records, expected / self.num_records, self.capacity)
        if self.method not in SUMMED:
            return self._of_classifier(sampler)
        objective = self._objective()
        common: dict[str, Any] = {"sampler": sampler, "accumulation": self.accumulation}
        if self.method == "nonprivate":
            return nonprivate.task(objective, certificate=certificates.nonprivate(sampler=sampler), **common)
        common |= {
            "noise_multiplier": _NOISE_MULTIPLIER,
            "clip_norm": _CLIP_NORM,
            "expected_batch_size": expected,
        }
        if self.method == "feature":
            asked = FeatureSettings(_PUBLIC)
            public = parse(asked.public)
            certificate = feature_certificate.feature(
                _NOISE_MULTIPLIER, sampler=sampler, public=public, asked=asked
            )
            return feature.task(objective, certificate=certificate, public=public, asked=asked, **common)
        certify = {"dpsgd": certificates.dpsgd, "label_public": certificates.label_public}[self.method]
        return dpsgd.task(
            objective, certificate=certify(_NOISE_MULTIPLIER, sampler=sampler), name=self.method, **common
        )

    def _network(self) -> Network:
        return Network(self.model, MODELS[self.model], NUM_CLASSES, self.bfloat16)

    def _of_classifier(self, sampler: Poisson) -> Task:
        if self.method == "dirichlet":
            certificate = certificates.dirichlet(
                _SCALING, offset=_OFFSET, sampler=sampler, num_classes=NUM_CLASSES
            )
            return dirichlet.task(
                self._network(), certificate=certificate, sampler=sampler, scaling=_SCALING, offset=_OFFSET
            )
        return gaussian_features.task(
            self._network(),
            certificate=certificates.gaussian_features(_NOISE_MULTIPLIER, sampler=sampler),
            sampler=sampler,
            noise_multiplier=_NOISE_MULTIPLIER,
            clip_norm=_CLIP_NORM,
        )

    def _objective(self) -> Objective:
        if self.model == UNET:
            return Diffusion(MODELS[UNET], bfloat16=self.bfloat16)
        if self.model not in LANGUAGE:
            return Classification(self._network())
        # Stage 2 of a synthetic table, with the loss of its rows.
        config, dtype = LANGUAGE[self.model], jnp.bfloat16 if self.bfloat16 else jnp.float32
        graph, _ = gpt2.abstract(config, dtype=dtype)
        return RowObjective(
            MODELS[self.model][0],
            lambda key: gpt2.build(config, key=key, dtype=dtype)[1],
            lambda params, rows: gpt2.logits(graph, params, rows),
            functools.partial(tokens.classes, is_token=1, comma_token=2, end=0),
            value_weight=0.65,
        )


def methods(model: str) -> tuple[str, ...]:
    """The methods that a model is trained by: language models have two, diffusion models no classifier's."""
    if model in LANGUAGE:
        return LANGUAGE_METHODS
    return SUMMED if model == UNET else METHODS


def jitted(case: Case, *, layout: parallel.Layout) -> tuple[Any, tuple[Any, Any]]:
    """The jitted step of the common loop, and the shapes of its arguments on the devices of the layout.

    It is the step that training runs: batch drawn, gradient, noise, plain SGD, moving average of the weights;
    state and records lie where the layout puts them. `step.lower(*shapes).compile()` compiles it.

    Args:
      case: which step.
      layout: where it is to run; one device of the default kind, or those of a mesh.
    """
    task = case.task()
    optimiser = Optimiser()
    transformation = optimiser.build(_NUM_STEPS)

    def initial(key: jax.Array) -> states.State:
        return states.initial(task.initialise(key), optimiser=transformation, average=True, key=key)

    def records() -> Records:
        # Zero rows make the devices divide their number, as `Layout.shared` does.
        rows = case.num_records + -case.num_records % layout.num_devices
        kind = jnp.uint16 if case.model in LANGUAGE else jnp.float32
        x = jnp.zeros((rows, math.prod(MODELS[case.model])), kind)
        return Records(x, jnp.zeros(rows, jnp.int32))

    # Shapes only: this key gives no number.
    state = jax.eval_shape(initial, jax.random.key(0))
    shapes = (
        _placed(layout.kept, state, layout),
        _placed(layout.spread, jax.eval_shape(records), layout),
    )
    step = steps.compile_step(task, optimiser, num_steps=_NUM_STEPS, ema_decay=0.999, layout=layout)
    return step, shapes


def _placed(place: Any, tree: Any, layout: parallel.Layout) -> Any:
    """The shapes of `tree` with the shardings that `place` gives its arrays."""
    if layout.mesh is None:
        return tree
    everywhere = jax.sharding.NamedSharding(layout.mesh, jax.sharding.PartitionSpec())
    shardings = jax.jit(place, in_shardings=everywhere).lower(tree).compile().output_shardings
    return jax.tree.map(
        lambda leaf, sharding: jax.ShapeDtypeStruct(leaf.shape, leaf.dtype, sharding=sharding),
        tree,
        shardings,
    )
