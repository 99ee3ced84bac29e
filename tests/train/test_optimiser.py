"""Learning rates along a run."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
import optax
import pytest

from exactdp.train.optimiser import Optimiser


@pytest.mark.parametrize("schedule", ["linear", "cosine"])
def test_a_rate_decays_to_zero_where_it_is_told(schedule: str) -> None:
    whole = Optimiser("adamw", 0.5, schedule).rate(100)
    early = Optimiser("adamw", 0.5, schedule, decay_end=0.6).rate(100)
    assert whole(0) == early(0) == pytest.approx(0.5)
    assert whole(60) > 0.05
    assert early(30) == pytest.approx(0.25)
    assert [early(step) for step in (60, 80, 99)] == pytest.approx([0.0] * 3, abs=1e-8)
    assert early(59) > 0.0
    assert Optimiser("sgd", 0.5, schedule, decay_end=1e-9).rate(3)(1) == pytest.approx(0.0, abs=1e-8)


def test_no_step_is_taken_after_the_end() -> None:
    made = Optimiser("adamw", 0.5, "linear", weight_decay=0.1, decay_end=0.5).build(4)
    params = {"w": jnp.ones(3)}
    memory, moved = made.init(params), []
    for _ in range(4):
        updates, memory = made.update({"w": jnp.ones(3)}, memory, params)
        following = optax.apply_updates(params, updates)
        moved.append(float(jnp.abs(following["w"] - params["w"]).max()))  # type: ignore[index]
        params = following
    assert moved[0] > 0.1
    assert moved[2:] == [0.0, 0.0]


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"decay_end": 0.0, "schedule": "linear"}, "decay_end must be finite and > 0"),
        ({"decay_end": 1.5, "schedule": "linear"}, r"decay_end must be in \(0, 1\]"),
        ({"decay_end": 0.5}, "decay_end must be 1 with a constant schedule"),
    ],
)
def test_bad_ends_are_refused(given: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Optimiser("sgd", 0.1, **given)
