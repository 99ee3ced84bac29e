"""Generation by transformers' own `generate`, in PyTorch; its worker loads this by path."""

from __future__ import annotations

import importlib
import json
from collections.abc import Callable
from typing import Any

Step = Callable[[], object]


def steps(case: str) -> dict[str, Step]:
    """One call of `generate` for a batch, on one thread, with the cache that it keeps by default.

    Args:
      case: JSON with `config` (of transformers' GPT2Config), `rows`, `prompt` and `tokens` (prompt included),
        `temperature` and `top_k`.
    """
    torch: Any = importlib.import_module("torch")
    transformers: Any = importlib.import_module("transformers")
    asked: dict[str, Any] = json.loads(case)
    torch.set_num_threads(1)
    torch.manual_seed(0)
    config = transformers.GPT2Config(**asked["config"])
    model = transformers.GPT2LMHeadModel(config).eval()
    # Without an end no row stops early, and none is checked for it.
    model.generation_config.eos_token_id = None
    prompts = torch.randint(1, config.vocab_size - 1, (asked["rows"], asked["prompt"]))

    def generate() -> object:
        with torch.no_grad():
            return model.generate(
                prompts,
                attention_mask=torch.ones_like(prompts),
                max_length=asked["tokens"],
                do_sample=True,
                temperature=asked["temperature"],
                top_k=asked["top_k"],
                pad_token_id=0,
            )

    if tuple(generate().shape) != (asked["rows"], asked["tokens"]):  # type: ignore[attr-defined]
        raise RuntimeError("transformers stopped early")
    return {"generate": generate}
