"""What `exactdp audit dpsgd` and `exactdp audit feature` have in common."""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from exactdp.benchmarks.cli import extras, flags, output
from exactdp.benchmarks.curves.ladders import number
from exactdp.benchmarks.training_audit.options import Options

if TYPE_CHECKING:
    from exactdp.benchmarks.training_audit.audit import Audited

_FLAGS: tuple[tuple[str, Callable[[str], Any], str], ...] = (
    ("noise_multiplier", float, "noise standard deviation / clip norm"),
    ("sampling_probability", float, "of a record, in each step"),
    ("num_steps", number, "steps of a run"),
    ("delta", float, "of all epsilons"),
    ("trials", number, "whole runs, 32 or more, half of them with the record"),
    ("confidence", float, "of each bound"),
)


def add_arguments(parser: argparse.ArgumentParser, defaults: Options) -> None:
    """Adds the common flags.

    Args:
      parser: to add to.
      defaults: of the flags.
    """
    for name, kind, described in _FLAGS:
        parser.add_argument(
            f"--{name}",
            type=kind,
            default=getattr(defaults, name),
            metavar="X",
            help=f"{described} ({getattr(defaults, name):g})",
        )
    parser.add_argument("--seed", type=number, metavar="X", help="of the runs (another one each time)")
    parser.add_argument(
        "--out",
        type=flags.directory,
        metavar="DIR",
        help="also write the result, a CSV file of all bounds and a figure",
    )
    flags.add_json(parser)


def execute(
    arguments: argparse.Namespace, *, name: str, prepare: Callable[[Options], Callable[[], Audited]]
) -> tuple[str, int]:
    """Carries an audit out; exit status 1 where it refutes what is certified.

    Args:
      arguments: as parsed.
      name: of the files in `--out`.
      prepare: options -> what carries the audit out; it refuses bad input before anything is written.
    """
    with extras.needed("train", to="audit"):
        from exactdp.benchmarks.curves import store
        from exactdp.benchmarks.training_audit import report
    start = time.perf_counter()
    names = [flag for flag, *_ in _FLAGS]
    options = Options(seed=arguments.seed, **{flag: getattr(arguments, flag) for flag in names})
    audit = prepare(options)
    directory = None if arguments.out is None else store.prepare_directory("out", arguments.out)
    found = audit()
    files = [] if directory is None else report.write(directory, found, options, name=name)
    status = 1 if found.refuted else 0
    if arguments.json:
        answer = {
            **found.as_dict(),
            "parameters": {**{flag: getattr(options, flag) for flag in names}, "seed": options.seed},
            "files": [str(path) for path in files],
            "seconds": time.perf_counter() - start,
        }
        return output.as_json(answer), status
    return "\n".join([report.lines(found, options), *(f"wrote {path}" for path in files)]), status
