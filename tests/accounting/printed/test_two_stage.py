"""Paper C's accountant: its noise multipliers, and Opacus' grid and search."""

from __future__ import annotations

import math

import pytest

from exactdp.accounting.printed import two_stage
from exactdp.accounting.printed.source import Repair

PUBLISHED = {
    ("adult", 1.0): 0.913,
    ("airline", 1.0): 0.811,
    ("texas", 1.0): 0.850,
    ("adult", 8.0): 0.474,
    ("airline", 8.0): 0.428,
    ("texas", 8.0): 0.447,
}


def test_loader_lengths():
    lengths = {name: data.batches_per_epoch for name, data in two_stage.DATASETS.items()}
    assert lengths == {"adult": 967, "airline": 3247, "texas": 1879}
    for data in two_stage.DATASETS.values():
        assert data.sampling_probability * data.num_steps == pytest.approx(10.0)


@pytest.mark.parametrize(("name", "target"), list(PUBLISHED))
def test_noise_multipliers(name: str, target: float):
    data = two_stage.DATASETS[name]
    parameters = {"sampling_probability": data.sampling_probability, "num_steps": data.num_steps}
    found = two_stage.noise_multiplier(target, **parameters)
    assert round(found, 3) == PUBLISHED[name, target]
    spent = two_stage.epsilon(found, **parameters)
    assert target - 0.01 <= spent.value <= target


def test_epsilon_against_dp_accounting_on_the_same_grid():
    dp_accounting = pytest.importorskip("dp_accounting")
    rdp = pytest.importorskip("dp_accounting.rdp")
    data = two_stage.DATASETS["adult"]
    accountant = rdp.RdpAccountant(list(two_stage.OPACUS_ORDERS))
    event = dp_accounting.PoissonSampledDpEvent(
        data.sampling_probability, dp_accounting.GaussianDpEvent(0.913)
    )
    accountant.compose(event, data.num_steps)
    ours = two_stage.epsilon(0.913, sampling_probability=data.sampling_probability, num_steps=data.num_steps)
    assert ours.value == pytest.approx(accountant.get_epsilon(two_stage.DELTA), rel=1e-6)
    assert ours.order in two_stage.OPACUS_ORDERS


def test_a_finer_search_needs_less_noise():
    data = two_stage.DATASETS["adult"]
    parameters = {"sampling_probability": data.sampling_probability, "num_steps": data.num_steps}
    fine = two_stage.noise_multiplier(1.0, tolerance=1e-4, **parameters)
    assert fine <= two_stage.noise_multiplier(1.0, **parameters)


def test_split_budget():
    statistics, training = two_stage.split_budget(1.0)
    assert (statistics, training) == (0.1, 0.9)
    assert sum(two_stage.split_budget(8.0, statistics_share=0.3)) == 8.0


def test_published_figures_cover_the_datasets():
    for row in two_stage.PUBLISHED_F1:
        assert set(row.f1) == set(two_stage.DATASETS)
        assert all(0 < value < 100 for value in row.f1.values())
    f1 = {row.method: row.f1 for row in two_stage.PUBLISHED_F1}
    # On every data set AIM beats all the two-stage variants.
    for name in two_stage.DATASETS:
        assert f1["AIM"][name] > max(f1["DP-2Stage-U"][name], f1["DP-2Stage-O (best)"][name])


def test_entries():
    names = [entry.name for entry in two_stage.ENTRIES]
    assert len(set(names)) == len(names)
    assert all(entry.corrects in names for entry in two_stage.ENTRIES if isinstance(entry, Repair))


def test_bad_input():
    good = {"sampling_probability": 0.01, "num_steps": 10}
    for bad in (0.0, -1.0, math.nan, math.inf):
        with pytest.raises(ValueError, match="epsilon"):
            two_stage.noise_multiplier(bad, **good)
        with pytest.raises(ValueError, match="noise_multiplier"):
            two_stage.epsilon(bad, **good)
        with pytest.raises(ValueError, match="tolerance"):
            two_stage.noise_multiplier(1.0, tolerance=bad, **good)
        with pytest.raises(ValueError, match="epsilon"):
            two_stage.split_budget(bad)
    with pytest.raises(ValueError, match="num_steps"):
        two_stage.noise_multiplier(1.0, sampling_probability=0.01, num_steps=0)
    with pytest.raises(ValueError, match="sampling_probability"):
        two_stage.epsilon(1.0, sampling_probability=1.01, num_steps=1)
    with pytest.raises(ValueError, match="delta"):
        two_stage.epsilon(1.0, delta=0.0, **good)
    with pytest.raises(ValueError, match="statistics_share"):
        two_stage.split_budget(1.0, statistics_share=1.0)
    with pytest.raises(ValueError, match="reachable"):
        two_stage.noise_multiplier(1e-9, sampling_probability=1.0, num_steps=10)
