"""Time and memory of a training step with clipped gradients, beside the fastest step without.

Four models, each at one batch size: a two-layer perceptron, the small CNN usual for private MNIST, WRN-16-4
with GroupNorm, and a transformer of the shape of a small GPT. Every private step clips each record's
gradient, adds noise and takes a step of SGD; "clipped" leaves the noise out, and the non-private one the
clipping too. All are compiled once, run in turns on one thread of one core, each twice of which the second is
timed, by the processor's clock for the process, which other processes do not advance.

Command:       python -m exactdp.benchmarks.training_speed --out speed
Expected time: about fifteen minutes on one core; compiling is most of it.
Expected:      aimed at is "clipped" over non-private at most 1.15 (mlp), 1.8 (cnn), 1.2 (wrn), 1.1 (gpt);
               peak memory at most 1.2 times the non-private one for mlp and gpt, 1.5 for wrn.
"""

from __future__ import annotations

import dataclasses
import datetime
import importlib.metadata
import importlib.util
import json
import os
import platform
import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import optax
from absl import app, flags, logging
from flax import linen as nn
from jax import Array

from exactdp.benchmarks.curves import store, style
from exactdp.mechanisms import clipping, noise

TARGETS = {"mlp": (1.15, 1.2), "cnn": (1.8, None), "wrn": (1.2, 1.5), "gpt": (1.1, 1.2)}
_CLIP_NORM, _NOISE, _RATE = 1.0, 1.0, 0.1
_COLOURS = (style.BLUE, style.VERMILLION, style.GREY, style.GREEN)


class Perceptron(nn.Module):
    """784-128-10."""

    @nn.compact
    def __call__(self, x: Array) -> Array:
        return nn.Dense(10)(nn.relu(nn.Dense(128)(x.reshape(x.shape[0], -1))))


def pooled(x: Array) -> Array:
    """Maximum over 2x2 windows at stride 1; of four slices, as a reduced window is slow on a CPU."""
    x = jnp.maximum(x[:, 1:], x[:, :-1])
    return jnp.maximum(x[:, :, 1:], x[:, :, :-1])


class SmallCNN(nn.Module):
    """16 filters 8x8 stride 2 and 32 filters 4x4 stride 2, pooled, 32 hidden units: 26 010 parameters."""

    @nn.compact
    def __call__(self, x: Array) -> Array:
        x = pooled(nn.tanh(nn.Conv(16, (8, 8), (2, 2), padding="SAME")(x)))
        x = pooled(nn.tanh(nn.Conv(32, (4, 4), (2, 2), padding="VALID")(x)))
        return nn.Dense(10)(nn.tanh(nn.Dense(32)(x.reshape(x.shape[0], -1))))


class WideResNet(nn.Module):
    """WRN-16-4 with GroupNorm of 16 groups."""

    @nn.compact
    def __call__(self, x: Array) -> Array:
        x = nn.Conv(16, (3, 3), use_bias=False)(x)
        for stage, features in enumerate((64, 128, 256)):
            for block in range(2):
                strides = 2 if stage > 0 and block == 0 else 1
                y = nn.relu(nn.GroupNorm(16)(x))
                skip = x if block else nn.Conv(features, (1, 1), (strides, strides), use_bias=False)(y)
                y = nn.Conv(features, (3, 3), (strides, strides), use_bias=False)(y)
                y = nn.relu(nn.GroupNorm(16)(y))
                x = skip + nn.Conv(features, (3, 3), use_bias=False)(y)
        x = nn.relu(nn.GroupNorm(16)(x))
        return nn.Dense(10)(x.mean((1, 2)))


class Transformer(nn.Module):
    """Four blocks of width 256 with 8 heads, causal, over a vocabulary of 1024."""

    @nn.compact
    def __call__(self, tokens: Array) -> Array:
        x = nn.Embed(1024, 256)(tokens)
        x = x + self.param("position", nn.initializers.normal(0.02), (tokens.shape[1], 256))
        mask = nn.make_causal_mask(tokens)
        for _ in range(4):
            y = nn.LayerNorm()(x)
            x = x + nn.MultiHeadDotProductAttention(8)(y, mask=mask)
            x = x + nn.Dense(256)(nn.gelu(nn.Dense(1024)(nn.LayerNorm()(x))))
        return nn.Dense(1024)(nn.LayerNorm()(x))


@dataclasses.dataclass(frozen=True)
class Case:
    """A model with a batch: its loss takes (params, batch) to one loss a record."""

    name: str
    loss: Callable[[Any, Any], Array]
    params: Any
    batch: tuple[Array, Array]


def cross_entropy(logits: Array, labels: Array) -> Array:
    """One loss a record; the mean over positions where there are several."""
    each = optax.softmax_cross_entropy_with_integer_labels(logits, labels)
    return each.reshape(each.shape[0], -1).mean(1)


def case(name: str, *, records: int | None = None) -> Case:
    """The model of that name with random data.

    Args:
      name: mlp, cnn, wrn or gpt.
      records: batch size; the usual one by default.

    Raises:
      ValueError: another name.
    """
    models: dict[str, tuple[nn.Module, tuple[int, ...], int]] = {
        "mlp": (Perceptron(), (28, 28, 1), 1024),
        "cnn": (SmallCNN(), (28, 28, 1), 256),
        "wrn": (WideResNet(), (32, 32, 3), 64),
        "gpt": (Transformer(), (128,), 16),
    }
    if name not in models:
        raise ValueError(f"cases must be of {', '.join(models)}, got {name!r}")
    model, shape, usual = models[name]
    count = usual if records is None else records
    first, second, third = jax.random.split(jax.random.key(0), 3)
    if name == "gpt":
        tokens = jax.random.randint(first, (count, shape[0] + 1), 0, 1024)
        batch = (tokens[:, :-1], tokens[:, 1:])
    else:
        batch = (jax.random.normal(first, (count, *shape)), jax.random.randint(second, (count,), 0, 10))
    params = jax.jit(model.init)(third, batch[0][:1])["params"]

    def loss(params: Any, batch: tuple[Array, Array]) -> Array:
        return cross_entropy(jnp.asarray(model.apply({"params": params}, batch[0])), batch[1])

    return Case(name, loss, params, batch)


Step = Callable[[Any, Any, Array], Any]


def _descend(params: Any, gradient: Any, records: int) -> Any:
    return jax.tree.map(lambda p, g: p - _RATE / records * g, params, gradient)


def _noisy(params: Any, total: Any, key: Array, records: int) -> Any:
    return _descend(params, noise.gaussian(key, total, std=_CLIP_NORM * _NOISE), records)


def steps(chosen: Case, names: Sequence[str]) -> dict[str, Step]:
    """The steps (params, batch, key) -> params, the non-private one first."""
    records = chosen.batch[1].shape[0]

    def plain(params: Any, batch: Any, key: Array) -> Any:
        return _descend(params, jax.grad(lambda p: chosen.loss(p, batch).sum())(params), records)

    def total(params: Any, batch: Any) -> Any:
        clipped = clipping.clipped_grad(chosen.loss, clip_norm=_CLIP_NORM)
        return clipped(params, batch, jnp.ones(records, bool)).sum

    def ours(params: Any, batch: Any, key: Array) -> Any:
        return _noisy(params, total(params, batch), key, records)

    def only_clipped(params: Any, batch: Any, key: Array) -> Any:
        return _descend(params, total(params, batch), records)

    def one(params: Any, record: Any) -> Array:
        return chosen.loss(params, jax.tree.map(lambda x: x[None], record))[0]

    def mapped(params: Any, batch: Any, key: Array) -> Any:
        gradients = jax.vmap(jax.grad(one), (None, 0))(params, batch)
        norms = jnp.sqrt(sum((x**2).reshape(records, -1).sum(1) for x in jax.tree.leaves(gradients)))
        weights = jnp.minimum(1.0, _CLIP_NORM / norms)
        summed = jax.tree.map(lambda x: jnp.tensordot(weights, x, 1), gradients)
        return _noisy(params, summed, key, records)

    found: dict[str, Step] = {"non-private": plain, "clipped": only_clipped, "ours": ours, "vmap": mapped}
    if importlib.util.find_spec("jax_privacy") is not None:
        found["jax-privacy"] = _jax_privacy(chosen, records)
    return {name: step for name, step in found.items() if name == "non-private" or name in names}


def _jax_privacy(chosen: Case, records: int) -> Step:
    from jax_privacy import clipping as peer  # pyright: ignore[reportMissingImports]

    def step(params: Any, batch: Any, key: Array) -> Any:
        clipped = peer.clipped_grad(
            lambda p, b: chosen.loss(p, b).sum(),
            l2_clip_norm=_CLIP_NORM,
            batch_argnums=1,
            keep_batch_dim=True,
        )
        return _noisy(params, clipped(params, batch), key, records)

    return step


@dataclasses.dataclass(frozen=True)
class Row:
    """One step of one model.

    Attributes:
      case: model.
      step: kind of step.
      milliseconds: median processor time.
      ratio: that over the non-private step's.
      megabytes: temporary memory that the compiled step asks for.
      memory_ratio: that over the non-private step's.
      compile_seconds: time to compile.
    """

    case: str
    step: str
    milliseconds: float
    ratio: float
    megabytes: float
    memory_ratio: float
    compile_seconds: float


def measure(chosen: Case, names: Sequence[str], *, repeats: int) -> list[Row]:
    """Compiles the steps, runs them in turns and compares their medians."""
    key = jax.random.key(1)
    compiled: dict[str, Any] = {}
    seconds: dict[str, float] = {}
    for name, step in steps(chosen, names).items():
        start = time.monotonic()
        compiled[name] = jax.jit(step).lower(chosen.params, chosen.batch, key).compile()
        seconds[name] = time.monotonic() - start
        jax.block_until_ready(compiled[name](chosen.params, chosen.batch, key))
    times: dict[str, list[float]] = {name: [] for name in compiled}
    for _ in range(repeats):
        for name, step in compiled.items():
            # Once untimed: the memory that the step before gave back is fetched anew from the system.
            jax.block_until_ready(step(chosen.params, chosen.batch, key))
            start = time.process_time()
            jax.block_until_ready(step(chosen.params, chosen.batch, key))
            times[name].append(1e3 * (time.process_time() - start))
    median = {name: statistics.median(found) for name, found in times.items()}
    memory = {name: step.memory_analysis().temp_size_in_bytes / 1e6 for name, step in compiled.items()}
    base = "non-private"
    return [
        Row(
            chosen.name,
            name,
            round(median[name], 3),
            round(median[name] / median[base], 3),
            round(memory[name], 2),
            round(memory[name] / memory[base], 3),
            round(seconds[name], 1),
        )
        for name in compiled
    ]


def table(rows: Sequence[Row]) -> str:
    """The rows as text, with the targets."""
    lines = [f"{'model':5} {'step':12} {'ms':>9} {'ratio':>7} {'MB':>9} {'ratio':>7} {'compile s':>9}"]
    for row in rows:
        target = ""
        if row.step == "clipped":
            slow, large = TARGETS[row.case]
            target = f"  aimed at {slow}" + (f", memory {large}" if large else "")
        lines.append(
            f"{row.case:5} {row.step:12} {row.milliseconds:9.2f} {row.ratio:7.2f} {row.megabytes:9.1f} "
            f"{row.memory_ratio:7.2f} {row.compile_seconds:9.1f}{target}"
        )
    return "\n".join(lines)


def header(*, repeats: int) -> dict[str, object]:
    """What the timings depend on."""
    return {
        "libraries": {name: importlib.metadata.version(name) for name in ("jax", "flax", "optax")},
        "device": jax.devices()[0].device_kind,
        "machine": platform.machine(),
        "cores": os.cpu_count(),
        "threads": "one",
        "repeats": repeats,
        "date": datetime.datetime.now(datetime.UTC).date().isoformat(),
        "python": platform.python_version(),
    }


def write(rows: Sequence[Row], directory: Path, about: Mapping[str, object]) -> list[Path]:
    """training_speed.csv and the figure in both formats; returns their paths."""
    path = store.prepare_directory("out", directory) / "training_speed.csv"
    names = [field.name for field in dataclasses.fields(Row)]
    store.write_csv(path, about, names, [[getattr(row, name) for name in names] for row in rows])
    return [path, *draw(path)]


def draw(path: Path) -> list[Path]:
    """Draws the CSV file: time and memory of the private steps over those of the non-private one."""
    about, rows = store.read_csv(path)
    cases = list(dict.fromkeys(row["case"] for row in rows))
    kinds = list(dict.fromkeys(row["step"] for row in rows if row["step"] != "non-private"))
    with style.context():
        figure = style.new_figure(style.PAGE, 2.8)
        left, right = figure.subplots(1, 2)
        for axes, field, what in ((left, "ratio", "time"), (right, "memory_ratio", "memory")):
            for k, kind in enumerate(kinds):
                found = {row["case"]: float(row[field]) for row in rows if row["step"] == kind}
                places = [cases.index(name) + 0.8 * (k + 0.5) / len(kinds) - 0.4 for name in found]
                bars = axes.bar(places, list(found.values()), 0.8 / len(kinds), color=_COLOURS[k], label=kind)
                axes.bar_label(bars, [f"{value:.3g}" for value in found.values()], fontsize=5.0)
            axes.set(xticks=range(len(cases)), xticklabels=cases, yscale="log")
            axes.set_ylabel(f"{what} over the non-private step's")
            axes.axhline(1.0, color=style.BLACK, linewidth=0.6)
        handles, labels = left.get_legend_handles_labels()
        title = f"{about['device']}, {about['threads']} thread, {about['date']}"
        figure.legend(handles, labels, loc="outside lower center", ncols=len(kinds), title=title)
        return style.save(figure, path.with_suffix(""))


def main(arguments: Sequence[str]) -> None:
    """Times the steps that the flags name."""
    given = flags.FLAGS
    if len(arguments) > 1:
        raise app.UsageError(f"unexpected arguments {arguments[1:]}")
    if hasattr(os, "sched_setaffinity"):
        # Before the first computation, which is when the thread pool gets its size.
        os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
    rows: list[Row] = []
    for name in given.cases:
        rows.extend(measure(case(name), given.steps, repeats=given.repeats))
        logging.info("%s done", name)
    write(rows, Path(given.out), header(repeats=given.repeats))
    print(json.dumps([dataclasses.asdict(row) for row in rows]) if given.json else table(rows))


def run() -> None:
    """Entry point. The flags are defined here, so that importing the script defines none."""
    flags.DEFINE_string("out", "speed", "Directory for training_speed.csv, .pdf and .png.")
    flags.DEFINE_boolean("json", False, "Print one JSON object instead of the table.")
    flags.DEFINE_list("cases", ["mlp", "cnn", "wrn", "gpt"], "Models to time.")
    flags.DEFINE_list(
        "steps", ["clipped", "ours", "vmap", "jax-privacy"], "Private steps to time, where installed."
    )
    flags.DEFINE_integer("repeats", 9, "Timed steps of each kind; medians.", lower_bound=1)
    app.run(main)


if __name__ == "__main__":
    run()
