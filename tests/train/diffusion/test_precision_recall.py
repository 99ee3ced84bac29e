"""Precision and recall of sets whose answer is known."""

from __future__ import annotations

import numpy as np
import pytest

from exactdp.train.diffusion.precision_recall import PrecisionRecall, precision_recall

RNG = np.random.default_rng(2)


def line(*points: float) -> np.ndarray:
    return np.array(points)[:, None]


def test_points_on_a_line_by_hand() -> None:
    """k = 1: the radii are 1, 1, 2, 7 round 0, 1, 3, 10 and 0.5, 0.5, 4, 24 round 1.5, 2, 6, 30."""
    real, generated = line(0.0, 1.0, 3.0, 10.0), line(1.5, 2.0, 6.0, 30.0)
    # 1.5 and 2 lie in 1's ball, 6 in 10's, 30 in none; 0 in none, 1 in 1.5's (border), 3 in 6's, 10 in 6's.
    assert precision_recall(real, generated, neighbours=1) == PrecisionRecall(0.75, 0.75)


def test_the_same_set_and_sets_far_apart() -> None:
    x = RNG.normal(size=(60, 4))
    assert precision_recall(x, x) == (1.0, 1.0)
    assert precision_recall(x, x + 100.0) == (0.0, 0.0)


def test_one_of_two_modes_has_full_precision_and_half_recall() -> None:
    centres = np.repeat([[0.0, 0.0], [50.0, 0.0]], 200, axis=0)
    real = centres + RNG.uniform(-1, 1, (400, 2))
    found = precision_recall(real, RNG.uniform(-1, 1, (400, 2)))
    assert found.precision > 0.97 and 0.47 < found.recall <= 0.5
    both = precision_recall(RNG.uniform(-1, 1, (400, 2)), real)
    assert both.recall > 0.97 and 0.47 < both.precision <= 0.5


def test_more_than_one_chunk_of_rows() -> None:
    """Two sets on a grid: shares of 1/3 and 1, from more rows than are compared at a time."""
    real = np.arange(600.0)[:, None]
    generated = np.concatenate([np.arange(400.0) + 0.5, 1e6 + 10.0 * np.arange(800.0)])[:, None]
    found = precision_recall(real, generated, neighbours=2)
    np.testing.assert_allclose(found, [400 / 1200, 402 / 600])


@pytest.mark.parametrize(
    ("real", "generated", "settings", "message"),
    [
        (np.zeros((3, 2)), np.zeros((9, 2)), {}, "rows of real must be"),
        (np.zeros((9, 2)), np.zeros((3, 2)), {}, "rows of generated must be"),
        (np.zeros((9, 2)), np.zeros((9, 3)), {}, "generated must have 2 features as real has, got 3"),
        (np.zeros((9, 2)), np.zeros((9, 2)), {"neighbours": 0}, "neighbours must be"),
        (np.full((9, 2), np.nan), np.zeros((9, 2)), {}, "real must be finite"),
        (np.zeros((9, 2)), np.zeros(9), {}, "generated must be numbers"),
    ],
)
def test_bad_input(real: np.ndarray, generated: np.ndarray, settings: dict[str, int], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        precision_recall(real, generated, **settings)
