"""Distances: closed forms, what they do not see, and that they are metrics."""

from __future__ import annotations

import numpy as np
import pytest

from exactdp.accounting.attribute import distances

GENERATOR = np.random.default_rng(5)


def of(name: str, first: np.ndarray, second: np.ndarray) -> float:
    found = distances.features(name, np.stack([first, second]))
    return float(distances.between(found[:1], found[1:])[0, 0])


def test_closed_forms() -> None:
    a, b = GENERATOR.normal(size=(2, 5))
    assert of("l2", a, b) == pytest.approx(np.linalg.norm(a - b))
    cosine = a @ b / np.linalg.norm(a) / np.linalg.norm(b)
    assert of("cosine", a, b) == pytest.approx(np.sqrt(2 - 2 * cosine))
    assert of("cosine", a, 3 * a) == pytest.approx(0.0, abs=1e-12)
    assert of("cosine", a, -a) == pytest.approx(2.0)
    assert of("cosine", np.zeros(5), a) == pytest.approx(1.0)


def test_perceptual_sees_edges_and_not_brightness() -> None:
    picture = np.clip(GENERATOR.normal(size=(24, 24, 1)).cumsum(0).cumsum(1) / 10, 0, 1)
    same, contrast = of("perceptual", picture, picture + 0.3), of("perceptual", picture, 0.6 * picture)
    other = of("perceptual", picture, picture[::-1])
    assert same < 1e-6
    assert contrast < 0.25 * other
    # A shift of one pixel changes the fine edges, less the coarse ones: nearer than another picture.
    assert of("perceptual", picture[:, 1:], picture[:, :-1]) < other
    # Root mean square 1 at each scale: two pictures are at most 2 apart.
    assert other < 2.0


@pytest.mark.parametrize("name", distances.NAMES)
def test_triangle_inequality(name: str) -> None:
    found = distances.features(name, GENERATOR.uniform(size=(12, 9, 10, 3)))
    apart = distances.between(found, found)
    assert (np.diag(apart) == 0.0).all()
    np.testing.assert_allclose(apart, apart.T)
    assert (apart[:, None, :] <= apart[:, :, None] + apart[None, :, :] + 1e-12).all()


def test_refused() -> None:
    with pytest.raises(ValueError, match="distance must be one of l2, cosine, perceptual, got 'ssim'"):
        distances.features("ssim", np.zeros((3, 2)))
    with pytest.raises(
        ValueError, match="perceptual must be between images .* of at least 8x8, .*got records"
    ):
        distances.features("perceptual", np.zeros((3, 20)))
    with pytest.raises(ValueError, match="at least 8x8"):
        distances.features("perceptual", np.zeros((3, 7, 9, 1)))
    with pytest.raises(ValueError, match="records must be finite"):
        distances.features("l2", np.array([[np.nan, 0.0]]))
    with pytest.raises(ValueError, match="records must be .n, ...."):
        distances.features("l2", np.zeros((0, 3)))
