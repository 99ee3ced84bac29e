"""What certifies each variant of feature-DP training: its rung of the ladder, noise that meets the target."""

from __future__ import annotations

import pytest

from exactdp.accounting.ladder import feature as ladder
from exactdp.accounting.sampling.hidden import PoissonHidden
from exactdp.accounting.sampling.replace import PoissonReplaceGaussian
from exactdp.accounting.sampling.visible import PoissonVisible
from exactdp.accounting.threat import Adjacency, Coins
from exactdp.mechanisms.batches import Poisson
from exactdp.mechanisms.public import parse
from exactdp.train import feature_certificate
from exactdp.train.feature_settings import FeatureSettings
from tests.train import runs


@pytest.mark.parametrize(
    ("text", "adjacency", "batches", "expected", "coins", "pair", "rung"),
    [
        (
            "label",
            "replace",
            "two",
            Adjacency.REPLACE_LABEL_PUBLIC,
            Coins.HIDDEN,
            PoissonReplaceGaussian,
            "replacement",
        ),
        (
            "blur:sigma=1",
            "replace",
            "two",
            Adjacency.REPLACE_FEATURES_PUBLIC,
            Coins.HIDDEN,
            PoissonReplaceGaussian,
            "replacement",
        ),
        ("none", "replace", "two", Adjacency.REPLACE, Coins.HIDDEN, PoissonReplaceGaussian, "replacement"),
        ("label", "add_remove", "two", Adjacency.ADD_REMOVE, Coins.HIDDEN, PoissonHidden, "both directions"),
        (
            "label",
            "replace",
            "single",
            Adjacency.REPLACE_LABEL_PUBLIC,
            Coins.VISIBLE,
            PoissonVisible,
            "naive single batch, replacement",
        ),
        (
            "label",
            "add_remove",
            "single",
            Adjacency.ADD_REMOVE,
            Coins.VISIBLE,
            PoissonVisible,
            "naive single batch",
        ),
    ],
)
def test_each_variant_is_certified_by_its_rung(
    text: str, adjacency: str, batches: str, expected: Adjacency, coins: Coins, pair: type, rung: str
) -> None:
    sampler = Poisson(1000, 0.02, 1000)
    found = feature_certificate.feature(
        1.5, sampler=sampler, public=parse(text), asked=FeatureSettings(text, adjacency, batches)
    )
    assert (found.threat_model.adjacency, found.threat_model.coins) == (expected, coins)
    assert [type(mechanism) for mechanism in found.mechanisms] == [pair]
    assert found.rung == f"{rung} (feature ladder)"
    assert found.covers_weights
    own = found.epsilon(300, delta=1e-5)
    (there,) = [
        made.epsilon
        for made in ladder.rungs(
            noise_multiplier=1.5, sampling_probability=0.02, num_steps=300, delta=1e-5, num_records=1000
        )
        if made.name == rung
    ]
    assert own.lower <= there.upper + 1e-9 and there.lower <= own.upper + 1e-9  # type: ignore[union-attr]


def test_the_noise_meets_the_target_under_either_definition() -> None:
    found = {
        adjacency: runs.prepare(
            "feature",
            feature=FeatureSettings("label", adjacency),
            epsilon=1.0,
            noise_multiplier=None,
            num_steps=50,
        ).plan
        for adjacency in ("replace", "add_remove")
    }
    for made in found.values():
        assert 0.999 < made.certificate.epsilon(50, delta=1e-5).upper <= 1.0
    assert found["replace"].noise > 1.5 * found["add_remove"].noise
