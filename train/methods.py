"""From settings to a finished run: data set, plan, network, task, loop."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import jax

from exactdp.mechanisms import keys
from exactdp.mechanisms.public import Public
from exactdp.train import dirichlet, dpsgd, feature, gaussian_features, loop, nonprivate, pretrain
from exactdp.train.augmentation import Augmentation
from exactdp.train.calibration import Plan, plan
from exactdp.train.classification import Classification
from exactdp.train.data import Dataset
from exactdp.train.feature_settings import FeatureSettings
from exactdp.train.generative import UNET, Generative
from exactdp.train.network import Network
from exactdp.train.objective import Objective
from exactdp.train.optimiser import Optimiser
from exactdp.train.public_map import public_map
from exactdp.train.result import Result
from exactdp.train.settings import Settings, whole
from exactdp.train.state import Parameters
from exactdp.train.task import Task

_NONE, _PLAIN = Augmentation(), Generative()


@dataclasses.dataclass(frozen=True)
class Prepared:
    """A run that is ready to start; nothing has been written yet.

    Attributes:
      settings: what was asked for.
      plan: what follows from it.
      task: the method on its model.
      data: what it is trained on.
      network: the classifier; None where the task is another.
      pretraining: (optimiser, whether to show progress) -> parameters of a key after pre-training on what is
        public; None where there is none.
    """

    settings: Settings
    plan: Plan
    task: Task
    data: Dataset
    network: Network | None
    pretraining: Callable[[Optimiser, bool], Callable[[jax.Array], Parameters]] | None = None


def prepare(
    settings: Settings,
    *,
    data: Dataset,
    model: str,
    bfloat16: bool = False,
    accumulation: int = 1,
    augmentation: Augmentation = _NONE,
    generative: Generative = _PLAIN,
) -> Prepared:
    """Solves for the noise and builds the task.

    Args:
      settings: what was asked for.
      data: training and test set.
      model: name of a classifier, or "unet" for a diffusion model.
      bfloat16: whether the model computes in bfloat16.
      accumulation: in how many parts a batch is computed; dpsgd, label_public and nonprivate only.
      augmentation: random views of each record; more than one for the same methods only.
      generative: how a diffusion model is trained.

    Raises:
      ValueError: bad input, or a target that cannot be reached.
      ArithmeticError: no value could be certified.
    """
    require_fitting(settings, accumulation=accumulation, augmentation=augmentation)
    network: Network | None = None
    objective: Objective
    if model == UNET:
        objective = generative.objective(settings, data=data, augmentation=augmentation, bfloat16=bfloat16)
    else:
        generative.require_plain(model)
        network = Network(model, data.input_shape, data.num_classes, bfloat16)
        objective = Classification(network, augmentation)
    public = _public(settings, data)
    found = plan(settings, num_records=len(data.y), num_classes=data.num_classes, public=public)
    made = _task(settings, found, objective, network, augmentation, accumulation, public)
    pretraining = _pretraining(settings, found, objective, data, public)
    return Prepared(settings, found, made, data, network, pretraining)


def require_fitting(
    settings: Settings,
    *,
    optimiser: Optimiser | None = None,
    accumulation: int = 1,
    augmentation: Augmentation = _NONE,
) -> None:
    """Refuses options that a method does not have.

    Args:
      settings: what was asked for.
      optimiser: what makes updates of gradients; plain SGD for dirichlet.
      accumulation: as in `prepare`.
      augmentation: as in `prepare`.

    Raises:
      ValueError: it is refused.
    """
    whole("accumulation", accumulation, minimum=1)
    if settings.method in ("dirichlet", "gaussian_features"):
        for name, value in {"accumulation": accumulation, "augmentation": augmentation.multiplicity}.items():
            if value > 1:
                raise ValueError(f"{name} must be 1 for {settings.method}, got {value}")
    if settings.method == "dirichlet" and optimiser is not None:
        if optimiser.name != "sgd":
            raise ValueError(
                f"optimizer must be plain sgd for dirichlet (its Algorithm 1), got {optimiser.name}"
            )
        if optimiser.momentum:
            raise ValueError(
                f"momentum must be 0 for dirichlet (its Algorithm 1), got {optimiser.momentum:g}"
            )


def run(
    prepared: Prepared,
    *,
    out: Path,
    seed: int | None = None,
    resume: bool = False,
    options: loop.Options | None = None,
    described: Mapping[str, Any] | None = None,
    announce: Callable[[], None] | None = None,
) -> Result:
    """Carries a prepared run out.

    Args:
      prepared: as `prepare` gives it.
      out: folder of the run.
      seed: of the run key; None for the operating system's randomness, or the checkpoint's key.
      resume: go on with the run in `out`.
      options: how; plain SGD at the plan's learning rate by default.
      described: more settings to describe the run with, which resuming must repeat.
      announce: as in `loop.run`.

    Raises:
      ValueError: as `loop.run`; options for another run than the plan's, or another optimiser than plain SGD
        for dirichlet.
    """
    found, settings = prepared.plan, prepared.settings
    made = options or loop.Options(
        num_steps=found.num_steps,
        delta=settings.delta,
        optimiser=Optimiser(learning_rate=found.learning_rate),
    )
    if (made.num_steps, made.delta) != (found.num_steps, settings.delta):
        raise ValueError(
            f"options must be for the plan's {found.num_steps} steps and delta {settings.delta}, got "
            f"{made.num_steps} and {made.delta}"
        )
    require_fitting(settings, optimiser=made.optimiser)
    task = prepared.task
    if prepared.pretraining is not None:
        first = prepared.pretraining(made.optimiser, made.progress)
        task = dataclasses.replace(task, initialise=first)
    return loop.run(
        task,
        data=prepared.data,
        options=made,
        out=out,
        key=None if seed is None and resume else keys.run_key(seed),
        resume=resume,
        settings=settings.as_dict() | {"dataset": prepared.data.name} | dict(described or {}),
        announce=announce,
    )


def _public(settings: Settings, data: Dataset) -> Public | None:
    if settings.feature is None:
        return None
    found = public_map(settings.feature.public, data=data)
    if found.nothing and settings.feature != FeatureSettings("none", settings.feature.adjacency):
        raise ValueError("public must not be none where other flags are about what is public")
    # Refuses a public batch larger than the data before the noise is solved for.
    feature.public_sampler(settings.feature, num_records=len(data.y), expected=1.0)
    return found


def _pretraining(
    settings: Settings, found: Plan, objective: Objective, data: Dataset, public: Public | None
) -> Callable[[Optimiser, bool], Callable[[jax.Array], Parameters]] | None:
    asked = settings.feature
    if asked is None or public is None or not asked.public_steps:
        return None
    sampler = feature.public_sampler(
        asked, num_records=found.sampler.num_records, expected=found.sampler.expected_size
    )

    def initialiser(optimiser: Optimiser, progress: bool) -> Callable[[jax.Array], Parameters]:
        rate = float(asked.public_learning_rate or optimiser.learning_rate)
        return pretrain.initialiser(
            objective,
            public=public,
            data=data,
            sampler=sampler,
            num_steps=int(asked.public_steps),
            optimiser=dataclasses.replace(optimiser, learning_rate=rate),
            progress=progress,
        )

    return initialiser


def _task(
    settings: Settings,
    found: Plan,
    objective: Objective,
    network: Network | None,
    augmentation: Augmentation,
    accumulation: int,
    public: Public | None,
) -> Task:
    common: dict[str, Any] = {"certificate": found.certificate, "sampler": found.sampler}
    view: dict[str, Any] = {"augmentation": augmentation}
    if settings.method == "nonprivate" or found.noise is None:
        return nonprivate.task(objective, **common, accumulation=accumulation)
    if settings.method == "dirichlet" and network is not None:
        return dirichlet.task(network, **common, **view, scaling=found.noise, offset=settings.alpha)
    common |= {"noise_multiplier": found.noise, "clip_norm": settings.clip}
    if settings.method == "gaussian_features" and network is not None:
        return gaussian_features.task(network, **common, **view)
    common |= {
        "accumulation": accumulation,
        "expected_batch_size": found.sampler.expected_size,
    }
    if settings.feature is not None and public is not None:
        return feature.task(objective, **common, public=public, asked=settings.feature)
    return dpsgd.task(objective, **common, name=settings.method)
