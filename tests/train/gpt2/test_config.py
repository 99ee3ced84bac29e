"""Sizes by name and from config.json."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import jax
import pytest

from exactdp.train.gpt2 import config, model
from exactdp.train.gpt2.config import Config


@pytest.mark.parametrize(
    ("name", "parameters"),
    [
        ("gpt2", 124_439_808),
        ("gpt2-medium", 354_823_168),
    ],
)
def test_public_sizes(name: str, parameters: int) -> None:
    _, shapes = model.abstract(config.named(name))
    assert sum(leaf.size for leaf in jax.tree.leaves(shapes)) == parameters


def test_named() -> None:
    assert config.named("tiny", vocabulary=300, positions=64) == Config(300, 64, width=128, layers=2, heads=4)
    assert config.named("small", vocabulary=300, positions=64).width == 256
    for name, sizes in (("gpt2-large", (1280, 36, 20)), ("gpt2-xl", (1600, 48, 25))):
        found = config.named(name)
        assert (found.width, found.layers, found.heads) == sizes
    assert config.named("gpt2", vocabulary=300).positions == 1024
    assert hash(config.named("gpt2")) == hash(config.named("gpt2"))
    with pytest.raises(ValueError, match="vocabulary and positions must be given for tiny, got None, 64"):
        config.named("tiny", positions=64)
    with pytest.raises(ValueError, match="name must be one of gpt2, gpt2-medium"):
        config.named("gpt3")


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"vocabulary": 1}, "vocabulary must be a whole number >= 2, got 1"),
        ({"positions": 0}, "positions must be"),
        ({"layers": 0}, "layers must be"),
        ({"heads": 0}, "heads must be"),
        ({"heads": 3}, "width must be a multiple of heads = 3, got 8"),
        ({"hidden": 0}, "hidden must be"),
        ({"norm_epsilon": 0.0}, "norm_epsilon must be finite and > 0"),
    ],
)
def test_refused(changed: dict[str, Any], message: str) -> None:
    sizes = {"vocabulary": 10, "positions": 4, "width": 8, "layers": 1, "heads": 2}
    with pytest.raises(ValueError, match=message):
        Config(**{**sizes, **changed})


@pytest.mark.parametrize("hidden", [None, 24])
def test_json_there_and_back(tmp_path: Path, hidden: int | None) -> None:
    sizes = Config(10, 4, width=8, layers=1, heads=2, hidden=hidden, norm_epsilon=1e-3)
    sizes.write(tmp_path, end=3)
    assert config.read(tmp_path) == sizes
    content = json.loads((tmp_path / config.FILE).read_text(encoding="utf-8"))
    assert content["eos_token_id"] == 3
    assert config.from_json(content) == sizes


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"model_type": "llama"}, "model_type must be gpt2, got 'llama'"),
        ({"activation_function": "relu"}, "activation_function must be 'gelu_new', got 'relu'"),
        ({"tie_word_embeddings": False}, "tie_word_embeddings must be True"),
        ({"scale_attn_by_inverse_layer_idx": True}, "scale_attn_by_inverse_layer_idx must be False"),
        ({"n_embd": "wide"}, "n_embd must be a real number"),
        ({"n_head": 3}, "width must be a multiple of heads"),
    ],
)
def test_other_functions_are_refused(changed: dict[str, Any], message: str) -> None:
    content = Config(10, 4, width=8, layers=1, heads=2).to_json()
    with pytest.raises(ValueError, match=message):
        config.from_json({**content, **changed})


def test_no_file(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="config.json must be a JSON file"):
        config.read(tmp_path)
    for text, message in (
        ("{", "must be a JSON file"),
        ("[]", "must hold a JSON object, got list"),
        ("{}", "vocab_size, it is missing"),
    ):
        (tmp_path / config.FILE).write_text(text, encoding="utf-8")
        with pytest.raises(ValueError, match=message):
            config.read(tmp_path)
