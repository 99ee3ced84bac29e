"""Time of the Dirichlet sampler, forward and with gradient, beside jax.random and torch.

Each library draws rho ~ Dir(c) for a constant concentration, and differentiates the mean of -log rho_0 with
respect to the concentration. All run on one CPU, compiled and warmed, taking turns, torch in a process of its
own. A turn is two runs, of which the second is timed by the processor's clock for the process; the figures
are medians.

Command:       taskset -c 0 python -m exactdp.benchmarks.sampler_speed --out speed --peers_python PYTHON
Expected time: about two minutes on an idle core.
Expected:      aimed at is at least 7 times the speed of `jax.random.dirichlet` forward and 14 times with
               gradient, at 1024 x 10 and 256 x 1000, and no slower than torch's `Dirichlet.rsample` with
               backward (torch is measured where PYTHON has it). The last lines printed say whether
               that held.
"""

from __future__ import annotations

import datetime
import json
import os
import platform
import statistics
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from absl import app, flags, logging

from exactdp.benchmarks.speed import turn_worker
from exactdp.benchmarks.speed.turns import Peer

OURS, JAX, TORCH = "exactdp", "jax.random", "torch"
PASSES = ("forward", "gradient")
TARGETS = {(JAX, "forward"): 7.0, (JAX, "gradient"): 14.0, (TORCH, "gradient"): 1.0}
COLUMNS = ("rows", "classes", "concentration", "pass", "library", "milliseconds", "runs", "ratio", "target")

Row = dict[str, Any]
Call = Callable[[], object]
Turn = Callable[[], float]
"""Runs a call and returns the milliseconds."""


def parse_size(text: str) -> tuple[int, int]:
    """Rows and classes of `"1024x10"`.

    Raises:
      ValueError: it is not two positive whole numbers joined by an x.
    """
    parts = text.split("x")
    if len(parts) != 2 or not all(part.isascii() and part.isdigit() and int(part) > 0 for part in parts):
        raise ValueError(f"sizes must be rows x classes such as 1024x10, both > 0, got {text!r}")
    return int(parts[0]), int(parts[1])


def parse_concentration(text: str) -> float:
    """A positive finite concentration.

    Raises:
      ValueError: it is none.
    """
    from exactdp.accounting import validate

    try:
        value = float(text)
    except ValueError:
        raise ValueError(f"concentrations must be numbers, got {text!r}") from None
    return validate.positive("concentrations", value)


def jax_calls(library: str, size: tuple[int, int], concentration: float) -> dict[str, Call]:
    """The compiled draw and its gradient, by ours or by `jax.random`."""
    import jax
    import jax.numpy as jnp

    from exactdp.mechanisms import dirichlet

    key, shapes = jax.random.key(0), jnp.full(size, concentration, jnp.float32)

    def sample(shapes: jax.Array) -> jax.Array:
        return dirichlet.sample(key, shapes) if library == OURS else jax.random.dirichlet(key, shapes)

    def loss(shapes: jax.Array) -> jax.Array:
        if library == OURS:
            return -dirichlet.log_sample(key, shapes)[:, 0].mean()
        return -jnp.log(jax.random.dirichlet(key, shapes)[:, 0]).mean()

    forward, gradient = jax.jit(sample), jax.jit(jax.grad(loss))
    return {
        "forward": lambda: jax.block_until_ready(forward(shapes)),
        "gradient": lambda: jax.block_until_ready(gradient(shapes)),
    }


def one_thread() -> None:
    """One thread for JAX and torch; has to come before either is imported or started."""
    os.environ["OMP_NUM_THREADS"] = "1"
    os.environ["XLA_FLAGS"] = f"{os.environ.get('XLA_FLAGS', '')} --xla_cpu_multi_thread_eigen=false".strip()


def interleave(turns: dict[str, Turn], *, repeats: int, budget: float) -> dict[str, list[float]]:
    """Milliseconds of each turn: one each, again and again.

    Args:
      turns: by name; each measures itself.
      repeats: rounds at most.
      budget: seconds after which no further round begins; one is always made.
    """
    spent: dict[str, list[float]] = {name: [] for name in turns}
    start = time.perf_counter()
    for done in range(repeats):
        if done and time.perf_counter() - start > budget:
            break
        for name, turn in turns.items():
            spent[name].append(turn())
    return spent


def measure(
    sizes: Sequence[tuple[int, int]],
    concentrations: Sequence[float],
    *,
    repeats: int,
    budget: float,
    peers_python: str | None,
) -> tuple[list[Row], dict[str, str]]:
    """One row for every size, concentration, pass and library; `ratio` is its time over ours.

    Also returned: the version of torch, or why it was not measured.
    """
    found: list[Row] = []
    about: dict[str, str] = {}
    for size in sizes:
        for concentration in concentrations:
            calls = {name: jax_calls(name, size, concentration) for name in (OURS, JAX)}
            peer = Peer(peers_python, TORCH, f"{size[0]}x{size[1]}x{concentration!r}")
            about.update(peer.versions if peer.status == "ok" else {TORCH: f"{peer.status}: {peer.note}"})
            for which in PASSES:
                turns: dict[str, Turn] = {
                    name: lambda call=c[which]: turn_worker.timed(call) for name, c in calls.items()
                }
                if peer.status == "ok":
                    turns[TORCH] = peer.turns()[which]
                spent = interleave(turns, repeats=repeats, budget=budget)
                ours = statistics.median(spent[OURS])
                for name, runs in spent.items():
                    middle = statistics.median(runs)
                    values = (*size, concentration, which, name, middle, len(runs), middle / ours)
                    found.append(dict(zip(COLUMNS, (*values, TARGETS.get((name, which))), strict=True)))
                logging.info("%d x %d, concentration %g, %s: done", *size, concentration, which)
            peer.close()
    return found, about


def verdict(rows: Sequence[Row]) -> list[str]:
    """For each target, in how many cases it was reached, and the smallest ratio."""
    lines: list[str] = []
    for (library, which), target in TARGETS.items():
        ratios = [float(r["ratio"]) for r in rows if (r["library"], r["pass"]) == (library, which)]
        if not ratios:
            lines.append(f"{library}, {which}: not measured")
            continue
        reached = sum(ratio >= target for ratio in ratios)
        lines.append(
            f"{library}, {which}: at least {target:g} times ours in {reached} of {len(ratios)} cases, "
            f"smallest ratio {min(ratios):.2f}"
        )
    return lines


def table(rows: Sequence[Row]) -> str:
    """The rows as text."""
    lines = [f"{'rows':>6} {'classes':>8} {'conc.':>7} {'pass':>9} {'library':>11} {'ms':>10} {'ratio':>8}"]
    lines += [
        f"{r['rows']:>6} {r['classes']:>8} {r['concentration']:>7g} {r['pass']:>9} {r['library']:>11} "
        f"{r['milliseconds']:>10.3f} {r['ratio']:>8.2f}"
        for r in rows
    ]
    return "\n".join(lines)


def header(torch: dict[str, str]) -> dict[str, object]:
    """What the timings depend on; `torch` has its version, or why it was not measured."""
    import jax

    return {
        "libraries": {"jax": jax.__version__, **torch},
        "device": jax.devices()[0].device_kind,
        "machine": platform.machine(),
        "cores": os.cpu_count(),
        "cores this process may use": len(os.sched_getaffinity(0))
        if hasattr(os, "sched_getaffinity")
        else "",
        "load average at the end": [round(x, 2) for x in os.getloadavg()]
        if hasattr(os, "getloadavg")
        else [],
        "date": datetime.datetime.now(datetime.UTC).date().isoformat(),
        "python": platform.python_version(),
    }


def draw(path: Path) -> list[Path]:
    """Draws the CSV file at `path` as a PDF and a PNG file of its name; returns both paths."""
    from exactdp.benchmarks.curves import store, style

    _, rows = store.read_csv(path)
    look = {OURS: style.BLACK, JAX: style.BLUE, TORCH: style.VERMILLION}
    with style.context():
        figure = style.new_figure(style.PAGE, 2.6)
        for axis, which in zip(figure.subplots(1, 2, sharey=True), PASSES, strict=True):
            mine = [row for row in rows if row["pass"] == which]
            cases = list(dict.fromkeys((r["rows"], r["classes"], r["concentration"]) for r in mine))
            for library, colour in look.items():
                chosen = [r for r in mine if r["library"] == library]
                x = [cases.index((r["rows"], r["classes"], r["concentration"])) for r in chosen]
                y = [float(r["milliseconds"]) for r in chosen]
                if chosen:
                    axis.plot(x, y, color=colour, marker="o", markersize=4.0, linestyle="", label=library)
            names = [f"{r}×{c}\n{float(a):g}" for r, c, a in cases]
            axis.set_xticks(range(len(cases)), names)
            axis.set_yscale("log")
            axis.set_title(which)
        figure.axes[0].set_ylabel("Time (ms)")
        figure.supxlabel("Rows × classes, concentration")
        handles, labels = figure.axes[0].get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside upper center", ncols=3)
        return style.save(figure, path.with_suffix(""))


def main(argv: list[str]) -> None:
    """Measures, writes the CSV file, prints the table and draws the figure."""
    given = flags.FLAGS
    if len(argv) > 1:
        raise app.UsageError(f"unknown arguments: {argv[1:]}")
    from exactdp.benchmarks.curves import store

    path = Path(given.out) / "sampler_speed.csv"
    try:
        sizes = [parse_size(text) for text in given.sizes]
        concentrations = [parse_concentration(text) for text in given.concentrations]
        store.prepare_directory("out", path.parent)
    except ValueError as problem:
        raise app.UsageError(str(problem)) from problem
    if not given.redraw:
        one_thread()
        there = Path(given.peers_python)
        python = str(there.absolute()) if there.is_file() else sys.executable
        rows, found = measure(
            sizes, concentrations, repeats=given.repeats, budget=given.budget, peers_python=python
        )
        about = header(found)
        store.write_csv(path, about, COLUMNS, [[row[name] for name in COLUMNS] for row in rows])
        if given.json:
            json.dump({"header": about, "rows": rows, "verdict": verdict(rows)}, sys.stdout)
            print()
        else:
            print(table(rows), *verdict(rows), sep="\n")
    for drawn in draw(path):
        logging.info("wrote %s", drawn)


def run() -> None:
    """Entry point. The flags are defined here, so that importing the script defines none."""
    flags.DEFINE_string("out", "speed", "Directory for sampler_speed.csv, .pdf and .png.")
    flags.DEFINE_list("sizes", ["1024x10", "256x1000"], "Rows x classes.")
    flags.DEFINE_list("concentrations", ["0.1", "1", "3.2"], "Values of every concentration.")
    flags.DEFINE_string(
        "peers_python", ".venv-peers/bin/python", "Interpreter that has torch; this one if there is none."
    )
    flags.DEFINE_integer("repeats", 15, "Most runs of each case; the median counts.", lower_bound=1)
    flags.DEFINE_float("budget", 6.0, "Seconds after which a case is not repeated.", lower_bound=0.0)
    flags.DEFINE_boolean("json", False, "Print one JSON object instead of the table.")
    flags.DEFINE_boolean("redraw", False, "Only draw the figure again from the CSV file in --out.")
    app.run(main)


if __name__ == "__main__":
    run()
