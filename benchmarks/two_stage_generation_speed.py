"""Rows a second that a small GPT-2 generates, beside transformers' `generate` with the same sizes.

Both draw by temperature and top-k from models with random weights, as time does not depend on them. A row is
of a fixed number of tokens, prompt included, and no row stops early. "automaton" draws each token from a few
candidates, as tables with a grammar do, in place of top-k. All run on one thread of one core, compiled
and warmed, taking turns, transformers in a process of its own. A turn is two runs, of which the second is
timed by the processor's clock for the process; the figures are medians. Each side is compared at its own best
batch.

Command:       python -m exactdp.benchmarks.two_stage_generation_speed --out speed --peers_python PYTHON
Expected time: about three minutes on an idle core.
Expected:      aimed at is at least 5 times the rows a second of transformers. The last line printed says
               whether that held.
"""

from __future__ import annotations

import datetime
import importlib.metadata
import json
import os
import platform
import statistics
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import jax
import numpy as np
from absl import app, flags, logging

from exactdp.benchmarks import sampler_speed
from exactdp.benchmarks.curves import store
from exactdp.benchmarks.speed import turn_worker
from exactdp.benchmarks.speed.turns import Peer
from exactdp.train.gpt2 import config, model
from exactdp.train.gpt2.automaton import Automaton
from exactdp.train.gpt2.generate import generate

FREE, AUTOMATON, PEER = "exactdp", "exactdp, automaton", "transformers"
TARGET = 5.0
COLUMNS = ("model", "library", "batch", "milliseconds", "runs", "rows_per_second")
VOCABULARY, PROMPT, TEMPERATURE, TOP_K, CANDIDATES = 1024, 6, 0.7, 50, 12

Row = dict[str, Any]


def chain(tokens: int) -> Automaton:
    """An automaton of so many states in a row, each with `CANDIDATES` tokens that all lead to the next."""
    generator = np.random.default_rng(0)
    choices = [np.sort(generator.permutation(VOCABULARY - 2)[:CANDIDATES] + 1) for _ in range(tokens)]
    starts = np.append(np.arange(tokens + 1), tokens) * CANDIDATES
    targets = np.repeat(np.arange(1, tokens + 1), CANDIDATES)
    return Automaton(starts, np.concatenate(choices), targets, 0, CANDIDATES)


def our_calls(sizes: config.Config, *, batch: int, tokens: int) -> dict[str, Callable[[], object]]:
    """One batch by ours, freely and along an automaton."""
    graph, params = model.build(sizes, key=jax.random.key(0))
    prompts = np.random.default_rng(0).integers(1, VOCABULARY - 1, (batch, PROMPT))
    asked: dict[str, Any] = {
        "prompts": prompts,
        "prompt_lengths": np.full(batch, PROMPT),
        "max_tokens": tokens,
        "key": jax.random.key(1),
        "temperature": TEMPERATURE,
        "end": 0,
    }
    automaton = chain(tokens)
    return {
        FREE: lambda: jax.block_until_ready(generate(graph, params, **asked, top_k=TOP_K)),
        AUTOMATON: lambda: jax.block_until_ready(generate(graph, params, **asked, automaton=automaton)),
    }


def measure(
    name: str,
    batches: Sequence[int],
    *,
    tokens: int,
    repeats: int,
    budget: float,
    peers_python: str | None,
) -> tuple[list[Row], dict[str, str]]:
    """A row for each side and batch; also the peers' versions, or why they were not measured.

    Args:
      name: tiny or small, of `config.NAMES`.
      batches: rows at once.
      tokens: of a row, prompt included.
      repeats: rounds of turns at most.
      budget: seconds after which no further round begins.
      peers_python: interpreter that has transformers.
    """
    sizes = config.named(name, vocabulary=VOCABULARY, positions=tokens)
    turns: dict[str, Callable[[], float]] = {}
    peers: list[Peer] = []
    about: dict[str, str] = {}
    try:
        for batch in batches:
            case = {
                "config": sizes.to_json(end=0),
                "rows": batch,
                "prompt": PROMPT,
                "tokens": tokens,
                "temperature": TEMPERATURE,
                "top_k": TOP_K,
            }
            peer = Peer(peers_python, PEER, json.dumps(case))
            peers.append(peer)
            about.update(peer.versions if peer.status == "ok" else {PEER: f"{peer.status}: {peer.note}"})
            for library, call in our_calls(sizes, batch=batch, tokens=tokens).items():
                turns[f"{library}/{batch}"] = lambda call=call: turn_worker.timed(call)
            if peer.status == "ok":
                turns[f"{PEER}/{batch}"] = peer.turns()["generate"]
        spent = sampler_speed.interleave(turns, repeats=repeats, budget=budget)
    finally:
        for peer in peers:
            peer.close()
    found: list[Row] = []
    for key, runs in spent.items():
        library, _, batch = key.rpartition("/")
        middle = statistics.median(runs)
        values = (name, library, int(batch), round(middle, 2), len(runs), round(1e3 * int(batch) / middle, 1))
        found.append(dict(zip(COLUMNS, values, strict=True)))
    return found, about


def verdict(rows: Sequence[Row]) -> list[str]:
    """For each model how many times the peer's rows a second ours are, each at its best batch."""
    lines: list[str] = []
    for name in dict.fromkeys(row["model"] for row in rows):
        best = {
            library: max(r["rows_per_second"] for r in rows if (r["model"], r["library"]) == (name, library))
            for library in dict.fromkeys(row["library"] for row in rows)
        }
        if PEER not in best:
            lines.append(f"{name}: {PEER} was not measured")
            continue
        for library in (FREE, AUTOMATON):
            ratio = best[library] / best[PEER]
            reached = "reached" if ratio >= TARGET else "missed"
            lines.append(
                f"{name}: {library} {ratio:.1f} times the rows a second of {PEER}, "
                f"aimed at {TARGET:g}: {reached}"
            )
    return lines


def table(rows: Sequence[Row]) -> str:
    """The rows as text."""
    lines = [f"{'model':8} {'library':20} {'batch':>6} {'ms':>10} {'rows/s':>8} {'runs':>5}"]
    lines += [
        f"{r['model']:8} {r['library']:20} {r['batch']:>6} {r['milliseconds']:>10.1f} "
        f"{r['rows_per_second']:>8.1f} {r['runs']:>5}"
        for r in rows
    ]
    return "\n".join(lines)


def header(*, tokens: int, peers: dict[str, str]) -> dict[str, object]:
    """What the timings depend on; `peers` has their versions, or why they were not measured."""
    return {
        "libraries": {name: importlib.metadata.version(name) for name in ("jax", "flax")},
        "peers": peers,
        "vocabulary": VOCABULARY,
        "tokens": tokens,
        "prompt": PROMPT,
        "temperature": TEMPERATURE,
        "top_k": TOP_K,
        "candidates": CANDIDATES,
        "device": jax.devices()[0].device_kind,
        "machine": platform.machine(),
        "cores": os.cpu_count(),
        "threads": "one",
        "date": datetime.datetime.now(datetime.UTC).date().isoformat(),
        "python": platform.python_version(),
    }


def main(arguments: Sequence[str]) -> None:
    """Times what the flags name."""
    given = flags.FLAGS
    if len(arguments) > 1:
        raise app.UsageError(f"unexpected arguments {arguments[1:]}")
    unknown = sorted(set(given.models) - {"tiny", "small"})
    if unknown:
        raise app.UsageError(f"models must be among tiny, small, got {unknown}")
    batches = [int(text) for text in given.batches if text.isascii() and text.isdigit() and int(text) > 0]
    if len(batches) != len(given.batches) or not batches:
        raise app.UsageError(f"batches must be whole numbers > 0, got {given.batches}")
    if hasattr(os, "sched_setaffinity"):
        # Before the first computation, which is when the thread pool gets its size; the peer inherits it.
        os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
    there = Path(given.peers_python)
    python = str(there.absolute()) if there.is_file() else sys.executable
    rows: list[Row] = []
    about: dict[str, str] = {}
    for name in given.models:
        found, versions = measure(
            name,
            batches,
            tokens=given.tokens,
            repeats=given.repeats,
            budget=given.budget,
            peers_python=python,
        )
        rows.extend(found)
        about.update(versions)
        logging.info("%s done", name)
    path = store.prepare_directory("out", given.out) / "two_stage_generation_speed.csv"
    values = [[row[column] for column in COLUMNS] for row in rows]
    store.write_csv(path, header(tokens=given.tokens, peers=about), list(COLUMNS), values)
    print(json.dumps({"rows": rows, "verdict": verdict(rows)}) if given.json else table(rows))
    if not given.json:
        print("\n".join(verdict(rows)))


def run() -> None:
    """Entry point. The flags are defined here, so that importing the script defines none."""
    flags.DEFINE_string("out", "speed", "Directory for two_stage_generation_speed.csv.")
    flags.DEFINE_boolean("json", False, "Print one JSON object instead of the table.")
    flags.DEFINE_list("models", ["tiny"], "Models to time: tiny, small.")
    flags.DEFINE_list("batches", ["32", "64", "256"], "Rows at once.")
    flags.DEFINE_integer("tokens", 128, "Tokens of a row, prompt included.", lower_bound=PROMPT + 1)
    flags.DEFINE_string(
        "peers_python", ".venv-peers/bin/python", "Interpreter that has transformers and torch."
    )
    flags.DEFINE_integer("repeats", 9, "Most timed runs of each kind; medians.", lower_bound=1)
    flags.DEFINE_float("budget", 120.0, "Seconds after which no further round begins.", lower_bound=0.0)
    app.run(main)


if __name__ == "__main__":
    run()
