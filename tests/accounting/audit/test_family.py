"""Bounds within a family of mechanisms: near the truth from exact points, and seldom above it."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import special

from exactdp.accounting import prv
from exactdp.accounting.audit import family, threshold
from exactdp.accounting.audit.band import Band
from exactdp.accounting.fdp.tradeoff import tradeoff
from exactdp.accounting.pairs.gaussian import Gaussian
from exactdp.accounting.prv import Composition
from exactdp.accounting.sampling.hidden import PoissonHidden
from exactdp.accounting.threat import Adjacency, Coins, ThreatModel

MODEL = ThreatModel(Adjacency.ADD_REMOVE, Coins.HIDDEN, "all noisy gradient sums")
DELTA = 1e-5


def sampled(noise: float) -> Composition:
    return [(PoissonHidden(Gaussian(noise), 0.1), 50)]


def whole(noise: float) -> Composition:
    return [(Gaussian(noise), 4)]


def band_of(fpr: list[float], fnr: list[float]) -> Band:
    return Band(tuple(fpr), tuple(fpr), tuple(fnr), 0.95, 1000, "exact rates")


@pytest.mark.parametrize("make", [sampled, whole])
@pytest.mark.parametrize("start", [0.3, 1.0, 1.8])
def test_exact_rates_give_nearly_the_exact_epsilon(make: object, start: float) -> None:
    compositions = sampled if make is sampled else whole
    rates = [0.01, 0.1, 0.3]
    curve = tradeoff(compositions(1.0), fpr=rates, direction="remove")
    band = band_of(rates, [point.upper for point in curve])
    found = family.result(band, compositions, start=start, delta=DELTA, threat_model=MODEL)
    exact = prv.epsilon(compositions(1.0), delta=DELTA)
    assert 0.98 * exact.lower <= found.epsilon_lower <= exact.upper
    assert found.assumption == family.ASSUMPTION and found.confidence == 0.95 and found.trials == 1000


def test_blind_guessing_shows_nothing() -> None:
    found = family.result(band_of([0.3, 0.6], [0.7, 0.5]), whole, start=1.0, delta=DELTA, threat_model=MODEL)
    assert found.epsilon_lower == 0.0


def test_certain_tests_refute_all_noise_that_is_tried() -> None:
    found = family.result(band_of([1e-9], [1e-9]), whole, start=1.0, delta=DELTA, threat_model=MODEL)
    assert found.epsilon_lower > prv.epsilon(whole(0.7), delta=DELTA).upper


def test_it_is_seldom_above_the_truth() -> None:
    """Scores of a Gaussian mechanism with mu = 2; false alarms at 80 % confidence, of 60 audits."""
    rng, mu = np.random.default_rng(5), 2.0
    exact = prv.epsilon(whole(1.0), delta=DELTA).upper
    above, best = 0, []
    for _ in range(60):
        inside, outside = rng.normal(mu, 1.0, 400), rng.normal(0.0, 1.0, 400)
        band = threshold.order_statistics(inside, outside, seed=0, confidence=0.8)
        found = family.result(band, whole, start=1.0, delta=DELTA, threat_model=MODEL)
        above += found.epsilon_lower > exact
        best.append(found.epsilon_lower / exact)
    # Binomial(60, 0.2) exceeds 22 with probability below 1e-3.
    assert above <= 22
    assert np.median(best) > 0.75


@pytest.mark.parametrize(("name", "value"), [("start", 0.0), ("start", float("nan")), ("delta", 0.0)])
def test_bad_input(name: str, value: float) -> None:
    given = {"start": 1.0, "delta": DELTA} | {name: value}
    with pytest.raises(ValueError, match=name):
        family.result(band_of([0.1], [0.1]), whole, threat_model=MODEL, **given)


def test_points_are_chosen_by_distance_from_guessing() -> None:
    rates = np.geomspace(1e-3, 0.4, 9)
    fnr = special.ndtr(-special.ndtri(rates) - 1.0)
    fnr[4] = special.ndtr(-special.ndtri(rates[4]) - 2.0)  # one point tells more than all others
    alone = family.result(
        band_of([float(rates[4])], [float(fnr[4])]), whole, start=1.0, delta=DELTA, threat_model=MODEL
    )
    among = family.result(
        band_of(rates.tolist(), fnr.tolist()), whole, start=1.0, delta=DELTA, threat_model=MODEL
    )
    assert among.epsilon_lower == pytest.approx(alone.epsilon_lower, rel=5e-3)
