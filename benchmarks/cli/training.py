"""What the commands that train share: flags in tables, the folder of a run, how it goes on."""

from __future__ import annotations

import argparse
import contextlib
import dataclasses
import datetime
import os
import re
import shlex
import sys
from collections.abc import Callable, Generator, Mapping
from logging import CRITICAL, getLogger
from typing import Any

from absl import logging

from exactdp.benchmarks.cli import extras, flags


@dataclasses.dataclass(frozen=True)
class Flag:
    """A flag with a value.

    Attributes:
      help: what it says.
      kind: what makes a value of a word.
      default: without the flag.
      choices: the values there are; None for any.
    """

    help: str
    kind: Callable[[str], Any] = float
    default: Any = None
    choices: tuple[str, ...] | None = None


def add_flags(
    parser: argparse.ArgumentParser, values: Mapping[str, Flag], *, switches: Mapping[str, str]
) -> None:
    """Adds flags with values, then those without; a switch's text is its help."""
    for name, flag in values.items():
        parser.add_argument(
            f"--{name}",
            type=flag.kind,
            default=flag.default,
            choices=flag.choices,
            metavar=None if flag.choices else "X",
            help=flag.help,
        )
    for name, text in switches.items():
        parser.add_argument(f"--{name}", action="store_true", help=text)


def add_out(parser: argparse.ArgumentParser) -> None:
    """Adds --out."""
    parser.add_argument(
        "--out",
        type=flags.directory,
        metavar="DIR",
        help="folder of the run (one under runs/, named after method, data set and time)",
    )


def folder_name(method: str, data: str) -> str:
    """The folder of a run that was given none."""
    stamp = datetime.datetime.now().strftime("%Y%m%d-%H%M%S")
    return f"runs/{method}-{re.sub(r'[:/]', '-', data)}-{stamp}"


def going_on(
    arguments: argparse.Namespace, out: str, *, values: Mapping[str, Flag], switches: Mapping[str, str]
) -> str:
    """The command that goes on with a run, to be put behind a message.

    Args:
      arguments: of the run.
      out: its folder.
      values: flags with values.
      switches: those without.
    """
    words = ["exactdp", "train", arguments.method]
    for name, flag in values.items():
        value = getattr(arguments, name)
        # The key is in the folder; a seed, which is as secret, need not be shown.
        if name != "seed" and value != flag.default:
            words += [f"--{name}", str(value)]
    words += [f"--{name}" for name in (*switches, "json") if name != "resume" and getattr(arguments, name)]
    return f"; go on with:\n  {shlex.join([*words, '--out', out, '--resume'])}"


@contextlib.contextmanager
def begun(out: str, *, going_on: Callable[[], str]) -> Generator[None]:
    """Around a run: what libraries print goes to stderr, and what stops it says how to go on.

    Args:
      out: folder of the run.
      going_on: what to put behind a message; asked when the run was stopped.
    """
    # The progress of libraries is not for stderr: that has the run's own.
    logging.set_verbosity(logging.WARNING)
    # Where a checkpoint cannot be written, it is said once, and not again for each of its parts.
    getLogger("asyncio").setLevel(CRITICAL)
    try:
        with extras.needed("train", to="train"), _stdout_to_stderr():
            yield
    except KeyboardInterrupt as error:
        raise KeyboardInterrupt(f"{error or 'interrupted'}{going_on()}") from None
    except BlockingIOError:
        raise ValueError(f"out must be a folder that no other run is using, got {out}") from None
    except OSError as error:
        raise OSError(f"{error}{going_on()}") from error


@contextlib.contextmanager
def _stdout_to_stderr() -> Generator[None]:
    """What native libraries print themselves (Gloo does) must not end up in the answer."""
    sys.stdout.flush()
    kept = os.dup(1)
    try:
        os.dup2(2, 1)
        yield
    finally:
        os.dup2(kept, 1)
        os.close(kept)
