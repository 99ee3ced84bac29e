"""Weights in Hugging Face's layout, and the logits of transformers' GPT-2 in PyTorch.

logits.npz holds small random models with their logits, as `make_logits.py` writes it.
"""

from __future__ import annotations

import functools
import json
import sys
import types
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

from exactdp.train.gpt2 import config, model, weights
from exactdp.train.gpt2.config import Config

PEER = np.load(Path(__file__).parent / "logits.npz")
quick_jit = functools.partial(jax.jit, compiler_options={"xla_backend_optimization_level": 0})


def tensors(name: str) -> dict[str, np.ndarray]:
    """The weights of a model of the peer, by its own names."""
    start = f"{name}/weights/"
    return {
        key.removeprefix(start): PEER[key].astype(np.float32) for key in PEER.files if key.startswith(start)
    }


def write(folder: Path, name: str, changed: dict[str, np.ndarray]) -> None:
    """A folder as the hub has it."""
    save_file(changed, folder / weights.FILE)
    (folder / config.FILE).write_text(str(PEER[f"{name}/config"]), encoding="utf-8")


@pytest.mark.parametrize(("name", "prefix"), [("one", ""), ("two", "transformer."), ("three", "")])
def test_logits_are_those_of_transformers(tmp_path: Path, name: str, prefix: str) -> None:
    found = {prefix + key: value for key, value in tensors(name).items()}
    if prefix:
        found["lm_head.weight"] = found["transformer.wte.weight"].copy()
    found[f"{prefix}h.0.attn.bias"] = np.ones((1, 1, 9, 9), np.float32)
    found[f"{prefix}h.0.attn.masked_bias"] = np.array(-1e4, np.float32)
    write(tmp_path, name, found)
    _, graph, params = weights.load(tmp_path)
    tokens, places = PEER[f"{name}/tokens"], PEER[f"{name}/positions"]
    expected, at_places = PEER[f"{name}/logits"], PEER[f"{name}/logits_at_positions"]
    assert np.std(expected) > 0.5
    run = quick_jit(functools.partial(model.logits, graph))
    np.testing.assert_allclose(run(params, tokens), expected, atol=2e-5, rtol=2e-5)
    np.testing.assert_allclose(run(params, tokens, places), at_places, atol=2e-5, rtol=2e-5)


def test_there_and_back(tmp_path: Path) -> None:
    sizes = Config(31, 12, width=16, layers=1, heads=2, hidden=20)
    _, params = model.build(sizes, key=jax.random.key(0))
    weights.save(tmp_path / "new", params, config=sizes, end=4)
    found = weights.load(tmp_path / "new", dtype=jnp.bfloat16)
    assert found.config == sizes
    jax.tree.map(np.testing.assert_array_equal, found.params, params)
    names = load_file(tmp_path / "new" / weights.FILE)
    assert names["transformer.h.0.mlp.c_fc.weight"].shape == (16, 20)
    assert names["transformer.h.0.attn.c_attn.weight"].shape == (16, 48)
    assert len(names) == 2 + 12 + 2
    with pytest.raises(ValueError, match="params must be those of a GPT-2 of the sizes in config"):
        weights.save(tmp_path, params, config=Config(31, 12, width=16, layers=1, heads=2))


def test_float16_is_read(tmp_path: Path) -> None:
    narrow = {key: value.astype(np.float16) for key, value in tensors("one").items()}
    write(tmp_path, "one", narrow)
    params = weights.load(tmp_path).params
    assert {leaf.dtype for leaf in jax.tree.leaves(params)} == {jnp.dtype(jnp.float32)}


def _without(name: str) -> dict[str, np.ndarray]:
    return {key: value for key, value in tensors("one").items() if key != name}


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        (lambda: _without("h.1.ln_1.bias"), "must have a tensor h.1.ln_1.bias of shape .12,., it is missing"),
        (
            lambda: {**tensors("one"), "wpe.weight": np.zeros((3, 12), np.float32)},
            "wpe.weight must be floating",
        ),
        (lambda: {**tensors("one"), "h.2.ln_1.bias": np.zeros(12, np.float32)}, "got a tensor h.2.ln_1.bias"),
        (
            lambda: {**tensors("one"), "wpe.weight": np.zeros((12, 12), np.int32)},
            "wpe.weight must be floating",
        ),
        (
            lambda: {**tensors("one"), "ln_f.bias": np.full(12, np.nan, np.float32)},
            "ln_f.bias must be finite",
        ),
        (
            lambda: {**tensors("one"), "lm_head.weight": np.zeros((37, 12), np.float32)},
            "lm_head.weight must equal wte.weight",
        ),
    ],
)
def test_other_tensors_are_refused(tmp_path: Path, changed: Any, message: str) -> None:
    write(tmp_path, "one", changed())
    with pytest.raises(ValueError, match=message):
        weights.load(tmp_path)


def test_damaged_files_are_refused(tmp_path: Path) -> None:
    write(tmp_path, "one", tensors("one"))
    path = tmp_path / weights.FILE
    whole = path.read_bytes()
    for blob in (b"", whole[:4], whole[:100], whole[:-10], b"\xff" * 200):
        path.write_bytes(blob)
        with pytest.raises(ValueError, match="must be a whole .safetensors file"):
            weights.load(tmp_path)
    path.unlink()
    with pytest.raises(ValueError, match="must be a .safetensors file, got"):
        weights.load(tmp_path)


def test_hub(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path, "one", tensors("one"))
    asked: list[str] = []

    def snapshot_download(name: str, *, allow_patterns: list[str]) -> str:
        asked.append(name)
        assert "model.safetensors" in allow_patterns and "config.json" in allow_patterns
        if name == "none/there":
            raise OSError("no such model")
        return str(tmp_path)

    hub = types.SimpleNamespace(snapshot_download=snapshot_download)
    monkeypatch.setitem(sys.modules, "huggingface_hub", hub)
    expected = json.loads(str(PEER["one/config"]))["vocab_size"]
    assert weights.load("some/model").config.vocabulary == expected
    with pytest.raises(ValueError, match="there is no folder none/there and the hub gave OSError"):
        weights.load("none/there")
    with pytest.raises(ValueError, match="source must be a folder or an id"):
        weights.load("/no/such/folder")
    assert asked == ["some/model", "none/there"]
    monkeypatch.setitem(sys.modules, "huggingface_hub", None)
    with pytest.raises(ValueError, match="as long as huggingface_hub is not installed"):
        weights.load("some/model")
