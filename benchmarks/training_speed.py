"""Time and memory of a training step with clipped gradients, beside the fastest step without.

Five models, each at one batch size: a two-layer perceptron, the small CNN usual for private MNIST, WRN-16-4
with GroupNorm, a transformer of the shape of a small GPT, and the GPT-2 that writes tables, whose token table
serves at both ends, with the weighted loss of its private stage. Every private step clips each record's
gradient, adds noise and takes a step of SGD; "clipped" leaves the noise out, and the non-private ones the
clipping too. There are two of those: the model as written, and "tuned", the same function by operations that
XLA runs faster. Ratios are over the faster of them, and over the one that needs less memory. The peers,
Opacus and jax-privacy, run the same models but the last in processes of their own; `own_ratio` is over the
non-private step that runs there. All are compiled once, run in turns on one thread of one core, each twice of
which the second is timed, by the processor's clock for the process, which other processes do not advance.
Temporary memory is what a step asks for beyond parameters and batch, by XLA's plan or of PyTorch's allocator;
peak memory is that with parameters, new parameters where they are not written in place, and batch.

Command:       python -m exactdp.benchmarks.training_speed --out speed --peers_python .venv-peers/bin/python
Expected time: about twenty-five minutes on one core, fifteen without peers; compiling is most of it.
Expected:      aimed at is "clipped" over non-private at most 1.15 (mlp), 1.8 (cnn), 1.2 (wrn), 1.1 (gpt),
               1.15 (gpt2);
               peak memory at most 1.2 times the non-private one for mlp and gpt, 1.5 for wrn.
"""

from __future__ import annotations

import dataclasses
import datetime
import functools
import importlib.metadata
import json
import os
import platform
import statistics
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
from absl import app, flags, logging
from jax import Array

from exactdp.benchmarks.curves import store, style
from exactdp.benchmarks.speed import models, tied, turn_worker, turns
from exactdp.benchmarks.speed.models import Case, Step
from exactdp.mechanisms import clipping, noise

TARGETS = {
    "mlp": (1.15, 1.2),
    "cnn": (1.8, None),
    "wrn": (1.2, 1.5),
    "gpt": (1.1, 1.2),
    tied.NAME: (1.15, None),
}
PEERS = ("opacus", "jax-privacy")
PRIVATE = ("clipped", "ours", "vmap")
_COLOURS = (style.BLUE, style.VERMILLION, style.GREY, style.GREEN, style.ORANGE, style.PURPLE)


def _noisy(params: Any, total: Any, key: Array, records: int) -> Any:
    return models.descend(params, noise.gaussian(key, total, std=models.CLIP_NORM * models.NOISE), records)


def steps(chosen: Case, names: Sequence[str]) -> dict[str, Step]:
    """The steps (params, batch, key) -> params, the non-private ones first.

    Args:
      chosen: the model.
      names: those of `PRIVATE` that are wanted.
    """
    records = chosen.batch[1].shape[0]

    def total(params: Any, batch: Any) -> Any:
        clipped = clipping.clipped_grad(chosen.loss, clip_norm=models.CLIP_NORM)
        return clipped(params, batch, jnp.ones(records, bool)).sum

    def ours(params: Any, batch: Any, key: Array) -> Any:
        return _noisy(params, total(params, batch), key, records)

    def only_clipped(params: Any, batch: Any, key: Array) -> Any:
        return models.descend(params, total(params, batch), records)

    def one(params: Any, record: Any) -> Array:
        return chosen.loss(params, jax.tree.map(lambda x: x[None], record))[0]

    def mapped(params: Any, batch: Any, key: Array) -> Any:
        gradients = jax.vmap(jax.grad(one), (None, 0))(params, batch)
        norms = jnp.sqrt(sum((x**2).reshape(records, -1).sum(1) for x in jax.tree.leaves(gradients)))
        weights = jnp.minimum(1.0, models.CLIP_NORM / norms)
        summed = jax.tree.map(lambda x: jnp.tensordot(weights, x, 1), gradients)
        return _noisy(params, summed, key, records)

    private = dict(zip(PRIVATE, (only_clipped, ours, mapped), strict=True))
    return {**models.plain_steps(chosen), **{name: private[name] for name in PRIVATE if name in names}}


@dataclasses.dataclass(frozen=True)
class Row:
    """One step of one model.

    Attributes:
      case: model.
      step: kind of step.
      milliseconds: median processor time.
      ratio: that over our fastest non-private step's.
      own_ratio: that over the non-private step of the same process, the fastest one there.
      megabytes: temporary memory.
      temporary_ratio: that over our leanest non-private step's.
      peak_megabytes: peak memory.
      memory_ratio: that over our leanest non-private step's.
      own_memory_ratio: that over the non-private step's of the same process, the leanest one there.
      compile_seconds: time to compile; None for the peers' steps.
      runs: how many were timed.
    """

    case: str
    step: str
    milliseconds: float
    ratio: float
    own_ratio: float
    megabytes: float
    temporary_ratio: float
    peak_megabytes: float
    memory_ratio: float
    own_memory_ratio: float
    compile_seconds: float | None
    runs: int


@dataclasses.dataclass
class _Kind:
    """One kind of step: whose it is, how it takes its turn, and what was measured."""

    owner: str
    turn: Callable[[], float]
    temporary: float
    resident: float
    compile_seconds: float | None
    times: list[float] = dataclasses.field(default_factory=list[float])
    spent: float = 0.0

    @property
    def peak(self) -> float:
        """Megabytes in all."""
        return self.temporary + self.resident


def _own_kinds(chosen: Case, names: Sequence[str]) -> dict[str, _Kind]:
    key = jax.random.key(1)
    found: dict[str, _Kind] = {}
    for name, step in steps(chosen, names).items():
        start = time.monotonic()
        compiled = jax.jit(step).lower(chosen.params, chosen.batch, key).compile()
        seconds = time.monotonic() - start

        def run(compiled: Any = compiled) -> object:
            return jax.block_until_ready(compiled(chosen.params, chosen.batch, key))

        run()
        temporary, resident = models.memory(compiled)
        turn = functools.partial(turn_worker.timed, run)
        found[name] = _Kind("", turn, temporary / 1e6, resident / 1e6, seconds)
    return found


def _is_plain(name: str) -> bool:
    return "non-private" in name


def measure(
    chosen: Case, names: Sequence[str], *, repeats: int, budget: float, peers: Sequence[turns.Peer] = ()
) -> list[Row]:
    """Compiles the steps, runs them and the peers' in turns and compares their medians.

    Args:
      chosen: the model.
      names: private steps of `PRIVATE`.
      repeats: timed runs of each kind at most.
      budget: seconds of one kind after which it is not run again.
      peers: those that take part; closed by the caller.
    """
    kinds = _own_kinds(chosen, names)
    for peer in peers:
        for name, turn in peer.turns().items():
            kinds[name] = _Kind(peer.library, turn, *peer.megabytes[name], None)
    for _ in range(repeats):
        for kind in kinds.values():
            if kind.times and kind.spent > budget:
                continue
            start = time.monotonic()
            kind.times.append(kind.turn())
            kind.spent += time.monotonic() - start
    return _rows(chosen.name, kinds)


def _rows(case: str, kinds: Mapping[str, _Kind]) -> list[Row]:
    median = {name: statistics.median(kind.times) for name, kind in kinds.items()}
    fastest: dict[str, float] = {}
    leanest: dict[str, float] = {}
    temporary = min(kind.temporary for name, kind in kinds.items() if _is_plain(name) and not kind.owner)
    for name, kind in kinds.items():
        if _is_plain(name):
            fastest[kind.owner] = min(median[name], fastest.get(kind.owner, median[name]))
            leanest[kind.owner] = min(kind.peak, leanest.get(kind.owner, kind.peak))
    return [
        Row(
            case=case,
            step=name,
            milliseconds=round(median[name], 3),
            ratio=round(median[name] / fastest[""], 3),
            own_ratio=round(median[name] / fastest[kind.owner], 3),
            megabytes=round(kind.temporary, 2),
            temporary_ratio=round(kind.temporary / temporary, 3),
            peak_megabytes=round(kind.peak, 2),
            memory_ratio=round(kind.peak / leanest[""], 3),
            own_memory_ratio=round(kind.peak / leanest[kind.owner], 3),
            compile_seconds=None if kind.compile_seconds is None else round(kind.compile_seconds, 1),
            runs=len(kind.times),
        )
        for name, kind in kinds.items()
    ]


def table(rows: Sequence[Row]) -> str:
    """The rows as text, with the targets."""
    head = ("ms", "ratio", "own", "temp. MB", "ratio", "peak MB", "ratio", "own", "compile s", "runs")
    widths = (9, 7, 7, 9, 7, 9, 7, 7, 9, 4)
    titles = " ".join(f"{title:>{width}}" for title, width in zip(head, widths, strict=True))
    lines = [f"{'model':5} {'step':18} {titles}"]
    for row in rows:
        target = ""
        if row.step == "clipped":
            slow, large = TARGETS[row.case]
            target = f"  aimed at {slow}" + (f", memory {large}" if large else "")
        compiling = "" if row.compile_seconds is None else f"{row.compile_seconds:.1f}"
        lines.append(
            f"{row.case:5} {row.step:18} {row.milliseconds:9.2f} {row.ratio:7.2f} {row.own_ratio:7.2f} "
            f"{row.megabytes:9.1f} {row.temporary_ratio:7.2f} {row.peak_megabytes:9.1f} "
            f"{row.memory_ratio:7.2f} {row.own_memory_ratio:7.2f} {compiling:>9} {row.runs:4}{target}"
        )
    return "\n".join(lines)


def header(*, repeats: int, peers: Mapping[str, str]) -> dict[str, object]:
    """What the timings depend on; `peers` has the version of each peer's library, or why there is none."""
    return {
        "libraries": {name: importlib.metadata.version(name) for name in ("jax", "flax", "optax")},
        "peers": dict(peers),
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
    """Draws the CSV file: time and peak memory of the private steps over those of the non-private one."""
    about, rows = store.read_csv(path)
    cases = list(dict.fromkeys(row["case"] for row in rows))
    kinds = list(dict.fromkeys(row["step"] for row in rows if "non-private" not in row["step"]))
    with style.context():
        figure = style.new_figure(style.PAGE, 2.8)
        left, right = figure.subplots(1, 2)
        for axes, field, what in ((left, "ratio", "time"), (right, "memory_ratio", "peak memory")):
            for k, kind in enumerate(kinds):
                found = {row["case"]: float(row[field]) for row in rows if row["step"] == kind}
                places = [cases.index(name) + 0.8 * (k + 0.5) / len(kinds) - 0.4 for name in found]
                bars = axes.bar(places, list(found.values()), 0.8 / len(kinds), color=_COLOURS[k], label=kind)
                labels = [f"{value:.3g}" if value < 1000 else f"{value:.0f}" for value in found.values()]
                axes.bar_label(bars, labels, fontsize=5.0, rotation=90, padding=1.5)
            axes.set(xticks=range(len(cases)), xticklabels=cases, yscale="log")
            axes.set_ylim(top=2.5 * axes.get_ylim()[1])  # room for the numbers
            axes.set_ylabel(f"{what} over the non-private step's")
            axes.axhline(1.0, color=style.BLACK, linewidth=0.6)
        handles, labels = left.get_legend_handles_labels()
        title = f"{about['device']}, {about['threads']} thread, {about['date']}"
        figure.legend(handles, labels, loc="outside lower center", ncols=len(kinds), title=title)
        return style.save(figure, path.with_suffix(""))


def _peers(
    python: str | None, libraries: Sequence[str], case: str, about: dict[str, str]
) -> list[turns.Peer]:
    """The peers on one model; `about` learns their versions, or why there are none."""
    found: list[turns.Peer] = []
    for library in libraries:
        peer = turns.Peer(python, library, case)
        if peer.status == "ok":
            about.update(peer.versions)
        else:
            key = library if peer.status == "not installed" else f"{library}, {case}"
            about[key] = f"{peer.status}: {peer.note}"
            logging.warning("%s on %s: %s: %s", library, case, peer.status, peer.note)
        found.append(peer)
    return found


def main(arguments: Sequence[str]) -> None:
    """Times the steps that the flags name."""
    given = flags.FLAGS
    if len(arguments) > 1:
        raise app.UsageError(f"unexpected arguments {arguments[1:]}")
    for flag, known in (("peers", PEERS), ("steps", PRIVATE), ("cases", TARGETS)):
        unknown = sorted(set(getattr(given, flag)) - set(known))
        if unknown:
            raise app.UsageError(f"{flag} must be among {list(known)}, got {unknown}")
    if hasattr(os, "sched_setaffinity"):
        # Before the first computation, which is when the thread pool gets its size; the peers inherit it.
        os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
    there = Path(given.peers_python)
    python = str(there.absolute()) if there.is_file() else sys.executable
    rows: list[Row] = []
    about: dict[str, str] = {}
    for name in given.cases:
        peers = [] if name == tied.NAME else _peers(python, given.peers, name, about)
        try:
            chosen = tied.case() if name == tied.NAME else models.case(name)
            rows.extend(measure(chosen, given.steps, repeats=given.repeats, budget=given.budget, peers=peers))
        finally:
            for peer in peers:
                peer.close()
        logging.info("%s done", name)
    write(rows, Path(given.out), header(repeats=given.repeats, peers=about))
    print(json.dumps([dataclasses.asdict(row) for row in rows]) if given.json else table(rows))


def run() -> None:
    """Entry point. The flags are defined here, so that importing the script defines none."""
    flags.DEFINE_string("out", "speed", "Directory for training_speed.csv, .pdf and .png.")
    flags.DEFINE_boolean("json", False, "Print one JSON object instead of the table.")
    flags.DEFINE_list("cases", list(TARGETS), "Models to time.")
    flags.DEFINE_list("steps", list(PRIVATE), "Private steps to time.")
    flags.DEFINE_list("peers", list(PEERS), "Peers to compare with.")
    flags.DEFINE_string(
        "peers_python", ".venv-peers/bin/python", "Interpreter that has the peers; this one if there is none."
    )
    flags.DEFINE_integer("repeats", 9, "Most timed steps of each kind; medians.", lower_bound=1)
    flags.DEFINE_float(
        "budget", 60.0, "Seconds of one kind of step after which it is not repeated.", lower_bound=0.0
    )
    app.run(main)


if __name__ == "__main__":
    run()
