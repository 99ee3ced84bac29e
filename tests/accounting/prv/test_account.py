"""The accountant's contract: closed forms, both engines, limits and bad input."""

from __future__ import annotations

import contextlib
import functools
import math
from typing import Any

import mpmath as mp
import numpy as np
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from exactdp.accounting import prv, rdp
from exactdp.accounting.fdp import tradeoff
from exactdp.accounting.interval import Interval
from exactdp.accounting.pairs.approximate import ApproximateDP
from exactdp.accounting.pairs.dirichlet import Dirichlet
from exactdp.accounting.pairs.finite import Finite
from exactdp.accounting.pairs.gaussian import Gaussian
from exactdp.accounting.pairs.laplace import Laplace
from exactdp.accounting.pairs.pure import PureDP
from exactdp.accounting.prv import lattice, saddle
from exactdp.accounting.sampling.hidden import PoissonHidden
from exactdp.accounting.sampling.replace import PoissonReplaceGaussian
from exactdp.accounting.sampling.visible import PoissonVisible

SAMPLED = PoissonHidden(Gaussian(1.0), 0.01)


def _meet(first: Interval, second: Interval) -> bool:
    return first.lower <= second.upper and second.lower <= first.upper


# Truths from the tables of peers' failures: value, digits printed.
PEERS = [
    ([(PoissonHidden(Gaussian(0.9152900659868286), 0.002455931052913256), 40_769)], 1e-12, 5.573624914, 1e-9),
    ([(PoissonHidden(Gaussian(0.9152900659868286), 0.002455931052913256), 40_769)], 1e-10, 4.995824635, 1e-9),
    ([(SAMPLED, 1000)], 1e-13, 4.229811, 1e-6),
    ([(PoissonHidden(Gaussian(0.6), 0.001), 100_000)], 1e-12, 11.6866, 1e-4),
    ([(PoissonHidden(Gaussian(10.0), 0.001), 10**7)], 1e-10, 1.914489, 1e-6),
    ([(PoissonHidden(Gaussian(10.0), 0.001), 10**5)], 1e-5, 0.097296, 1e-6),
    ([(PoissonHidden(Gaussian(0.5), 0.1), 1000)], 1e-5, 126.1666, 1e-4),
    ([(PoissonHidden(Gaussian(0.3), 0.01), 1000)], 1e-5, 69.8157, 1e-4),
    ([(Gaussian(1.0, sensitivity=2.0), 1)], 1e-5, 9.9973, 1e-4),
    ([(PureDP(math.log(3.0)), 100)], 1e-5, 90.781538508, 1e-9),
    (
        [
            (SAMPLED, 1000),
            (PoissonHidden(Gaussian(1.5), 0.02), 500),
            (PoissonHidden(Gaussian(0.8), 0.002), 2000),
            (PoissonHidden(Gaussian(2.0), 0.05), 300),
            (PoissonHidden(Gaussian(1.2), 0.005), 1500),
            (Laplace(10.0), 20),
        ],
        1e-5,
        3.812444,
        1e-6,
    ),
]


@pytest.mark.parametrize(("composition", "delta", "truth", "unit"), PEERS)
def test_inputs_on_which_peers_fail(composition: Any, delta: float, truth: float, unit: float) -> None:
    found = prv.epsilon(composition, delta=delta)
    assert found.lower - unit <= truth <= found.upper + unit
    assert found.width <= 1e-6 * max(found.upper, 0.01)


@pytest.mark.parametrize(
    ("noise_multiplier", "q", "steps", "delta", "truth"),
    [
        (0.05, 0.1, 60, 1e-5, 3588.70717432996),
        (0.05, 0.01, 1000, 1e-5, 5219.3168555765),
        (0.05, 0.1, 60, 1e-20, 7115.24959142755),
    ],
)
def test_characteristic_functions_that_come_back(
    noise_multiplier: float, q: float, steps: int, delta: float, truth: float
) -> None:
    # Truths from the binomial mixture of Gaussians at 40 digits. |phi| is small, then near 1 again.
    found = prv.epsilon([(PoissonVisible(Gaussian(noise_multiplier), q), steps)], delta=delta)
    assert found.lower - 1e-9 <= truth <= found.upper + 1e-9
    assert found.width <= 1e-6 * found.upper


def test_characteristic_functions_near_zero() -> None:
    # Few steps, one of them hardly sampled: |phi| passes 1e-7, where log1p(|phi|^2 - 1) has lost its digits.
    # Truth from twelve 40-digit contours.
    composition = [
        (PoissonHidden(Gaussian(2.679361349696906), 0.18504365762904537), 40),
        (PoissonHidden(Gaussian(0.36966785236974853), 0.0001015743727683326), 1),
        (Gaussian(8.226314218400454), 1),
    ]
    found = prv.epsilon(composition, delta=3.01e-30)
    assert found.lower <= 23.1203273760303967 <= found.upper
    assert found.width <= 1e-6 * found.upper


def test_complex_log1p_is_accurate_everywhere() -> None:
    size = np.geomspace(1e-14, 2.0, 60)
    for angle in (0.0, 0.3, 1.5, 3.0):
        phi = size * np.exp(1j * angle)
        assert saddle.complex_log1p(phi - 1.0).real == pytest.approx(np.log(size), abs=1e-15 / size.min())
        good = size > 1e-7
        assert saddle.complex_log1p((phi - 1.0)[good]).real == pytest.approx(np.log(size[good]), abs=1e-8)
    tiny = np.array([1e-9 + 2e-9j])
    assert saddle.complex_log1p(tiny)[0].real == pytest.approx(1e-9, rel=1e-8)


def test_delta_goes_on_falling_where_a_plain_transform_floors() -> None:
    at_6, at_8 = prv.delta_curve([(SAMPLED, 1000)], epsilons=[6.0, 8.0])
    assert at_6.lower == pytest.approx(1.62e-19, rel=5e-3)
    assert at_8.lower == pytest.approx(3.1e-26, rel=2e-2)
    assert at_8.width <= 1e-6 * at_8.upper


@pytest.mark.parametrize(
    "composition",
    [
        [(SAMPLED, 1000)],
        [(PoissonHidden(Gaussian(0.7), 0.2), 60)],
        [(PoissonVisible(Gaussian(2.0), 0.3), 100)],
        [(Laplace(30.0), 4000)],
        [(SAMPLED, 300), (Laplace(20.0), 30)],
    ],
)
@pytest.mark.parametrize("delta", [1e-3, 1e-9, 1e-40])
def test_engines_agree(composition: Any, delta: float) -> None:
    contour = prv.epsilon(composition, delta=delta, engine="contour")
    lattice = prv.epsilon(composition, delta=delta, engine="lattice", tolerance=1e-3)
    assert _meet(contour, lattice)
    assert lattice.width <= 2e-3


@settings(max_examples=15, deadline=None, derandomize=True, phases=[Phase.generate])
@given(
    mu=st.floats(0.05, 3.0),
    count=st.integers(12, 60),
    log_delta=st.floats(-200.0, -2.0),
)
def test_engines_bracket_the_gaussian_closed_form(mu: float, count: int, log_delta: float) -> None:
    pair = Gaussian(math.sqrt(count) / mu)
    truth = prv.epsilon([(pair, count)], delta=math.exp(log_delta))
    assert truth.engine == "closed form"
    contour = prv.epsilon([(pair, count)], delta=math.exp(log_delta), engine="contour")
    assert _meet(truth, contour)
    assert contour.width <= 1e-6 * max(contour.upper, 0.01)
    lattice = prv.epsilon([(pair, count)], delta=math.exp(log_delta), engine="lattice", tolerance=1e-2)
    assert _meet(truth, lattice)


@settings(max_examples=12, deadline=None, derandomize=True, phases=[Phase.generate])
@given(epsilon0=st.floats(0.01, 2.0), count=st.integers(2, 200), log_delta=st.floats(-60.0, -1.0))
def test_engines_bracket_the_binomial(epsilon0: float, count: int, log_delta: float) -> None:
    composition = [(PureDP(epsilon0), count)]
    truth = prv.epsilon(composition, delta=math.exp(log_delta))
    assert truth.engine == "closed form"
    assert _meet(truth, prv.epsilon(composition, delta=math.exp(log_delta), engine="lattice", tolerance=0.05))


def test_composition_by_count_by_listing_and_in_any_order() -> None:
    other = PoissonHidden(Gaussian(2.0), 0.05)
    whole = prv.epsilon([(SAMPLED, 30), (other, 50)], delta=1e-6)
    listed = prv.epsilon([(other, 20), (SAMPLED, 10), (other, 30), (SAMPLED, 20)], delta=1e-6)
    assert _meet(whole, listed)
    assert listed.width <= 1e-6


def test_the_callers_list_is_left_alone() -> None:
    composition = [(SAMPLED, 100)]
    first = prv.epsilon(composition, delta=1e-6)
    assert composition == [(SAMPLED, 100)]
    assert prv.epsilon(composition, delta=1e-6) == first


def test_monotone_in_delta_steps_noise_and_sampling() -> None:
    def upper(noise: float, q: float, steps: int, delta: float) -> float:
        return prv.epsilon([(PoissonHidden(Gaussian(noise), q), steps)], delta=delta).upper

    base = upper(1.0, 0.01, 500, 1e-6)
    assert upper(1.0, 0.01, 500, 1e-5) < base < upper(1.0, 0.01, 501, 1e-6)
    assert upper(1.01, 0.01, 500, 1e-6) < base < upper(1.0, 0.0101, 500, 1e-6)


def test_limits() -> None:
    assert prv.epsilon([(SAMPLED, 0)], delta=1e-6) == Interval(0.0, 0.0, "closed form")
    assert prv.epsilon([(PoissonHidden(Gaussian(1.0), 0.0), 100)], delta=1e-6).upper == 0.0
    whole = prv.epsilon([(PoissonHidden(Gaussian(3.0), 1.0), 4)], delta=1e-6)
    assert whole == prv.epsilon([(Gaussian(3.0), 4)], delta=1e-6)
    # delta above the total variation distance: epsilon is 0.
    assert prv.epsilon([(PoissonHidden(Gaussian(1.0), 0.00105), 1)], delta=1e-3).upper == 0.0
    assert prv.epsilon([(PoissonHidden(Gaussian(1.0), 0.00105), 1)], delta=3e-4).lower > 0.0


def test_directions_are_composed_apart() -> None:
    remove = prv.epsilon([(SAMPLED, 1000)], delta=1e-5, direction="remove")
    add = prv.epsilon([(SAMPLED, 1000)], delta=1e-5, direction="add")
    assert remove.lower > add.upper
    assert prv.epsilon([(SAMPLED, 1000)], delta=1e-5) == remove


def test_tiny_noise_has_a_closed_form() -> None:
    found = prv.epsilon([(Gaussian(0.01), 1)], delta=1e-5)
    assert found.engine == "closed form"
    # mpmath at 50 digits.
    assert found.lower <= 5425.5098461477 + 1e-9
    assert found.upper >= 5425.5098461477 - 1e-9


BAD = [
    (lambda: prv.epsilon([(SAMPLED, 10)], delta=0.0), "delta"),
    (lambda: prv.epsilon([(SAMPLED, 10)], delta=1.0), "delta"),
    (lambda: prv.epsilon([(SAMPLED, 10)], delta=math.nan), "delta"),
    (lambda: prv.epsilon([(SAMPLED, 10)], delta=1e-301), "delta"),
    (lambda: prv.epsilon([], delta=1e-5), "composition"),
    (lambda: prv.epsilon([(1.0, 10)], delta=1e-5), "composition"),  # type: ignore[list-item]
    (lambda: prv.epsilon([SAMPLED], delta=1e-5), "composition"),  # type: ignore[list-item]
    (lambda: prv.epsilon([(SAMPLED, -1)], delta=1e-5), "num_steps"),
    (lambda: prv.epsilon([(SAMPLED, 1.5)], delta=1e-5), "num_steps"),  # type: ignore[list-item]
    (lambda: prv.epsilon([(SAMPLED, 10)], delta=1e-5, tolerance=0.0), "tolerance"),
    (lambda: prv.epsilon([(SAMPLED, 10)], delta=1e-5, engine="fft"), "engine"),  # type: ignore[arg-type]
    (lambda: prv.epsilon([(SAMPLED, 10)], delta=1e-5, direction="both"), "direction"),  # type: ignore[arg-type]
    (lambda: prv.delta([(SAMPLED, 10)], epsilon=-1.0), "epsilon"),
    (lambda: prv.delta([(SAMPLED, 10)], epsilon=math.inf), "epsilon"),
    (lambda: Gaussian(0.0), "noise_multiplier"),
    (lambda: Gaussian(math.nan), "noise_multiplier"),
    (lambda: Gaussian(-1.0), "noise_multiplier"),
    (lambda: Gaussian(1e-200), "noise_multiplier"),
    (lambda: PoissonHidden(Gaussian(1.0), 1.5), "sampling_probability"),
    (lambda: PoissonHidden(5, 0.1), "pair"),  # type: ignore[arg-type]
    (lambda: prv.epsilon([(SAMPLED, 10**400)], delta=1e-5), "num_steps"),
    (lambda: PoissonHidden(Gaussian(1.0), math.nan), "sampling_probability"),
]


@pytest.mark.parametrize(("call", "name"), BAD)
def test_bad_input_names_the_argument(call: Any, name: str) -> None:
    with pytest.raises(ValueError, match=name):
        call()


def test_threat_models_are_never_mixed() -> None:
    with pytest.raises(ValueError, match="coins hidden and visible"):
        prv.epsilon([(SAMPLED, 3), (PoissonVisible(Gaussian(1.0), 0.1), 3)], delta=1e-5)
    with pytest.raises(ValueError, match="adjacency add_remove and replace"):
        prv.epsilon([(SAMPLED, 3), (PoissonReplaceGaussian(1.0, 0.1), 3)], delta=1e-5)


def test_single_precision_parameters_are_taken_at_their_value() -> None:
    single = np.float32(1.1)
    assert prv.epsilon([(Gaussian(single), 3)], delta=1e-5) == prv.epsilon(
        [(Gaussian(float(single)), 3)], delta=1e-5
    )


@pytest.mark.parametrize("scaling", [1e3, 1.5e3, 1e5])
def test_steep_dirichlet_draws_are_not_private(scaling: float) -> None:
    # delta(1) is 1 to all digits; Renyi's bound is an independent upper end for epsilon.
    composition = [(Dirichlet(scaling, 3.0), 1)]
    assert prv.delta(composition, epsilon=1.0).lower > 1.0 - 1e-9
    found = prv.epsilon(composition, delta=1e-5)
    assert found.width <= 1e-6 * found.upper
    curve = functools.partial(rdp.dirichlet, scaling=scaling, offset=3.0)
    assert found.lower <= rdp.epsilon([(curve, 1)], delta=1e-5).value


@pytest.mark.parametrize(("epsilon0", "count"), [(100.0, 10), (1000.0, 10), (40.0, 300)])
def test_large_pure_losses(epsilon0: float, count: int) -> None:
    # P(all answers true) is 1 to 1e-17: delta(eps) = 1 - e^(eps - top) just below the top.
    found = prv.epsilon([(PureDP(epsilon0), count)], delta=1e-5)
    truth = count * epsilon0 + math.log1p(-1e-5)
    assert found.lower - 1e-9 * truth <= truth <= found.upper + 1e-9 * truth
    assert found.width <= 1e-6 * truth
    for engine in ("contour", "lattice"):
        with contextlib.suppress(ArithmeticError):  # it may have no answer, but no wrong one
            alone = prv.epsilon([(PureDP(epsilon0), count)], delta=1e-5, engine=engine)
            assert alone.lower - 1e-9 * truth <= truth <= alone.upper + 1e-9 * truth


@pytest.mark.parametrize(
    ("p", "q", "count", "delta", "truth"),
    [
        # 20 digits by exact summation (benchmarks/soundness).
        (
            (0.21723079681396484, 0.03816413879394531, 0.5004310607910156, 0.24417400360107422),
            (0.03585243225097656, 0.6430282592773438, 0.16793441772460938, 0.1531848907470703),
            3,
            8.40e-11,
            8.4728771178489189904,
        ),
        (
            (0.3174591064453125, 0.6483116149902344, 0.034229278564453125),
            (0.4660072326660156, 0.18147659301757812, 0.35251617431640625),
            61,
            1.29e-74,
            142.25292290462573230,
        ),
    ],
)
def test_atoms_at_the_ends_of_the_support(
    p: tuple[float, ...], q: tuple[float, ...], count: int, delta: float, truth: float
) -> None:
    found = prv.epsilon([(Finite(p=p, q=q), count)], delta=delta)
    assert found.lower <= truth <= found.upper
    assert found.width <= 1e-9 * truth


def test_no_order_at_all() -> None:
    # Moments of a Dirichlet draw are infinite from the order 1 + offset / scaling on.
    with pytest.raises(ArithmeticError, match="no mass|certif|no tilt"):
        prv.epsilon([(Dirichlet(1e30, 3.0), 3)], delta=1e-5)


def test_a_lower_end_beyond_the_search_is_finite() -> None:
    found = prv.epsilon([(Dirichlet(1e13, 1e-3), 1)], delta=1e-5)
    assert 1e14 < found.lower < math.inf and found.upper == math.inf


@pytest.mark.parametrize(("failure", "count"), [(0.00786, 100), (1e-6, 10_000), (0.5, 3), (1e-300, 7)])
def test_steps_that_only_fail(failure: float, count: int) -> None:
    """delta = 1 - (1 - failure)^count at every epsilon, and epsilon 0 above it."""
    steps = [(ApproximateDP(0.0, failure), count)]
    with mp.workdps(50):
        truth = -mp.expm1(count * mp.log1p(-mp.mpf(failure)))
        for epsilon in (0.0, 0.3, 50.0):
            found = prv.delta(steps, epsilon=epsilon)
            assert found.lower <= truth <= found.upper
            assert found.width <= 1e-13 * float(truth)
    if truth < 0.6:
        assert prv.epsilon(steps, delta=min(1.5 * max(float(truth), 1e-299), 0.9)).upper == 0.0
        assert prv.epsilon(steps, delta=max(0.5 * float(truth), 1e-300)).lower in (0.0, math.inf)
    mixed = [*steps, (ApproximateDP(0.0, 0.01), 2)]
    assert prv.delta(mixed, epsilon=1.0).upper >= float(truth)
    curve = tradeoff.curve(steps)
    assert curve.lower.fnr(0.1) == pytest.approx(max(0.9 - float(truth), 0.0), abs=1e-9)


@pytest.mark.parametrize("direction", ["remove", "add"])
@pytest.mark.parametrize(
    "composition",
    [
        [(PoissonHidden(Laplace(0.3), 0.2), 6)],  # a lattice answers
        [(PoissonHidden(Gaussian(0.33), 0.3), 2)],  # two steps, summed
        [(PoissonHidden(Gaussian(0.7), 0.3), 50)],  # a contour
    ],
)
def test_a_tolerance_of_delta_widens_and_contains(composition: Any, direction: Any) -> None:
    epsilons = [0.0, 1.0, 6.0, 12.0]
    wide = prv.delta_curve(composition, epsilons=epsilons, tolerance=1e-2, direction=direction)
    fine = prv.delta_curve(composition, epsilons=epsilons, tolerance=1e-5, direction=direction)
    for rough, sharp in zip(wide, fine, strict=True):
        assert rough.lower <= sharp.upper and sharp.lower <= rough.upper
        assert rough.width <= 1e-2 * rough.upper
        assert sharp.width <= max(1e-5, 1e-2 * (composition[0][1] == 2)) * sharp.upper


def test_a_lattice_serves_the_points_around_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[float] = []
    curve = lattice.Plan.curve

    def counted(self: lattice.Plan, **named: Any) -> lattice.Lattice:
        made.append(named["epsilon"])
        return curve(self, **named)

    monkeypatch.setattr(lattice.Plan, "curve", counted)
    composition = [(PoissonVisible(Dirichlet(scaling=1.3, offset=2.8), 0.011), 11)]
    points = [6.0, 6.2, 6.4, 6.6]
    found = prv.delta_curve(composition, epsilons=points, tolerance=1e-3, direction="remove")
    assert made == [6.0] and all(one.engine == "lattice" for one in found)
    assert [one.lower for one in found] == sorted((one.lower for one in found), reverse=True)


def test_tolerance_of_delta_is_checked() -> None:
    with pytest.raises(ValueError, match="tolerance must be finite and > 0, got 0"):
        prv.delta([(Gaussian(1.0), 1)], epsilon=1.0, tolerance=0.0)
