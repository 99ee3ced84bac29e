"""The models of the training speed script in PyTorch, with Opacus; its worker loads them by path.

Layers, sizes and batch are those of `models`; the attention is PyTorch's own fused one. The random numbers
differ, on which no time depends.
"""

from __future__ import annotations

import importlib
import json
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

Step = Callable[[], object]

CLIP_NORM, NOISE, RATE = 1.0, 1.0, 0.1
_RECORDS = {"mlp": 1024, "cnn": 256, "wrn": 64, "gpt": 16}


def _wide_resnet(torch: Any) -> Any:
    nn = torch.nn

    class Block(nn.Module):
        def __init__(self, channels: int, features: int, stride: int, first: bool) -> None:
            super().__init__()
            self.norms = nn.ModuleList([nn.GroupNorm(16, channels), nn.GroupNorm(16, features)])
            self.skip = nn.Conv2d(channels, features, 1, stride, bias=False) if first else None
            self.one = nn.Conv2d(channels, features, 3, stride, padding=1, bias=False)
            self.two = nn.Conv2d(features, features, 3, 1, padding=1, bias=False)

        def forward(self, x: Any) -> Any:
            y = torch.relu(self.norms[0](x))
            skip = x if self.skip is None else self.skip(y)
            return skip + self.two(torch.relu(self.norms[1](self.one(y))))

    layers: list[Any] = [nn.Conv2d(3, 16, 3, padding=1, bias=False)]
    channels = 16
    for stage, features in enumerate((64, 128, 256)):
        for block in range(2):
            stride = 2 if stage > 0 and block == 0 else 1
            layers.append(Block(channels, features, stride, block == 0))
            channels = features
    end = [nn.GroupNorm(16, 256), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(256, 10)]
    return nn.Sequential(*layers, *end)


def _transformer(torch: Any) -> Any:
    nn = torch.nn
    width, heads = 256, 8

    class Attention(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.query, self.key, self.value, self.out = (nn.Linear(width, width) for _ in range(4))

        def forward(self, x: Any) -> Any:
            shape = (*x.shape[:2], heads, width // heads)
            parts = [f(x).view(shape).transpose(1, 2) for f in (self.query, self.key, self.value)]
            mixed = nn.functional.scaled_dot_product_attention(*parts, is_causal=True)
            return self.out(mixed.transpose(1, 2).reshape(x.shape))

    class Block(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.norms = nn.ModuleList([nn.LayerNorm(width), nn.LayerNorm(width)])
            self.attention = Attention()
            hidden = nn.Linear(width, 4 * width), nn.GELU(approximate="tanh"), nn.Linear(4 * width, width)
            self.hidden = nn.Sequential(*hidden)

        def forward(self, x: Any) -> Any:
            x = x + self.attention(self.norms[0](x))
            return x + self.hidden(self.norms[1](x))

    class Transformer(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            # Positions by a look-up: a parameter outside a layer is one that Opacus does not take.
            self.embed, self.position = nn.Embedding(1024, width), nn.Embedding(128, width)
            self.blocks = nn.Sequential(*[Block() for _ in range(4)])
            self.norm, self.out = nn.LayerNorm(width), nn.Linear(width, 1024)

        def forward(self, tokens: Any) -> Any:
            places = torch.arange(tokens.shape[1]).repeat(len(tokens), 1)
            return self.out(self.norm(self.blocks(self.embed(tokens) + self.position(places))))

    return Transformer()


def model(torch: Any, name: str) -> Any:
    """The model of that name, with new parameters."""
    nn = torch.nn
    if name == "mlp":
        return nn.Sequential(nn.Flatten(), nn.Linear(784, 128), nn.ReLU(), nn.Linear(128, 10))
    if name == "cnn":
        return nn.Sequential(
            nn.Conv2d(1, 16, 8, 2, padding=3), nn.Tanh(), nn.MaxPool2d(2, 1),
            nn.Conv2d(16, 32, 4, 2), nn.Tanh(), nn.MaxPool2d(2, 1), nn.Flatten(),
            nn.Linear(512, 32), nn.Tanh(), nn.Linear(32, 10),
        )  # fmt: skip
    return _wide_resnet(torch) if name == "wrn" else _transformer(torch)


def batch(torch: Any, name: str, records: int | None) -> tuple[Any, Any]:
    """Inputs and labels."""
    count = _RECORDS[name] if records is None else records
    if name == "gpt":
        tokens = torch.randint(1024, (count, 129))
        return tokens[:, :-1].contiguous(), tokens[:, 1:].contiguous()
    shape = (3, 32, 32) if name == "wrn" else (1, 28, 28)
    return torch.randn(count, *shape), torch.randint(10, (count,))


def _loss(torch: Any, logits: Any, labels: Any) -> Any:
    return torch.nn.functional.cross_entropy(logits.reshape(-1, logits.shape[-1]), labels.reshape(-1))


def steps(name: str, records: int | None) -> tuple[dict[str, Step], int]:
    """PyTorch's non-private step, those of Opacus by hooks and by ghost clipping, and bytes; one thread.

    The bytes are those of parameters, changed in place, and batch.
    """
    torch: Any = importlib.import_module("torch")
    torch.set_num_threads(1)
    torch.manual_seed(0)
    x, y = batch(torch, name, records)
    count = len(y)
    found: dict[str, Step] = {}

    plain = model(torch, name)
    optimiser = torch.optim.SGD(plain.parameters(), lr=RATE)

    def non_private() -> None:
        optimiser.zero_grad()
        _loss(torch, plain(x), y).backward()
        optimiser.step()

    found["torch non-private"] = non_private
    modules: Any = importlib.import_module("opacus.grad_sample")
    optimisers: Any = importlib.import_module("opacus.optimizers")
    private = {"noise_multiplier": NOISE, "max_grad_norm": CLIP_NORM, "expected_batch_size": count}

    hooked = modules.GradSampleModule(model(torch, name))
    sgd = torch.optim.SGD(hooked.parameters(), lr=RATE)
    hooked_optimiser = optimisers.DPOptimizer(sgd, **private)

    def hooks() -> None:
        hooked_optimiser.zero_grad()
        _loss(torch, hooked(x), y).backward()
        hooked_optimiser.step()

    found["opacus hooks"] = hooks
    clipping: Any = importlib.import_module("opacus.utils.fast_gradient_clipping_utils")
    fast: Any = importlib.import_module("opacus.grad_sample.grad_sample_module_fast_gradient_clipping")
    faster: Any = importlib.import_module("opacus.optimizers.optimizer_fast_gradient_clipping")
    ghosted = fast.GradSampleModuleFastGradientClipping(model(torch, name), max_grad_norm=CLIP_NORM)
    sgd = torch.optim.SGD(ghosted.parameters(), lr=RATE)
    ghosted_optimiser = faster.DPOptimizerFastGradientClipping(sgd, **private)
    criterion = clipping.DPLossFastGradientClipping(
        ghosted, ghosted_optimiser, torch.nn.CrossEntropyLoss(), loss_reduction="mean"
    )

    def ghost() -> None:
        ghosted_optimiser.zero_grad()
        logits = ghosted(x)
        flat = logits.reshape(-1, logits.shape[-1])
        shape = logits.shape if logits.ndim == 3 else None
        criterion(flat, y.reshape(-1), shape=shape).backward()
        ghosted_optimiser.step()

    found["opacus ghost"] = ghost
    return found, sum(value.nbytes for value in (*plain.parameters(), x, y))


def temporary_bytes(step: Step) -> int:
    """The most bytes that PyTorch's allocator has handed out beyond those before the step, during it."""
    profiler: Any = importlib.import_module("torch.profiler")
    with profiler.profile(activities=[profiler.ProfilerActivity.CPU], profile_memory=True) as profile:
        step()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "trace.json"
        profile.export_chrome_trace(str(path))
        events = json.loads(path.read_text(encoding="utf-8"))["traceEvents"]
    changes = [(float(e["ts"]), int(e["args"]["Bytes"])) for e in events if e.get("name") == "[memory]"]
    held = most = 0
    for _, change in sorted(changes, key=lambda pair: pair[0]):
        held += change
        most = max(most, held)
    return most
