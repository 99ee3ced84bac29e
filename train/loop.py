"""The one training loop: announce, step, save, measure; stop, and go on where it stopped.

The order that keeps the ledger honest: a block of steps is in the ledger, on the disk, before the first of
them draws its noise; at its end the state is saved; the next block is announced after that (`reservation`).

A run that was killed at any moment, or that met a full disk, goes on from its last checkpoint. As all random
numbers are functions of the run key and the step, it ends with the parameters, bit for bit, of the run that
was never stopped, on the same machine and versions.
"""

from __future__ import annotations

import contextlib
import dataclasses
import math
import secrets
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from tqdm import tqdm

from exactdp.accounting import validate
from exactdp.accounting.interval import Interval
from exactdp.accounting.ladder import rung
from exactdp.accounting.ledger import Ledger
from exactdp.mechanisms import keys
from exactdp.train import folder, metrics, parallel
from exactdp.train.budget import Budget
from exactdp.train.checkpoints import Checkpoints, NotSaved
from exactdp.train.data.training import TrainingData
from exactdp.train.interrupt import Interrupted, Watch
from exactdp.train.optimiser import Optimiser
from exactdp.train.records import digest
from exactdp.train.reservation import Blocks, Reservation, seal
from exactdp.train.result import Result
from exactdp.train.settings import whole
from exactdp.train.state import State, initial
from exactdp.train.step import Outcome, compile_step
from exactdp.train.task import Records, Task


@dataclasses.dataclass(frozen=True)
class Options:
    """How a run is carried out.

    Attributes:
      num_steps: steps of the whole run, >= 1.
      delta: at which epsilon is shown and reported, in (0, 1).
      optimiser: what makes updates of gradients.
      ema_decay: of the moving average of the weights, in (0, 1); None for none.
      checkpoint_every: steps between checkpoints, and announced at once, >= 1; None for a 20th of the run.
      report_every: steps between rows of the metrics, >= 1; None for a 20th of the run.
      devices: how many devices share a batch.
      split_parameters: whether they split the parameters too.
      private_metrics: whether metrics.csv also gets losses, batch sizes and the like, which no certificate
        covers.
      progress: whether to show a bar on stderr.

    Raises:
      ValueError: an argument is outside its range.
    """

    num_steps: int
    delta: float
    optimiser: Optimiser
    ema_decay: float | None = None
    checkpoint_every: int | None = None
    report_every: int | None = None
    devices: int = 1
    split_parameters: bool = False
    private_metrics: bool = False
    progress: bool = True

    def __post_init__(self) -> None:
        validate.count("num_steps", self.num_steps, minimum=1)
        validate.open_probability("delta", self.delta)
        if self.ema_decay is not None:
            validate.open_probability("ema_decay", self.ema_decay)
        for name in ("checkpoint_every", "report_every"):
            if getattr(self, name) is not None:
                whole(name, getattr(self, name), minimum=1)
        validate.count("devices", self.devices, minimum=1)

    def every(self, name: str) -> int:
        """The interval of that name, a 20th of the run where none is set."""
        value: int | None = getattr(self, name)
        return -(-int(self.num_steps) // 20) if value is None else int(value)


def run(
    task: Task,
    *,
    data: TrainingData,
    options: Options,
    out: Path,
    key: jax.Array | None,
    resume: bool = False,
    settings: Mapping[str, Any] | None = None,
    announce: Callable[[], None] | None = None,
) -> Result:
    """Trains, from the start or from the last checkpoint.

    Args:
      task: the method and its model.
      data: what it is trained and tested on.
      options: how.
      out: the folder of the run; created unless `resume`.
      key: the run key, typed (`exactdp.mechanisms.keys.run_key`), as secret as the data. May be None when
        `resume` is set: it is in the checkpoint.
      resume: go on with the run in `out`.
      settings: JSON to describe the run with; a run is resumed under the same settings only.
      announce: called once, before the first step, when nothing is left that could be refused.

    Returns:
      The result; result.json and weights.npz in `out`.

    Raises:
      ValueError: bad input, before any file is touched; or a ledger, checkpoint, data set or setting that is
        not the one the run was started with.
      NotSaved: a checkpoint could not be written. The run can be resumed from the last one.
      OSError: the disk refuses something else. Likewise.
      Interrupted: by Ctrl-C, after the state was saved.
    """
    start = time.perf_counter()
    if parallel.is_first():
        if resume:
            folder.require_run(out)
        else:
            folder.require_fresh(out, ledger=bool(task.certificate.before))
    if key is None and not resume:
        raise ValueError("key must be given unless resume is set, got None")
    layout = parallel.make(options.devices, split_parameters=options.split_parameters)
    described = _describe(task, options, settings or {})
    if resume:
        folder.require_same(out, described)
    # Without a seed, a key that is replaced by the checkpoint's.
    fresh = _first_state(task, options, parallel.agreed(keys.run_key(None) if key is None else key))
    if not resume:
        _check(task, data, fresh)
        if parallel.is_first():
            folder.create(out, described)
    with contextlib.ExitStack() as stack:
        path = out / folder.LEDGER
        if parallel.is_first():
            ledger = stack.enter_context(Ledger(path, threat_model=task.certificate.threat_model))
            parallel.meet("the ledger is open")
        else:
            parallel.meet("the ledger is open")
            ledger = Ledger.load(path)
        loop = _Loop(task, data, options, out, layout, ledger, folder.description(out)["run"])
        stack.callback(loop.checkpoints.close)
        state = loop.begin(layout.placed(fresh), known_key=key is not None)
        if announce is not None:
            announce()
        state = loop.train(state)
        return loop.finish(state, seconds=time.perf_counter() - start)


class _Loop:
    """The parts of one call of `run`."""

    def __init__(
        self,
        task: Task,
        data: TrainingData,
        options: Options,
        out: Path,
        layout: parallel.Layout,
        ledger: Ledger,
        name: str,
    ) -> None:
        self.task, self.data, self.options, self.out, self.layout = task, data, options, out, layout
        self.ledger = ledger
        blocks = Blocks(options.num_steps, options.every("checkpoint_every"))
        self.blocks = blocks
        self.reservation = Reservation(
            ledger, certificate=task.certificate, blocks=blocks, title=f"{task.name} {name}"
        )
        self.checkpoints = Checkpoints(out / folder.CHECKPOINTS)
        self.budget = Budget(task.certificate, num_steps=options.num_steps, delta=options.delta)
        self.digest = digest(data)
        self.x_test = data.x_test
        self.begun = time.perf_counter()

    def begin(self, fresh: State, *, known_key: bool) -> State:
        """The first state, saved, or the last one that was."""
        if self.checkpoints.latest() is None and len(self.ledger) <= len(self.task.certificate.before):
            if not known_key:
                raise ValueError(
                    f"seed must be the one that the run in {self.out} was started with: it was stopped "
                    "before its first checkpoint, which holds the key. No step was taken: if it had none, "
                    "remove the folder and start anew, without resume"
                )
            self.save(fresh)
            return fresh
        state, record = self.checkpoints.restore(fresh)
        if known_key and not bool(jnp.all(jax.random.key_data(state.key) == jax.random.key_data(fresh.key))):
            raise ValueError(
                "seed must be the one that the run was started with, or be left out, got another"
            )
        if record["data"] != self.digest:
            raise ValueError(
                f"data must be what the run was started with, got another {self.data.name}: the same noise "
                "on other data would give both away"
            )
        self.reservation.require_match(int(state.step), record["ledger"])
        return state

    def save(self, state: State) -> None:
        """Saves a state with what the ledger is now."""
        before = self.checkpoints.latest()
        if before == int(state.step):
            return
        try:
            self.checkpoints.save(state, record={"ledger": seal(self.ledger.path), "data": self.digest})
        except NotSaved as error:
            raise NotSaved(
                f"{error}; the run in {self.out} can be resumed from step {before or 0}, once there is room"
            ) from error

    def train(self, state: State) -> State:
        """All steps that are left."""
        options, first = self.options, int(state.step)
        step = compile_step(
            self.task,
            options.optimiser,
            num_steps=int(options.num_steps),
            ema_decay=options.ema_decay,
            layout=self.layout,
        )
        flat = self.data.x.reshape(len(self.data.x), -1)
        data = Records(self.layout.shared(flat), self.layout.shared(self.data.y))
        private = ("batch_size", "loss") if options.private_metrics else ()
        columns = (*metrics.public(self.task.metric), *private)
        rate, report = options.optimiser.rate(options.num_steps), options.every("report_every")
        with (
            self._table(columns, first) as table,
            # One of several processes cannot stop by itself: there the last checkpoint has to do.
            Watch(active=jax.process_count() == 1) as watch,
            self._bar(first) as bar,
        ):
            before: Outcome | None = None
            for number in range(first, options.num_steps):
                self._cover(number, first)
                state, outcome = step(state, data)
                # One step ahead of the device and no more, so that an interrupt is soon heard.
                jax.block_until_ready(before)
                before, done = outcome, number + 1
                bar.update()
                last = done == options.num_steps
                if done % report == 0 or last:
                    epsilon = self.budget.upper(self.reservation.announced)
                    if math.isfinite(epsilon):
                        bar.set_postfix_str(f"epsilon <= {epsilon:.4g} at delta {options.delta:g}")
                    row = self._row(state, outcome, epsilon, rate(number))
                    if table is not None:
                        table.write(row)
                if done % self.blocks.length == 0 or last or watch.asked:
                    self.save(state)
                if watch.asked and not last:
                    raise Interrupted(
                        f"interrupted after step {done} of {options.num_steps}; the state is saved in "
                        f"{self.out}, from where it goes on when resumed"
                    )
        return state

    def _cover(self, number: int, first: int) -> None:
        """Announces a step, on all processes before any of them draws its noise."""
        if parallel.is_first():
            self.reservation.cover(number)
        if number == first or number % self.blocks.length == 0:
            parallel.meet(f"step {number} is announced")

    def _table(
        self, columns: tuple[str, ...], first: int
    ) -> contextlib.AbstractContextManager[metrics.Metrics | None]:
        if not parallel.is_first():
            return contextlib.nullcontext()
        private = self.options.private_metrics
        return metrics.Metrics(self.out, columns=columns, step=first, private=private)

    def _bar(self, first: int) -> tqdm[Any]:
        shown = self.options.progress and parallel.is_first()
        return tqdm(total=self.options.num_steps, initial=first, disable=not shown, unit="step")

    def _row(
        self, state: State, outcome: Outcome, epsilon: float, rate: float
    ) -> dict[str, float | int | None]:
        private = {name: float(value) for name, value in outcome.private.items()}
        values: dict[str, float | int | None] = {
            "step": int(state.step),
            "epsilon": epsilon if math.isfinite(epsilon) else None,  # nothing is certified
            "learning_rate": rate,
            "gradient_norm": float(outcome.gradient_norm),
            self.task.metric: self.task.measure(state.weights, self.x_test, self.data.y_test),
            "seconds": round(time.perf_counter() - self.begun, 3),
        }
        return values | (private if self.options.private_metrics else {})

    def finish(self, state: State, *, seconds: float) -> Result:
        """Measures, writes result and weights."""
        parallel.meet("the last step is done")
        epsilon = Ledger.load(self.ledger.path).epsilon(delta=self.options.delta)
        if not isinstance(epsilon, Interval):
            raise ArithmeticError(f"epsilon must be a certified interval, got {epsilon}")
        result = Result(
            metric=self.task.metric,
            measured=self.task.measure(state.weights, self.x_test, self.data.y_test),
            epsilon=epsilon,
            delta=self.options.delta,
            threat_model=self.task.certificate.threat_model,
            steps=int(state.step),
            seconds=seconds,
            run=self.out,
            state=state,
        )
        weights = self.layout.gathered(state.weights)
        if parallel.is_first():
            folder.write_weights(self.out, weights)
            record = result.as_dict() | {"epsilon": rung.encode(epsilon)}
            folder.write_json(self.out / folder.RESULT, record)
        return result


def _describe(task: Task, options: Options, settings: Mapping[str, Any]) -> dict[str, Any]:
    asked = dataclasses.asdict(options)
    for name in ("progress", "devices", "split_parameters"):  # they may change from one call to the next
        del asked[name]
    asked |= {name: options.every(name) for name in ("checkpoint_every", "report_every")}
    certificate = task.certificate
    return {
        "run": secrets.token_hex(6),
        "method": task.name,
        "num_records": task.sampler.num_records,
        "certificate": {
            "rung": certificate.rung,
            "mechanisms": [repr(mechanism) for mechanism in certificate.mechanisms],
            "threat_model": certificate.threat_model.as_dict(),
            "statement": certificate.statement,
        },
        "options": asked,
        "settings": dict(settings),
    }


def _first_state(task: Task, options: Options, key: jax.Array) -> State:
    params = task.initialise(keys.step_key(key, step=0, purpose="init"))
    optimiser = options.optimiser.build(options.num_steps)
    return initial(params, optimiser=optimiser, average=options.ema_decay is not None, key=key)


def _check(task: Task, data: TrainingData, state: State) -> None:
    """The task's own check, on two made-up records: nothing of the data is looked at but its shape."""
    key = keys.step_key(state.key, step=0, purpose="evaluation")
    words = jax.random.key_data(key)
    x, y = data.made_up(np.random.default_rng([int(word) for word in words]))
    task.check(state.params, Records(jnp.asarray(x), jnp.asarray(y)))
