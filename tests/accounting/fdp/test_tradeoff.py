"""Certified trade-off curves against closed forms, Neyman-Pearson by hand, and the other direction."""

from __future__ import annotations

import itertools
import math

import hypothesis
import numpy as np
import pytest
from hypothesis import strategies as st

from exactdp.accounting import prv
from exactdp.accounting.fdp import tradeoff
from exactdp.accounting.fdp.gaussian import GaussianTradeoff
from exactdp.accounting.pairs.finite import Finite
from exactdp.accounting.pairs.gaussian import Gaussian
from exactdp.accounting.pairs.pure import PureDP
from exactdp.accounting.sampling.hidden import PoissonHidden

FPR = [0.0, 1e-9, 1e-4, 0.01, 0.1, 0.3, 0.5, 0.9, 0.999, 1.0]
SUBSAMPLED = [(PoissonHidden(Gaussian(1.0), 0.1), 1)]


def neyman_pearson(p: tuple[float, ...], q: tuple[float, ...], count: int, fpr: float) -> float:
    """Least fnr at `fpr` (null q) of `count` draws, by sorting the likelihood ratios of all outcomes."""
    outcomes = []
    for draw in itertools.product(range(len(p)), repeat=count):
        outcomes.append((math.prod(p[i] for i in draw), math.prod(q[i] for i in draw)))
    outcomes.sort(key=lambda o: -(o[0] / o[1] if o[1] else math.inf))
    tpr = used = 0.0
    for a, b in outcomes:
        if b == 0.0:
            tpr += a
            continue
        share = min(1.0, max(0.0, fpr - used) / b)
        tpr, used = tpr + share * a, used + b
    return max(0.0, 1.0 - tpr)


def test_randomised_response_is_exact():
    # Answering at random with probability .8, else the truth, over 2 values: the odds are .6 : .4.
    curve = tradeoff.tradeoff([(PureDP(math.log(1.5)), 1)], fpr=[0.0, 0.1, 0.2, 0.4, 0.5, 1.0])
    for interval, truth in zip(curve, [1.0, 0.85, 0.7, 0.4, 1.0 / 3.0, 0.0], strict=True):
        assert interval.lower - 1e-15 <= truth <= interval.upper + 1e-15
        assert interval.width < 1e-13


@pytest.mark.parametrize("direction", tradeoff.DIRECTIONS)
@pytest.mark.parametrize("mu", [1e-3, 0.3, 1.0, 4.0, 10.0, 30.0])
def test_gaussian_curve_lies_inside(mu, direction):
    truth = GaussianTradeoff(mu)
    curve = tradeoff.tradeoff([(Gaussian(1.0 / mu), 1)], fpr=FPR, direction=direction)
    for fpr, interval in zip(FPR, curve, strict=True):
        assert interval.lower - 1e-15 <= truth(fpr) <= interval.upper + 1e-15
        assert interval.width <= 1e-4


def test_composed_gaussians_are_one():
    parts = [(Gaussian(10.0), 100), (Gaussian(2.0), 4)]
    truth = GaussianTradeoff(math.sqrt(2.0))
    for fpr, interval in zip(FPR, tradeoff.tradeoff(parts, fpr=FPR, tolerance=1e-6), strict=True):
        assert interval.lower <= truth(fpr) <= interval.upper
        assert interval.width <= 1e-6


@pytest.mark.parametrize("count", [1, 2])
@pytest.mark.parametrize(
    ("p", "q"),
    [
        ((0.6, 0.4, 0.0), (0.3, 0.5, 0.2)),
        ((0.25, 0.75), (0.5, 0.5)),
        ((0.1, 0.2, 0.3, 0.4), (0.4, 0.1, 0.2, 0.3)),
    ],
)
def test_finite_pairs_against_sorting(p, q, count):
    rates = [0.0, 0.05, 0.2, 0.6, 1.0]
    for direction, (alternative, null) in {"remove": (p, q), "add": (q, p)}.items():
        curve = tradeoff.tradeoff([(Finite(p, q), count)], fpr=rates, direction=direction)
        for fpr, interval in zip(rates, curve, strict=True):
            truth = neyman_pearson(alternative, null, count, fpr)
            assert interval.lower - 1e-12 <= truth <= interval.upper + 1e-12
            assert interval.width <= (1e-12 if count == 1 and len(p) == 2 else 1e-4)


@hypothesis.settings(max_examples=25)
@hypothesis.given(
    weights=st.lists(st.tuples(st.floats(0.01, 1.0), st.floats(0.01, 1.0)), min_size=2, max_size=5),
    fpr=st.floats(0.0, 1.0),
)
def test_random_finite_pairs(weights, fpr):
    raw_p, raw_q = (np.array(column) for column in zip(*weights, strict=True))
    p, q = tuple((raw_p / raw_p.sum()).tolist()), tuple((raw_q / raw_q.sum()).tolist())
    (interval,) = tradeoff.tradeoff([(Finite(p, q), 1)], fpr=[fpr], direction="remove")
    assert interval.lower - 1e-9 <= neyman_pearson(p, q, 1, fpr) <= interval.upper + 1e-9
    assert interval.width <= 1e-4


def test_directions_are_inverses_and_worst_is_below_both():
    rates = [0.01, 0.1, 0.3, 0.5, 0.9]
    remove = tradeoff.tradeoff(SUBSAMPLED, fpr=rates, direction="remove", tolerance=1e-6)
    back = tradeoff.tradeoff(SUBSAMPLED, fpr=[i.midpoint for i in remove], direction="add", tolerance=1e-6)
    for fpr, interval in zip(rates, back, strict=True):
        assert abs(interval.midpoint - fpr) < 2e-5  # slopes of up to ten turn 1e-6 into 1e-5
    add = tradeoff.tradeoff(SUBSAMPLED, fpr=rates, direction="add")
    worst = tradeoff.tradeoff(SUBSAMPLED, fpr=rates)
    for one, other, least in zip(remove, add, worst, strict=True):
        assert least.lower <= min(one.upper, other.upper)
    # The two directions of a subsampled mechanism differ by far more than the widths.
    assert abs(remove[-1].midpoint - add[-1].midpoint) > 1e-2


def test_subsampled_gaussian_against_its_mixture():
    # Null N(0,1), alternative .9 N(0,1) + .1 N(1,1): the best test is a threshold.
    threshold = 1.3
    from scipy import special

    fpr = float(special.ndtr(-threshold))
    truth = 0.9 * float(special.ndtr(threshold)) + 0.1 * float(special.ndtr(threshold - 1.0))
    (interval,) = tradeoff.tradeoff(SUBSAMPLED, fpr=[fpr], direction="remove", tolerance=1e-8)
    assert truth in interval
    assert interval.width <= 1e-8


def test_curve_brackets_and_gives_delta_back():
    bracket = tradeoff.curve(SUBSAMPLED)
    for fpr, interval in zip(FPR, tradeoff.tradeoff(SUBSAMPLED, fpr=FPR, tolerance=1e-6), strict=True):
        assert bracket.lower(fpr) <= interval.upper + 1e-12
        assert bracket.upper(fpr) >= interval.lower - 1e-12
    for epsilon in [0.0, 0.1, 0.3]:
        delta = prv.delta(SUBSAMPLED, epsilon=epsilon)
        assert bracket.upper.delta(epsilon) - 1e-12 <= delta.upper
        assert bracket.lower.delta(epsilon) + 1e-12 >= delta.lower
        assert bracket.lower.delta(epsilon) - bracket.upper.delta(epsilon) < 2e-4


def test_revealing_mass_shows_at_zero():
    pair = Finite((0.5, 0.5, 0.0), (0.0, 0.5, 0.5))
    (interval,) = tradeoff.tradeoff([(pair, 3)], fpr=[0.0])
    assert 0.125 in interval
    assert interval.width < 1e-11


def test_nothing_released_is_the_diagonal():
    curve = tradeoff.tradeoff([(PoissonHidden(Gaussian(1.0), 0.0), 10)], fpr=[0.0, 0.25, 1.0])
    for truth, interval in zip([1.0, 0.75, 0.0], curve, strict=True):
        assert interval.lower - 1e-15 <= truth <= interval.upper + 1e-15
        assert interval.width < 1e-12


@pytest.mark.parametrize(
    ("change", "name"),
    [
        ({"fpr": [1.5]}, "fpr"),
        ({"fpr": [math.nan]}, "fpr"),
        ({"direction": "both"}, "direction"),
        ({"tolerance": 0.0}, "tolerance"),
    ],
)
def test_bad_input(change, name):
    with pytest.raises(ValueError, match=name):
        tradeoff.tradeoff(SUBSAMPLED, **({"fpr": [0.1]} | change))
    with pytest.raises(ValueError, match="composition"):
        tradeoff.tradeoff([], fpr=[0.1])
    with pytest.raises(ValueError, match="smallest_fpr"):
        tradeoff.curve(SUBSAMPLED, smallest_fpr=0.5)
