"""What one peer does in one case, step by step, in a process of its own: run by path, `python -P`.

Reads `{"library", "case", "records"}` as JSON from the first line of stdin, builds and warms the steps, and
prints `{"status", "steps", "versions"}`, where "steps" has for each of them the bytes that it asks for and
those of parameters and batch, or zeros where that is not asked. Each further line names a step, which is run
twice; the answer is the processor time in milliseconds of the second run. Only the standard library, the
files beside this one and the library asked for are imported, so any interpreter that has it can run this.
"""

from __future__ import annotations

import importlib
import importlib.util
import json
import sys
import time
from collections.abc import Callable
from importlib import metadata
from pathlib import Path
from types import ModuleType
from typing import Any, TextIO

Run = Callable[[], object]
Steps = dict[str, tuple[Run, Callable[[], tuple[int, int]]]]
"""For each step how it is run, and how its memory is found: what it asks for, and parameters and batch."""

PACKAGES = {
    "opacus": ("opacus", "torch"),
    "jax-privacy": ("jax_privacy", "jax", "flax", "optax"),
    "torch": ("torch",),
    "transformers": ("transformers", "torch"),
}


def beside(name: str) -> ModuleType:
    """The module in the file of that name beside this one."""
    spec = importlib.util.spec_from_file_location(name, Path(__file__).with_name(f"{name}.py"))
    if spec is None or spec.loader is None:
        raise ModuleNotFoundError(name)
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


def _opacus(case: str, records: int | None) -> Steps:
    models: Any = beside("torch_models")
    found, resident = models.steps(case, records)

    def memory(step: Run) -> tuple[int, int]:
        return models.temporary_bytes(step), resident

    return {name: (step, lambda step=step: memory(step)) for name, step in found.items()}


def _jax_privacy(case: str, records: int | None) -> Steps:
    jax: Any = importlib.import_module("jax")
    models: Any = beside("models")
    clipping: Any = importlib.import_module("jax_privacy.clipping")
    noise: Any = importlib.import_module("jax_privacy.noise_addition")
    chosen = models.case(case, records=records)
    count, key = len(chosen.batch[1]), jax.random.key(1)

    def private(params: Any, batch: Any, key: Any) -> Any:
        clipped = clipping.clipped_grad(
            lambda p, b: chosen.loss(p, b).sum(), l2_clip_norm=models.CLIP_NORM, batch_argnums=1
        )
        privatizer = noise.gaussian_privatizer(prng_key=key, stddev=models.CLIP_NORM * models.NOISE)
        total = clipped(params, batch)
        noisy, _ = privatizer.update(total, privatizer.init(params))
        return models.descend(params, noisy, count)

    found: Steps = {}
    for name, step in {
        "jax non-private": models.plain_steps(chosen)["non-private"],
        "jax-privacy": private,
    }.items():
        compiled = jax.jit(step).lower(chosen.params, chosen.batch, key).compile()

        def run(compiled: Any = compiled) -> object:
            return jax.block_until_ready(compiled(chosen.params, chosen.batch, key))

        found[name] = (run, lambda compiled=compiled: models.memory(compiled))
    return found


def _torch(case: str, records: int | None) -> Steps:
    del records
    sampler: Any = beside("torch_sampler")
    return {name: (step, lambda: (0, 0)) for name, step in sampler.steps(case).items()}


def _transformers(case: str, records: int | None) -> Steps:
    del records
    generation: Any = beside("torch_generation")
    return {name: (step, lambda: (0, 0)) for name, step in generation.steps(case).items()}


_BUILDERS: dict[str, Callable[[str, int | None], Steps]] = {
    "opacus": _opacus,
    "jax-privacy": _jax_privacy,
    "torch": _torch,
    "transformers": _transformers,
}


def prepare(request: dict[str, Any]) -> tuple[dict[str, Any], Steps]:
    """The first answer, and the steps."""
    library = request["library"]
    missing = [name for name in PACKAGES[library] if importlib.util.find_spec(name) is None]
    if missing:
        return {"status": "not installed", "note": f"no {', '.join(missing)}"}, {}
    try:
        steps = _BUILDERS[library](request["case"], request["records"])
        about: dict[str, tuple[int, int]] = {}
        for name, (run, memory) in steps.items():
            run()
            about[name] = memory()
    except Exception as problem:  # whatever a peer raises belongs into the report
        return {"status": "error", "note": f"{type(problem).__name__}: {problem}"[:300]}, {}
    versions = {name.replace("_", "-"): metadata.version(name) for name in PACKAGES[library]}
    return {"status": "ok", "steps": about, "versions": versions}, steps


def timed(run: Run) -> float:
    """Processor time in milliseconds of the second of two runs."""
    run()
    start = time.process_time()
    run()
    return 1e3 * (time.process_time() - start)


def serve(lines: TextIO, answers: TextIO) -> None:
    """Answers until the lines end."""
    answer, steps = prepare(json.loads(lines.readline()))
    print(json.dumps(answer), file=answers, flush=True)
    for line in lines:
        print(json.dumps({"milliseconds": timed(steps[line.strip()][0])}), file=answers, flush=True)


if __name__ == "__main__":
    # What a library prints goes to stderr: stdout is for the answers.
    own, sys.stdout = sys.stdout, sys.stderr
    serve(sys.stdin, own)
