"""Paper B's diffusion experiment: the figure from the committed table alone, its table as text, bad input."""

from __future__ import annotations

import math
import shutil
import subprocess
import sys
from pathlib import Path

import jax
import numpy as np
import pytest
from PIL import Image

from exactdp.benchmarks import feature_diffusion
from exactdp.benchmarks.curves import store
from exactdp.benchmarks.experiments import generation
from exactdp.benchmarks.experiments.experiment import Experiment
from exactdp.benchmarks.experiments.generation import Network, Trainer
from exactdp.train.data import Dataset

FOLDER = Path(__file__).resolve().parents[2] / "docs" / "papers" / "figures" / "feature_diffusion"
TABLE = FOLDER / "feature_diffusion_lfw_faces.csv"


def _run(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "exactdp.benchmarks.feature_diffusion", *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=300)


def _images() -> Dataset:
    x = np.random.default_rng(0).random((20, 8, 8, 1), np.float32)
    y = np.arange(20, dtype=np.int32) % 2
    return Dataset(x[:12], y[:12], x[12:], y[12:], 2, "tiny", "made up")


def _trainer(**changed: object) -> Trainer:
    experiment = Experiment("lfw_faces", "unet", 0, 0, 2, paper="none")
    asked = {"public": "blur:sigma=1", "network": Network(4, 0), "public_steps": 2, "public_rate": 1e-3}
    return Trainer(experiment, _images(), **(asked | changed))  # pyright: ignore[reportArgumentType]


def test_figure_is_drawn_from_the_table_alone(tmp_path: Path) -> None:
    table = Path(shutil.copy(TABLE, tmp_path))
    before = table.read_bytes()
    done = _run("--dataset", "lfw_faces", "--redraw", "--out", str(tmp_path))
    assert done.returncode == 0, done.stderr
    assert table.with_suffix(".png").stat().st_size > 10_000
    assert table.read_bytes() == before


def test_committed_rows_are_what_was_asked_for() -> None:
    header, rows = store.read_csv(TABLE)
    assert header["paper"] == feature_diffusion.ARXIV
    private = [row for row in rows if row["split"] == "test" and row["series"] in ("feature", "dpsgd")]
    assert len(private) == 2 * len(feature_diffusion.EPSILONS) * int(str(header["num_seeds"]))
    for row in private:
        assert float(row["epsilon_upper"]) <= float(row["x"])
        # The feature map changes which records are neighbours, never how much noise there is.
        twins = {other["noise"] for other in private if other["x"] == row["x"]}
        assert twins == {row["noise"]}
        public = row["series"] == "feature"
        assert (row["adjacency"] == "replace_features_public", row["public"] != "none") == (public, public)
        assert row["distance_name"] == "Frechet distance, random-convolution features"
    assert all(float(row["distance"]) >= 0.0 for row in rows if row["distance"])
    text = feature_diffusion.table(rows)
    assert "dpsgd" in text
    assert "nan" not in text.split("dpsgd", 1)[1].splitlines()[0]


def test_grids_are_small_pictures() -> None:
    for series in generation.SERIES:
        path = FOLDER / f"feature_diffusion_lfw_faces_{series}.png"
        assert path.stat().st_size < 200_000
        with Image.open(path) as image:
            assert min(image.size) > 100


def test_pre_training_is_the_same_for_every_run_of_a_seed() -> None:
    trainer = _trainer()
    params, values = trainer.run("public_only", seed=3, recipe=generation.Recipe(1e-3))
    again, _ = _trainer().run("public_only", seed=3, recipe=generation.Recipe(1e-3))
    other, _ = trainer.run("public_only", seed=4, recipe=generation.Recipe(1e-3))
    leaves = [np.concatenate([np.ravel(v) for v in _leaves(p)]) for p in (params, again, other)]
    np.testing.assert_array_equal(leaves[0], leaves[1])
    assert np.abs(leaves[0] - leaves[2]).max() > 1e-3
    assert values["num_steps"] == 4
    found, images = trainer.measured(params, seed=3, samples=True)
    assert images is not None
    assert images.shape == (8, 8, 8, 1)
    assert math.isfinite(found["test_loss"])
    assert found["num_images"] == 8


def _leaves(tree: object) -> list[np.ndarray]:
    return [np.asarray(leaf) for leaf in jax.tree.leaves(tree)]


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"public_steps": 0}, "public_steps must be"),
        ({"public_rate": 0.0}, "public_rate must be"),
        ({"public": "blur:sigma=-1"}, "sigma must be"),
    ],
)
def test_bad_trainers_are_refused(changed: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        _trainer(**changed)


def test_bad_series_is_refused() -> None:
    with pytest.raises(ValueError, match="series must be one of"):
        _trainer().run("gan", seed=0, recipe=generation.Recipe(1e-3))


def test_bad_input_touches_no_file(tmp_path: Path) -> None:
    done = _run("--dataset", "lfw_faces", "--delta", "2", "--out", str(tmp_path / "new"))
    assert done.returncode != 0
    assert "delta" in done.stderr
    assert not (tmp_path / "new").exists()
