"""Sizes of a GPT-2, by name or from a Hugging Face config.json."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from exactdp.accounting import validate

FILE = "config.json"
"""The name of the file that `read` and `write` are about."""

# name -> width, layers, heads
_PUBLIC: Mapping[str, tuple[int, int, int]] = {
    "gpt2": (768, 12, 12),
    "gpt2-medium": (1024, 24, 16),
    "gpt2-large": (1280, 36, 20),
    "gpt2-xl": (1600, 48, 25),
}
_OURS: Mapping[str, tuple[int, int, int]] = {"tiny": (128, 2, 4), "small": (256, 4, 8)}
_PUBLIC_VOCABULARY, _PUBLIC_POSITIONS = 50_257, 1024

NAMES = (*_PUBLIC, *_OURS)
"""The names that `named` knows."""

# What the model computes, and the value that means it where config.json leaves the key out.
_FIXED: Mapping[str, Any] = {
    "activation_function": "gelu_new",
    "add_cross_attention": False,
    "scale_attn_by_inverse_layer_idx": False,
    "scale_attn_weights": True,
    "tie_word_embeddings": True,
}


@dataclasses.dataclass(frozen=True)
class Config:
    """Sizes of a GPT-2; hashable.

    Attributes:
      vocabulary: tokens, >= 2.
      positions: the longest sequence in tokens, >= 1.
      width: features a token, a multiple of `heads`.
      layers: >= 1.
      heads: attention heads a layer, >= 1.
      hidden: features between the two dense layers of a layer; None for 4 `width`.
      norm_epsilon: added to the variance in a layer norm, > 0.

    Raises:
      ValueError: a number outside of what is said above.
    """

    vocabulary: int
    positions: int
    width: int
    layers: int
    heads: int
    hidden: int | None = None
    norm_epsilon: float = 1e-5

    def __post_init__(self) -> None:
        validate.count("vocabulary", self.vocabulary, 2)
        for name in ("positions", "width", "layers", "heads"):
            validate.count(name, getattr(self, name), 1)
        if self.hidden is not None:
            validate.count("hidden", self.hidden, 1)
        validate.positive("norm_epsilon", self.norm_epsilon)
        if self.width % self.heads:
            raise ValueError(f"width must be a multiple of heads = {self.heads}, got {self.width}")

    @property
    def inner(self) -> int:
        """Features between the two dense layers of a layer."""
        return 4 * self.width if self.hidden is None else self.hidden

    def to_json(self, *, end: int | None = None) -> dict[str, Any]:
        """The content of a config.json that transformers reads as the same model, without dropout.

        Args:
          end: the id of the token that ends a text; None for the last one, as in GPT-2.
        """
        last = self.vocabulary - 1 if end is None else end
        return {
            "architectures": ["GPT2LMHeadModel"],
            "model_type": "gpt2",
            **_FIXED,
            "vocab_size": self.vocabulary,
            "n_positions": self.positions,
            "n_embd": self.width,
            "n_layer": self.layers,
            "n_head": self.heads,
            "n_inner": self.hidden,
            "layer_norm_epsilon": self.norm_epsilon,
            "initializer_range": 0.02,
            "attn_pdrop": 0.0,
            "embd_pdrop": 0.0,
            "resid_pdrop": 0.0,
            "bos_token_id": last,
            "eos_token_id": last,
        }

    def write(self, folder: str | Path, *, end: int | None = None) -> None:
        """Writes config.json into `folder`; see `to_json`."""
        text = json.dumps(self.to_json(end=end), indent=2, sort_keys=True)
        (Path(folder) / FILE).write_text(text + "\n", encoding="utf-8")


def named(name: str, *, vocabulary: int | None = None, positions: int | None = None) -> Config:
    """The sizes called `name`.

    The four public models have 50 257 tokens and 1024 positions unless others are given. `tiny` (2 layers of
    width 128) and `small` (4 layers of width 256) are for training from nothing on a CPU.

    Args:
      name: one of `NAMES`.
      vocabulary: tokens; must be given for `tiny` and `small`.
      positions: the longest sequence; must be given for `tiny` and `small`.

    Raises:
      ValueError: an argument outside of what is said above.
    """
    validate.one_of("name", name, NAMES)
    if name in _PUBLIC:
        vocabulary = _PUBLIC_VOCABULARY if vocabulary is None else vocabulary
        positions = _PUBLIC_POSITIONS if positions is None else positions
    if vocabulary is None or positions is None:
        raise ValueError(f"vocabulary and positions must be given for {name}, got {vocabulary}, {positions}")
    width, layers, heads = {**_PUBLIC, **_OURS}[name]
    return Config(vocabulary, positions, width, layers, heads)


def from_json(content: Mapping[str, Any]) -> Config:
    """The sizes in the content of a Hugging Face config.json of a GPT-2.

    Dropout is not read: this model has none.

    Raises:
      ValueError: a size is missing or no number, or the file asks for a function other than GPT-2's.
    """
    kind = content.get("model_type", "gpt2")
    if kind != "gpt2":
        raise ValueError(f"{FILE}: model_type must be gpt2, got {kind!r}")
    for name, value in _FIXED.items():
        if content.get(name, value) != value:
            raise ValueError(f"{FILE}: {name} must be {value!r}, got {content[name]!r}")
    sizes: list[int] = []
    for name in ("vocab_size", "n_positions", "n_embd", "n_layer", "n_head"):
        if name not in content:
            raise ValueError(f"{FILE} must have {name}, it is missing")
        sizes.append(validate.count(name, content[name], 1))
    hidden = content.get("n_inner")
    return Config(
        *sizes,
        hidden=None if hidden is None else validate.count("n_inner", hidden, 1),
        norm_epsilon=validate.positive("layer_norm_epsilon", content.get("layer_norm_epsilon", 1e-5)),
    )


def read(folder: str | Path) -> Config:
    """The sizes in `folder`/config.json; see `from_json`.

    Raises:
      ValueError: no such file, no JSON object, or not a GPT-2.
    """
    path = Path(folder) / FILE
    try:
        content: Any = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise ValueError(f"{path} must be a JSON file: {error}") from error
    if not isinstance(content, dict):
        raise ValueError(f"{path} must hold a JSON object, got {type(content).__name__}")
    found: dict[str, Any] = content
    return from_json(found)
