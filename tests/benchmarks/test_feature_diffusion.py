"""Paper B's diffusion experiment: the figure from the committed table alone, its table as text, bad input."""

from __future__ import annotations

import itertools
import math
import shutil
import subprocess
import sys
from pathlib import Path

import jax
import numpy as np
import pytest

from exactdp.benchmarks import feature_diffusion
from exactdp.benchmarks.curves import store
from exactdp.benchmarks.experiments import generation, sweep
from exactdp.benchmarks.experiments.experiment import Experiment
from exactdp.benchmarks.experiments.generation import Network, Trainer
from exactdp.train.data import Dataset

FOLDER = Path(__file__).resolve().parents[2] / "docs" / "papers" / "figures" / "feature_diffusion"
TABLE = FOLDER / "feature_diffusion_lfw_faces.csv"
ANIMALS = FOLDER / "feature_diffusion_cifar10_animals.csv"


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


def _table(path: Path) -> list[store.Row]:
    """The committed table's header with made-up runs of two seeds."""
    rows: list[store.Row] = []
    for series, adjacency, epsilons in (
        ("feature", "replace_features_public", (0.5, 8.0)),
        ("dpsgd", "replace", (0.5, 8.0)),
        ("public_only", None, (0.0,)),
    ):
        for epsilon, seed in itertools.product(epsilons, range(2)):
            found = {"test_loss": 0.5 + 0.1 * seed, "distance": 9.0 + seed, "precision": 0.5, "recall": 0.25}
            model = {"adjacency": adjacency, "coins": "hidden", "covers_weights": True}
            more = {"distance_name": "Frechet distance", "num_images": 40, **(model if adjacency else {})}
            rows.append(generation.row("test", series, epsilon, seed, seconds=1.0, **found, **more))
    sweep.write(path, store.read_csv(TABLE)[0], rows, columns=generation.COLUMNS)
    return rows


def test_figure_is_drawn_from_the_committed_table_alone(tmp_path: Path) -> None:
    table = tmp_path / TABLE.name
    shutil.copy(TABLE, table)
    before = table.read_bytes()
    done = _run("--dataset", "lfw_faces", "--redraw", "--out", str(tmp_path))
    assert done.returncode == 0, done.stderr
    assert table.with_suffix(".png").stat().st_size > 10_000
    assert table.read_bytes() == before


def test_means_over_the_seeds_are_printed(tmp_path: Path) -> None:
    lines = feature_diffusion.table(_table(tmp_path / TABLE.name)).splitlines()
    assert len(lines) == 6
    assert lines[1].split() == ["feature", "0.5", "0.5500", "9.5", "0.500", "0.250", "2"]


def test_a_table_without_finished_runs_is_not_drawn(tmp_path: Path) -> None:
    sweep.write(tmp_path / TABLE.name, store.read_csv(TABLE)[0], [], columns=generation.COLUMNS)
    with pytest.raises(ValueError, match="must hold finished runs"):
        feature_diffusion.draw(tmp_path / TABLE.name)


def test_figure_says_where_feature_dp_is_not_better(tmp_path: Path) -> None:
    def told(rows: list[store.Row]) -> list[float]:
        return feature_diffusion.not_below(sweep.summaries(rows, measure="test_loss"))

    _table(tmp_path / TABLE.name)
    assert told(store.read_csv(tmp_path / TABLE.name)[1]) == [0.5, 8.0]
    assert told(store.read_csv(TABLE)[1]) == []
    assert 8.0 in told(store.read_csv(ANIMALS)[1])


@pytest.mark.parametrize("table", [TABLE, ANIMALS], ids=["faces", "animals"])
def test_committed_rows_are_what_was_asked_for(table: Path) -> None:
    header, rows = store.read_csv(table)
    assert header["paper"] == feature_diffusion.ARXIV
    private = [row for row in rows if row["epsilon_upper"] and float(row["x"]) > 0.0]
    assert {row["series"].split(",")[0] for row in private} == {"feature", "dpsgd"}
    finished = {(row["series"], float(row["x"]), row["seed"]) for row in private if row["split"] == "test"}
    assert finished == set(
        itertools.product(("feature", "dpsgd"), map(float, header["epsilons"]), ("0", "1", "2"))
    )
    for row in private:
        assert float(row["epsilon_upper"]) <= float(row["x"])
        # The feature map changes which records are neighbours, never how much noise there is.
        same = [other for other in private if (other["split"], other["x"]) == (row["split"], row["x"])]
        assert {other["noise"] for other in same} == {row["noise"]}
        public = row["series"].startswith("feature")
        assert (row["adjacency"] == "replace_features_public", row["public"] != "none") == (public, public)
    assert {row["distance_name"] for row in rows} <= {
        "",
        "Frechet distance, random-convolution features",
    }


@pytest.mark.slow
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


def test_references_are_measured_against_the_test_images() -> None:
    trainer = _trainer()
    rows = generation.references(trainer)
    assert [row["series"] for row in rows] == ["training_images", "public_views"]
    assert all(row["num_images"] == "8" and float(row["distance"]) > 0.0 for row in rows)
    itself = trainer.compared(trainer.bytes_of(trainer.data.x_test))
    assert itself["distance"] < 1e-9
    assert (itself["precision"], itself["recall"]) == (1.0, 1.0)


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
