"""Algorithm 1 of arXiv 2506.19836 in the worst case: a private feature with one sign or the other."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Mapping

import jax
import jax.numpy as jnp

from exactdp.accounting.interval import Interval
from exactdp.accounting.ladder import feature as ladder
from exactdp.accounting.ladder import feature_setting
from exactdp.accounting.ladder.feature_setting import Setting
from exactdp.accounting.ladder.rung import Rung
from exactdp.accounting.prv import Composition
from exactdp.benchmarks.training_audit import attack as attacks
from exactdp.benchmarks.training_audit.attack import CLIP_NORM, SIGNAL, Attack, Claim
from exactdp.benchmarks.training_audit.options import Options
from exactdp.mechanisms.batches import Poisson
from exactdp.mechanisms.public import Columns, Public
from exactdp.train import feature, feature_certificate
from exactdp.train.attacks.likelihood_ratio import Canaries, Coins, NegativeLoss, Ratio
from exactdp.train.classification import Classification
from exactdp.train.feature_settings import FeatureSettings
from exactdp.train.network import Network
from exactdp.train.task import Records, Task

SOURCE = "2506.19836v1"
_PUBLIC = Public(Columns((0, 2)), True)  # all but the feature between them, and the label
_MARK = 20.0
"""The canary's own public feature: its public gradient is many times the noise, and nobody clips it."""
_TOLERANCE = 1e-4
_EXACT, _EXACT_SINGLE = "exact, two batches", "exact, one batch"
_RUNGS: Mapping[str, tuple[str, Callable[[Setting], Rung]]] = {
    "Theorem 5, shift tau/m": ("repaired", ladder.shift),
    _EXACT: ("exact", ladder.replacement),
    _EXACT_SINGLE: ("exact", ladder.naive_replacement),
}
"""Name -> kind, rung of the feature ladder."""


def many_runs(options: Options, *, batches: str) -> Attack:
    """One record replaced by another with the same public features and the opposite private one.

    The residual gradients of the two point in opposite directions and are longer than the clip norm. The
    record has a public feature of its own too: where the public gradient is taken on the private batch, the
    weights of that feature tell which steps sampled it.

    Args:
      options: all of it.
      batches: "two" or "single".

    Raises:
      ValueError: a value is out of range, or there is too little noise for a certified epsilon.
    """
    options.require_runs()
    single = batches == "single"
    certified = _EXACT_SINGLE if single else _EXACT
    known = claims(options)
    if certified not in known:
        options.refuse_noise()
    mark = _MARK if single else 0.0
    canary, instead = (
        Records(jnp.asarray([[0.0, sign * SIGNAL, mark]], jnp.float32), jnp.zeros(1, jnp.int32))
        for sign in (1.0, -1.0)
    )
    rest = attacks.others(width=3)
    num_records = len(rest.y) + 1
    asked = FeatureSettings(_PUBLIC.text, adjacency="replace", batches=batches)
    # A batch has room for every record: nothing overflows.
    sampler = Poisson(num_records, options.sampling_probability, num_records)
    objective = Classification(Network("linear", (3,), 2))
    private = objective.residual(_PUBLIC)
    key = jax.random.key(0)  # nothing is random without augmentation
    rate = attacks.learning_rate(options)
    public_views = objective.examples(canary, key=key, public=_PUBLIC)

    @functools.cache
    def made(count: int) -> Task:
        found = feature.task(
            objective,
            public=_PUBLIC,
            asked=asked,
            certificate=feature_certificate.feature(
                options.noise_multiplier, sampler=sampler, public=_PUBLIC, asked=asked
            ),
            sampler=dataclasses.replace(sampler, num_records=count),
            noise_multiplier=options.noise_multiplier,
            clip_norm=CLIP_NORM,
            expected_batch_size=1.0,
        )
        return attacks.from_zero(found)

    def compositions(noise: float) -> Composition:
        step = feature_certificate.feature(noise, sampler=sampler, public=_PUBLIC, asked=asked)
        return step.composition(options.num_steps)

    return Attack(
        name="feature",
        source=SOURCE,
        canaries=canary,
        rest=rest,
        instead=instead,
        task=made,
        along=Ratio(
            attacks.released(options, rate=rate),
            Canaries(private.losses, private.examples(canary, key), private.examples(instead, key)),
            Coins(objective.losses, public_views) if single else None,
        ),
        loss=NegativeLoss(
            objective.losses, objective.examples(canary, key=key), objective.examples(instead, key=key)
        ),
        learning_rate=rate,
        threat_model=feature_setting.REPLACE_VISIBLE if single else feature_setting.REPLACE,
        compositions=compositions,
        claims=known,
        certified=certified,
    )


def claims(options: Options) -> dict[str, Claim]:
    """Rungs of the feature ladder at this setting that somebody may read off for this release."""
    found: dict[str, Claim] = {}
    setting = Setting(
        noise_multiplier=options.noise_multiplier,
        sampling_probability=options.sampling_probability,
        num_steps=options.num_steps,
        delta=options.delta,
        tolerance=_TOLERANCE,
        num_records=feature_setting.NUM_RECORDS,
        # These are of rungs that are not asked for.
        epsilon=1.0,
        constant=1.0,
        diameter=1.0,
        dimension=1,
        step_size=1.0,
    )
    for name, (kind, build) in _RUNGS.items():
        one = build(setting)
        if isinstance(one.epsilon, Interval):
            found[name] = Claim(kind, one.epsilon, one.threat_model)
    return found
