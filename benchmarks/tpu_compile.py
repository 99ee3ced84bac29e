"""Every training step compiled for four chips of TPU v5e, on a host without one, and its roofline time.

XLA's compiler for TPUs comes with libtpu and needs no TPU. For each method and model the step of the common
loop is compiled with the records over the chips, once with the parameters repeated on each and once split
over them; the table has what XLA counts for one chip: operations, memory traffic, memory held, bytes
exchanged; and the CPU seconds that compiling took. Nothing is run: the times are bounds from peak rates
(197 TFLOP/s in bfloat16, 819 GB/s, 1 600 Gbit/s between chips; Google's page on TPU v5e), not measurements.

Command:       pip install 'jax[tpu]' && python -m exactdp.benchmarks.tpu_compile
Expected time: seconds (linear) to minutes (wrn-16-4) a step, nearly all of it in the compiler.
Expected:      every step compiles and holds less than a chip's 16 GB.
"""

from __future__ import annotations

import json
import time
from collections.abc import Mapping, Sequence
from typing import Any

import jax
from absl import app, flags

from exactdp.benchmarks.tpu import roofline, steps, topology

_HEAD = (
    f"{'method':<18}{'model':<9}{'parameters':<10}{'GFLOP':>7}{'GB moved':>9}{'GB held':>8}{'MB sent':>8}"
    f"{'compute':>8}{'memory':>7}{'links ms':>9}  {'bound':<8}{'compiled':>9}"
)


def measure(case: steps.Case, *, split: bool) -> dict[str, Any]:
    """Compiles a step and says what it costs a chip.

    Args:
      case: which step.
      split: whether parameters are split over the chips.
    """
    layout = topology.layout(split_parameters=split)
    start = time.process_time()
    step, shapes = steps.jitted(case, layout=layout)
    compiled = step.lower(*shapes).compile()
    cost = roofline.cost(compiled, num_devices=layout.num_devices)
    spent = roofline.seconds(cost, chip=topology.V5E)
    bound = max(spent, key=lambda part: spent[part])
    return {
        "method": case.method,
        "model": case.model,
        "dtype": "bfloat16" if case.bfloat16 else "float32",
        "parameters": "split" if split else "repeated",
        "capacity": case.capacity,
        "accumulation": case.accumulation,
        "flops": cost.flops,
        "memory_traffic_bytes": cost.memory_traffic,
        "memory_bytes": cost.memory,
        "fits": cost.memory <= topology.V5E.memory,
        "collective_bytes": cost.collective,
        "sent_bytes": cost.sent,
        "collectives": dict(cost.kinds),
        "seconds": spent,
        "roofline_seconds": spent[bound],
        "bound": bound,
        "compile_seconds": time.process_time() - start,
    }


def line(row: Mapping[str, Any]) -> str:
    """A row of the table."""
    milliseconds = {part: 1e3 * value for part, value in row["seconds"].items()}
    return (
        f"{row['method']:<18}{row['model']:<9}{row['parameters']:<10}{row['flops'] / 1e9:>7.1f}"
        f"{row['memory_traffic_bytes'] / 1e9:>9.2f}{row['memory_bytes'] / 1e9:>8.2f}"
        f"{row['sent_bytes'] / 1e6:>8.2f}{milliseconds['compute']:>8.3f}{milliseconds['memory']:>7.3f}"
        f"{milliseconds['links']:>9.3f}  {row['bound']:<8}{row['compile_seconds']:>7.0f} s"
    )


def main(argv: Sequence[str]) -> None:
    """Compiles and prints."""
    given = flags.FLAGS
    if len(argv) > 1:
        raise app.UsageError(f"unexpected arguments: {argv[1:]}")
    # The host only compiles: without this JAX would look for the chips of libtpu.
    jax.config.update("jax_platforms", "cpu")
    for name in given.layouts:
        if name not in ("repeated", "split"):
            raise app.UsageError(f"layouts must be of repeated, split, got {name!r}")
    if not topology.available():
        raise app.UsageError("libtpu must be installed to compile for a TPU: pip install 'jax[tpu]'")
    try:
        cases = [
            steps.Case(method, model, given.capacity, given.records, not given.float32, given.accumulation)
            for method in given.methods
            for model in given.models
            if method in steps.methods(model) or method not in steps.METHODS
        ]
    except ValueError as error:
        raise app.UsageError(str(error)) from None
    if not given.json:
        turns = f", in {given.accumulation} parts of which one is counted" if given.accumulation > 1 else ""
        step = f"one step of capacity {given.capacity}{turns}"
        print(f"{topology.NAME}, for one {topology.V5E.name} of four, {step}")
        print(_HEAD, flush=True)
    rows: list[dict[str, Any]] = []
    for case in cases:
        for name in given.layouts:
            rows.append(measure(case, split=name == "split"))
            if not given.json:
                print(line(rows[-1]), flush=True)
    if given.json:
        print(json.dumps({"topology": topology.NAME, "jax": jax.__version__, "steps": rows}))


def run() -> None:
    """Entry point. The flags are defined here, so that importing the script defines none."""
    flags.DEFINE_list("methods", list(steps.METHODS), "Methods.")
    flags.DEFINE_list("models", list(steps.MODELS), "Models.")
    flags.DEFINE_list("layouts", ["repeated", "split"], "Parameters repeated on each chip, or split.")
    flags.DEFINE_integer("capacity", 1024, "Records a step is computed for.", lower_bound=2)
    flags.DEFINE_integer("records", 50_000, "Records of the training set.", lower_bound=2)
    flags.DEFINE_integer(
        "accumulation", 1, "Parts that a batch is computed in; XLA counts one of them.", lower_bound=1
    )
    flags.DEFINE_boolean("float32", False, "Compute in float32 instead of bfloat16.")
    flags.DEFINE_boolean("json", False, "Print one JSON object instead of the table.")
    app.run(main)


if __name__ == "__main__":
    run()
