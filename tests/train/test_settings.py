from __future__ import annotations

from typing import Any

import pytest

from exactdp.train.feature_settings import FeatureSettings
from exactdp.train.settings import METHODS, Settings

BAD: list[tuple[str, dict[str, Any], str]] = [
    ("sgd", {"epsilon": 1.0}, "method must be one of dirichlet"),
    ("dpsgd", {}, "epsilon must be given, or both noise_multiplier and num_steps"),
    ("dirichlet", {"scaling": 1.0}, "epsilon must be given, or both scaling and num_steps"),
    ("dpsgd", {"epsilon": 0.0}, "epsilon must be finite and > 0, got 0"),
    ("dpsgd", {"epsilon": float("nan")}, "epsilon must be a number"),
    ("dpsgd", {"epsilon": 1.0, "delta": 0.0}, r"delta must be in \(0, 1\), got 0"),
    (
        "dpsgd",
        {"epsilon": 1.0, "sampling_probability": 0.0},
        r"sampling_probability must be in \(0, 1\), got 0",
    ),
    (
        "dpsgd",
        {"epsilon": 1.0, "sampling_probability": 1.0},
        r"sampling_probability must be in \(0, 1\), got 1",
    ),
    ("dpsgd", {"epsilon": 1.0, "num_steps": 0}, "num_steps must be a whole number >= 1, got 0"),
    ("dpsgd", {"epsilon": 1.0, "num_steps": 1.5}, "num_steps must be a whole number >= 1, got 1.5"),
    ("dpsgd", {"epsilon": 1.0, "scaling": 1.0}, "scaling must be left out for dpsgd, got 1"),
    ("dpsgd", {"epsilon": 1.0, "offset": 1.0}, "offset must be left out for dpsgd"),
    ("dirichlet", {"epsilon": 1.0, "clip_norm": 1.0}, "clip_norm must be left out for dirichlet"),
    ("nonprivate", {"epsilon": 1.0}, "epsilon must be left out for nonprivate"),
    ("nonprivate", {"clip_norm": 1.0}, "clip_norm must be left out for nonprivate"),
    (
        "dpsgd",
        {"epsilon": 1.0, "num_steps": 10, "noise_multiplier": 1.0},
        "noise_multiplier must be left out where epsilon and num_steps are given",
    ),
    ("dpsgd", {"epsilon": 1.0, "clip_norm": 0.0}, "clip_norm must be finite and > 0, got 0"),
    ("dpsgd", {"epsilon": 1.0, "accountant": "prv"}, "accountant must be one of exact, printed"),
    ("dpsgd", {"epsilon": 1.0, "accountant": "printed"}, "accountant must be exact for dpsgd"),
    (
        "dirichlet",
        {"scaling": 0.2, "num_steps": 10, "accountant": "printed"},
        "scaling must be left out with accountant printed",
    ),
    (
        "dirichlet",
        {"epsilon": 1.0, "learning_rate": 0.1, "effective_learning_rate": 0.1},
        "effective_learning_rate must be left out where learning_rate is given",
    ),
]


@pytest.mark.parametrize(("method", "given", "message"), BAD)
def test_bad_settings(method: str, given: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Settings(method, **given)


def test_defaults() -> None:
    settings = Settings("dirichlet", epsilon=1.0)
    assert (settings.steps, settings.alpha, settings.parameter) == (500, 3.0, "scaling")
    assert Settings("dpsgd", epsilon=1.0, noise_multiplier=2.0).steps is None
    assert Settings("nonprivate").steps == 500
    assert Settings("dpsgd", epsilon=1.0).clip == 1.0
    for method in METHODS:
        asked = FeatureSettings("label") if method == "feature" else None
        made = Settings(method, epsilon=None if method == "nonprivate" else 1.0, feature=asked)
        assert made.method == method


def test_the_rate_follows_the_size_of_the_data_set_only_where_none_is_given() -> None:
    settings = Settings("dpsgd", epsilon=1.0)
    assert settings.rate(60_000) == 256 / 60_000 and settings.rate(100) == 0.25
    assert Settings("dirichlet", epsilon=1.0).rate(60_000) == 64 / 60_000
    assert Settings("dpsgd", epsilon=1.0, sampling_probability=0.1).rate(60_000) == 0.1


def test_a_data_set_smaller_than_a_batch_is_refused() -> None:
    settings = Settings("dpsgd", epsilon=1.0, sampling_probability=0.001)
    with pytest.raises(ValueError, match="sampling_probability must give batches of one record at least"):
        settings.rate(500)
