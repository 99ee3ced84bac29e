"""Pixels as bytes, and grids of images."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from exactdp.train.diffusion import grid

IMAGES = np.arange(5 * 2 * 3 * 3).reshape(5, 2, 3, 3).astype(np.uint8)


def test_bytes_are_the_nearest_and_cut() -> None:
    found = grid.to_bytes(np.array([-2.0, -1.0, 0.001, 0.5, 1.0, 9.0]), pixel_range=(-1.0, 1.0))
    np.testing.assert_array_equal(found, [0, 0, 128, 191, 255, 255])
    every = np.arange(256) / np.float32(255.0)
    np.testing.assert_array_equal(grid.to_bytes(every, pixel_range=(0.0, 1.0)), np.arange(256))


def test_images_stand_in_rows_on_white() -> None:
    page = grid.tiled(IMAGES, columns=3, gap=1, scale=2)
    assert page.shape == (1 + 2 * 5, 1 + 3 * 7, 3)
    np.testing.assert_array_equal(page[1:5:2, 1:7:2], IMAGES[0])
    np.testing.assert_array_equal(page[2:6:2, 16:22:2][:2], IMAGES[2][:2])
    np.testing.assert_array_equal(page[6:10:2, 8:14:2], IMAGES[4])
    assert (page[6:10, 15:] == 255).all() and (page[0] == 255).all() and (page[5] == 255).all()
    assert grid.tiled(IMAGES, gap=0).shape == (4, 9, 3)


@pytest.mark.parametrize("channels", [1, 3])
def test_a_file_holds_the_grid_and_is_the_same_each_time(tmp_path: Path, channels: int) -> None:
    first, second = tmp_path / "a.png", tmp_path / "b.png"
    for path in (first, second):
        grid.save(path, IMAGES[..., :channels], columns=2)
    assert first.read_bytes() == second.read_bytes()
    with Image.open(first) as picture:
        assert picture.info == {}
        page = np.asarray(picture)
    np.testing.assert_array_equal(
        page.reshape(*page.shape[:2], -1), grid.tiled(IMAGES[..., :channels], columns=2)
    )


def test_bad_input(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="pixel_range must be ascending"):
        grid.to_bytes(np.zeros(2), pixel_range=(1.0, 0.0))
    with pytest.raises(ValueError, match="images must be finite"):
        grid.to_bytes(np.array([np.nan]), pixel_range=(0.0, 1.0))
    with pytest.raises(ValueError, match="path must end in .png"):
        grid.save(tmp_path / "a.jpg", IMAGES)
    for settings in ({"columns": 0}, {"gap": -1}, {"scale": 0}):
        with pytest.raises(ValueError, match=f"{next(iter(settings))} must be"):
            grid.tiled(IMAGES, **settings)
    with pytest.raises(ValueError, match="images must be uint8"):
        grid.tiled(IMAGES / 2.0)
