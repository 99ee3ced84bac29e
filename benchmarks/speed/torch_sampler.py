"""PyTorch's Dirichlet sampler, forward and with gradient; the worker loads it by path."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any


def steps(case: str) -> dict[str, Callable[[], object]]:
    """The draw and its gradient for rows, classes and a constant concentration such as `"1024x10x0.1"`."""
    torch: Any = importlib.import_module("torch")
    torch.set_num_threads(1)
    torch.manual_seed(0)
    rows, classes, concentration = case.split("x")
    size = int(rows), int(classes)
    shapes = torch.full(size, float(concentration))
    tracked = torch.full(size, float(concentration), requires_grad=True)

    def forward() -> object:
        return torch.distributions.Dirichlet(shapes, validate_args=False).rsample()

    def gradient() -> object:
        tracked.grad = None
        rho = torch.distributions.Dirichlet(tracked, validate_args=False).rsample()
        (-torch.log(rho[:, 0]).mean()).backward()
        return tracked.grad

    return {"forward": forward, "gradient": gradient}
