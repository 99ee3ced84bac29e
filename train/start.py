"""One run from flags to result: everything is checked before the folder is touched."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from pathlib import Path

import jax

from exactdp.accounting import validate
from exactdp.train import data, folder, loop, methods, models, parallel
from exactdp.train.augmentation import Augmentation
from exactdp.train.generative import UNET, Generative
from exactdp.train.optimiser import Optimiser
from exactdp.train.result import Result
from exactdp.train.settings import Settings, whole

_SMALL_SIDE = 16


@dataclasses.dataclass(frozen=True)
class Start:
    """A run as the command line describes it.

    Attributes:
      settings: the method and its privacy.
      out: folder of the run.
      dataset: name of a data set, as `exactdp.train.data.load` takes it.
      model: name of a model, or unet; None for cnn, or mlp where a side of the images is below 16.
      optimizer: "sgd", "adam" or "adamw".
      schedule: "constant", "cosine" or "linear".
      momentum: of sgd.
      weight_decay: of adamw.
      ema_decay: of the moving average of the weights; None for none.
      accumulation: in how many parts a batch is computed.
      augmentation: random views of a record in a step.
      padding: pixels by which a view may be shifted.
      flip: whether views are mirrored at random.
      draws: of noise, a record and step, for unet.
      conditional: whether unet is told the class.
      devices: how many devices share a batch; with several processes, all of them do.
      coordinator: host:port of the first of several processes; None for one process.
      num_processes: how many processes there are.
      process_id: which this one is, from 0.
      checkpoint_every: steps between checkpoints; None for a 20th of the run.
      report_every: steps between rows of the metrics; None for a 20th of the run.
      seed: of the run key, or None.
      bfloat16: whether activations are computed in bfloat16.
      split_parameters: whether the devices split the parameters.
      private_metrics: whether losses and batch sizes are written too.
      resume: whether to go on with the run in `out`.

    Raises:
      ValueError: a value is out of range or contradicts another, or the folder cannot be used; nothing was
        touched.
    """

    settings: Settings
    out: str
    dataset: str = "digits"
    model: str | None = None
    optimizer: str = "sgd"
    schedule: str = "constant"
    momentum: float = 0.0
    weight_decay: float = 0.0
    ema_decay: float | None = None
    accumulation: int = 1
    augmentation: int = 1
    padding: int = 0
    flip: bool = False
    draws: int = 1
    conditional: bool = False
    devices: int = 1
    coordinator: str | None = None
    num_processes: int = 1
    process_id: int = 0
    checkpoint_every: int | None = None
    report_every: int | None = None
    seed: int | None = None
    bfloat16: bool = False
    split_parameters: bool = False
    private_metrics: bool = False
    resume: bool = False

    def __post_init__(self) -> None:
        if self.model is not None:
            validate.one_of("model", self.model, (*models.NAMES, UNET))
        self._generative()
        self._options(1, 1.0)
        methods.require_fitting(
            self.settings,
            optimiser=self._optimiser(1.0),
            accumulation=self.accumulation,
            augmentation=self._augmentation(),
        )
        if self.seed is not None:
            if validate.count("seed", self.seed) >= 2**64:  # as `mechanisms.keys.run_key`, without JAX
                raise ValueError(f"seed must be < 2^64, got {self.seed:g}")
        data.require_known(self.dataset)
        self._check_processes()
        if self.coordinator is None:
            parallel.make(self.devices)
        else:  # the first process looks at the folder when all are there
            parallel.connect(self.coordinator, num_processes=self.num_processes, process_id=self.process_id)
            object.__setattr__(self, "devices", jax.device_count())
        if parallel.is_first():
            (folder.require_run if self.resume else folder.require_fresh)(Path(self.out))

    def _check_processes(self) -> None:
        """Several processes take a coordinator, a number and a place each; one takes none of them."""
        count = whole("num_processes", self.num_processes, minimum=1)
        place = whole("process_id", self.process_id, minimum=0)
        if self.coordinator is None:
            for name, value, alone in (("num_processes", count, 1), ("process_id", place, 0)):
                if value != alone:
                    raise ValueError(f"{name} must be left out where coordinator is not given, got {value}")
            if self.split_parameters and self.devices == 1:
                raise ValueError("split_parameters must be left out with one device, got devices 1")
            return
        host, _, port = self.coordinator.rpartition(":")
        if not host or not port.isdecimal() or not 0 < int(port) < 2**16:
            raise ValueError(f"coordinator must be host:port, got {self.coordinator!r}")
        if count < 2:
            raise ValueError(f"num_processes must be 2 at least where coordinator is given, got {count}")
        if place >= count:
            raise ValueError(f"process_id must be below num_processes {count}, got {place}")
        if self.devices != 1:
            raise ValueError(
                "devices must be left out where coordinator is given, as all devices of all processes share "
                f"a batch, got {self.devices}"
            )

    def prepare(self) -> methods.Prepared:
        """Loads the data, solves for the noise, builds the task.

        Raises:
          ValueError: bad data, or a target that cannot be reached.
          ArithmeticError: no value could be certified.
        """
        found = data.load(self.dataset)
        return methods.prepare(
            self.settings,
            data=found,
            model=self.model or _default_model(found.input_shape),
            bfloat16=self.bfloat16,
            accumulation=int(self.accumulation),
            augmentation=self._augmentation(),
            generative=self._generative(),
        )

    def carry_out(self, prepared: methods.Prepared, *, announce: Callable[[], None] | None = None) -> Result:
        """Trains; see `exactdp.train.loop.run` for `announce` and for what it raises."""
        return methods.run(
            prepared,
            out=Path(self.out),
            seed=self.seed,
            resume=self.resume,
            options=self._options(prepared.plan.num_steps, prepared.plan.learning_rate),
            described={
                "model": self.model,
                "bfloat16": self.bfloat16,
                "accumulation": self.accumulation,
                "augmentation": dataclasses.asdict(self._augmentation()),
                **({} if self.model != UNET else {"generative": dataclasses.asdict(self._generative())}),
            },
            announce=announce,
        )

    def _augmentation(self) -> Augmentation:
        return Augmentation(self.augmentation, self.padding, self.flip)

    def _generative(self) -> Generative:
        return Generative(self.draws, self.conditional)

    def _optimiser(self, learning_rate: float) -> Optimiser:
        return Optimiser(
            self.optimizer, learning_rate, self.schedule, float(self.momentum), float(self.weight_decay)
        )

    def _options(self, num_steps: int, learning_rate: float) -> loop.Options:
        return loop.Options(
            num_steps=num_steps,
            delta=self.settings.delta,
            optimiser=self._optimiser(learning_rate),
            ema_decay=self.ema_decay,
            checkpoint_every=self.checkpoint_every,
            report_every=self.report_every,
            devices=self.devices,
            split_parameters=self.split_parameters,
            private_metrics=self.private_metrics,
        )


def _default_model(input_shape: tuple[int, ...]) -> str:
    return "cnn" if len(input_shape) == 3 and min(input_shape[:2]) >= _SMALL_SIDE else "mlp"
