"""Reads a claims file: everything in it is checked before anything is computed.

The format is described in benchmarks/claims/README.md.
"""

from __future__ import annotations

import dataclasses
import math
import re
import sys
import tomllib
from collections.abc import Mapping
from fractions import Fraction
from pathlib import Path
from typing import Any

from exactdp.accounting import validate
from exactdp.benchmarks.setting.families import FAMILIES, PARAMETERS
from exactdp.benchmarks.setting.magnitude import LARGEST, representable
from exactdp.benchmarks.setting.setting import ADJACENCIES, Setting, Unsupported

_TEXT = ("name", "source", "mechanism", "adjacency", "coins", "note")
_NUMBERS = (
    *PARAMETERS,
    "sampling_probability",
    "batch_size",
    "dataset_size",
    "num_steps",
    "epochs",
    "delta",
    "epsilon",
    "rounding",
)
_REQUIRED = ("name", "source", "mechanism", "adjacency", "coins", "claimed")
_CLAIMED = ({"epsilon"}, {"delta"}, {"noise_multiplier", "epsilon"})


@dataclasses.dataclass(frozen=True)
class Claim:
    """One published claim.

    Attributes:
      name: short and unique in the file.
      source: where the numbers were read.
      note: what is assumed; may be empty.
      quantity: what is claimed: `"epsilon"`, `"delta"` or `"noise_multiplier"`.
      value: the claimed value.
      rounding: how far a value that is printed rounded may be from the one that was meant.
      epsilon: the epsilon at which a delta, or for which a noise multiplier, is claimed; else None.
      delta: the delta at which an epsilon or a noise multiplier is claimed; else None.
      setting: what runs; for a noise multiplier, with the claimed one. None where it cannot be accounted for.
      reason: why `setting` is None; empty otherwise.
    """

    name: str
    source: str
    note: str
    quantity: str
    value: float
    rounding: float
    epsilon: float | None
    delta: float | None
    setting: Setting | None
    reason: str


def load(path: str | Path) -> list[Claim]:
    """All claims of a file.

    Raises:
      ValueError: the file cannot be read, or an entry breaks a rule: one line for each, naming claim, key,
        rule and value.
    """
    try:
        text = Path(path).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ValueError(f"claims file must be readable text, got {path} ({error})") from error
    try:
        document = tomllib.loads(text)
    except RecursionError as error:
        raise ValueError(
            f"claims file must be valid TOML, got {path}: its arrays or tables are nested too deeply"
        ) from error
    except tomllib.TOMLDecodeError as error:
        raise ValueError(f"claims file must be valid TOML, got {path}: {error}") from error
    except ValueError as error:  # Python reads no whole number of more digits than its own limit
        raise ValueError(f"{path}: {_too_long(text) or error}") from error
    return parse(document, source=str(path))


def parse(document: Mapping[str, Any], *, source: str) -> list[Claim]:
    """All claims of a parsed file; `source` names it in messages.

    Raises:
      ValueError: as for `load`.
    """
    entries = document.get("claim")
    unknown = [key for key in document if key != "claim"]
    if unknown:
        raise ValueError(f"{source}: top level must hold [[claim]] tables only, got {', '.join(unknown)}")
    if not isinstance(entries, list) or not entries or not all(isinstance(entry, dict) for entry in entries):
        raise ValueError(f"{source}: claim must be an array of at least one [[claim]] table, got {entries!r}")
    claims: list[Claim] = []
    errors: list[str] = []
    for i, entry in enumerate(entries):
        label = f"claim {i + 1} ({entry.get('name', 'no name')!r})"
        try:
            claim = _claim(entry)
            if any(claim.name == other.name for other in claims):
                raise ValueError(f"name must be unique in the file, got {claim.name!r} again")
            claims.append(claim)
        except ValueError as error:
            errors.append(f"{source}: {label}: {error}")
    if errors:
        raise ValueError("\n".join(errors))
    return claims


def _too_long(text: str) -> str:
    """Where in `text` the first whole number too long for Python stands; empty where there is none."""
    limit = sys.get_int_max_str_digits()
    found = re.search(rf"([\w.-]+)\s*=\s*[+-]?(\d[\d_]{{{limit},}})", text)
    if found is None:
        return ""
    claim = text.count("[[claim]]", 0, found.start())
    digits = len(found[2].replace("_", ""))
    return f"claim {claim}: {found[1]} must be a number below {LARGEST}, got one of {digits} digits"


def _claim(entry: Mapping[str, Any]) -> Claim:
    for key in entry:
        if key not in (*_TEXT, *_NUMBERS, "claimed"):
            raise ValueError(f"{key} must be a key of the format, got an unknown one (value {entry[key]!r})")
    for key in _REQUIRED:
        if key not in entry:
            raise ValueError(f"{key} must be given, got nothing")
    for key in _TEXT:
        if key in entry and (not isinstance(entry[key], str) or not entry[key].strip() and key != "note"):
            raise ValueError(f"{key} must be text that is not empty, got {entry[key]!r}")
    if not entry["name"].isprintable():
        raise ValueError(f"name must be printable, got {entry['name']!r}")
    for key in _NUMBERS:
        if key in entry:
            _plain_number(key, entry[key])
    validate.one_of("mechanism", entry["mechanism"], FAMILIES)
    validate.one_of("adjacency", entry["adjacency"], ADJACENCIES)
    validate.one_of("coins", entry["coins"], ("hidden", "visible", "none"))
    rounding = validate.non_negative("rounding", entry.get("rounding", 0.0))
    quantity, value, epsilon, delta, parameters = _claimed(entry)
    if rounding >= value / 2.0:
        raise ValueError(f"rounding must be below half the claimed {quantity} ({value}), got {rounding}")
    q = _sampling_probability(entry)
    _check_coins(entry["coins"], q)
    reason, setting = "", None
    try:
        setting = Setting(
            mechanism=entry["mechanism"],
            parameters=parameters,
            sampling_probability=q,
            num_steps=_num_steps(entry),
            adjacency=entry["adjacency"],
            coins="hidden" if entry["coins"] == "none" else entry["coins"],
        )
    except Unsupported as error:
        reason = str(error)
    return Claim(
        entry["name"],
        entry["source"],
        entry.get("note", ""),
        quantity,
        value,
        rounding,
        epsilon,
        delta,
        setting,
        reason,
    )


def _plain_number(key: str, value: object) -> None:
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise ValueError(f"{key} must be a number, got {value!r}")
    representable(key, value)


def _claimed(entry: Mapping[str, Any]) -> tuple[str, float, float | None, float | None, dict[str, float]]:
    """Quantity, value, the epsilon and delta that go with it, and the mechanism's parameters."""
    claimed = entry["claimed"]
    if not isinstance(claimed, dict) or set(claimed) not in _CLAIMED:
        raise ValueError(
            f"claimed must be {{ epsilon }}, {{ delta }} or {{ noise_multiplier, epsilon }}, got {claimed!r}"
        )
    for key, value in claimed.items():
        _plain_number(f"claimed.{key}", value)
    parameters = {key: entry[key] for key in PARAMETERS if key in entry}
    if "delta" in claimed:
        _absent(entry, "delta", "delta is what is claimed")
        value = validate.open_probability("claimed.delta", claimed["delta"])
        return "delta", value, validate.non_negative("epsilon", _given(entry, "epsilon")), None, parameters
    _absent(entry, "epsilon", "it stands in claimed")
    delta = validate.open_probability("delta", _given(entry, "delta"))
    epsilon = validate.positive("claimed.epsilon", claimed["epsilon"])
    if "noise_multiplier" not in claimed:
        return "epsilon", epsilon, None, delta, parameters
    if "noise_multiplier" not in FAMILIES[entry["mechanism"]].required:
        raise ValueError(f"claimed.noise_multiplier must go with a noise mechanism, got {entry['mechanism']}")
    _absent(entry, "noise_multiplier", "it stands in claimed")
    noise = validate.positive("claimed.noise_multiplier", claimed["noise_multiplier"])
    return "noise_multiplier", noise, epsilon, delta, {**parameters, "noise_multiplier": noise}


def _absent(entry: Mapping[str, Any], key: str, why: str) -> None:
    if key in entry:
        raise ValueError(f"{key} must be left out ({why}), got {entry[key]!r}")


def _given(entry: Mapping[str, Any], key: str) -> object:
    if key not in entry:
        raise ValueError(f"{key} must be given beside claimed = {entry['claimed']!r}, got nothing")
    return entry[key]


def _sizes(entry: Mapping[str, Any]) -> tuple[int, int] | None:
    """batch_size and dataset_size, or None."""
    if ("batch_size" in entry) != ("dataset_size" in entry):
        present, missing = sorted(("batch_size", "dataset_size"), key=lambda key: key not in entry)
        raise ValueError(f"{missing} must be given beside {present}, got nothing")
    if "batch_size" not in entry:
        return None
    batch = validate.count("batch_size", entry["batch_size"], minimum=1)
    size = validate.count("dataset_size", entry["dataset_size"], minimum=1)
    if batch > size:
        raise ValueError(f"batch_size must be <= dataset_size ({size}), got {batch}")
    return batch, size


def _sampling_probability(entry: Mapping[str, Any]) -> float:
    sizes = _sizes(entry)
    if "sampling_probability" in entry:
        if sizes is not None:
            raise ValueError(
                "sampling_probability must be left out beside batch_size and dataset_size, "
                f"got {entry['sampling_probability']!r}"
            )
        return validate.probability("sampling_probability", entry["sampling_probability"])
    return 1.0 if sizes is None else sizes[0] / sizes[1]


def _num_steps(entry: Mapping[str, Any]) -> int:
    if "epochs" not in entry:
        return validate.count("num_steps", entry.get("num_steps", 1), minimum=1)
    _absent(entry, "num_steps", "epochs is given")
    sizes = _sizes(entry)
    if sizes is None:
        raise ValueError(f"epochs must go with batch_size and dataset_size, got {entry['epochs']!r} alone")
    epochs = Fraction(str(validate.positive("epochs", entry["epochs"])))
    return math.ceil(epochs * sizes[1] / sizes[0])


def _check_coins(coins: str, q: float) -> None:
    if q < 1.0 and coins == "none":
        raise ValueError(f"coins must be hidden or visible where there is sampling (rate {q}), got none")
    if q == 1.0 and coins != "none":
        raise ValueError(f"coins must be none where there is no sampling, got {coins}")
