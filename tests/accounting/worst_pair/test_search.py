"""The search: silent where the theorem speaks, and finding what is there where it does not."""

from __future__ import annotations

import json

import numpy as np
import pytest

from exactdp.accounting import worst_pair
from exactdp.accounting.worst_pair import candidates


@pytest.mark.parametrize(
    ("scaling", "offset", "classes"),
    [(0.235, 3.0, 3), (0.235, 3.0, 10), (6.0, 0.5, 4), (2.0, 0.05, 2), (0.3, 0.25, 3)],
)
def test_no_pair_beats_where_dominance_is_proved(scaling, offset, classes):
    result = worst_pair.check(
        scaling=scaling, offset=offset, num_classes=classes, num_random=30, deltas=(1e-2, 1e-6), seed=5
    )
    assert result.proved and result.dominated and not result.beating
    assert result.worst_ratio <= 1.0 + 1e-9
    assert result.worst_renyi_ratio <= 1.0 + 1e-9
    # The ascents do climb: from spread-out pairs to (nearly) the vertices.
    assert min(result.ratios["ascent"]) > 0.99


def test_finds_the_pair_that_beats_the_vertices():
    result = worst_pair.check(
        scaling=1.0,
        offset=0.1,
        num_classes=4,
        num_random=10,
        num_ascents=1,
        deltas=(0.5, 1e-6),
        orders=(1.001, 1.09),
    )
    assert not result.proved and not result.dominated
    stick, renyi = sorted(result.beating, key=lambda pair: pair.order is not None)
    assert stick.order is None and renyi.epsilon is None
    assert stick.divergence.lower > stick.vertex.upper and renyi.divergence.lower > renyi.vertex.upper
    assert result.worst_ratio == pytest.approx(1.0476, abs=0.02)
    # The excess is confirmed by simulation-free means: the Rényi divergence in closed form.
    value = worst_pair.renyi(renyi.p, renyi.p_prime, order=renyi.order, scaling=1.0, offset=0.1)[0]
    vertex = worst_pair.renyi(np.eye(4)[0], np.eye(4)[1], order=renyi.order, scaling=1.0, offset=0.1)[0]
    assert value > 1.01 * vertex


def test_result_is_json_and_reproducible():
    arguments = {
        "scaling": 0.5,
        "offset": 0.2,
        "num_classes": 3,
        "num_random": 5,
        "num_ascents": 1,
        "epsilons": (0.0, 1.0),
    }
    one, two = (worst_pair.check(**arguments, seed=11) for _ in range(2))
    assert json.loads(json.dumps(one.as_dict())) == two.as_dict()
    assert one.as_dict()["proved"] is False
    assert len(one.vertex_deltas) == len(one.epsilons) == len(one.ratios["faces"]) == 2


def test_candidates_lie_on_the_simplex():
    rng = np.random.default_rng(0)
    for classes in (2, 3, 10):
        for name, (p, q) in candidates.families(classes, num_random=40, rng=rng).items():
            for points in (p, q):
                assert points.shape[1] == classes and np.all(points >= 0.0), name
                assert np.allclose(points.sum(axis=1), 1.0, atol=1e-12), name
    p, q = candidates.neighbours(np.array([0.5, 0.5, 0]), np.array([0.0, 0, 1]), share=0.4, limit=50, rng=rng)
    assert p.shape == (6, 3)
    assert np.allclose(p.sum(axis=1), 1.0) and np.allclose(q.sum(axis=1), 1.0)
    moved = np.abs(p - [0.5, 0.5, 0]).sum(axis=1) + np.abs(q - [0.0, 0, 1]).sum(axis=1)
    assert sorted(np.round(moved, 12)) == [0.4] * 4 + [0.8] * 2


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"scaling": -1.0}, "scaling"),
        ({"offset": 0.0}, "offset"),
        ({"num_classes": 1}, "num_classes"),
        ({"num_classes": 2000}, "num_classes"),
        ({"num_random": 0}, "num_random"),
        ({"num_ascents": -1}, "num_ascents"),
        ({"epsilons": []}, "epsilons"),
        ({"epsilons": [100.0]}, "epsilons"),
        ({"epsilons": [0.1], "deltas": [0.01]}, "deltas"),
        ({"deltas": [0.9]}, "deltas"),
        ({"deltas": []}, "deltas"),
        ({"orders": [20.0]}, "orders"),
        ({"orders": []}, "orders"),
    ],
)
def test_bad_arguments(changed, message):
    with pytest.raises(ValueError, match=message):
        worst_pair.check(**({"scaling": 0.235, "offset": 3.0, "num_classes": 3} | changed))
