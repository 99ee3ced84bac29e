"""Batches of fixed size, cyclic and shuffled ones: their laws, and the accounting that each names."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

from exactdp.accounting import prv
from exactdp.accounting.pairs.gaussian import Gaussian
from exactdp.accounting.sampling import fixed_size
from exactdp.accounting.sampling.hidden import PoissonHidden
from exactdp.accounting.sampling.visible import PoissonVisible
from exactdp.mechanisms import keys
from exactdp.mechanisms.batches import Cyclic, FixedSize, Shuffled, selection
from exactdp.mechanisms.batches import fixed_size as fixed_size_batches

KEY = keys.run_key(8)


def draw_many(sampler: Cyclic | FixedSize | Shuffled, steps: int) -> tuple[np.ndarray, np.ndarray]:
    draw = jax.jit(jax.vmap(lambda step: sampler.draw(KEY, step=step)))
    many = draw(jnp.arange(steps, dtype=jnp.int32))
    indices, mask = np.asarray(many.indices), np.asarray(many.mask)
    assert indices.shape == (steps, sampler.capacity) and indices.dtype == np.int32
    assert indices.min() >= 0 and indices.max() < sampler.num_records and np.all(indices[~mask] == 0)
    np.testing.assert_array_equal(np.asarray(many.size), mask.sum(axis=1))
    return indices, mask


@pytest.mark.parametrize(("n", "m"), [(1, 1), (5, 5), (40, 7), (3_000, 4), (3_000, 100)])
def test_a_fixed_size_batch_has_distinct_records(n: int, m: int) -> None:
    indices, mask = draw_many(FixedSize(n, m), 200)
    assert mask.all() and np.all(np.diff(np.sort(indices, axis=1), axis=1) > 0)


def test_all_fixed_size_batches_are_equally_likely() -> None:
    steps = 4_000
    indices, _ = draw_many(FixedSize(5, 2), steps)
    code = np.sort(indices, axis=1) @ np.array([5, 1])
    counts = [int((code == 5 * a + b).sum()) for a, b in itertools.combinations(range(5), 2)]
    assert sum(counts) == steps and stats.chisquare(counts).pvalue > 1e-3
    # The way through the candidates (2 * slots < n), record by record and step by step.
    indices, _ = draw_many(FixedSize(400, 3), steps)
    held = np.bincount(indices.ravel(), minlength=400)
    variance = steps * 3 / 400 * (1 - 3 / 400)
    assert ((held - steps * 3 / 400) ** 2).sum() / variance == pytest.approx(399, abs=5 * math.sqrt(2 * 399))
    again = np.mean([len(np.intersect1d(a, b)) for a, b in itertools.pairwise(indices)])
    assert again == pytest.approx(9 / 400, abs=5 * math.sqrt(9 / 400 / steps))


@pytest.mark.parametrize("spoil", ["all low", "all high", "none"])
def test_the_candidates_do_not_change_what_is_drawn(spoil: str, monkeypatch: pytest.MonkeyPatch) -> None:
    # Too many below the threshold, or too few: the sort of all takes over, and gives the m smallest.
    n, m = 3_000, 20
    rng = np.random.default_rng(0)
    ranges = {"all low": (0, 2**20), "all high": (2**31, 2**32), "none": (0, 2**32)}
    values = rng.choice(np.arange(*ranges[spoil], 297, dtype=np.uint32), n, replace=False)
    monkeypatch.setattr(selection, "uniform_words", lambda key, count: jnp.asarray(values[:count]))
    # Unjitted, so that no cache keeps these words.
    batch = fixed_size_batches._draw.__wrapped__(FixedSize(n, m), KEY)
    np.testing.assert_array_equal(np.asarray(batch.indices), np.sort(np.argsort(values)[:m]))


@pytest.mark.parametrize(("n", "m"), [(12, 4), (13, 4), (10, 10), (7, 1), (11, 6)])
@pytest.mark.parametrize("kind", [Cyclic, Shuffled])
def test_an_epoch_holds_every_record_once(kind: type[Cyclic] | type[Shuffled], n: int, m: int) -> None:
    sampler = kind(n, m)
    indices, mask = draw_many(sampler, 3 * sampler.num_batches)
    for epoch in range(3):
        rows = slice(epoch * sampler.num_batches, (epoch + 1) * sampler.num_batches)
        assert sorted(indices[rows][mask[rows]]) == list(range(n))
        if kind is Cyclic:
            np.testing.assert_array_equal(indices[rows], indices[: sampler.num_batches])


def test_a_new_record_moves_no_other_of_a_cyclic_batch() -> None:
    before, after = Cyclic(22, 8), Cyclic(23, 8)
    assert before.num_batches == after.num_batches
    for step in range(before.num_batches):
        one, two = before.draw(KEY, step=step), after.draw(KEY, step=step)
        gone = set(np.asarray(one.indices)[np.asarray(one.mask)])
        assert gone <= set(np.asarray(two.indices)[np.asarray(two.mask)]) <= gone | {22}


def test_shuffled_epochs_are_uniform_and_differ() -> None:
    sampler = Shuffled(4, 2)
    indices, _ = draw_many(sampler, 2 * 2_000)
    orders = indices.reshape(2_000, 4) @ np.array([64, 16, 4, 1])
    counts = np.unique(orders, return_counts=True)[1]
    assert len(counts) == 24 and stats.chisquare(counts).pvalue > 1e-3


def test_purposes_draw_independently() -> None:
    for sampler in (FixedSize(500, 20), Shuffled(500, 20)):
        one, two = (sampler.draw(KEY, step=3, purpose=p).indices for p in ("batch", "public_batch"))
        assert len(np.intersect1d(one, two)) < 10
        with pytest.raises(ValueError, match="purpose must be one of"):
            sampler.draw(KEY, step=0, purpose="other")


def test_fixed_size_accounting() -> None:
    sampler, base = FixedSize(49, 3), Gaussian(1.0, sensitivity=2.0)
    rate = sampler.sampling_probability
    assert Fraction(rate) >= Fraction(3, 49) and rate == pytest.approx(3 / 49, rel=1e-15)
    assert sampler.pair(base) == fixed_size.FixedSize(base, rate)
    assert sampler.pair(base, coins="visible") == PoissonVisible(base, rate)
    assert sampler.releases(base, num_steps=9) == [(sampler.pair(base), 9)]
    assert FixedSize(7, 7).sampling_probability == 1.0
    with pytest.raises(ValueError, match="adjacency must be one of replace"):
        sampler.pair(base, adjacency="add_remove")
    with pytest.raises(ValueError, match="coins must be one of"):
        sampler.pair(base, coins="none")
    with pytest.raises(ValueError, match="num_steps must be"):
        sampler.releases(base, num_steps=0)


@pytest.mark.parametrize("kind", [Cyclic, Shuffled])
def test_batches_without_coins_pay_once_an_epoch(kind: type[Cyclic] | type[Shuffled]) -> None:
    sampler, base = kind(100, 10), Gaussian(2.0)
    assert sampler.pair(base) is base
    assert [sampler.releases(base, num_steps=t) for t in (1, 10, 11, 95)] == [
        [(base, count)] for count in (1, 1, 2, 10)
    ]
    sampled = prv.epsilon([(PoissonHidden(base, 0.1), 100)], delta=1e-5)
    assert prv.epsilon(sampler.releases(base, num_steps=100), delta=1e-5).lower > sampled.upper
    with pytest.raises(ValueError, match=f"{kind.__name__.lower()} batches: they are not Poisson-sampled"):
        sampler.pair(base, coins="hidden")
    with pytest.raises(ValueError, match="pair must be a dominating pair without sampling"):
        sampler.pair(PoissonHidden(base, 0.1))  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="num_steps must be"):
        sampler.releases(base, num_steps=0)


@pytest.mark.parametrize("kind", [Cyclic, FixedSize, Shuffled])
def test_bad_arguments_are_refused(kind: type[Cyclic] | type[FixedSize] | type[Shuffled]) -> None:
    for arguments, name in [
        ((0, 1), "num_records"),
        ((2**30 + 1, 1), "num_records"),
        ((5, 0), "batch_size"),
        ((5, 6), "batch_size"),
        ((5, 1.5), "batch_size"),
    ]:
        with pytest.raises(ValueError, match=f"{name} must be"):
            kind(*arguments)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="key must be one typed key"):
        kind(5, 2).draw(jax.random.PRNGKey(0), step=0)
