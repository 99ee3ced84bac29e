"""Which tokens may follow which."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from exactdp.train.gpt2.automaton import Automaton

# 0 -3-> 1, 0 -5-> 2, 1 -4-> 2, 2 final
PARTS: dict[str, Any] = {
    "starts": np.array([0, 2, 3, 3]),
    "tokens": np.array([3, 5, 4]),
    "targets": np.array([1, 2, 2]),
    "start": 0,
    "widest": 2,
}


def test_follow() -> None:
    found = Automaton(**PARTS)
    assert found.states == 3
    assert [found.final(state) for state in range(3)] == [False, False, True]
    assert found.follow([]) == 0
    assert found.follow([3, 4]) == found.follow([5]) == found.follow([4], state=1) == 2
    assert found.follow([4]) is found.follow([3, 5]) is found.follow([5, 3]) is None


def test_candidates() -> None:
    tokens, targets, real = Automaton(**PARTS).device().candidates(np.array([1, 0, 2]), widest=2)  # pyright: ignore
    assert real.tolist() == [[True, False], [True, True], [False, False]]
    assert np.asarray(tokens)[real].tolist() == [4, 3, 5]
    assert np.asarray(targets)[real].tolist() == [2, 1, 2]


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"starts": np.array([0.0, 3.0])}, "starts must be one row of integers"),
        ({"starts": np.array([0])}, "starts must go from 0 to the number of edges = 3"),
        ({"starts": np.array([0, 2, 3])}, "targets must be states, below 2"),
        ({"starts": np.array([1, 2, 3, 3])}, "starts must go from 0"),
        ({"starts": np.array([0, 3, 2, 3])}, "starts must never fall, got a fall at state 1"),
        ({"tokens": np.array([5, 3, 4])}, "tokens must ascend within a state, got others in state 0"),
        ({"tokens": np.array([3, 3, 4])}, "tokens must ascend within a state"),
        ({"tokens": np.array([-1, 3, 4])}, "tokens must be >= 0"),
        ({"targets": np.array([1, 2])}, "targets must be one an edge = 3, got 2"),
        ({"targets": np.array([1, 2, 3])}, "targets must be states, below 3"),
        ({"start": 3}, "start must be a state, below 3, got 3"),
        ({"widest": 3}, "widest must be the most edges of a state = 2, got 3"),
    ],
)
def test_refused(changed: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Automaton(**{**PARTS, **changed})
