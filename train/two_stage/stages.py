"""The two stages as tasks of the common loop."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Int

from exactdp.mechanisms import keys
from exactdp.mechanisms.batches.shuffled import Shuffled
from exactdp.train import dpsgd, folder, loop, nonprivate
from exactdp.train.gpt2 import lora
from exactdp.train.gpt2 import model as gpt2
from exactdp.train.optimiser import Optimiser
from exactdp.train.result import Result
from exactdp.train.state import Parameters
from exactdp.train.task import Task
from exactdp.train.two_stage import plan as plans
from exactdp.train.two_stage.language import Language
from exactdp.train.two_stage.plan import Plan
from exactdp.train.two_stage.rows import TokenRows
from exactdp.train.two_stage.settings import TwoStageSettings

_BYTES, _MOST_BYTES, _FEWEST_ROWS = 4, 2**25, 8
_WEIGHT_DECAY = 0.01  # of torch's AdamW, with which the released code trains

Initialise = Callable[[jax.Array], Parameters]

PUBLISHED_END = 6_650 / 9_660
"""Share of the steps after which the released scheduler's rate is 0 (Adult; released code and logs)."""


def carry_out(
    task: Task,
    *,
    rows: TokenRows,
    optimiser: Optimiser,
    num_steps: int,
    delta: float,
    out: Path,
    key: jax.Array,
    described: dict[str, object],
    progress: bool,
    devices: int = 1,
) -> Result:
    """A stage on the loop: begun, or gone on with where its folder holds a run.

    Args:
      task: of the stage.
      rows: trained on, and measured on.
      optimiser: makes the updates.
      num_steps: of the stage.
      delta: at which epsilon is reported.
      out: folder of the stage.
      key: its run key.
      described: what a resumed run must have in common.
      progress: whether to show a bar.
      devices: how many share a batch.

    Raises:
      ValueError, OSError, Interrupted: as `loop.run`.
    """
    options = loop.Options(
        num_steps=num_steps, delta=delta, optimiser=optimiser, progress=progress, devices=devices
    )
    return loop.run(
        task,
        data=rows,
        options=options,
        out=out,
        key=jax.random.clone(key),  # the loop's steps consume theirs
        resume=(out / folder.RUN).is_file(),
        settings=described,
    )


def first(
    settings: TwoStageSettings, language: Language, rows: TokenRows, *, initialise: Initialise, reason: str
) -> tuple[Task, Optimiser, int]:
    """Stage 1: the mean loss over all tokens of rows that hold nothing private.

    Args:
      settings: its steps and learning rate.
      language: the model.
      rows: public, or drawn from released statistics.
      initialise: where it starts.
      reason: what they are, in a sentence.
    """
    # Nothing is private here, so that batches need no coins, and no room for large ones.
    sampler = Shuffled(len(rows.x), min(int(settings.first_batch_size), len(rows.x)))
    steps = plans.FIRST_EPOCHS * sampler.num_batches if settings.first_steps is None else settings.first_steps
    objective = language.objective(start=initialise, value_weight=None)
    task = nonprivate.task(objective, certificate=plans.free(reason=reason), sampler=sampler)
    optimiser = Optimiser("adamw", settings.first_learning_rate, "linear", weight_decay=_WEIGHT_DECAY)
    return dataclasses.replace(task, name="two_stage, stage 1"), optimiser, int(steps)


@dataclasses.dataclass(frozen=True, eq=False)
class Second:
    """Stage 2, ready for the loop.

    Attributes:
      task: DP-SGD on the private rows, or plain training without privacy.
      optimiser: makes the updates.
      whole: what was trained -> all weights of the model.
    """

    task: Task
    optimiser: Optimiser
    whole: Callable[[Parameters], Parameters]


def second(
    settings: TwoStageSettings, language: Language, plan: Plan, *, initialise: Initialise, key: jax.Array
) -> Second:
    """Stage 2. With a rank, low-rank pairs beside stage 1's weights are all that is trained.

    Args:
      settings: clip norm, learning rate and weights of the loss.
      language: the model.
      plan: noise and certificate.
      initialise: where it starts.
      key: of the pairs.
    """
    objective = language.objective(start=initialise, value_weight=settings.value_weight)
    whole = _same
    if settings.lora_rank is not None:
        rank = int(settings.lora_rank)
        graph, pairs, frozen = lora.attach(language.graph, initialise(key), rank=rank, key=key)
        objective = dataclasses.replace(
            objective,
            start=lambda _: jax.tree.map(jnp.array, pairs),
            logits=lambda params, rows: gpt2.logits(graph, lora.join(params, frozen), rows),
        )
        whole = functools.partial(_merged, graph, frozen)
    parts = _parts(language, plan.sampler.capacity)
    if plan.noise is None:
        task = nonprivate.task(
            objective, certificate=plan.certificate, sampler=plan.sampler, accumulation=parts
        )
    else:
        task = dpsgd.task(
            objective,
            certificate=plan.certificate,
            sampler=plan.sampler,
            noise_multiplier=plan.noise,
            clip_norm=settings.clip_norm,
            expected_batch_size=plan.sampler.expected_size,
            accumulation=parts,
        )
    end = PUBLISHED_END if settings.as_published else 1.0
    optimiser = Optimiser(
        "adamw", settings.learning_rate, "linear", weight_decay=_WEIGHT_DECAY, decay_end=end
    )
    return Second(dataclasses.replace(task, name="two_stage"), optimiser, whole)


def _parts(language: Language, capacity: int) -> int:
    """In how many parts a batch is computed: of each, logits or hidden activations take 32 MiB at most.

    A step with its gradients then holds ten times as much beside the weights. Parts of eight rows are the
    smallest, as products of fewer are slow; of a model of GPT-2's size a part takes more.
    """
    config = language.config
    numbers = language.length * max(config.vocabulary, config.layers * config.inner)
    return -(-capacity // max(_FEWEST_ROWS, _MOST_BYTES // (numbers * _BYTES)))


def _same(params: Parameters) -> Parameters:
    return params


def _merged(graph: gpt2.Graph, frozen: Parameters, pairs: Parameters) -> Parameters:
    return lora.merged(graph, pairs, frozen)[1]


def first_key(key: jax.Array) -> jax.Array:
    """Run key of stage 1."""
    return keys.step_key(key, step=0, purpose="first_stage")


def generator(key: jax.Array, *, number: int) -> np.random.Generator:
    """A NumPy generator for what is drawn on the host, from the run key.

    Args:
      key: the run key.
      number: of the use.
    """
    words = jax.random.key_data(keys.step_key(key, step=number, purpose="statistics"))
    return np.random.default_rng([int(word) for word in words])


def token_rows(
    language: Language, *, rows: Int[np.ndarray, "rows columns"], others: Int[np.ndarray, "m columns"]
) -> TokenRows:
    """Rows of the schema as tokens, with those that the loss is measured on.

    Args:
      language: the model.
      rows: trained on.
      others: measured on. The loss on them is written to the metrics: no row that is trained on.
    """
    encoded = language.encoded(rows), language.encoded(others)
    return TokenRows(*encoded, language.config.vocabulary, "table")
