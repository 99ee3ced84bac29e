"""DP-SGD on real records, some of which are canaries: what one ordinary training run shows."""

from __future__ import annotations

import functools

import jax
import jax.numpy as jnp
import numpy as np

from exactdp.accounting.prv import Composition
from exactdp.benchmarks.training_audit import attack as attacks
from exactdp.benchmarks.training_audit import dpsgd
from exactdp.benchmarks.training_audit.attack import Attack
from exactdp.benchmarks.training_audit.options import Options, RealData
from exactdp.train import data
from exactdp.train.attacks.likelihood_ratio import Canaries, NegativeLoss, Projection
from exactdp.train.classification import Classification
from exactdp.train.data import Dataset
from exactdp.train.network import Network
from exactdp.train.task import Records, Task


def one_run(options: Options, real: RealData) -> Attack:
    """As many canaries as there are trials, drawn once and for all from the seed, among real records.

    Args:
      options: noise, sampling, steps, number of canaries.
      real: data set, model, kind of canary.

    Raises:
      ValueError: there are fewer records than canaries and one more.
    """
    options.require_canaries()
    dataset = data.load(real.dataset)
    if options.trials >= len(dataset.x):
        raise ValueError(
            f"trials must be below the {len(dataset.x)} records of {real.dataset}, got {options.trials}"
        )
    rng = np.random.default_rng(options.seed)
    order = rng.permutation(len(dataset.x))
    chosen, rest = order[: options.trials], order[options.trials :]
    canaries = _canaries(dataset, chosen, real.canary, rng)
    objective = Classification(Network(real.model, dataset.input_shape, dataset.num_classes))
    examples = objective.examples(
        Records(canaries.x.reshape(-1, *dataset.input_shape), canaries.y), key=jax.random.key(0)
    )
    # Half of the canaries are in, so that this many records are expected in a batch: a public constant.
    divisor = max(1.0, options.sampling_probability * (len(rest) + options.trials / 2.0))
    num_records = len(dataset.x)
    known = dpsgd.claims(options, num_records=num_records)

    @functools.cache
    def made(count: int) -> Task:
        return dpsgd.task(objective, options, num_records=count, divisor=divisor)

    def compositions(noise: float) -> Composition:
        step = dpsgd.certificate(options, noise_multiplier=noise, num_records=num_records)
        return step.composition(options.num_steps)

    return Attack(
        name="dpsgd",
        source=dpsgd.SOURCE,
        canaries=canaries,
        rest=_flat(dataset.x[rest], dataset.y[rest]),
        instead=None,
        task=made,
        along=Projection(
            attacks.released(options, divisor=divisor, rate=real.learning_rate),
            Canaries(objective.losses, examples),
        ),
        loss=NegativeLoss(objective.losses, examples),
        learning_rate=real.learning_rate,
        threat_model=known["exact"].threat_model,
        compositions=compositions,
        claims=known,
        certified="exact",
    )


def _canaries(dataset: Dataset, chosen: np.ndarray, kind: str, rng: np.random.Generator) -> Records:
    x, y = dataset.x[chosen], dataset.y[chosen]
    if kind == "random":
        low, high = float(dataset.x.min()), float(dataset.x.max())
        x = rng.uniform(low, high, x.shape).astype(np.float32)
    other = (y + rng.integers(1, dataset.num_classes, len(y))) % dataset.num_classes
    return _flat(x, other.astype(np.int32))


def _flat(x: np.ndarray, y: np.ndarray) -> Records:
    return Records(jnp.asarray(x.reshape(len(x), -1)), jnp.asarray(y, jnp.int32))
