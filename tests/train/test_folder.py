from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from exactdp.train import folder


def test_a_folder_with_anything_of_a_run_is_left_alone(tmp_path: Path) -> None:
    folder.require_fresh(tmp_path / "new" / "run")
    folder.require_fresh(tmp_path)
    assert not list(tmp_path.iterdir())
    for name in (folder.RUN, folder.LEDGER, folder.CHECKPOINTS):
        (tmp_path / name).write_text("kept")
        with pytest.raises(ValueError, match=f"out must be a folder without a run.* with {name}"):
            folder.require_fresh(tmp_path)
        assert (tmp_path / name).read_text() == "kept"
        (tmp_path / name).unlink()
    (tmp_path / "file").write_text("")
    with pytest.raises(ValueError, match="out must be a folder that can be written to"):
        folder.require_fresh(tmp_path / "file")
    with pytest.raises(ValueError, match="out must hold a run when resume is set"):
        folder.require_run(tmp_path)


def test_settings_are_compared_by_name(tmp_path: Path) -> None:
    folder.create(tmp_path / "run", {"run": "1", "settings": {"clip_norm": 1.0, "epsilon": None}})
    folder.require_same(tmp_path / "run", {"run": "2", "settings": {"clip_norm": 1.0, "epsilon": None}})
    with pytest.raises(ValueError, match="^clip_norm must be what the run .* 1.0, got 2.0"):
        folder.require_same(tmp_path / "run", {"settings": {"clip_norm": 2.0, "epsilon": None}})
    with pytest.raises(ValueError, match="more must be what the run .*, left out, got 1"):
        folder.require_same(tmp_path / "run", {"settings": {"clip_norm": 1.0, "epsilon": None}, "more": 1})


@pytest.mark.parametrize("text", ["", "[]", "{", "1"])
def test_a_damaged_description_is_named(text: str, tmp_path: Path) -> None:
    (tmp_path / folder.RUN).write_text(text)
    with pytest.raises(ValueError, match="run.json must describe a run"):
        folder.description(tmp_path)


def test_weights_keep_their_paths_and_bits(tmp_path: Path) -> None:
    params = {"layer": {"kernel": np.float32([[1.5, -0.0]]), "bias": np.float32([2.0])}}
    path = folder.write_weights(tmp_path, params)
    with np.load(path) as found:
        assert sorted(found) == ["layer/bias", "layer/kernel"]
        assert found["layer/kernel"].tobytes() == params["layer"]["kernel"].tobytes()
    folder.write_json(tmp_path / "x.json", {"a": 0.1})
    assert json.loads((tmp_path / "x.json").read_text()) == {"a": 0.1}
    assert sorted(file.name for file in tmp_path.iterdir()) == ["weights.npz", "x.json"]
