"""Settings of feature-DP training that are refused: by themselves, or beside the data."""

from __future__ import annotations

import math
from typing import Any

import pytest

from exactdp.train.feature_settings import FeatureSettings
from exactdp.train.settings import Settings
from tests.train import runs


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        ({"public": ""}, "public must be given"),
        ({"public": "label", "adjacency": "both"}, "adjacency must be one of"),
        ({"public": "label", "batches": "three"}, "batches must be one of"),
        ({"public": "label", "private_loss": "half"}, "private_loss must be one of"),
        ({"public": "label", "public_batch_size": 0}, "public_batch_size must be"),
        (
            {"public": "label", "public_batch_size": 3, "batches": "single"},
            "public_batch_size must be left out",
        ),
        ({"public": "label", "mixing_weight": 1.0}, "mixing_weight must be"),
        ({"public": "label", "mixing_weight": math.nan}, "mixing_weight must be"),
        ({"public": "label", "public_noise_multiplier": -1.0}, "public_noise_multiplier must be"),
        ({"public": "label", "public_noise_multiplier": 1e30}, "public_noise_multiplier must be at most"),
        ({"public": "label", "public_steps": -1}, "public_steps must be"),
        ({"public": "label", "public_steps": 2**28}, "public_steps must be below"),
        ({"public": "label", "public_batch_size": 1e300}, "public_batch_size must be below"),
        ({"public": "label", "public_learning_rate": 0.1}, "public_learning_rate must be left out"),
        ({"public": "label", "public_steps": 3, "public_learning_rate": 0.0}, "public_learning_rate must be"),
    ],
)
def test_settings_that_contradict_are_refused(asked: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        FeatureSettings(**asked)


def test_public_is_for_feature_alone() -> None:
    with pytest.raises(ValueError, match="public must be given for feature"):
        Settings("feature", epsilon=1.0)
    with pytest.raises(ValueError, match="public must be left out for dpsgd"):
        Settings("dpsgd", epsilon=1.0, feature=FeatureSettings("label"))


@pytest.mark.parametrize(
    ("text", "asked", "message"),
    [
        ("columns:0-3", {}, "columns must be of tabular records"),
        ("features+label", {}, "public must leave something private"),
        ("label", {"public_batch_size": 500}, "public_batch_size must be at most the 120"),
        ("none", {"public_steps": 3}, "public must not be none"),
    ],
)
def test_what_does_not_fit_the_data_is_refused(text: str, asked: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        runs.prepare("feature", feature=FeatureSettings(text, **asked), model="mlp")
