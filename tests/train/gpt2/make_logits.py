"""Writes logits.npz: random small GPT-2s of transformers in PyTorch, with tokens and their logits.

Command: python tests/train/gpt2/make_logits.py, where torch and transformers are installed.
Made with torch 2.13.0 and transformers 5.24.0. Weights are float16 numbers, so that the file stays small.
"""

from __future__ import annotations

import importlib
import json
from pathlib import Path
from typing import Any

import numpy as np

CONFIGS = {
    "one": {"vocab_size": 37, "n_positions": 12, "n_embd": 12, "n_layer": 2, "n_head": 3},
    "two": {
        "vocab_size": 50, "n_positions": 16, "n_embd": 16, "n_layer": 1, "n_head": 2, "n_inner": 24,
        "layer_norm_epsilon": 1e-2,
    },
    "three": {"vocab_size": 64, "n_positions": 9, "n_embd": 8, "n_layer": 3, "n_head": 1},
}  # fmt: skip


def main() -> None:
    torch: Any = importlib.import_module("torch")
    transformers: Any = importlib.import_module("transformers")
    generator = torch.Generator().manual_seed(0)
    arrays: dict[str, Any] = {}
    for name, sizes in CONFIGS.items():
        config = transformers.GPT2Config(**sizes, attn_implementation="eager")
        model = transformers.GPT2LMHeadModel(config).eval()
        with torch.no_grad():
            for key, value in model.transformer.named_parameters():
                drawn = 0.4 * torch.randn(value.shape, generator=generator)
                value.copy_((drawn + (1.0 if ".ln_" in key or "ln_f" in key else 0.0)).half().float())
                arrays[f"{name}/weights/{key}"] = value.numpy().astype(np.float16)
            tokens = torch.randint(sizes["vocab_size"], (2, sizes["n_positions"] - 1), generator=generator)
            places = tokens * 7 % sizes["n_positions"]
            arrays[f"{name}/tokens"] = tokens.numpy().astype(np.int32)
            arrays[f"{name}/logits"] = model(tokens).logits.numpy()
            arrays[f"{name}/positions"] = places.numpy().astype(np.int32)
            arrays[f"{name}/logits_at_positions"] = model(tokens, position_ids=places).logits.numpy()
        arrays[f"{name}/config"] = np.array(json.dumps(config.to_dict(), default=str, sort_keys=True))
    with (Path(__file__).parent / "logits.npz").open("wb") as stream:
        np.savez_compressed(stream, **arrays)


if __name__ == "__main__":
    main()
