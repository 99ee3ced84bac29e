"""DP-SGD on real records, some of which are canaries: what one ordinary training run shows."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np

from exactdp.benchmarks.training_audit import dpsgd
from exactdp.benchmarks.training_audit.attack import Attack
from exactdp.benchmarks.training_audit.options import Options, RealData
from exactdp.train import data
from exactdp.train.attacks.likelihood_ratio import Projection
from exactdp.train.classification import Classification
from exactdp.train.data import Dataset
from exactdp.train.network import Network
from exactdp.train.task import Records


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
    # Half of the canaries are in, so that this many records are expected in a batch: a public constant.
    divisor = max(1.0, options.sampling_probability * (len(rest) + options.trials / 2.0))
    return dpsgd.attack(
        options,
        objective,
        canaries=canaries,
        rest=_flat(dataset.x[rest], dataset.y[rest]),
        made=lambda count: dpsgd.task(objective, options, num_records=count, divisor=divisor),
        score=Projection,
        rate=real.learning_rate,
        divisor=divisor,
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
