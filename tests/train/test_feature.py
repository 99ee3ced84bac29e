"""Algorithm 1 of arXiv 2506.19836 and its variants: the step, pre-training, a resumed run."""

from __future__ import annotations

import functools
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from exactdp.mechanisms import keys, noise
from exactdp.mechanisms.public import Identity, Own, Public, parse
from exactdp.train import feature
from exactdp.train.augmentation import Augmentation
from exactdp.train.classification import Classification
from exactdp.train.data import Dataset
from exactdp.train.feature_settings import FeatureSettings
from exactdp.train.network import Network
from exactdp.train.objective import Residual, two_passes
from exactdp.train.optimiser import Optimiser
from exactdp.train.task import Records, Task
from tests.train import runs

KEY = keys.run_key(3)
STEP = jnp.int32(4)
MAPS = ("label", "blur:sigma=0.8", "blur:sigma=0.8+label", "region:top=0,bottom=2,left=0,right=4", "features")


def prepare(public: str = "blur:sigma=0.8+label", *, data: Dataset | None = None, **asked: Any) -> Any:
    own = {name: asked.pop(name) for name in ("clip_norm", "num_steps", "accumulation") if name in asked}
    return runs.prepare("feature", data=data, feature=FeatureSettings(public, **asked), model="mlp", **own)


def batch(rows: int = 24) -> tuple[Records, jax.Array]:
    data = runs.dataset()
    return Records(jnp.asarray(data.x[:rows]), jnp.asarray(data.y[:rows])), jnp.arange(rows) % 3 > 0


def close(one: Any, other: Any, tolerance: float = 1e-5) -> None:
    for a, b in zip(jax.tree.leaves(one), jax.tree.leaves(other), strict=True):
        np.testing.assert_allclose(a, b, rtol=0.0, atol=tolerance)


@functools.cache
def network() -> Network:
    return Network("mlp", (4, 4, 1), runs.NUM_CLASSES)


@functools.cache
def params() -> Any:
    return network().initialise(keys.step_key(KEY, step=0, purpose="init"))


def loss(p: Any, x: jax.Array, target: jax.Array) -> jax.Array:
    return -jnp.sum(target * jax.nn.log_softmax(network().logits(p, x[None])[0]))


def by_hand(
    public: Public, records: Records, mask: jax.Array, clip_norm: float, *, whole: bool = False
) -> Any:
    """The clipped residuals, summed, one record at a time."""
    view = public.view(records.x)
    targets = public.targets(records.y, num_classes=runs.NUM_CLASSES)

    def one(x: jax.Array, y: jax.Array, z: jax.Array, target: jax.Array) -> Any:
        def residual(p: Any) -> jax.Array:
            own = loss(p, x, jax.nn.one_hot(y, runs.NUM_CLASSES))
            return own if whole else own - loss(p, z, target)

        return jax.grad(residual)(params())

    each = jax.vmap(one)(*records, view, targets)
    norms = jnp.sqrt(sum(jnp.sum(leaf.reshape(len(mask), -1) ** 2, 1) for leaf in jax.tree.leaves(each)))
    factor = jnp.where(mask, jnp.minimum(1.0, clip_norm / norms), 0.0)
    return jax.tree.map(lambda leaf: jnp.tensordot(factor, leaf, 1), each)


def public_mean(public: Public, records: Records, mask: jax.Array, size: float) -> Any:
    view = public.view(records.x)
    targets = public.targets(records.y, num_classes=runs.NUM_CLASSES)
    each = jax.vmap(jax.grad(loss), (None, 0, 0))(params(), view, targets)
    return jax.tree.map(lambda leaf: jnp.tensordot(mask.astype(jnp.float32), leaf, 1) / size, each)


@pytest.mark.parametrize(("text", "accumulation"), [*((text, 1) for text in MAPS), ("label", 5)])
def test_a_step_is_algorithm_1(text: str, accumulation: int) -> None:
    """120 records at 0.2: the private sum is divided by 24, the public one by what its batch holds."""
    task: Task = prepare(text, clip_norm=0.1, accumulation=accumulation).task
    records, mask = batch()
    found = jax.jit(task.gradient)(params(), records, mask, KEY, STEP)
    total = by_hand(parse(text), records, mask, 0.1)
    noisy = noise.gaussian(keys.step_key(KEY, step=4, purpose="noise"), total, std=2.0 * 0.1)
    close(found.value, jax.tree.map(lambda leaf: leaf / 24.0, noisy))
    assert task.public is not None
    assert task.public.sampler.capacity == 24
    added = jax.jit(task.public.gradient)(params(), records, mask, KEY, STEP)
    close(added, public_mean(parse(text), records, mask, 16.0))


def test_the_residual_is_unbiased_without_clipping() -> None:
    """Private and public gradient of the same records add up to the gradient of the loss."""
    for text in MAPS:
        public = parse(text)
        records, mask = batch()
        total = jax.tree.map(
            jnp.add, by_hand(public, records, mask, 1e9), public_mean(public, records, mask, 1.0)
        )
        close(total, by_hand(public, records, mask, 1e9, whole=True), 1e-4)


def test_variants_weigh_and_noise_as_they_say() -> None:
    public = parse("blur:sigma=0.8+label")
    records, mask = batch()
    task: Task = prepare(
        mixing_weight=0.25, public_noise_multiplier=0.5, private_loss="whole", clip_norm=0.3
    ).task
    total = by_hand(public, records, mask, 0.3, whole=True)
    noisy = noise.gaussian(keys.step_key(KEY, step=4, purpose="noise"), total, std=2.0 * 0.3)
    found = jax.jit(task.gradient)(params(), records, mask, KEY, STEP)
    close(found.value, jax.tree.map(lambda leaf: 0.75 * leaf / 24.0, noisy))
    assert task.public is not None
    added = jax.jit(task.public.gradient)(params(), records, mask, KEY, STEP)
    total = public_mean(public, records, mask, 1.0)
    noisy = noise.gaussian(keys.step_key(KEY, step=4, purpose="public_noise"), total, std=0.5 * 0.3)
    close(added, jax.tree.map(lambda leaf: 0.25 * leaf / 16.0, noisy))


def test_the_single_batch_has_both_gradients_of_the_same_records() -> None:
    public = parse("blur:sigma=0.8+label")
    task: Task = prepare(batches="single", clip_norm=0.1).task
    assert task.public is None
    records, mask = batch()
    found = jax.jit(task.gradient)(params(), records, mask, KEY, STEP)
    total = by_hand(public, records, mask, 0.1)
    noisy = noise.gaussian(keys.step_key(KEY, step=4, purpose="noise"), total, std=2.0 * 0.1)
    added = public_mean(public, records, mask, 24.0)
    close(found.value, jax.tree.map(lambda a, b: a / 24.0 + b, noisy, added))


def test_with_nothing_public_it_is_dpsgd() -> None:
    one: Task = prepare("none", clip_norm=0.3).task
    other: Task = runs.prepare("dpsgd", model="mlp", clip_norm=0.3).task
    records, mask = batch()
    assert one.public is None
    close(
        one.gradient(params(), records, mask, KEY, STEP).value,
        other.gradient(params(), records, mask, KEY, STEP).value,
        0.0,
    )


def test_a_map_that_leaves_next_to_nothing_private_is_checked_too() -> None:
    ready = prepare("blur:sigma=0.22+label")
    records, _ = batch(3)
    view = parse("blur:sigma=0.22").view(records.x)
    assert 0.0 < float(jnp.max(jnp.abs(view - records.x))) < 1e-4
    ready.task.check(params(), records)


def task_of(objective: Any, public: Public) -> Task:
    """The task of an objective and a map that no flag describes."""
    made: Task = prepare("label").task
    return feature.task(
        objective,
        public=public,
        asked=FeatureSettings("label"),
        certificate=made.certificate,
        sampler=made.sampler,
        noise_multiplier=2.0,
        clip_norm=1.0,
        expected_batch_size=24.0,
    )


class Divided:
    """A classifier that adds how far its logits are from those of a black image, or divides by it."""

    def __init__(self, *, divides: bool) -> None:
        self._own, self._divides = Classification(network()), divides

    def __getattr__(self, name: str) -> Any:
        return getattr(self._own, name)

    def losses(self, p: Any, examples: Any) -> jax.Array:
        logits = network().logits(p, examples.x) - network().logits(p, jnp.zeros_like(examples.x))
        size = jnp.sqrt(jnp.sum(logits**2, axis=1))
        value = self._own.losses(p, examples)
        return value / size if self._divides else value + size

    def residual(self, public: Public) -> Residual:
        return two_passes(self, public)


@pytest.mark.parametrize(("divides", "name"), [(True, "value"), (False, "gradient")])
def test_a_residual_that_is_undefined_is_refused(divides: bool, name: str) -> None:
    """The public view of a private image is black: fine pixels have a loss, and their view has none."""
    objective = Divided(divides=divides)
    records, _ = batch(3)
    private = objective.losses(params(), objective.examples(records, key=KEY))
    assert bool(jnp.all(jnp.isfinite(private)))
    task = task_of(objective, parse("label"))
    message = rf"public: the loss must have a finite {name} at the public views of records \(label\)"
    with pytest.raises(ValueError, match=message):
        task.check(params(), records)


def test_a_map_with_a_state_is_no_task() -> None:
    calls: list[int] = []

    def counting(x: jax.Array) -> jax.Array:
        calls.append(1)
        return x / len(calls)

    with pytest.raises(ValueError, match="own:counting must be a function of the record alone"):
        task_of(Classification(network()), Public(Own(counting, "counting"), True))


def test_an_empty_private_batch_is_noise_and_the_public_mean() -> None:
    task: Task = prepare().task
    records, mask = batch()
    found = jax.jit(task.gradient)(params(), records, jnp.zeros_like(mask), KEY, STEP)
    zero = jax.tree.map(jnp.zeros_like, params())
    noisy = noise.gaussian(keys.step_key(KEY, step=4, purpose="noise"), zero, std=2.0)
    close(found.value, jax.tree.map(lambda leaf: leaf / 24.0, noisy))
    assert bool(found.usable)


@pytest.mark.parametrize("text", ["label", "region:top=0,bottom=2,left=0,right=4", "features"])
def test_what_is_private_does_not_reach_the_public_gradient(text: str) -> None:
    """Another data set with the same public features has the same public gradient, bit for bit."""
    task: Task = prepare(text).task
    public = parse(text)
    records, mask = batch()
    x = records.x if public.whole_input else records.x.at[:, 2:].set(0.123)
    x = 0.5 * x if public.inputs is None else x
    other = Records(x, records.y if public.label else (records.y + 1) % runs.NUM_CLASSES)
    np.testing.assert_array_equal(public.view(other.x), public.view(records.x))
    assert task.public is not None
    gradient = jax.jit(task.public.gradient)
    first, second = (gradient(params(), rows, mask, KEY, STEP) for rows in (records, other))
    close(first, second, 0.0)
    own = jax.jit(task.gradient)
    moved = [own(params(), rows, mask, KEY, STEP).value for rows in (records, other)]
    assert any(bool(jnp.any(a != b)) for a, b in zip(*map(jax.tree.leaves, moved), strict=True))


def test_the_same_views_are_taken_of_a_record_and_of_what_is_public_of_it() -> None:
    objective = Classification(network(), Augmentation(multiplicity=3, padding=1, flip=True))
    public = Public(Own(lambda x: x + 1.0, "brighter"), True)
    records, _ = batch()
    own = objective.examples(records, key=KEY)
    view = objective.examples(records, key=KEY, public=public)
    assert own.x.shape == (24, 3, 4, 4, 1) and own.targets.shape == (24, 3, runs.NUM_CLASSES)
    np.testing.assert_allclose(own.x + 1.0, view.x, atol=1e-6)
    residual = objective.residual(public)
    found = residual.losses(params(), residual.examples(records, KEY))
    wanted = objective.losses(params(), own) - objective.losses(params(), view)
    np.testing.assert_allclose(found, wanted, atol=1e-5)


def test_label_dp_is_linear_in_the_logits() -> None:
    objective = Classification(network())
    residual = objective.residual(Public(Identity(), False))
    records, _ = batch()
    found = residual.losses(params(), residual.examples(records, KEY))
    logits = network().logits(params(), records.x)
    wanted = jnp.mean(logits, 1) - jnp.take_along_axis(logits, records.y[:, None], 1)[:, 0]
    np.testing.assert_allclose(found, wanted, atol=1e-5)


# Runs


def test_a_resumed_run_is_the_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = FeatureSettings("label", public_steps=5, public_learning_rate=0.1)
    ready = runs.prepare("feature", feature=asked, num_steps=12)
    runs.run(tmp_path / "whole", ready)
    from exactdp.train import loop

    class Stop(Exception):
        pass

    save = loop._Loop.save

    def stopping(self: Any, current: Any) -> None:
        save(self, current)
        if int(current.step) == 6:
            raise Stop

    with monkeypatch.context() as patch, pytest.raises(Stop):
        patch.setattr(loop._Loop, "save", stopping)
        runs.run(tmp_path / "stopped", ready)
    runs.run(tmp_path / "stopped", ready, seed=None, resume=True)
    assert runs.same(runs.weights(tmp_path / "whole"), runs.weights(tmp_path / "stopped"))
    assert runs.entries(tmp_path / "whole") == runs.entries(tmp_path / "stopped")


def test_pre_training_uses_what_is_public_and_helps() -> None:
    ready = prepare("region:top=0,bottom=2,left=0,right=4+label", public_steps=60, public_learning_rate=0.5)
    data = runs.dataset()
    hidden = data.x.copy()
    hidden[:, 2:] = 0.77
    other = Dataset(hidden, data.y, data.x_test, data.y_test, 3, "other", "made up")
    twin = prepare(
        "region:top=0,bottom=2,left=0,right=4+label", data=other, public_steps=60, public_learning_rate=0.5
    )
    sgd = Optimiser(learning_rate=0.1)
    first, second = (one.pretraining(sgd, False)(KEY) for one in (ready, twin))
    close(first, second, 0.0)
    before = ready.task.measure(ready.task.initialise(KEY), data.x_test, data.y_test)
    assert ready.task.measure(first, data.x_test, data.y_test) > max(before, 0.6)


def test_pre_training_is_by_the_run_s_optimiser_at_its_own_rate() -> None:
    ready = prepare(public_steps=1, public_learning_rate=0.03)
    start = ready.task.initialise(jax.random.split(KEY)[0])
    for optimiser, normalised in ((Optimiser("adam", learning_rate=7.0), True), (Optimiser(), False)):
        found = ready.pretraining(optimiser, False)(KEY)
        moved = jnp.concatenate(
            [jnp.abs(a - b).ravel() for a, b in zip(*map(jax.tree.leaves, (start, found)), strict=True)]
        )
        # Adam's first step moves every parameter that has a gradient by the rate, whatever its size.
        assert (abs(float(jnp.max(moved)) - 0.03) < 1e-4) == normalised
        assert (float(jnp.median(moved[moved > 0])) > 0.029) == normalised
