"""Settings: what is accepted, what is composed, and what is said about the threat model."""

from __future__ import annotations

import math

import pytest

from exactdp.accounting import prv
from exactdp.accounting.pairs.gaussian import Gaussian
from exactdp.accounting.sampling.hidden import PoissonHidden
from exactdp.accounting.sampling.replace import PoissonReplaceGaussian
from exactdp.accounting.sampling.visible import PoissonVisible
from exactdp.benchmarks.setting import accountants
from exactdp.benchmarks.setting.families import FAMILIES, PARAMETERS
from exactdp.benchmarks.setting.setting import Setting, Unsupported

SOME = {
    "noise_multiplier": 1.5,
    "sensitivity": 1.0,
    "scaling": 0.2,
    "offset": 3.0,
    "epsilon0": 0.1,
    "delta0": 1e-6,
}


def some_setting(mechanism: str, **changes: object) -> Setting:
    parameters = {name: SOME[name] for name in FAMILIES[mechanism].required}
    return Setting(mechanism, parameters, **changes)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({}, Gaussian(1.5)),
        ({"adjacency": "replace"}, Gaussian(1.5, 2.0)),
        ({"sampling_probability": 0.1}, PoissonHidden(Gaussian(1.5), 0.1)),
        ({"sampling_probability": 0.1, "coins": "visible"}, PoissonVisible(Gaussian(1.5), 0.1)),
        ({"sampling_probability": 0.1, "adjacency": "replace"}, PoissonReplaceGaussian(1.5, 0.1)),
        (
            {"sampling_probability": 0.1, "adjacency": "replace", "coins": "visible"},
            PoissonVisible(Gaussian(1.5, 2.0), 0.1),
        ),
    ],
)
def test_gaussian_step(changes: dict[str, object], expected: object) -> None:
    setting = some_setting("gaussian", num_steps=7, **changes)
    assert setting.composition() == [(expected, 7)]


def test_sensitivity_scales_the_replacement_too() -> None:
    setting = Setting(
        "gaussian",
        {"noise_multiplier": 3.0, "sensitivity": 2.0},
        sampling_probability=0.1,
        adjacency="replace",
    )
    assert setting.step() == PoissonReplaceGaussian(1.5, 0.1)


@pytest.mark.parametrize("mechanism", FAMILIES)
@pytest.mark.parametrize("adjacency", ["add_remove", "replace"])
@pytest.mark.parametrize("coins", ["hidden", "visible"])
@pytest.mark.parametrize("q", [0.1, 1.0])
def test_every_combination_is_composed_or_refused(
    mechanism: str, adjacency: str, coins: str, q: float
) -> None:
    if mechanism != "gaussian" and adjacency == "replace" and coins == "hidden" and q < 1.0:
        with pytest.raises(Unsupported, match=f"adjacency must be add_remove .*{mechanism}"):
            some_setting(mechanism, adjacency=adjacency, coins=coins, sampling_probability=q)
        return
    setting = some_setting(mechanism, adjacency=adjacency, coins=coins, sampling_probability=q, num_steps=2)
    interval = prv.epsilon(setting.composition(), delta=1e-3)
    assert 0.0 < interval.lower <= interval.upper < 20.0
    assert str(setting.threat_model().coins) == (coins if q < 1.0 else "none")


@pytest.mark.parametrize("mechanism", FAMILIES)
def test_replacement_never_costs_less(mechanism: str) -> None:
    added = prv.epsilon(some_setting(mechanism, num_steps=3).composition(), delta=1e-4)
    replaced = prv.epsilon(
        some_setting(mechanism, num_steps=3, adjacency="replace").composition(), delta=1e-4
    )
    assert replaced.upper >= added.lower


def test_a_replaced_dirichlet_input_keeps_its_label() -> None:
    model = some_setting("dirichlet", adjacency="replace").threat_model()
    assert str(model.adjacency) == "replace_label_public"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"mechanism": "cauchy"}, "mechanism must be one of gaussian"),
        ({"parameters": {}}, "noise_multiplier must be given for gaussian, got nothing"),
        ({"parameters": {"noise_multiplier": -1.0}}, "noise_multiplier must be finite and > 0, got -1"),
        ({"parameters": {"noise_multiplier": math.nan}}, "noise_multiplier must be a number, got nan"),
        (
            {"parameters": {"noise_multiplier": 1.0, "scaling": 2.0}},
            "scaling must be left out for gaussian.*got 2",
        ),
        ({"sampling_probability": 1.5}, r"sampling_probability must be in \[0, 1\], got 1.5"),
        ({"num_steps": 2.5}, "num_steps must be a whole number >= 0, got 2.5"),
        ({"num_steps": -1}, "num_steps must be a whole number >= 0, got -1"),
        ({"adjacency": "swap"}, "adjacency must be one of add_remove, replace, got 'swap'"),
        ({"coins": "none"}, "coins must be one of hidden, visible, got 'none'"),
    ],
)
def test_bad_settings(arguments: dict[str, object], message: str) -> None:
    good: dict[str, object] = {"mechanism": "gaussian", "parameters": {"noise_multiplier": 1.0}}
    with pytest.raises(ValueError, match=message):
        Setting(**{**good, **arguments})  # type: ignore[arg-type]


def test_replaced_changes_parameters_of_either_kind() -> None:
    setting = some_setting("gaussian", sampling_probability=0.5, num_steps=3)
    changed = setting.replaced(noise_multiplier=2.0, num_steps=4)
    assert (changed.parameters["noise_multiplier"], changed.num_steps) == (2.0, 4)
    assert changed.sampling_probability == 0.5
    assert setting.parameters["noise_multiplier"] == 1.5


@pytest.mark.parametrize("mechanism", [name for name in FAMILIES if name != "approximate"])
@pytest.mark.parametrize(("q", "coins"), [(1.0, "hidden"), (0.2, "hidden"), (0.2, "visible")])
def test_rdp_is_an_upper_bound(mechanism: str, q: float, coins: str) -> None:
    setting = some_setting(mechanism, sampling_probability=q, coins=coins, num_steps=20)
    rdp = accountants.epsilon(setting, delta=1e-5, options=accountants.Options("rdp"))
    exact = accountants.epsilon(setting, delta=1e-5, options=accountants.Options())
    assert rdp.lower == 0.0
    assert rdp.upper is not None and exact.lower is not None
    assert exact.lower <= rdp.upper
    delta = accountants.delta(setting, epsilon=rdp.upper, options=accountants.Options())
    assert delta.lower is not None and delta.lower <= 1e-5


def test_gdp_without_sampling_is_exact_and_otherwise_an_estimate() -> None:
    exact = accountants.epsilon(
        some_setting("gaussian", num_steps=9), delta=1e-5, options=accountants.Options()
    )
    plain = accountants.epsilon(
        some_setting("gaussian", num_steps=9), delta=1e-5, options=accountants.Options("gdp")
    )
    assert plain.lower is None and plain.upper is None
    assert plain.estimate == pytest.approx(exact.upper, rel=1e-9)
    sampled = some_setting("gaussian", sampling_probability=0.01, num_steps=1000)
    limit = accountants.epsilon(sampled, delta=1e-5, options=accountants.Options("gdp"))
    assert "approximation" in limit.remark


@pytest.mark.parametrize(
    ("accountant", "tolerance", "engine", "changes", "message"),
    [
        ("moments", None, "auto", {}, "accountant must be one of prv, rdp, gdp"),
        ("prv", 0.0, "auto", {}, "tolerance must be finite and > 0, got 0"),
        ("prv", None, "fft", {}, "engine must be one of auto, contour, lattice"),
        ("rdp", 1e-3, "auto", {}, "tolerance must be left out with accountant rdp"),
        ("rdp", None, "contour", {}, "engine must be auto with accountant rdp"),
        (
            "rdp",
            None,
            "auto",
            {"adjacency": "replace", "sampling_probability": 0.1},
            "accountant must be prv for adjacency replace",
        ),
    ],
)
def test_bad_options(
    accountant: str, tolerance: float | None, engine: str, changes: dict[str, object], message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        accountants.options(accountant, tolerance, engine, some_setting("gaussian", **changes))


def test_parameters_are_listed_once() -> None:
    assert len(PARAMETERS) == len(set(PARAMETERS))
    assert set(PARAMETERS) == set(SOME)


def test_what_has_no_central_limit() -> None:
    with pytest.raises(ValueError, match="accountant must be prv for approximate"):
        accountants.options("gdp", None, "auto", some_setting("approximate"))


@pytest.mark.parametrize(
    ("scaling", "offset", "limited"),
    [(0.235, 3.0, False), (1.0, 0.1, True), (0.02, 0.1, False), (50.0, 0.5, False)],
)
def test_a_dirichlet_claim_says_where_other_inputs_may_be_worse(
    scaling: float, offset: float, limited: bool
) -> None:
    # At scaling 1, offset 0.1 the pair (1/2, 1/2, 0) against e_3 has delta(5) = 0.5765, the vertices 0.5592.
    setting = Setting("dirichlet", {"scaling": scaling, "offset": offset})
    assert ("one-hot in two classes only" in setting.threat_model().released) is limited
