"""Re-identification: chance where the view tells nothing, certainty where it tells all."""

from __future__ import annotations

from typing import Any

import jax
import numpy as np
import pytest

from exactdp.mechanisms.public import Blur
from exactdp.train import data
from exactdp.train.attacks import reidentify

KEY = jax.random.key(0)


def same(x: np.ndarray) -> np.ndarray:
    return x


def nothing(x: np.ndarray) -> np.ndarray:
    return np.zeros_like(x)


def first_column(x: np.ndarray) -> np.ndarray:
    return np.where(np.arange(x.shape[1]) == 0, x, 0.0)


RECORDS = np.random.default_rng(0).normal(size=(200, 6)).astype(np.float32)


@pytest.mark.parametrize("distance", ["l2", "cosine"])
@pytest.mark.parametrize("matcher", ["view", "raw"])
def test_the_record_itself_is_always_found(matcher: Any, distance: str) -> None:
    found = reidentify(RECORDS, view=same, key=KEY, matcher=matcher, distance=distance)
    assert found.hits == {1: 200, 5: 200} and found.interval(1).upper == 1.0


def test_ties_leave_chance() -> None:
    """A view of nothing: top 1 is right once in N, the interval holds chance."""
    found = reidentify(RECORDS, view=nothing, key=KEY)
    assert found.chance(1) in found.interval(1, confidence=0.999)
    assert found.chance(5) in found.interval(5, confidence=0.999)
    assert (found.chance(1), found.chance(5)) == (1 / 200, 5 / 200)


def test_ties_of_groups() -> None:
    """Views in four groups of 50: top 1 is right once in 50 on average, top 5 five times."""
    view = np.repeat(np.eye(4, 6, dtype=np.float32), 50, axis=0)
    rates = [reidentify(RECORDS, view=lambda x: view, key=jax.random.key(seed)).rate(5) for seed in range(40)]
    assert np.mean(rates) == pytest.approx(5 / 50, abs=0.01)


def test_noise_makes_it_harder() -> None:
    rates = [
        reidentify(RECORDS, view=first_column, key=KEY, noise=noise).rate(1) for noise in (0.0, 0.01, 1.0)
    ]
    assert rates[0] == 1.0 and rates[0] > rates[1] > rates[2]
    again = reidentify(RECORDS, view=first_column, key=KEY, noise=0.01).rate(1)
    assert again == rates[1]


def test_blurred_digits_are_recognised_by_their_sharp_copies() -> None:
    digits = data.load("digits").x[:150]
    blur = Blur(1.0)

    def view(x: np.ndarray) -> np.ndarray:
        return np.asarray(blur.view(jax.numpy.asarray(x, jax.numpy.float32)))

    by_view = reidentify(digits, view=view, key=KEY, noise=0.1)
    raw = reidentify(digits, view=view, key=KEY, matcher="raw")
    assert by_view.interval(1).lower > 0.8 > 100 * by_view.chance(1)
    assert raw.chance(1) < raw.interval(1).lower
    assert raw.hits[5] >= raw.hits[1]


@pytest.mark.parametrize(
    ("records", "arguments", "message"),
    [
        (RECORDS, {"matcher": "sharp"}, "matcher must be one of view, raw, got 'sharp'"),
        (RECORDS, {"noise": -1.0}, "noise must be finite and >= 0, got -1"),
        (RECORDS, {"distance": "ssim"}, "distance must be one of"),
        (RECORDS, {"distance": "perceptual"}, "perceptual must be between images"),
        (RECORDS[:1], {}, "records must be 2 at least, got 1"),
        (np.full((3, 2), np.nan), {}, "records must be finite"),
    ],
)
def test_refused(records: np.ndarray, arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        reidentify(records, view=same, key=KEY, **arguments)
