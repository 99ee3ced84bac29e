"""The flags that the sub-commands share: one definition each, named after the parameter it sets."""

from __future__ import annotations

import argparse
import dataclasses
from collections.abc import Callable, Mapping
from typing import Any

from exactdp.benchmarks.curves.ladders import number
from exactdp.benchmarks.setting.families import FAMILIES, PARAMETERS
from exactdp.benchmarks.setting.setting import ADJACENCIES, COINS, Setting

ENGINES = ("auto", "contour", "lattice")
ACCOUNTANTS = ("prv", "rdp", "gdp")


def numbers(text: str) -> list[float]:
    """Comma-separated floats."""
    return [float(part) for part in text.split(",")]


def directory(text: str) -> str:
    """The name of a directory; an empty one would stand for the current directory unnoticed."""
    if not text:
        raise argparse.ArgumentTypeError(f"must be the name of a directory, got {text!r}")
    return text


@dataclasses.dataclass(frozen=True)
class Flag:
    """How one flag is read and described."""

    help: str
    kind: Callable[[str], Any] = float
    default: object = None
    choices: tuple[str, ...] | None = None


FLAGS: Mapping[str, Flag] = {
    "noise_multiplier": Flag("noise standard deviation (Laplace: scale) over the clip norm (sensitivity)"),
    "sensitivity": Flag("change of the query in clip norms when one record is added or removed (1)"),
    "scaling": Flag("Dirichlet: r in Dir(r * probabilities + offset)"),
    "offset": Flag("Dirichlet: alpha in Dir(scaling * probabilities + alpha)"),
    "epsilon0": Flag("pure, approximate: epsilon of one step"),
    "delta0": Flag("approximate: delta of one step"),
    "sampling_probability": Flag(
        "probability that a record takes part in a step (1: no sampling)", default=1.0
    ),
    "num_steps": Flag("number of steps released (1)", default=1),
    "delta": Flag("delta in (0, 1)"),
    "epsilon": Flag("epsilon >= 0"),
    "fpr": Flag("false positive rates, 0 or in [1e-300, 1], comma-separated"),
    "adjacency": Flag("neighbouring data sets (add_remove)", str, "add_remove", ADJACENCIES),
    "coins": Flag("does the adversary see which records were sampled? (hidden: no)", str, "hidden", COINS),
    "accountant": Flag(
        "prv: certified interval; rdp: upper bound; gdp: central limit approximation (prv)",
        str,
        "prv",
        ACCOUNTANTS,
    ),
    "tolerance": Flag("width of the interval to aim at; of delta, relative to it"),
    "engine": Flag("engine of the prv accountant (auto)", str, "auto", ENGINES),
}
_KINDS: Mapping[str, Callable[[str], Any]] = {"num_steps": number, "fpr": numbers}


def add(parser: argparse.ArgumentParser, *names: str, required: bool = False) -> None:
    """Adds the named flags to a parser."""
    for name in names:
        flag = FLAGS[name]
        parser.add_argument(
            f"--{name}",
            type=_KINDS.get(name, flag.kind),
            default=None if required else flag.default,
            choices=flag.choices,
            metavar=None if flag.choices else "X",
            help=flag.help.replace("%", "%%"),
            required=required,
        )


def add_json(parser: argparse.ArgumentParser) -> None:
    """Adds `--json`."""
    parser.add_argument(
        "--json", action="store_true", help="print one JSON object on stdout, nothing else there"
    )


def add_setting(parser: argparse.ArgumentParser) -> None:
    """Adds the mechanism and all flags that describe a setting."""
    listing = "; ".join(f"{name}: {', '.join(family.required)}" for name, family in FAMILIES.items())
    parser.add_argument(
        "mechanism", choices=tuple(FAMILIES), metavar="mechanism", help=f"with its parameters: {listing}"
    )
    add(parser, *PARAMETERS, "sampling_probability", "num_steps", "adjacency", "coins")


def given_parameters(arguments: argparse.Namespace) -> dict[str, float]:
    """The mechanism parameters on the command line."""
    values = {name: getattr(arguments, name) for name in PARAMETERS}
    return {name: value for name, value in values.items() if value is not None}


def setting(arguments: argparse.Namespace, **overrides: float) -> Setting:
    """The setting described on the command line.

    Raises:
      ValueError: it is not one that can be accounted for; the message names flag, rule and value.
    """
    own = {name: value for name, value in overrides.items() if name in PARAMETERS}
    rest = {"sampling_probability": arguments.sampling_probability, "num_steps": arguments.num_steps}
    rest.update({name: value for name, value in overrides.items() if name in rest})
    return Setting(
        mechanism=arguments.mechanism,
        parameters={**given_parameters(arguments), **own},
        adjacency=arguments.adjacency,
        coins=arguments.coins,
        **rest,  # type: ignore[arg-type]
    )
