"""Diffusion models of paper B's experiment (arXiv 2506.19836): trained, sampled, measured, one row a run.

The four ways to train see the same network, batches and optimiser:

    feature      pre-training on public views, then Algorithm 1
    dpsgd        Algorithm 1 with nothing public
    public_only  pre-training alone, for as many steps as both parts of `feature`
    nonprivate   the records themselves, for as many steps as `public_only`
"""

from __future__ import annotations

import dataclasses
import functools
import time
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import UInt8

from exactdp.accounting import validate
from exactdp.benchmarks.curves import store
from exactdp.benchmarks.experiments import runs, sweep
from exactdp.benchmarks.experiments.experiment import Experiment
from exactdp.mechanisms import keys
from exactdp.train import calibration, feature, methods, nonprivate, pretrain
from exactdp.train.augmentation import Augmentation
from exactdp.train.data import Dataset
from exactdp.train.diffusion import Diffusion, RandomConvolution, grid
from exactdp.train.diffusion.quality import quality
from exactdp.train.feature_settings import FeatureSettings
from exactdp.train.generative import Generative
from exactdp.train.optimiser import Optimiser
from exactdp.train.public_map import public_map
from exactdp.train.settings import Settings
from exactdp.train.state import Parameters
from exactdp.train.task import Records

SERIES = ("feature", "dpsgd", "public_only", "nonprivate")
COLUMNS = (
    "split",
    "series",
    "x",
    "seed",
    "noise",
    "clip_norm",
    "learning_rate",
    "sampling_probability",
    "num_steps",
    "public_steps",
    "epsilon_lower",
    "epsilon_upper",
    "adjacency",
    "coins",
    "released",
    "covers_weights",
    "public",
    "test_loss",
    "distance_name",
    "distance",
    "precision",
    "recall",
    "num_images",
    "seconds",
)
"""Of the CSV file. `x` is the target epsilon, 0 where there is none; `distance` is on `num_images` generated
and as many test images, and what it is called is in `distance_name`."""


@dataclasses.dataclass(frozen=True)
class Recipe:
    """How a series is trained.

    Attributes:
      learning_rate: of Adam.
      clip_norm: C of the private gradient.
    """

    learning_rate: float
    clip_norm: float = 1.0


@dataclasses.dataclass(frozen=True)
class Network:
    """Size of the U-Net.

    Attributes:
      width: channels at full resolution.
      heads: attention heads at the lowest level, 0 for none.
    """

    width: int
    heads: int


class Trainer:
    """Trains and measures on one split; what is compiled or pre-trained once is used again.

    Args:
      experiment: steps, sampling probability, delta.
      data: images.
      public: the public feature map.
      network: size of the U-Net.
      public_steps: of pre-training, >= 1.
      public_rate: learning rate of pre-training, by Adam.
      checked: series whose clipping was checked already, for the same network; the ones checked are added.

    Raises:
      ValueError: records that are no images, or that the map does not take.
    """

    def __init__(
        self,
        experiment: Experiment,
        data: Dataset,
        *,
        public: str,
        network: Network,
        public_steps: int,
        public_rate: float,
        checked: set[str] | None = None,
    ) -> None:
        self.experiment, self.data, self.public = experiment, data, public
        self.public_steps = validate.count("public_steps", public_steps, minimum=1)
        self.public_rate = validate.positive("public_rate", public_rate)
        plain = Generative().objective(
            Settings("nonprivate"), data=data, augmentation=Augmentation(), bfloat16=False
        )
        self.objective: Diffusion = dataclasses.replace(plain, width=network.width, heads=network.heads)
        self.map = public_map(public, data=data)
        self.encoder = RandomConvolution()
        self._pretrained: dict[bytes, Parameters] = {}
        self._checked: set[str] = set() if checked is None else checked
        # The seeds of a point share what was prepared for it, and so what is compiled.
        self._prepared = functools.lru_cache(maxsize=1)(self._prepare)
        self._pretraining = functools.lru_cache(maxsize=2)(self._pretrain)

    def run(
        self, series: str, *, seed: int, recipe: Recipe, epsilon: float | None = None
    ) -> tuple[Parameters, dict[str, Any]]:
        """Parameters of a run, and what is known of it without looking at a sample.

        Args:
          series: one of `SERIES`.
          seed: of the run key.
          recipe: learning rate and clip norm.
          epsilon: of feature and dpsgd.
        """
        validate.one_of("series", series, SERIES)
        steps = self.experiment.num_steps + self.public_steps
        if series == "public_only":
            params = self._pretraining(steps)(keys.step_key(keys.run_key(seed), step=0, purpose="init"))
            return params, {"learning_rate": self.public_rate, "num_steps": steps, "public": self.public}
        prepared = self._prepared(series, recipe, epsilon, steps)
        found = prepared.plan
        optimiser = Optimiser("adam", learning_rate=recipe.learning_rate)
        result = runs.run(prepared, seed=seed, optimiser=optimiser)
        return result.state.weights, {
            "noise": found.noise,
            "clip_norm": recipe.clip_norm if series in ("feature", "dpsgd") else None,
            "learning_rate": recipe.learning_rate,
            "sampling_probability": found.sampler.sampling_probability,
            "num_steps": found.num_steps,
            "public_steps": self.public_steps if series == "feature" else 0,
            **sweep.certified(prepared, result),
            "public": self.public if series == "feature" else "none",
        }

    def measured(
        self, params: Parameters, *, seed: int, samples: bool
    ) -> tuple[dict[str, Any], UInt8[np.ndarray, "n h w c"] | None]:
        """Test loss and, with `samples`, the quality of as many samples as there are test images."""
        data = self.data
        values: dict[str, Any] = {"test_loss": self.objective.measure(params, data.x_test, data.y_test)}
        if not samples:
            return values, None
        key = keys.step_key(keys.run_key(seed), step=0, purpose="evaluation")
        made = self.bytes_of(self.objective.sample(params, len(data.y_test), key=key))
        return values | self.compared(made), made

    def compared(self, images: UInt8[np.ndarray, "n h w c"]) -> dict[str, Any]:
        """Fréchet distance, precision and recall of images against as many test images."""
        real = self.bytes_of(self.data.x_test)[: len(images)]
        found = quality(real, images[: len(real)], encoder=self.encoder)
        return {
            "distance_name": found.distance_name,
            "distance": found.distance,
            "precision": found.precision,
            "recall": found.recall,
            "num_images": found.num_generated,
        }

    def views(self, x: np.ndarray) -> UInt8[np.ndarray, "n h w c"]:
        """Public views as bytes."""
        return self.bytes_of(np.asarray(self.map.view(jnp.asarray(x))))

    def bytes_of(self, x: np.ndarray) -> UInt8[np.ndarray, "n h w c"]:
        """Images as bytes."""
        return grid.to_bytes(x, pixel_range=self.objective.pixel_range)

    def _prepare(self, series: str, recipe: Recipe, epsilon: float | None, steps: int) -> methods.Prepared:
        count = len(self.data.y)
        if series == "nonprivate":
            settings = self.experiment.settings("nonprivate", num_steps=steps)
            found = calibration.plan(settings, num_records=count, num_classes=self.data.num_classes)
            task = nonprivate.task(self.objective, certificate=found.certificate, sampler=found.sampler)
            return methods.Prepared(settings, found, task, self.data, None)
        asked = FeatureSettings(self.public if series == "feature" else "none")
        public = public_map(asked.public, data=self.data)
        settings = self.experiment.settings(
            "feature", epsilon=epsilon, feature=asked, clip_norm=recipe.clip_norm
        )
        found = calibration.plan(
            settings, num_records=count, num_classes=self.data.num_classes, public=public
        )
        task = feature.task(
            self.objective,
            public=public,
            asked=asked,
            certificate=found.certificate,
            sampler=found.sampler,
            noise_multiplier=float(found.noise or 0.0),
            clip_norm=recipe.clip_norm,
            expected_batch_size=found.sampler.expected_size,
        )
        check = task.check

        def once(params: Parameters, records: Records) -> None:
            # The loss is the same for every epsilon and seed; compiling its check takes as long as a run.
            if series not in self._checked:
                check(params, records)
                self._checked.add(series)

        task = dataclasses.replace(task, check=once)
        if series == "feature":
            task = dataclasses.replace(task, initialise=self._first)
        return methods.Prepared(settings, found, task, self.data, None)

    def _first(self, key: jax.Array) -> Parameters:
        """Parameters after pre-training; they depend on the key alone, and are the same for every epsilon."""
        name = np.asarray(jax.random.key_data(key)).tobytes()
        if name not in self._pretrained:
            self._pretrained[name] = jax.device_get(self._pretraining(self.public_steps)(key))
        # A run takes over the buffers that it is given.
        return jax.tree.map(jnp.asarray, self._pretrained[name])

    def _pretrain(self, num_steps: int) -> Callable[[jax.Array], Parameters]:
        count = len(self.data.y)
        expected = self.experiment.settings("nonprivate").rate(count) * count
        return pretrain.initialiser(
            self.objective,
            public=self.map,
            data=self.data,
            sampler=feature.public_sampler(
                FeatureSettings(self.public), num_records=count, expected=expected
            ),
            num_steps=num_steps,
            optimiser=Optimiser("adam", learning_rate=self.public_rate),
        )


def row(split: str, series: str, x: float, seed: int, *, seconds: float, **values: Any) -> store.Row:
    """A row of the CSV file."""
    named = {"split": split, "series": series, "x": float(x), "seed": seed, "seconds": round(seconds, 1)}
    return sweep.row_of(named | values, columns=COLUMNS)


def references(trainer: Trainer) -> list[store.Row]:
    """What the measures say of images that no model made: training images, and views of test images."""
    start = time.perf_counter()
    count = len(trainer.data.y_test)
    places = np.random.default_rng(0).permutation(len(trainer.data.y))[:count]
    return [
        row("test", name, 0.0, 0, seconds=time.perf_counter() - start, **trainer.compared(images))
        for name, images in (
            ("training_images", trainer.bytes_of(trainer.data.x[places])),
            ("public_views", trainer.views(trainer.data.x_test)),
        )
    ]
