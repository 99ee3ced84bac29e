"""Training audits: correct trainers are not refuted, broken ones are, and one batch is told from two."""

from __future__ import annotations

import dataclasses
import functools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from exactdp.accounting.ladder import feature_setting
from exactdp.benchmarks.training_audit import attack as attacks
from exactdp.benchmarks.training_audit import audit, dpsgd, feature, real
from exactdp.benchmarks.training_audit.attack import Attack
from exactdp.benchmarks.training_audit.options import Options, RealData
from exactdp.train.task import Task

SHORT = Options(num_steps=12, sampling_probability=0.3, trials=1500, seed=1)


def with_task(attack: Attack, change: Any) -> Attack:
    """The attack on another trainer, with the claims of the right one."""

    @functools.cache
    def made(count: int) -> Task:
        return change(count)

    return dataclasses.replace(attack, task=made)


def test_the_trainer_is_not_refuted_and_its_noise_is_found() -> None:
    found = audit.many_runs(dpsgd.many_runs(SHORT), SHORT)
    exact = found.attack.claims["exact"].epsilon
    names = list(found.readings)
    free, within, final, final_within = (found.readings[name].epsilon_lower for name in names)
    assert 0.0 < free < within < exact.upper and 0.0 < final_within < exact.upper and final > 0.0
    assert within > 0.5 * exact.lower
    assert not found.refuted and found.attack.exceeded(found.best) == []
    assert found.result.threat_model == found.attack.threat_model and found.result.assumption == ""


@pytest.mark.parametrize("broken", ["half the noise", "three times the clip norm", "every record"])
def test_broken_trainers_are_refuted(broken: str) -> None:
    attack = dpsgd.many_runs(SHORT)
    right = attack.task

    def change(count: int) -> Task:
        if broken == "every record":
            sampler = dataclasses.replace(right(count).sampler, sampling_probability=1.0)  # type: ignore[type-var]
            return dataclasses.replace(right(count), sampler=sampler)
        options = SHORT
        if broken == "half the noise":
            options = dataclasses.replace(SHORT, noise_multiplier=0.5)
        wrong = dpsgd.many_runs(options).task(count)
        if broken == "half the noise":
            return wrong

        def gradient(*given: Any) -> Any:
            # A sum of gradients clipped at 3 in place of 1: noise a third as large on gradients in threes.
            found = dpsgd.many_runs(dataclasses.replace(SHORT, noise_multiplier=1.0 / 3.0)).task(count)
            value = found.gradient(*given)
            return value._replace(value=jax.tree.map(lambda leaf: 3.0 * leaf, value.value))

        return dataclasses.replace(wrong, gradient=gradient)

    found = audit.many_runs(with_task(attack, change), SHORT)
    assert found.refuted and found.verdict == "refuted" and found.attack.exceeded(found.best) == ["exact"]


def test_one_batch_exceeds_what_two_batches_may_claim() -> None:
    options = Options(num_steps=40, sampling_probability=0.01, trials=2000, seed=2)
    single = audit.many_runs(feature.many_runs(options, batches="single"), options)
    assert single.attack.certified == "exact, one batch" and not single.refuted
    assert set(single.attack.exceeded(single.result.epsilon_lower)) == {
        "Theorem 5, shift tau/m",
        "exact, two batches",
    }
    assert single.result.threat_model == feature_setting.REPLACE_VISIBLE
    two = audit.many_runs(feature.many_runs(options, batches="two"), options)
    assert two.attack.certified == "exact, two batches" and not two.refuted
    assert two.result.threat_model == feature_setting.REPLACE
    assert two.result.epsilon_lower < single.result.epsilon_lower


def test_replacement_is_twice_the_shift() -> None:
    options = dataclasses.replace(SHORT, num_steps=4, sampling_probability=1.0)
    added = audit.many_runs(dpsgd.many_runs(options), options)
    replaced = audit.many_runs(feature.many_runs(options, batches="two"), options)
    # mu is 2 for four steps with the record in or out, and 4 where it is replaced by its opposite.
    for found, mu in ((added, 2.0), (replaced, 4.0)):
        lower = found.result.mu_lower
        assert lower is not None and 0.8 * mu < lower < mu


def test_one_run_in_the_worst_case() -> None:
    options = Options(num_steps=10, sampling_probability=1.0, trials=400, seed=3)
    found = audit.one_run(dpsgd.one_run(options), options)
    exact = found.attack.claims["exact"].epsilon
    assert list(found.readings)[0].endswith("f-DP") and not found.refuted
    assert 1.0 < found.result.epsilon_lower < exact.upper
    assert found.result.trials == 400


@pytest.mark.parametrize("canary", ["mislabelled", "random"])
def test_canaries_among_real_records(canary: str) -> None:
    options = Options(num_steps=1, trials=200, seed=4)
    attack = real.one_run(options, RealData(model="linear", canary=canary))
    included = np.arange(200) % 2 == 0
    records = attack.records(included)
    assert len(records.y) == len(attack.rest.y) + 100
    np.testing.assert_array_equal(records.x[len(attack.rest.y) :], np.asarray(attack.canaries.x)[included])
    rest = {row.tobytes() for row in np.asarray(attack.rest.x)}
    assert not any(row.tobytes() in rest for row in np.asarray(attack.canaries.x))


@pytest.mark.slow
def test_noise_that_is_learned_by_heart_is_found() -> None:
    """With hardly any noise the final loss tells random records that were trained on."""
    options = Options(num_steps=100, sampling_probability=0.2, trials=200, seed=4, noise_multiplier=0.05)
    found = audit.one_run(real.one_run(options, RealData(canary="random", learning_rate=2.0)), options)
    assert not found.refuted
    assert found.readings["loss of the record under the final weights, one run, DP"].epsilon_lower > 0.1


def test_records_in_and_out() -> None:
    attack = feature.many_runs(SHORT, batches="two")
    inside, outside = (attack.records(np.array([flag])) for flag in (True, False))
    assert inside.x.shape == outside.x.shape
    np.testing.assert_array_equal(inside.x[-1], [0.0, attacks.SIGNAL, 0.0])
    np.testing.assert_array_equal(outside.x[-1], [0.0, -attacks.SIGNAL, 0.0])
    assert jnp.array_equal(inside.x[:-1], outside.x[:-1])


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("noise_multiplier", 0.0),
        ("sampling_probability", 0.0),
        ("sampling_probability", 1.5),
        ("num_steps", 0),
        ("delta", 1.0),
        ("trials", 3),
        ("confidence", 1.0),
        ("seed", -1),
    ],
)
def test_bad_options(name: str, value: float) -> None:
    with pytest.raises(ValueError, match=name):
        Options(**{name: value})  # type: ignore[arg-type]


def test_bad_requests() -> None:
    with pytest.raises(ValueError, match="trials"):
        dpsgd.many_runs(dataclasses.replace(SHORT, trials=20))
    with pytest.raises(ValueError, match="trials"):
        real.one_run(dataclasses.replace(SHORT, trials=5000), RealData())
    for name, value in (("model", "vit"), ("canary", "own_feature"), ("learning_rate", 0.0)):
        with pytest.raises(ValueError, match=name):
            RealData(**{name: value})  # type: ignore[arg-type]
