"""Bytes that a compiled program sends between devices, read from its text."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from typing import NamedTuple

KINDS = ("all-reduce", "all-gather", "reduce-scatter", "all-to-all", "collective-permute")

# A computation: a line that ends in an opening brace, down to a line that is a closing one.
_COMPUTATION = re.compile(
    r"^(?P<entry>ENTRY )?%?(?P<name>[\w.\-]+) \(.*\{\n(?P<body>(?:.*\n)*?)\}", re.MULTILINE
)
_COLLECTIVE = re.compile(
    rf"^\s*(?:ROOT )?%?\S+ = (?P<result>.+?) (?P<kind>{'|'.join(KINDS)})(?P<start>-start)?\(", re.MULTILINE
)
_BRANCHES = re.compile(
    r"branch_computations=\{(?P<many>[^}]*)\}"
    r"|true_computation=(?P<true>%?[\w.\-]+), false_computation=(?P<false>%?[\w.\-]+)"
)
_CALL = re.compile(r"\b(?:calls|to_apply|body|condition)=%?([\w.\-]+)")
_ARRAY = re.compile(r"\b(?P<type>pred|[a-z]+(?P<bits>\d+)\w*)\[(?P<sides>[\d,]*)\]")


class Collective(NamedTuple):
    """One exchange.

    Attributes:
      kind: one of `KINDS`.
      size: bytes of its result on one device.
      sent: bytes that each device sends, when rings are used.
    """

    kind: str
    size: int
    sent: float


def collectives(text: str, *, num_devices: int) -> list[Collective]:
    """The exchanges of one run of a compiled program, in which each device runs the same.

    With n devices and a result of S bytes on each, a device sends 2 (n - 1) / n S for an all-reduce,
    (n - 1) / n S for an all-gather or an all-to-all, (n - 1) S for a reduce-scatter (whose input is n S) and
    S for a permutation. Of the branches of a conditional the one that sends most is taken. An exchange within
    a loop is counted once, and every exchange as one among all devices.

    Args:
      text: the program, as `compiled.as_text()` gives it.
      num_devices: n >= 1.

    Raises:
      ValueError: the text has no entry computation.
    """
    bodies: dict[str, str] = {}
    entry = ""
    for match in _COMPUTATION.finditer(text):
        bodies[match["name"]] = match["body"]
        entry = match["name"] if match["entry"] else entry
    if not entry:
        raise ValueError("text must be a program with an ENTRY computation, got none")
    return _within(entry, bodies, num_devices, {})


def _within(
    name: str, bodies: Mapping[str, str], num_devices: int, known: dict[str, list[Collective]]
) -> list[Collective]:
    """The exchanges of a computation and of those that it calls."""
    if name not in known:
        body = bodies.get(name, "")
        found = [_collective(match, num_devices) for match in _COLLECTIVE.finditer(body)]
        for called in _CALL.findall(body):
            found += _within(called, bodies, num_devices, known)
        for match in _BRANCHES.finditer(body):
            names = match["many"].split(",") if match["many"] else [match["true"], match["false"]]
            branches = [_within(n.strip(" %"), bodies, num_devices, known) for n in names]
            found += max(branches, key=lambda branch: sum(each.sent for each in branch))
        known[name] = found
    return known[name]


def _collective(match: re.Match[str], n: int) -> Collective:
    kind = match["kind"]
    sizes = [_size(array) for array in _ARRAY.finditer(match["result"])]
    if match["start"] and kind != "all-reduce" and len(sizes) > 1:
        # What starts an asynchronous exchange returns its inputs, then its results, then perhaps two words.
        sizes = [sizes[1]] if len(sizes) <= 4 else sizes[len(sizes) // 2 :]
    factor = {
        "all-reduce": 2.0 * (n - 1) / n,
        "all-gather": (n - 1) / n,
        "all-to-all": (n - 1) / n,
        "reduce-scatter": float(n - 1),
        "collective-permute": 1.0,
    }
    return Collective(kind, sum(sizes), factor[kind] * sum(sizes))


def _size(array: re.Match[str]) -> int:
    """Bytes of an array such as f32[128,10]."""
    sides = [int(side) for side in array["sides"].split(",") if side]
    return math.ceil(math.prod(sides) * int(array["bits"] or 8) / 8)
