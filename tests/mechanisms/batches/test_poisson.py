"""Poisson batches: exact coins, exact sizes, uniform truncation, one batch whatever draws it."""

from __future__ import annotations

import functools
import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

from exactdp.accounting import prv
from exactdp.accounting.pairs.approximate import ApproximateDP
from exactdp.accounting.pairs.dirichlet import Dirichlet
from exactdp.accounting.pairs.gaussian import Gaussian
from exactdp.accounting.sampling import truncated
from exactdp.accounting.sampling.hidden import PoissonHidden
from exactdp.accounting.sampling.replace import PoissonReplaceGaussian
from exactdp.accounting.sampling.visible import PoissonVisible
from exactdp.mechanisms import keys
from exactdp.mechanisms.batches import Batch, FixedSize, Poisson, local_part, poisson, selection, two_batches

KEY = keys.run_key(3)


@functools.lru_cache
def drawn(sampler: Poisson, steps: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Indices, masks and sizes of many steps, one row a step."""
    draw = jax.jit(jax.vmap(lambda step: sampler.draw(KEY, step=step)))
    many = draw(jnp.arange(steps, dtype=jnp.int32))
    return np.asarray(many.indices), np.asarray(many.mask), np.asarray(many.size)


def membership(sampler: Poisson, steps: int) -> np.ndarray:
    """Whether step s holds record i, shape [steps, records]."""
    indices, mask, _ = drawn(sampler, steps)
    held = np.zeros((steps, sampler.num_records), int)
    np.add.at(held, (np.nonzero(mask)[0], indices[mask]), 1)
    assert held.max() <= 1, "a record twice in one batch"
    return held


SAMPLERS = [
    Poisson(100, 0.1, 40),
    Poisson(100, 0.1, 12),
    Poisson(33, 0.5, 33),
    Poisson(1, 0.3, 4),
    Poisson(64, 0.02, 1),
    Poisson(10, 1.0, 16),
    Poisson(10, 1.0, 4),
    Poisson(10, 0.0, 4),
]


@pytest.mark.parametrize("sampler", SAMPLERS, ids=str)
def test_slots_are_valid_and_counted(sampler: Poisson) -> None:
    indices, mask, size = drawn(sampler, 500)
    assert indices.dtype == np.int32 and mask.dtype == bool and size.dtype == np.int32
    assert indices.shape == mask.shape == (500, sampler.capacity)
    assert indices.min() >= 0 and indices.max() < sampler.num_records
    assert np.all(indices[~mask] == 0)
    np.testing.assert_array_equal(mask.sum(axis=1), np.minimum(size, sampler.capacity))
    membership(sampler, 500)
    if sampler.sampling_probability in (0.0, 1.0):
        np.testing.assert_array_equal(size, int(sampler.sampling_probability) * sampler.num_records)


def test_sizes_are_binomial() -> None:
    steps, sampler = 4_000, Poisson(100, 0.1, 12)
    _, _, size = drawn(sampler, steps)
    assert size.max() > sampler.capacity  # the size drawn, not the size kept
    edges = np.array([-1, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 100])
    expected = steps * np.diff(stats.binom.cdf(edges, 100, 0.1))
    observed = np.histogram(size, bins=edges + 0.5)[0]
    assert stats.chisquare(observed, expected * observed.sum() / expected.sum()).pvalue > 1e-3


def test_every_record_is_drawn_with_the_same_probability_independently() -> None:
    steps, q = 4_000, 0.1
    held = membership(Poisson(100, q, 40), steps)
    frequency = (held.sum(axis=0) - steps * q) / np.sqrt(steps * q * (1 - q))
    assert abs(frequency).max() < 4.5
    assert stats.kstest(frequency, "norm").pvalue > 1e-3
    # Between records of one step, and between a step and the next.
    correlation = np.corrcoef(held.T)[~np.eye(100, dtype=bool)] * np.sqrt(steps)
    assert abs(correlation).max() < 5.5 and abs(correlation.std() - 1.0) < 0.05
    centred = held - q
    lagged = (centred[1:] * centred[:-1]).mean(axis=0) / (q * (1 - q)) * np.sqrt(steps)
    assert abs(lagged).max() < 4.5


def test_all_subsets_of_three_records_have_their_probability() -> None:
    steps, q = 4_000, 0.3
    held = membership(Poisson(3, q, 3), steps)
    code = held @ np.array([4, 2, 1])
    expected = [
        steps * np.prod([q if coin else 1 - q for coin in coins])
        for coins in itertools.product((0, 1), repeat=3)
    ]
    assert stats.chisquare(np.bincount(code, minlength=8), expected).pvalue > 1e-3


def test_an_overflowing_batch_keeps_a_uniform_subset() -> None:
    steps, sampler = 4_000, Poisson(5, 1.0, 2)
    code = np.sort(drawn(sampler, steps)[0], axis=1) @ np.array([5, 1])
    pairs = [5 * a + b for a, b in itertools.combinations(range(5), 2)]
    assert set(code.tolist()) == set(pairs)
    counts = [int((code == pair).sum()) for pair in pairs]
    assert stats.chisquare(counts).pvalue > 1e-3
    # Random sizes: given how many were drawn, every record is kept equally often.
    held = membership(Poisson(20, 0.4, 6), steps).sum(axis=0)
    assert stats.chisquare(held).pvalue > 1e-3


def test_a_batch_that_fits_is_the_one_drawn_with_more_slots() -> None:
    small, large = Poisson(100, 0.1, 12), Poisson(100, 0.1, 40)
    few, many, size = membership(small, 500), membership(large, 500), drawn(small, 500)[2]
    assert np.all(few <= many)
    np.testing.assert_array_equal(few[size <= 12], many[size <= 12])


def test_the_realised_probability_is_never_above() -> None:
    for q in (0.0, 2.0**-32, 1e-9, 0.1, 1 / 3, 0.5, 1 - 1e-12, 1.0):
        realised = Poisson(10, q, 4).realised_probability
        assert q - 2.0**-32 < realised <= q
    with pytest.raises(ValueError, match="sampling_probability must be 0 or at least"):
        Poisson(10, 1e-10, 4)


def test_the_coin_is_the_comparison_with_the_threshold(monkeypatch: pytest.MonkeyPatch) -> None:
    q = 0.25
    edge = 2**30
    values = jnp.array([edge - 1, edge, 0, 2**32 - 1, edge + 1, 7], jnp.uint32)
    monkeypatch.setattr(selection, "uniform_words", lambda key, count: values[:count])
    # Unjitted, so that no cache keeps these words.
    batch = poisson._draw.__wrapped__(Poisson(6, q, 6), KEY)
    assert batch.indices[np.asarray(batch.mask)].tolist() == [0, 2, 5]


def test_a_draw_depends_on_key_step_and_purpose_alone() -> None:
    sampler = Poisson(2_000, 0.05, 160)
    want = sampler.draw(KEY, step=7)
    jitted = jax.jit(lambda key, step: sampler.draw(key, step=step))(KEY, jnp.int32(7))
    resumed = sampler.draw(keys.from_record(keys.to_record(KEY)), step=7)
    for other in (jitted, resumed):
        for one, two in zip(jax.tree.leaves(want), jax.tree.leaves(other), strict=True):
            np.testing.assert_array_equal(np.asarray(one), np.asarray(two))
    for other in (
        sampler.draw(KEY, step=8),
        sampler.draw(keys.run_key(4), step=7),
        sampler.draw(KEY, step=7, purpose="public_batch"),
    ):
        assert not np.array_equal(np.asarray(want.indices), np.asarray(other.indices))
    assert sampler.draw(jax.random.key(0, impl="rbg"), step=0).mask.any()


@pytest.mark.parametrize("bounds", [(0, 100), (0, 37, 100), (0, 1, 50, 50, 99, 100)])
def test_local_parts_make_up_the_global_batch(bounds: tuple[int, ...]) -> None:
    for step in range(5):
        batch = Poisson(100, 0.3, 28).draw(KEY, step=step)
        parts = [local_part(batch, start=a, stop=b) for a, b in itertools.pairwise(bounds)]
        masks = np.array([np.asarray(part.mask) for part in parts])
        np.testing.assert_array_equal(masks.sum(axis=0), np.asarray(batch.mask).astype(int))
        back = sum(np.where(p.mask, p.indices + a, 0) for p, a in zip(parts, bounds, strict=False))
        np.testing.assert_array_equal(back, np.asarray(batch.indices))
        for part, (a, b) in zip(parts, itertools.pairwise(bounds), strict=True):
            assert 0 <= int(part.indices.min()) and int(part.indices.max()) < max(b - a, 1)
            assert int(part.size) == int(part.mask.sum())
    traced = jax.jit(lambda a, b: local_part(batch, start=a, stop=b))(bounds[0], bounds[1])
    np.testing.assert_array_equal(np.asarray(traced.mask), masks[0])
    with pytest.raises(ValueError, match="stop - start must be"):
        local_part(batch, start=5, stop=4)


def test_a_batch_is_a_tree() -> None:
    batch = Poisson(10, 0.5, 4).draw(KEY, step=0)
    assert len(jax.tree.leaves(batch)) == 3
    assert isinstance(jax.tree.map(lambda x: x, batch), Batch)


def test_two_batches_are_independent() -> None:
    sampler, steps = Poisson(30, 0.3, 30), 1_000
    draw = jax.jit(jax.vmap(lambda step: two_batches(sampler, sampler, key=KEY, step=step)))
    held = []
    for batch in draw(jnp.arange(steps, dtype=jnp.int32)):
        rows = np.zeros((steps, 30))
        mask = np.asarray(batch.mask)
        rows[np.nonzero(mask)[0], np.asarray(batch.indices)[mask]] = 1.0
        held.append(rows)
    np.testing.assert_array_equal(held[0], membership(sampler, steps))
    cross = (held[0] - 0.3).T @ (held[1] - 0.3) / (0.3 * 0.7 * np.sqrt(steps))
    assert abs(cross).max() < 5.0 and abs(cross.std() - 1.0) < 0.1
    private, public = two_batches(sampler, FixedSize(30, 8), key=KEY, step=0)
    assert private.mask.shape == (30,) and bool(public.mask.all())


def test_pairs_and_releases() -> None:
    sampler, base = Poisson(60_000, 0.005, 400), Gaussian(1.0)
    assert sampler.pair(base) == PoissonHidden(base, 0.005)
    assert sampler.pair(base, coins="visible") == PoissonVisible(base, 0.005)
    both = Gaussian(1.5, sensitivity=2.0)
    assert sampler.pair(both, adjacency="replace") == PoissonReplaceGaussian(1.5, 0.005)
    assert sampler.pair(both, adjacency="replace", coins="visible") == PoissonVisible(both, 0.005)
    truncation = truncated.failure(60_000, sampling_probability=0.005, capacity=400)
    releases = sampler.releases(base, num_steps=1_000)
    assert releases == [(PoissonHidden(base, 0.005), 1_000), (truncation, 1_000)]
    assert isinstance(truncation, ApproximateDP)
    eta = sampler.overflow_probability
    assert truncation.delta == pytest.approx(0.005 * eta) and 1e-9 < eta < 1e-7
    free = prv.epsilon([(sampler.pair(base), 1_000)], delta=1e-6)
    charged = prv.epsilon(releases, delta=1e-6 + 1_000 * 0.005 * eta)
    assert charged.upper == pytest.approx(free.upper, rel=1e-6)
    assert prv.epsilon(releases, delta=1e-6).upper > free.upper
    whole = Poisson(1_000, 0.1, 1_000)
    assert whole.releases(base, num_steps=5) == [(PoissonHidden(base, 0.1), 5)]
    assert whole.overflow_probability == 0.0


def test_mismatched_combinations_are_refused() -> None:
    sampler = Poisson(100, 0.1, 40)
    with pytest.raises(ValueError, match="coins must be one of"):
        sampler.pair(Gaussian(1.0), coins="none")
    with pytest.raises(ValueError, match="adjacency must be one of"):
        sampler.pair(Gaussian(1.0), adjacency="swap")
    for base in (Gaussian(1.0), Dirichlet(0.2, 3.0)):
        with pytest.raises(ValueError, match=r"sensitivity=2.0\) for Poisson batches under replacement"):
            sampler.pair(base, adjacency="replace")
    for coins in ("hidden", "visible"):
        with pytest.raises(ValueError, match="pair must be"):
            sampler.pair(PoissonHidden(Gaussian(1.0), 0.1), coins=coins)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="num_steps must be"):
        sampler.releases(Gaussian(1.0), num_steps=0)


def test_bad_arguments_are_refused() -> None:
    for arguments, name in [
        ((0, 0.1, 4), "num_records"),
        ((2**30 + 1, 0.1, 4), "num_records"),
        ((2.5, 0.1, 4), "num_records"),
        ((10, -0.1, 4), "sampling_probability"),
        ((10, 1.5, 4), "sampling_probability"),
        ((10, float("nan"), 4), "sampling_probability"),
        ((10, 0.1, 0), "capacity"),
    ]:
        with pytest.raises(ValueError, match=f"{name} must be"):
            Poisson(*arguments)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="purpose must be one of"):
        Poisson(10, 0.1, 4).draw(KEY, step=0, purpose="private")
