from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest

from exactdp.accounting import prv
from exactdp.accounting.interval import Interval
from exactdp.accounting.ledger import Ledger
from exactdp.accounting.pairs.dirichlet import Dirichlet
from exactdp.accounting.pairs.gaussian import Gaussian
from exactdp.accounting.printed import dirichlet as printed
from exactdp.accounting.sampling.hidden import PoissonHidden
from exactdp.accounting.sampling.replace import PoissonReplaceGaussian
from exactdp.accounting.sampling.visible import PoissonVisible
from exactdp.accounting.threat import Adjacency, Coins
from exactdp.train.budget import Budget
from exactdp.train.calibration import plan
from exactdp.train.certificate import Certificate
from exactdp.train.settings import Settings

RECORDS, CLASSES = 1442, 10


@pytest.mark.parametrize(
    ("method", "adjacency", "coins", "family"),
    [
        ("dpsgd", Adjacency.ADD_REMOVE, Coins.HIDDEN, PoissonHidden),
        ("label_public", Adjacency.REPLACE_LABEL_PUBLIC, Coins.HIDDEN, PoissonReplaceGaussian),
        ("gaussian_features", Adjacency.REPLACE_LABEL_PUBLIC, Coins.VISIBLE, PoissonVisible),
        ("dirichlet", Adjacency.REPLACE_LABEL_PUBLIC, Coins.VISIBLE, PoissonVisible),
    ],
)
def test_the_noise_meets_the_target_and_hardly_more(
    method: str, adjacency: Adjacency, coins: Coins, family: type
) -> None:
    found = plan(
        Settings(method, epsilon=4.0, num_steps=300, sampling_probability=0.1),
        num_records=RECORDS,
        num_classes=CLASSES,
    )
    spent = found.certificate.epsilon(300, delta=1e-5)
    assert 3.9999 < spent.lower <= spent.upper <= 4.0
    assert found.num_steps == 300 and found.sampler.sampling_probability == 0.1
    model = found.certificate.threat_model
    assert (model.adjacency, model.coins) == (adjacency, coins)
    assert isinstance(found.certificate.mechanisms[0], family)
    assert found.certificate.covers_weights == (method in ("dpsgd", "label_public"))
    # What overflowing batches cost is next to nothing.
    assert found.sampler.capacity < RECORDS / 4
    alone = prv.epsilon([(found.certificate.mechanisms[0], 300)], delta=1e-5)
    assert spent.upper - alone.upper < 1e-5


@pytest.mark.parametrize(
    ("method", "epsilon", "given"),
    [
        ("gaussian_features", 4.0, {"num_steps": 20}),
        ("gaussian_features", 1e-4, {"num_steps": 5}),
        ("dirichlet", 4.0, {"num_steps": 20, "offset": 3.0, "sampling_probability": 0.05}),
        ("dpsgd", 4.0, {"num_steps": 1}),
        ("dpsgd", 1e-6, {"num_steps": 500}),
        ("label_public", 4.0, {"num_steps": 3}),
        ("label_public", 1e-3, {"num_steps": 2}),
        ("gaussian_features", 1.0, {"noise_multiplier": 20.0}),
        ("dpsgd", 0.5, {"noise_multiplier": 5.0}),
    ],
)
def test_what_the_ledger_says_at_the_end_meets_the_target(
    method: str, epsilon: float, given: dict[str, Any], tmp_path: Path
) -> None:
    """The same question as at the end of a run, which may be answered more widely than a search asks for."""
    found = plan(Settings(method, epsilon=epsilon, **given), num_records=RECORDS, num_classes=CLASSES)
    certificate = found.certificate
    with Ledger(tmp_path / "ledger.jsonl", threat_model=certificate.threat_model) as ledger:
        for mechanism, count in certificate.composition(found.num_steps):
            ledger.append(mechanism, count=count)
    spent = Ledger.load(tmp_path / "ledger.jsonl").epsilon(delta=1e-5)
    assert isinstance(spent, Interval)
    assert spent.upper <= epsilon
    assert spent == certificate.epsilon(found.num_steps, delta=1e-5)
    if "num_steps" in given:  # and hardly below
        assert spent.upper >= epsilon * (0.98 if epsilon < 1e-4 else 0.999)


def test_a_tiny_target_asks_for_no_width_that_cannot_be_reached(monkeypatch: pytest.MonkeyPatch) -> None:
    """Widths below what the accountant reaches took minutes."""
    asked: list[float] = []

    def counted(*args: Any, tolerance: float | None = None, **keywords: Any) -> Interval:
        asked.append(math.inf if tolerance is None else tolerance)
        return answer(*args, tolerance=tolerance, **keywords)

    answer = prv.epsilon
    monkeypatch.setattr(prv, "epsilon", counted)
    for epsilon in (1e-4, 1e-2):
        settings = Settings("gaussian_features", epsilon=epsilon, num_steps=10)
        plan(settings, num_records=RECORDS, num_classes=CLASSES)
        assert len(asked) < 30
        assert min(asked) >= 2.9e-7 * max(epsilon, 0.01)
        asked.clear()


class Wide(Certificate):
    """Answers as widely as it may."""

    def epsilon(self, num_steps: int, *, delta: float, tolerance: float | None = None) -> Interval:
        return Interval(1e-3 * num_steps, 1e-3 * num_steps + (tolerance or 0.0))


def test_what_is_shown_on_the_way_is_never_above_the_end() -> None:
    made = plan(Settings("nonprivate"), num_records=RECORDS, num_classes=CLASSES).certificate
    wide = Wide(made.mechanisms, made.threat_model, made.rung, made.statement, made.covers_weights)
    budget = Budget(wide, num_steps=200, delta=1e-5)
    shown = [budget.upper(step) for step in (1, 50, 190, 196, 199, 200)]
    assert shown == sorted(shown) and shown[0] < 0.02 and shown[-1] == 0.2


def test_noise_and_steps_give_epsilon() -> None:
    found = plan(
        Settings("dpsgd", noise_multiplier=2.0, num_steps=50, sampling_probability=0.1),
        num_records=RECORDS,
        num_classes=CLASSES,
    )
    assert (found.noise, found.num_steps) == (2.0, 50)
    assert found.certificate.mechanisms[0] == PoissonHidden(Gaussian(2.0), 0.1)


def test_epsilon_and_noise_give_the_number_of_steps() -> None:
    found = plan(
        Settings("dpsgd", epsilon=2.0, noise_multiplier=1.0, sampling_probability=0.01),
        num_records=RECORDS,
        num_classes=CLASSES,
    )
    certificate, steps = found.certificate, found.num_steps
    assert certificate.epsilon(steps, delta=1e-5).upper <= 2.0
    assert certificate.epsilon(steps + 1, delta=1e-5).upper > 2.0


def test_the_papers_rule_chooses_its_scaling() -> None:
    """The one recovered cell of Table 7: r* = 0.235 at epsilon 1."""
    cell = printed.TABLE_7_CIFAR10
    found = plan(
        Settings(
            "dirichlet",
            epsilon=cell.epsilon,
            offset=cell.offset,
            sampling_probability=cell.sampling_probability,
            num_steps=cell.num_steps,
            accountant="printed",
        ),
        num_records=50_000,
        num_classes=CLASSES,
    )
    assert found.noise == pytest.approx(cell.scaling, abs=2e-4)
    assert found.printed is not None
    assert found.printed.epsilon <= 1.0 and found.printed.rung == "repaired conversion"
    # What is certified is another claim, and larger.
    assert found.certificate.mechanisms[0] == PoissonVisible(Dirichlet(found.noise, 3.0), 0.005)
    assert found.certificate.epsilon(cell.num_steps, delta=1e-5).lower > 5.0


def test_a_target_out_of_reach_is_refused() -> None:
    with pytest.raises(ValueError, match="epsilon must be larger for the paper's rule"):
        plan(
            Settings(
                "dirichlet", epsilon=0.5, sampling_probability=0.005, num_steps=20_000, accountant="printed"
            ),
            num_records=50_000,
            num_classes=CLASSES,
        )
    with pytest.raises(ValueError, match="epsilon must be at least"):
        plan(
            Settings("dpsgd", epsilon=1e-3, noise_multiplier=0.5, sampling_probability=0.2),
            num_records=RECORDS,
            num_classes=CLASSES,
        )


def test_the_learning_rate_of_dirichlet_undoes_kappa() -> None:
    def rate(**given: float) -> tuple[float, float]:
        found = plan(
            Settings("dirichlet", scaling=0.2, num_steps=10, **given),
            num_records=RECORDS,
            num_classes=CLASSES,
        )
        assert found.noise is not None
        return found.learning_rate, found.noise

    learning_rate, scaling = rate(effective_learning_rate=0.3)
    assert printed.effective_learning_rate(learning_rate, scaling=scaling, offset=3.0) == pytest.approx(0.3)
    assert rate(learning_rate=0.7)[0] == 0.7
    assert rate()[0] == pytest.approx(rate(effective_learning_rate=3.0)[0])


def test_nothing_is_certified_without_noise() -> None:
    found = plan(Settings("nonprivate"), num_records=RECORDS, num_classes=CLASSES)
    assert found.certificate.epsilon(500, delta=1e-5).lower == float("inf")
    assert not found.certificate.covers_weights


def test_a_small_offset_is_said_to_be_no_worst_case() -> None:
    found = plan(
        Settings("dirichlet", scaling=5.0, offset=0.1, num_steps=10), num_records=RECORDS, num_classes=CLASSES
    )
    assert "inputs one-hot in two classes only" in found.certificate.threat_model.released
