"""From settings to a finished run: data set, plan, network, task, loop."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from exactdp.mechanisms import keys
from exactdp.train import dirichlet, dpsgd, gaussian_features, loop, nonprivate
from exactdp.train.augmentation import Augmentation
from exactdp.train.calibration import Plan, plan
from exactdp.train.data import Dataset
from exactdp.train.network import Network
from exactdp.train.optimiser import Optimiser
from exactdp.train.settings import Settings, whole
from exactdp.train.task import Task

_NONE = Augmentation()


@dataclasses.dataclass(frozen=True)
class Prepared:
    """A run that is ready to start; nothing has been written yet.

    Attributes:
      settings: what was asked for.
      plan: what follows from it.
      task: the method on its model.
      data: what it is trained on.
    """

    settings: Settings
    plan: Plan
    task: Task
    data: Dataset


def prepare(
    settings: Settings,
    *,
    data: Dataset,
    model: str,
    bfloat16: bool = False,
    accumulation: int = 1,
    augmentation: Augmentation = _NONE,
) -> Prepared:
    """Solves for the noise and builds the task.

    Args:
      settings: what was asked for.
      data: training and test set.
      model: name of the model.
      bfloat16: whether the model computes in bfloat16.
      accumulation: in how many parts a batch is computed; dpsgd, label_public and nonprivate only.
      augmentation: random views of each record; more than one for the same methods only.

    Raises:
      ValueError: bad input, or a target that cannot be reached.
      ArithmeticError: no value could be certified.
    """
    require_fitting(settings, accumulation=accumulation, augmentation=augmentation)
    augmentation.require_shape(data.input_shape)
    network = Network(model, data.input_shape, data.num_classes, bfloat16)
    found = plan(settings, num_records=len(data.y), num_classes=data.num_classes)
    return Prepared(settings, found, _task(settings, found, network, accumulation, augmentation), data)


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
) -> loop.Result:
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
    return loop.run(
        prepared.task,
        data=prepared.data,
        options=made,
        out=out,
        key=None if seed is None and resume else keys.run_key(seed),
        resume=resume,
        settings=settings.as_dict() | {"dataset": prepared.data.name} | dict(described or {}),
        announce=announce,
    )


def _task(
    settings: Settings, found: Plan, network: Network, accumulation: int, augmentation: Augmentation
) -> Task:
    common: dict[str, Any] = {
        "certificate": found.certificate,
        "sampler": found.sampler,
        "augmentation": augmentation,
    }
    if settings.method == "nonprivate" or found.noise is None:
        return nonprivate.task(network, **common, accumulation=accumulation)
    if settings.method == "dirichlet":
        return dirichlet.task(network, **common, scaling=found.noise, offset=settings.alpha)
    common |= {"noise_multiplier": found.noise, "clip_norm": settings.clip}
    if settings.method == "gaussian_features":
        return gaussian_features.task(network, **common)
    return dpsgd.task(
        network,
        **common,
        name=settings.method,
        accumulation=accumulation,
        expected_batch_size=found.sampler.num_records * found.sampler.sampling_probability,
    )
