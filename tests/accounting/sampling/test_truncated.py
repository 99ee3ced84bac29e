"""Truncated Poisson batches: binomial tails from above, and the claim against every small data set."""

from __future__ import annotations

import itertools
import math

import mpmath
import numpy as np
import pytest

from exactdp.accounting import prv
from exactdp.accounting.pairs.finite import Finite
from exactdp.accounting.pairs.gaussian import Gaussian
from exactdp.accounting.prv import Composition
from exactdp.accounting.sampling import truncated
from exactdp.accounting.sampling.hidden import PoissonHidden
from exactdp.accounting.sampling.replace import PoissonReplaceGaussian
from exactdp.accounting.sampling.visible import PoissonVisible


def tail(n: int, q: float, c: int) -> mpmath.mpf:
    """P[Binomial(n, q) >= c] to 40 digits, summed upwards or downwards from c, whichever way terms fall."""
    with mpmath.workdps(50):
        rate = mpmath.mpf(q)
        mass = mpmath.exp(
            mpmath.loggamma(n + 1) - mpmath.loggamma(c + 1) - mpmath.loggamma(n - c + 1)
        ) * mpmath.exp(c * mpmath.log(rate) + (n - c) * mpmath.log(1 - rate))
        odds, total, k = rate / (1 - rate), mpmath.mpf(0), c
        upwards = c > n * q
        term = mass if upwards else mass * c / ((n - c + 1) * odds)
        if not upwards:
            k -= 1
        while term > total * mpmath.mpf(10) ** -40 and 0 <= k <= n:
            total += term
            if upwards:
                term *= (n - k) * odds / (k + 1)
                k += 1
            else:
                term *= k / ((n - k + 1) * odds)
                k -= 1
        return total if upwards else 1 - total


@pytest.mark.parametrize(
    ("n", "q", "c"),
    [
        (2, 0.5, 1),
        (3, 0.9, 2),
        (10, 0.01, 9),
        (100, 0.5, 20),
        (1000, 0.3, 310),
        (60_000, 400 / 60_000, 512),
        (60_000, 400 / 60_000, 900),
        (60_000, 400 / 60_000, 390),
        (1_000_000, 1e-6, 30),
        (50_000_000, 1e-4, 6_000),
    ],
)
def test_the_tail_is_bounded_closely_from_above(n: int, q: float, c: int) -> None:
    exact = float(mpmath.log(tail(n, q, c)))
    bound = truncated.log_overflow(n, sampling_probability=q, capacity=c)
    assert exact <= bound <= exact + 1e-11 + 1e-14 * n * math.log(n)
    probability = truncated.overflow_probability(n, sampling_probability=q, capacity=c)
    assert tail(n, q, c) <= probability <= 1.0


def test_the_ends_of_the_tail() -> None:
    log_overflow = truncated.log_overflow
    assert log_overflow(10, sampling_probability=0.5, capacity=10) == -math.inf
    assert log_overflow(10, sampling_probability=0.0, capacity=1) == -math.inf
    assert log_overflow(10, sampling_probability=1.0, capacity=9) == 0.0
    assert log_overflow(10**6, sampling_probability=0.5, capacity=10) == 0.0
    # Below every float, yet never rounded to nothing.
    assert log_overflow(10_000, sampling_probability=1e-4, capacity=5_000) < -1000.0
    assert truncated.overflow_probability(10_000, sampling_probability=1e-4, capacity=5_000) > 0.0
    assert truncated.failure(10, sampling_probability=0.5, capacity=10) is None


def kept(drawn: tuple[int, ...], capacity: int, rule: str) -> list[tuple[tuple[int, ...], float]]:
    """Which of the drawn records a batch may hold, with probabilities."""
    if len(drawn) <= capacity:
        return [(drawn, 1.0)]
    if rule == "first":
        return [(drawn[:capacity], 1.0)]
    if rule == "last":
        return [(drawn[-capacity:], 1.0)]
    subsets = list(itertools.combinations(drawn, capacity))
    return [(subset, 1.0 / len(subsets)) for subset in subsets]


def batches(
    present: tuple[int, ...], q: float, capacity: int, rule: str
) -> dict[tuple[bool, tuple[int, ...]], float]:
    """Law of (whether record 0's coin fell, kept records): the coin is tossed though it be absent."""
    law: dict[tuple[bool, tuple[int, ...]], float] = {}
    others = [i for i in present if i != 0]
    for coins in itertools.product((0, 1), repeat=len(others) + 1):
        chance = math.prod(q if coin else 1.0 - q for coin in coins)
        drawn = tuple(i for i, coin in zip(others, coins[1:], strict=True) if coin)
        if coins[0] and 0 in present:
            drawn = (0, *drawn)
        for subset, weight in kept(drawn, capacity, rule):
            at = (bool(coins[0]), subset)
            law[at] = law.get(at, 0.0) + chance * weight
    return law


GRID, STEP = np.linspace(-14.0, 14.0, 2_801, retstep=True)


def gaussian_release(
    values: np.ndarray, present: tuple[int, ...], q: float, c: int, rule: str, s: float
) -> np.ndarray:
    """Cell probabilities of the noised sum, one row for either way record 0's coin fell."""
    rows = np.zeros((2, GRID.size))
    for (coin, subset), weight in batches(present, q, c, rule).items():
        mean = float(values[list(subset)].sum())
        rows[int(coin)] += (
            weight * np.exp(-((GRID - mean) ** 2) / (2 * s * s)) * STEP / (s * math.sqrt(2 * math.pi))
        )
    return rows


def hockey_stick(p: np.ndarray, q: np.ndarray, epsilon: float) -> float:
    return float(np.maximum(p - math.exp(epsilon) * q, 0.0).sum())


def claimed(composition: Composition, *, n: int, q: float, c: int, epsilon: float) -> float:
    """The untruncated delta with the charge for truncation added."""
    delta = prv.delta(composition, epsilon=epsilon).upper
    steps = composition[0][1]
    return truncated.charged_delta(delta, num_records=n, sampling_probability=q, capacity=c, num_steps=steps)


VALUES = [np.array(v, float) for v in itertools.product((1.0, -1.0), (1.0, -1.0), (1.0, -1.0))]


@pytest.mark.parametrize("rule", ["uniform", "first", "last"])
@pytest.mark.parametrize(("q", "c", "s"), [(0.3, 1, 0.7), (0.6, 1, 1.5), (0.4, 2, 0.5)])
def test_add_remove_claims_hold_for_every_small_data_set(rule: str, q: float, c: int, s: float) -> None:
    # Record 0 is added to, or removed from, two others. By convention C = 2 never drops from a set of two, so
    # there n counts the larger data set.
    n = 2 if c == 1 else 3
    exceeded = 0.0
    for epsilon in (0.0, 0.3, 1.0, 2.0):
        hidden = [(PoissonHidden(Gaussian(s), q), 1)]
        visible = [(PoissonVisible(Gaussian(s), q), 1)]
        claim = claimed(hidden, n=n, q=q, c=c, epsilon=epsilon)
        seen_claim = claimed(visible, n=n, q=q, c=c, epsilon=epsilon)
        for values in VALUES:
            larger = gaussian_release(values, (0, 1, 2), q, c, rule, s)
            smaller = gaussian_release(values, (1, 2), q, c, rule, s)
            for p, r in ((larger, smaller), (smaller, larger)):
                delta = hockey_stick(p.sum(axis=0), r.sum(axis=0), epsilon)
                assert delta <= claim + 1e-6
                assert hockey_stick(p, r, epsilon) <= seen_claim + 1e-6
                exceeded = max(exceeded, delta - prv.delta(hidden, epsilon=epsilon).lower)
    if rule != "last" and c == 1:
        # Truncation is not free: without the charge the claim would be false.
        assert exceeded > 1e-4


def test_replacement_claims_hold_for_every_small_data_set() -> None:
    q, c, s = 0.5, 1, 0.8
    for epsilon, rule in itertools.product((0.0, 0.5, 1.5), ("uniform", "first", "last")):
        claim = claimed([(PoissonReplaceGaussian(s, q), 1)], n=3, q=q, c=c, epsilon=epsilon)
        for values in VALUES:
            other = values * np.array([-1.0, 1.0, 1.0])
            p, r = (gaussian_release(v, (0, 1, 2), q, c, rule, s).sum(axis=0) for v in (values, other))
            assert hockey_stick(p, r, epsilon) <= claim + 1e-6


def test_two_steps_compose() -> None:
    # The second step is the first's equal: the product of two laws, on a coarser grid.
    q, c, s, epsilon = 0.5, 1, 1.0, 0.5
    claim = claimed([(PoissonHidden(Gaussian(s), q), 2)], n=2, q=q, c=c, epsilon=epsilon)
    for values in VALUES:
        p, r = (
            gaussian_release(values, present, q, c, "uniform", s).sum(axis=0).reshape(-1)[::4] * 4.0
            for present in ((0, 1, 2), (1, 2))
        )
        for one, two in ((p, r), (r, p)):
            assert hockey_stick(np.outer(one, one), np.outer(two, two), epsilon) <= claim + 1e-5


def test_randomised_response_of_whether_a_record_is_in_the_batch() -> None:
    # Answers truthfully with probability 3/4 whether the batch holds record 0.
    q, c = 0.7, 1
    table = np.array([0.75, 0.25])
    base = Finite(tuple(table), tuple(table[::-1]))
    for epsilon in (0.0, 0.2, 0.6, 1.0):
        claim = claimed([(PoissonHidden(base, q), 1)], n=2, q=q, c=c, epsilon=epsilon)
        laws = []
        for present in ((0, 1, 2), (1, 2)):
            held = sum(w for (_, s), w in batches(present, q, c, "uniform").items() if 0 in s)
            laws.append(held * table + (1.0 - held) * table[::-1])
        for p, r in (laws, laws[::-1]):
            assert hockey_stick(p, r, epsilon) <= claim + 1e-12


def test_the_charge_is_below_the_coupling_bound() -> None:
    n, q, c, steps, delta, epsilon = 60_000, 400 / 60_000, 480, 10_000, 1e-6, 3.0
    eta = truncated.overflow_probability(n, sampling_probability=q, capacity=c)
    charged = truncated.charged_delta(
        delta, num_records=n, sampling_probability=q, capacity=c, num_steps=steps
    )
    assert delta < charged <= delta + steps * q * eta * (1 + 1e-12)
    assert charged - delta < 1e-3 * steps * (1.0 + math.exp(epsilon)) * eta
    failure = truncated.failure(n, sampling_probability=q, capacity=c)
    assert failure is not None
    composition = [(PoissonHidden(Gaussian(1.0), q), steps)]
    base = prv.epsilon(composition, delta=delta)
    whole = prv.epsilon([*composition, (failure, steps)], delta=charged)
    assert whole.upper == pytest.approx(base.upper, rel=1e-6)
    free = truncated.charged_delta(delta, num_records=n, sampling_probability=q, capacity=n, num_steps=steps)
    assert free == delta


@pytest.mark.parametrize("multiple", [1, 8, 64])
@pytest.mark.parametrize(("n", "q"), [(60_000, 400 / 60_000), (1_000, 0.5), (50, 0.02), (20, 1.0), (20, 0.0)])
def test_the_capacity_is_the_smallest_that_serves(n: int, q: float, multiple: int) -> None:
    steps, log10_overflow = 5_000, -8.0
    c = truncated.capacity_for(
        n, sampling_probability=q, num_steps=steps, log10_overflow=log10_overflow, multiple=multiple
    )
    assert c % multiple == 0

    def charge(capacity: int) -> float:
        return steps * q * truncated.overflow_probability(n, sampling_probability=q, capacity=capacity)

    assert charge(c) <= 10.0**log10_overflow
    assert c == multiple or charge(c - multiple) > 10.0**log10_overflow


def test_bad_arguments_are_refused() -> None:
    good = {"sampling_probability": 0.1, "capacity": 5}
    for n, bad, message in [
        (0, {}, "num_records"),
        (2.5, {}, "num_records"),
        (10, {"sampling_probability": 1.1}, "sampling_probability"),
        (10, {"sampling_probability": float("nan")}, "sampling_probability"),
        (10, {"capacity": 0}, "capacity"),
    ]:
        for function in (truncated.log_overflow, truncated.overflow_probability, truncated.failure):
            with pytest.raises(ValueError, match=f"{message} must be"):
                function(n, **(good | bad))  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="capacity must be at least num_records"):
        truncated.failure(10, sampling_probability=1.0, capacity=9)
    plan = {"sampling_probability": 0.1, "num_steps": 5, "log10_overflow": -8.0}
    for bad, message in [
        ({"log10_overflow": 0.5}, "log10_overflow"),
        ({"num_steps": 0}, "num_steps"),
        ({"multiple": 0}, "multiple"),
    ]:
        with pytest.raises(ValueError, match=f"{message} must be"):
            truncated.capacity_for(10, **(plan | bad))  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="delta must be"):
        truncated.charged_delta(1.5, num_records=10, num_steps=1, **good)  # type: ignore[arg-type]
