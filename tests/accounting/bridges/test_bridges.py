"""Two independent engines, fed through the bridges, check ours."""

from __future__ import annotations

import builtins
import math

import numpy as np
import pytest

from exactdp.accounting import prv
from exactdp.accounting.bridges import dp_accounting, prv_accountant
from exactdp.accounting.pairs.approximate import ApproximateDP
from exactdp.accounting.pairs.gaussian import Gaussian
from exactdp.accounting.pairs.laplace import Laplace
from exactdp.accounting.pairs.pure import PureDP
from exactdp.accounting.sampling.hidden import PoissonHidden
from exactdp.accounting.sampling.visible import PoissonVisible

COMPOSITIONS = {
    "gaussian hidden": [(PoissonHidden(Gaussian(1.0), 0.01), 1000)],
    "gaussian": [(Gaussian(10.0), 100)],
    "laplace": [(Laplace(10.0), 20)],
    "laplace hidden": [(PoissonHidden(Laplace(2.0), 0.1), 50)],
    "gaussian visible": [(PoissonVisible(Gaussian(5.0), 0.1), 200)],
    "approximate": [(ApproximateDP(0.1, 1e-9), 20)],
    "mixed": [(PoissonHidden(Gaussian(1.0), 0.1), 20), (Laplace(10.0), 10)],
}


@pytest.mark.parametrize("name", COMPOSITIONS)
@pytest.mark.parametrize("direction", ["remove", "add"])
def test_prv_accountant_agrees(name, direction):
    lower, _, upper = prv_accountant.epsilon(COMPOSITIONS[name], delta=1e-5, direction=direction)
    ours = prv.epsilon(COMPOSITIONS[name], delta=1e-5, direction=direction)
    assert upper - lower < 0.025
    assert lower <= ours.lower
    assert ours.upper <= upper


@pytest.mark.parametrize("name", COMPOSITIONS)
def test_dp_accounting_agrees_from_above(name):
    theirs = dp_accounting.epsilon(COMPOSITIONS[name], delta=1e-5, discretization=1e-3)
    ours = prv.epsilon(COMPOSITIONS[name], delta=1e-5)
    assert ours.lower <= theirs + 1e-9
    assert theirs <= ours.upper + 2e-3


def test_pure_dp_has_its_own_epsilon_everywhere():
    composition = [(PureDP(0.5), 1)]
    assert dp_accounting.epsilon(composition, delta=1e-12, discretization=0.25) == pytest.approx(0.5)


def test_random_variable_is_the_distribution_of_the_loss():
    variable = prv_accountant.privacy_random_variable(Gaussian(2.0), direction="remove")
    from scipy import special

    t = np.array([-np.inf, -3.0, -0.1, 0.0, 0.125, 0.125, 2.0, np.inf])
    # u ~ N(mu^2/2, mu^2) under P with mu = 1/2.
    assert variable.cdf(t) == pytest.approx(special.ndtr((t - 0.125) / 0.5), abs=1e-14)
    assert variable.cdf(0.3) == pytest.approx(float(special.ndtr(0.35)), abs=1e-14)
    assert variable.pm_inf == 0.0
    assert variable.rdp(3.0) == pytest.approx(3.0 * 0.125, rel=1e-10)


def test_atoms_at_the_ends_are_in_the_distribution():
    variable = prv_accountant.privacy_random_variable(PureDP(1.0), direction="remove")
    low = math.exp(-0.5) / (math.exp(0.5) + math.exp(-0.5))
    assert variable.cdf(np.array([-1.01, -0.99, 0.99, 1.01])) == pytest.approx(
        [0.0, low, low, 1.0], abs=1e-12
    )


def test_bad_input():
    nothing = PoissonHidden(Gaussian(1.0), 0.0)
    with pytest.raises(ValueError, match="direction"):
        prv_accountant.privacy_random_variable(Gaussian(1.0), direction="worst")  # type: ignore[arg-type]
    for bridge in (
        lambda: prv_accountant.privacy_random_variable(nothing, direction="add"),
        lambda: dp_accounting.privacy_loss_distribution(nothing),
    ):
        with pytest.raises(ValueError, match="release something"):
            bridge()
    with pytest.raises(ValueError, match="composition"):
        dp_accounting.compose([])
    with pytest.raises(ValueError, match="discretization"):
        dp_accounting.privacy_loss_distribution(Gaussian(0.01), discretization=1e-6)
    with pytest.raises(ValueError, match="delta"):
        prv_accountant.epsilon([(Gaussian(1.0), 1)], delta=0.0, direction="add")


@pytest.mark.parametrize("package", ["prv_accountant", "dp_accounting"])
def test_a_missing_package_names_the_extra(monkeypatch, package):
    real = builtins.__import__

    def without(name, *args, **kwargs):
        if name.split(".")[0] == package:
            raise ImportError(name)
        return real(name, *args, **kwargs)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(ImportError, match=r"exactdp\[bridges\]"):
        if package == "prv_accountant":
            prv_accountant.privacy_random_variable(Gaussian(1.0), direction="add")
        else:
            dp_accounting.privacy_loss_distribution(Gaussian(1.0))
