"""GPT-2's weights in the layout of Hugging Face: config.json and model.safetensors."""

from __future__ import annotations

import importlib
import os
import re
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import DTypeLike

from exactdp.train.diffusion import weights as tensors
from exactdp.train.gpt2 import config as configs
from exactdp.train.gpt2.config import Config
from exactdp.train.gpt2.model import Graph, Parameters, abstract

FILE = "model.safetensors"
"""The name of the file with the weights."""

_PREFIX = "transformer."
_HEAD = "lm_head.weight"
# Causal masks that old files hold; they are no weights.
_BUFFERS = re.compile(r"h\.\d+\.attn\.(bias|masked_bias)")
_HUB_ID = re.compile(r"[\w.-]+(/[\w.-]+)?")
_WANTED = (configs.FILE, FILE, "tokenizer.json", "vocab.json", "merges.txt")

_NAMES = {
    "tokens": "wte",
    "positions": "wpe",
    "norm": "ln_f",
    "layers": "h",
    "norm1": "ln_1",
    "norm2": "ln_2",
}
_DENSE = {
    ("attention", "qkv"): ("attn", "c_attn"),
    ("attention", "out"): ("attn", "c_proj"),
    ("up",): ("mlp", "c_fc"),
    ("down",): ("mlp", "c_proj"),
}
_LEAVES = {"embedding": "weight", "kernel": "weight", "scale": "weight", "bias": "bias"}


class Pretrained(NamedTuple):
    """A model that has been loaded."""

    config: Config
    graph: Graph
    params: Parameters


def locate(source: str | Path) -> Path:
    """The local folder of a model: `source` itself, or where a model of the Hugging Face hub has been put.

    Args:
      source: a folder, or an id of the hub such as `gpt2` when there is no folder of that name.

    Raises:
      ValueError: neither, huggingface_hub is not installed, or the hub has no such model or is
        out of reach.
    """
    folder = Path(source)
    if folder.is_dir():
        return folder
    if not _HUB_ID.fullmatch(str(source)):
        raise ValueError(f"source must be a folder or an id of the Hugging Face hub, got {source}")
    missing = f"there is no folder {source}"
    try:
        hub: Any = importlib.import_module("huggingface_hub")
    except ImportError as error:
        raise ValueError(
            f"source must be a folder as long as huggingface_hub is not installed, {missing}"
        ) from error
    try:
        return Path(hub.snapshot_download(str(source), allow_patterns=list(_WANTED)))
    except (OSError, ValueError) as error:  # what the hub raises derives from these
        kind = type(error).__name__
        raise ValueError(
            f"source must be a folder or a model of the Hugging Face hub, {missing} and the hub gave "
            f"{kind}: {error}"
        ) from error


def load(source: str | Path, *, dtype: DTypeLike = jnp.float32) -> Pretrained:
    """The model in `source`, see `locate`: its sizes, graph and float32 parameters.

    Args:
      source: a folder with config.json and model.safetensors, or an id of the Hugging Face hub.
      dtype: of the computation, float32 or bfloat16.

    Raises:
      ValueError: as `locate`, `config.read` and `read` say.
    """
    folder = locate(source)
    config = configs.read(folder)
    graph, _ = abstract(config, dtype=dtype)
    return Pretrained(config, graph, read(folder / FILE, config=config))


def read(path: str | Path, *, config: Config) -> Parameters:
    """The parameters in a model.safetensors, its names with or without `transformer.`, as float32.

    Args:
      path: the file.
      config: sizes that it must have.

    Raises:
      ValueError: no such file, a damaged one, a tensor that is missing, unknown, of another shape, not
        floating or not finite, or a head that is not the token table.
    """
    _, shapes = abstract(config)
    leaves, structure = jax.tree.flatten_with_path(shapes)
    wanted = {_name(path): tuple(leaf.shape) for path, leaf in leaves}
    file = Path(path)
    there = tensors.names(file)
    prefix = _PREFIX if any(name.startswith(_PREFIX) for name in there) else ""
    plain = [name.removeprefix(prefix) for name in there]
    unknown = [n for n in plain if n not in wanted and n != _HEAD and not _BUFFERS.fullmatch(n)]
    if unknown:
        raise ValueError(f"{file.name} must hold a GPT-2 of these sizes alone, got a tensor {unknown[0]}")
    asked = {prefix + name: shape for name, shape in wanted.items()}
    if _HEAD in there:
        asked[_HEAD] = wanted["wte.weight"]
    found = tensors.read(file, shapes=asked)
    if _HEAD in found and not np.array_equal(found[_HEAD], found[f"{prefix}wte.weight"]):
        raise ValueError(f"{file.name}: {_HEAD} must equal wte.weight, the table is used at both ends")
    values = [jnp.asarray(found[prefix + _name(path)]) for path, _ in leaves]
    return jax.tree.unflatten(structure, values)


def save(folder: str | Path, params: Parameters, *, config: Config, end: int | None = None) -> None:
    """Writes config.json and model.safetensors, which transformers' GPT2LMHeadModel loads too.

    Args:
      folder: made if it is missing.
      params: of a model without low-rank pairs (see `lora.merged`).
      config: its sizes.
      end: the id of the token that ends a text; None for the last one.

    Raises:
      ValueError: parameters that are not those of a model of these sizes.
      OSError: the disk refuses.
    """
    _, shapes = abstract(config)
    expected = {jax.tree_util.keystr(path): leaf.shape for path, leaf in jax.tree.leaves_with_path(shapes)}
    leaves = jax.tree.leaves_with_path(params)
    if {jax.tree_util.keystr(path): leaf.shape for path, leaf in leaves} != expected:
        raise ValueError("params must be those of a GPT-2 of the sizes in config, without pairs, got others")
    named = {_PREFIX + _name(path): np.ascontiguousarray(leaf, np.float32) for path, leaf in leaves}
    where = Path(folder)
    where.mkdir(parents=True, exist_ok=True)
    library: Any = importlib.import_module("safetensors")
    numpy_files: Any = importlib.import_module("safetensors.numpy")
    fresh = where / f"{FILE}.new"
    try:
        numpy_files.save_file(named, fresh, metadata={"format": "pt"})
        os.replace(fresh, where / FILE)
    except library.SafetensorError as error:
        # What a full disk raises; it is no OSError of its own accord.
        fresh.unlink(missing_ok=True)
        raise OSError(f"{where / FILE} could not be written: {error}") from None
    config.write(where, end=end)


def _name(path: tuple[Any, ...]) -> str:
    """The name that Hugging Face gives a parameter, without prefix."""
    keys = [entry.key for entry in path if isinstance(entry, jax.tree_util.DictKey)]
    *owners, leaf = (str(key) for key in keys)
    parts: list[str] = []
    while owners:
        for ours, theirs in _DENSE.items():
            if tuple(owners) == ours:
                parts.extend(theirs)
                owners = []
                break
        else:
            parts.append(_NAMES.get(owners[0], owners[0]))
            owners = owners[1:]
    return ".".join((*parts, _LEAVES[leaf]))
