"""DP-SGD in the worst case: records with a feature of their own, in or out."""

from __future__ import annotations

import functools
from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np

from exactdp.accounting.prv import Composition
from exactdp.benchmarks.training_audit import attack as attacks
from exactdp.benchmarks.training_audit.attack import CLIP_NORM, SIGNAL, Attack, Claim
from exactdp.benchmarks.training_audit.options import Options
from exactdp.mechanisms.batches import Poisson
from exactdp.train import calibration, certificates, dpsgd
from exactdp.train.attacks.likelihood_ratio import Canaries, NegativeLoss, Ratio, Released
from exactdp.train.attacks.transcripts import Increment
from exactdp.train.classification import Classification
from exactdp.train.network import Network
from exactdp.train.objective import Objective
from exactdp.train.task import Records, Task

SOURCE = "1607.00133"


def many_runs(options: Options) -> Attack:
    """One canary beside ten records, in or out: add/remove neighbours that attain the dominating pair.

    The canary's gradient lies along the weights of a feature that no other record has, and is longer than
    the clip norm; weights start at 0 and hardly move, so that it stays so. What a step releases along it is
    N(0, s^2) or N(1, s^2) in clip norms, mixed by the coin.

    Args:
      options: all of it.
    """
    options.require_runs()
    canary = Records(jnp.asarray([[0.0, SIGNAL]], jnp.float32), jnp.zeros(1, jnp.int32))
    return _worst_case(options, canary, attacks.others(width=2))


def one_run(options: Options) -> Attack:
    """As many canaries as there are trials, each with a feature of its own that no other record has.

    Args:
      options: all of it.
    """
    options.require_canaries()
    count = options.trials
    x = np.zeros((count, count + 1), np.float32)
    x[np.arange(count), np.arange(count) + 1] = SIGNAL
    canaries = Records(jnp.asarray(x), jnp.arange(count, dtype=jnp.int32) % 2)
    return _worst_case(options, canaries, attacks.others(width=count + 1))


def task(objective: Objective, options: Options, *, num_records: int, divisor: float = 1.0) -> Task:
    """DP-SGD as `exactdp train dpsgd` runs it.

    Args:
      objective: model and loss.
      options: noise, sampling, steps.
      num_records: n.
      divisor: of the sums, a public constant > 0.
    """
    sampler = _sampler(options, num_records)
    return dpsgd.task(
        objective,
        certificate=certificates.dpsgd(options.noise_multiplier, sampler=sampler),
        sampler=sampler,
        noise_multiplier=options.noise_multiplier,
        clip_norm=CLIP_NORM,
        expected_batch_size=divisor,
    )


def attack(
    options: Options,
    objective: Classification,
    *,
    canaries: Records,
    rest: Records,
    made: Callable[[int], Task],
    score: Callable[[Released, Canaries], Increment],
    rate: float,
    divisor: float = 1.0,
) -> Attack:
    """An attack on DP-SGD whose canaries are in or out.

    Args:
      options: noise, sampling, steps.
      objective: model and loss, without augmentation.
      canaries: flat, one a row.
      rest: the records that are always there, likewise.
      made: number of records -> the task, with the same `divisor`.
      score: what a step adds to the score from all weights.
      rate: learning rate of the runs.
      divisor: of the sums, a public constant > 0.
    """
    shaped = canaries._replace(x=canaries.x.reshape(-1, *objective.input_shape))
    examples = objective.examples(shaped, key=jax.random.key(0))  # nothing is random without augmentation
    num_records = len(rest.y) + len(canaries.y)
    known = _claims(options, num_records=num_records)

    def compositions(noise: float) -> Composition:
        step = certificates.dpsgd(noise, sampler=_sampler(options, num_records))
        return step.composition(options.num_steps)

    return Attack(
        name="dpsgd",
        source=SOURCE,
        canaries=canaries,
        rest=rest,
        instead=None,
        task=functools.cache(made),
        along=score(
            attacks.released(options, divisor=divisor, rate=rate), Canaries(objective.losses, examples)
        ),
        loss=NegativeLoss(objective.losses, examples),
        learning_rate=rate,
        threat_model=known["exact"].threat_model,
        compositions=compositions,
        claims=known,
        certified="exact",
    )


def _worst_case(options: Options, canaries: Records, rest: Records) -> Attack:
    objective = Classification(Network("linear", (canaries.x.shape[1],), 2))
    return attack(
        options,
        objective,
        canaries=canaries,
        rest=rest,
        made=lambda count: attacks.from_zero(task(objective, options, num_records=count)),
        score=Ratio,
        rate=attacks.learning_rate(options),
    )


def _claims(options: Options, *, num_records: int) -> dict[str, Claim]:
    """The certified epsilon.

    Raises:
      ValueError: there is too little noise for one.
    """
    made = certificates.dpsgd(options.noise_multiplier, sampler=_sampler(options, num_records))
    try:
        epsilon = made.epsilon(options.num_steps, delta=options.delta)
    except ArithmeticError:
        options.refuse_noise()
    return {"exact": Claim("exact", epsilon, made.threat_model)}


def _sampler(options: Options, num_records: int) -> Poisson:
    room = calibration.capacity(
        num_records,
        sampling_probability=options.sampling_probability,
        num_steps=options.num_steps,
        delta=options.delta,
    )
    return Poisson(num_records, options.sampling_probability, min(room, num_records))
