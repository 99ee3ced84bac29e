"""Entry of `exactdp`: finds the sub-command, runs it, prints its answer.

Exit status: 0; 1 where `check` found a claim violated, `audit mechanism` an outcome that was not expected, a
number could not be certified, or something could not be read, written or imported; 2 for bad input, with a
message on stderr that names the flag, the rule and the value; 130 when interrupted.
"""

from __future__ import annotations

import argparse
import contextlib
import logging
import os
import sys
import warnings
from collections.abc import Sequence

from absl import app
from absl.flags import argparse_flags

from exactdp import __version__
from exactdp.benchmarks.cli import subcommand

COMMANDS = (
    "epsilon",
    "delta",
    "tradeoff",
    "calibrate",
    "ladder",
    "curves",
    "check",
    "train",
    "audit",
    "psi-audit",
)
_INTERRUPTED = 130


def parser(argv: Sequence[str]) -> argparse.ArgumentParser:
    """The parser of the whole command line; only the sub-command that `argv` names gets its flags.

    The others are listed and nothing more, so that what they need is not imported.
    """
    named = next((word for word in argv if not word.startswith("-")), None)
    top = argparse_flags.ArgumentParser(
        prog="exactdp",
        description="Differential privacy bounds as printed, beside numerically exact ones.",
        allow_abbrev=False,
    )
    top.add_argument("--version", action="version", version=f"exactdp {__version__}")
    commands = top.add_subparsers(dest="command", required=True, metavar="command")
    for name in COMMANDS:
        command = subcommand.module(f"exactdp.benchmarks.cli.{name.replace('-', '_')}")
        sub = subcommand.add(commands, name, command, with_flags=name == named)
        sub.set_defaults(execute=command.execute)
    return top


def main(arguments: argparse.Namespace) -> int:
    """Runs one sub-command; stdout gets its answer and nothing else."""
    try:
        # Whatever a library prints on the way must not end up in the answer.
        with contextlib.redirect_stdout(sys.stderr):
            text, status = arguments.execute(arguments)
    except (ValueError, OSError, ImportError) as error:
        print(f"exactdp {arguments.command}: error: {error}", file=sys.stderr)
        return 2 if isinstance(error, ValueError) else 1
    except ArithmeticError as error:
        print(f"exactdp {arguments.command}: no certified answer: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt as error:
        print(f"exactdp {arguments.command}: {str(error) or 'interrupted'}", file=sys.stderr)
        return _INTERRUPTED
    try:
        print(text, flush=True)
    except OSError as error:
        # What is left in the buffer would fail once more when the interpreter ends.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        if not isinstance(error, BrokenPipeError):  # there the reader went away (`| head`): nothing to say
            message = f"the answer could not be written: {error.strerror}"
            print(f"exactdp {arguments.command}: {message}", file=sys.stderr)
            return 1
    return status


def run() -> None:
    """Console entry point."""
    # What jax reports of devices that are not there is no news to whoever asked for a number.
    logging.getLogger("jax._src.xla_bridge").setLevel(logging.WARNING)
    with warnings.catch_warnings():
        # Overflow and the like are dealt with where they arise; the answer says what is certified.
        warnings.simplefilter("ignore", RuntimeWarning)
        app.run(_command, flags_parser=lambda argv: parser(argv[1:]).parse_args(argv[1:]))


def _command(arguments: argparse.Namespace) -> int:
    status = main(arguments)
    if status == _INTERRUPTED:
        # Threads of jax may be at work still, and crash where the interpreter is taken from under them.
        sys.stderr.flush()
        os._exit(status)
    return status


if __name__ == "__main__":
    run()
