"""Paper A's rule: the recovered cell of Table 7, the printed conversion, and the formulas at 50 digits."""

from __future__ import annotations

import math

import mpmath
import pytest
from scipy import special

from exactdp.accounting.printed import dirichlet as printed
from exactdp.accounting.printed.source import PrintedBound

CELL = printed.TABLE_7_CIFAR10
RULE = {
    "offset": CELL.offset,
    "sampling_probability": CELL.sampling_probability,
    "num_steps": CELL.num_steps,
    "delta": CELL.delta,
}


def test_table_7_with_the_repaired_conversion():
    found = printed.largest_scaling(1.0, conversion="balle", **RULE)
    assert found is not None
    assert math.floor(found * 1e4) / 1e4 == 0.2348
    assert round(found, 4) == 0.2349
    assert round(found, 3) == CELL.scaling == 0.235
    assert printed.epsilon(found, conversion="balle", **RULE).value <= 1.0
    assert printed.epsilon(found * (1 + 1e-6), conversion="balle", **RULE).value > 1.0


def test_epsilon_at_exactly_the_printed_scaling():
    bound = printed.epsilon(0.235, conversion="balle", **RULE)
    assert bound.value == pytest.approx(1.0014, abs=5e-5)
    assert bound.order == 12.0


def test_mironov_does_not_explain_the_table():
    found = printed.largest_scaling(1.0, conversion="mironov", **RULE)
    assert found is not None
    assert round(found, 3) == 0.149


def test_factor_three_has_a_floor():
    # As r -> 0 every divergence of the draw vanishes, the factor 3 does not.
    bound = printed.epsilon(1e-4, conversion="balle", **RULE)
    assert 0.675 < bound.value < 0.676
    assert printed.largest_scaling(0.675, conversion="balle", **RULE) is None
    assert printed.epsilon(1e-4, conversion="balle", factor_three=False, **RULE).value < 0.01


def test_printed_conversion_certifies_nothing_below_3_9():
    least = printed.least_printed_term(1e-5)
    assert least.value == pytest.approx(3.9031, abs=5e-5)
    assert least.order == pytest.approx(17.1, abs=0.1)
    whole = min((printed.conversion_term(order, delta=1e-5), order) for order in range(2, 2000))
    assert whole[1] == 17
    assert least.value <= whole[0] < 3.904
    for scaling in (1e-3, 0.05, 0.235):
        assert printed.epsilon(scaling, **RULE).value > least.value
    assert printed.largest_scaling(3.9, factor_three=False, **RULE) is None
    assert printed.largest_scaling(1.0, curve="exact", **RULE) is None


def test_conversion_terms_against_50_digits():
    for order in (2, 3.7, 12, 64):
        with mpmath.workdps(50):
            lam, log_delta = mpmath.mpf(order), mpmath.log(mpmath.mpf(1e-5))
            exact = {
                "printed": (mpmath.log(lam - 1) - log_delta + lam * mpmath.log(lam)) / (lam - 1),
                "balle": mpmath.log((lam - 1) / lam) - (log_delta + mpmath.log(lam)) / (lam - 1),
                "mironov": -log_delta / (lam - 1),
            }
        for name, value in exact.items():
            found = printed.conversion_term(order, delta=1e-5, conversion=name)
            assert found == pytest.approx(float(value), rel=1e-13)
        assert exact["printed"] > exact["balle"]


def _by_hand(scaling: float, order: int, factor: int, exact_curve: bool) -> mpmath.mpf:
    """ε_o(λ) of Eq. (1) with the repaired conversion, at 50 digits."""
    with mpmath.workdps(50):
        r, alpha, q = mpmath.mpf(scaling), mpmath.mpf(3), mpmath.mpf(0.005)

        def growth(ell: int) -> mpmath.mpf:
            if exact_curve:
                total = mpmath.loggamma(alpha - (ell - 1) * r) + mpmath.loggamma(alpha + ell * r)
                return total - mpmath.loggamma(alpha) - mpmath.loggamma(alpha + r)
            return (ell - 1) * ell * r**2 * mpmath.polygamma(1, alpha - (ell - 1) * r)

        total = (1 - q) ** (order - 1) * (order * q - q + 1)
        for ell in range(2, order + 1):
            weight = mpmath.binomial(order, ell) * (1 - q) ** (order - ell) * q**ell
            total += weight * mpmath.exp(growth(ell)) * (factor if ell >= 3 else 1)
        lam = mpmath.mpf(order)
        conversion = mpmath.log((lam - 1) / lam) - (mpmath.log(mpmath.mpf(1e-5)) + mpmath.log(lam)) / (
            lam - 1
        )
        return 20_000 * mpmath.log(total) / (lam - 1) + conversion


@pytest.mark.parametrize("factor", [1, 3])
@pytest.mark.parametrize("curve", ["printed", "exact"])
@pytest.mark.parametrize("scaling", [0.1, 0.235, 0.9])
def test_the_rule_against_50_digits(scaling: float, curve: str, factor: int):
    bound = printed.epsilon(scaling, conversion="balle", factor_three=factor == 3, curve=curve, **RULE)
    orders = range(2, math.ceil(1 + 3.0 / scaling))
    exact = min((_by_hand(scaling, order, factor, curve == "exact"), order) for order in orders)
    assert bound.value == pytest.approx(float(exact[0]), rel=1e-10)
    assert bound.order == exact[1]


def test_each_repair_allows_more():
    results = [
        printed.largest_scaling(1.0, conversion="mironov", **RULE),
        printed.largest_scaling(1.0, conversion="balle", **RULE),
        printed.largest_scaling(1.0, conversion="optimal", **RULE),
        printed.largest_scaling(1.0, conversion="optimal", curve="exact", **RULE),
        printed.largest_scaling(1.0, conversion="optimal", curve="exact", factor_three=False, **RULE),
    ]
    assert None not in results
    assert results == sorted(results, key=lambda value: value or 0.0)


def test_largest_scaling_grows_with_epsilon():
    found = [printed.largest_scaling(target, conversion="balle", **RULE) for target in (1.0, 2.0, 3.0, 4.0)]
    assert None not in found
    assert found == sorted(found, key=lambda value: value or 0.0)


def test_limits():
    assert printed.epsilon(3.0, **RULE).value == math.inf  # r = α: no whole order
    assert math.isnan(printed.epsilon(3.0, **RULE).order)
    for nothing in ({"num_steps": 0}, {"sampling_probability": 0.0}):
        bound = printed.epsilon(0.235, conversion="printed", **(RULE | nothing))
        assert bound.value == pytest.approx(printed.conversion_term(12, delta=1e-5), rel=0.3)
        assert printed.epsilon(0.235, conversion="optimal", **(RULE | nothing)).value == 0.0


def test_kappa_is_the_slope_of_the_expected_loss():
    # E[−log rho_y] = ψ(r + Kα) − ψ(r s_y + α); with ds/dz = s(1 − s), cross-entropy's own slope is −(1 − s).
    r, alpha, z = 0.7, 2.0, 0.3
    with mpmath.workdps(40):

        def loss(logit: mpmath.mpf) -> mpmath.mpf:
            s = 1 / (1 + mpmath.exp(-logit))
            return mpmath.digamma(r + 2 * alpha) - mpmath.digamma(r * s + alpha)

        s = 1 / (1 + mpmath.exp(-mpmath.mpf(z)))
        exact = mpmath.diff(loss, z) / -(1 - s)
    found = printed.kappa(r, offset=alpha, true_class_probability=float(s))
    assert found == pytest.approx(float(exact), rel=1e-12)


def test_effective_learning_rate():
    found = printed.effective_learning_rate(0.1, scaling=0.235, offset=3.0)
    product = 0.235 * 0.9
    assert found == pytest.approx(0.1 * product * float(special.polygamma(1, product + 3.0)), rel=1e-14)
    assert printed.effective_learning_rate(0.1, scaling=0.0, offset=3.0) == 0.0


def test_entries_name_what_they_correct():
    names = [entry.name for entry in printed.ENTRIES]
    assert len(set(names)) == len(names)
    assert isinstance(printed.ENTRIES[0], PrintedBound)
    assert all(entry.corrects in names for entry in printed.ENTRIES[1:])


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("scaling", 0.0),
        ("scaling", math.nan),
        ("offset", -1.0),
        ("sampling_probability", 1.5),
        ("num_steps", -1),
        ("num_steps", 2.5),
        ("delta", 0.0),
        ("delta", 1.0),
        ("conversion", "lemma"),
        ("curve", "loose"),
    ],
)
def test_bad_input(name: str, value: object):
    arguments = {"scaling": 0.2, **RULE, name: value}
    scaling = arguments.pop("scaling")
    with pytest.raises(ValueError, match=name):
        printed.epsilon(scaling, **arguments)
    if name != "scaling":
        with pytest.raises(ValueError, match=name):
            printed.largest_scaling(1.0, **arguments)


def test_bad_targets_and_kappa():
    for bad in (0.0, -1.0, math.nan, math.inf):
        with pytest.raises(ValueError, match="epsilon"):
            printed.largest_scaling(bad, **RULE)
    with pytest.raises(ValueError, match="delta"):
        printed.least_printed_term(0.0)
    with pytest.raises(ValueError, match="conversion"):
        printed.conversion_term(2.0, delta=1e-5, conversion="optimal")
    with pytest.raises(ValueError, match="true_class_probability"):
        printed.kappa(1.0, offset=1.0, true_class_probability=1.5)
    with pytest.raises(ValueError, match="learning_rate"):
        printed.effective_learning_rate(-1.0, scaling=1.0, offset=1.0)
