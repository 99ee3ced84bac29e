"""A sub-command: what its module offers, and how it gets into the parser."""

from __future__ import annotations

import argparse
import importlib
from typing import Any, Protocol, cast


class Command(Protocol):
    """What the module of a sub-command offers."""

    HELP: str
    EXAMPLES: str

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        """Adds the flags."""

    def execute(self, arguments: argparse.Namespace) -> tuple[str, int]:
        """Returns what goes to stdout, and the exit status."""
        ...


def module(path: str) -> Command:
    """The module of a sub-command, imported when it is asked for."""
    return cast(Command, importlib.import_module(path))


def add(
    commands: Any, name: str, command: Command, *, with_flags: bool = True, text: str = ""
) -> argparse.ArgumentParser:
    """Adds a sub-command to what `add_subparsers` returned.

    Args:
      commands: of the parser above.
      name: of the sub-command.
      command: its module.
      with_flags: whether its flags are added.
      text: one line on it; the module's own by default.
    """
    parser: argparse.ArgumentParser = commands.add_parser(
        name,
        help=text or command.HELP,
        description=text or command.HELP,
        epilog=f"examples:\n{command.EXAMPLES}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
        inherited_absl_flags=None,
    )
    if with_flags:
        command.add_arguments(parser)
    return parser
