"""What a user asks of a synthetic table."""

from __future__ import annotations

from typing import Any

import pytest

from exactdp.train.two_stage.settings import TwoStageSettings

BAD: list[tuple[dict[str, Any], str]] = [
    ({"label": ""}, "label"),
    ({"epsilon": 0.0}, "epsilon"),
    ({"epsilon": 1001.0}, "epsilon"),
    ({"epsilon": float("nan")}, "epsilon"),
    ({"delta": 1.0}, "delta"),
    ({"statistics_share": 0.0}, "statistics_share"),
    ({"statistics_share": 1.0}, "statistics_share"),
    ({"first_stage": "text"}, "first_stage"),
    ({"first_stage": "marginals"}, "first_stage"),
    ({"epsilon": 1.0, "as_published": True, "first_stage": "marginals"}, "first_stage"),
    ({"as_published": True}, "epsilon"),
    ({"holdout": 1.0}, "holdout"),
    ({"holdout": -0.1}, "holdout"),
    ({"model": "gpt3"}, "model"),
    ({"vocabulary": 256}, "vocabulary"),
    ({"vocabulary": 10**6}, "vocabulary"),
    ({"order": "random"}, "order"),
    ({"value_weight": 1.5}, "value_weight"),
    ({"first_rows": 0}, "first_rows"),
    ({"num_steps": 0}, "num_steps"),
    ({"num_steps": 2.5}, "num_steps"),
    ({"num_steps": 2**31}, "num_steps"),
    ({"batch_size": 0}, "batch_size"),
    ({"clip_norm": 0.0}, "clip_norm"),
    ({"clip_norm": 1e300}, "clip_norm"),
    ({"learning_rate": -1.0}, "learning_rate"),
    ({"temperature": 0.0}, "temperature"),
    ({"top_k": 0}, "top_k"),
    ({"top_p": 0.0}, "top_p"),
    ({"top_p": 1.1}, "top_p"),
    ({"decoder": "beam"}, "decoder"),
    ({"label": "a", "drop": ("a",)}, "drop"),
]


@pytest.mark.parametrize(("given", "name"), BAD)
def test_bad_settings_are_refused_by_name(given: dict[str, Any], name: str) -> None:
    with pytest.raises(ValueError, match=f"^{name} must"):
        TwoStageSettings(**given)


def test_what_is_private() -> None:
    repaired, published, plain = (
        TwoStageSettings(epsilon=1.0),
        TwoStageSettings(epsilon=1.0, as_published=True),
        TwoStageSettings(),
    )
    assert (repaired.stage_1, published.stage_1, plain.stage_1) == ("marginals", "uniform", "uniform")
    assert [s.end_to_end for s in (repaired, published, plain)] == [True, False, False]
    assert [s.private for s in (repaired, published, plain)] == [True, True, False]
