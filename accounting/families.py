"""Mechanisms as plain data: family name and parameters, and back.

A mechanism is a frozen dataclass of public parameters, perhaps with another mechanism among them; its record
is `{"family": name, field: value, ...}`. Only registered families are read: a record never names code to run.
"""

from __future__ import annotations

import dataclasses
import importlib
import sys
from collections.abc import Mapping
from typing import Any, TypeVar, cast

from exactdp.accounting.prv import Mechanism

_PREFIX = "exactdp.accounting."

_BUILT_IN: dict[str, str] = {
    "Gaussian": "pairs.gaussian",
    "Laplace": "pairs.laplace",
    "Dirichlet": "pairs.dirichlet",
    "PureDP": "pairs.pure",
    "ApproximateDP": "pairs.approximate",
    "Finite": "pairs.finite",
    "DiscreteGaussian": "pairs.discrete_gaussian",
    "DiscreteLaplace": "pairs.discrete_laplace",
    "PoissonHidden": "sampling.hidden",
    "PoissonVisible": "sampling.visible",
    "PoissonReplaceGaussian": "sampling.replace",
    "FixedSize": "sampling.fixed_size",
}
_REGISTERED: dict[str, type[Any]] = {}

Family = TypeVar("Family", bound=type[Any])


def register(family: Family) -> Family:
    """Makes an own mechanism known by its class name; usable as a class decorator.

    Raises:
      ValueError: it is no frozen dataclass, or another class has the name.
    """
    parameters = getattr(family, "__dataclass_params__", None)
    if parameters is None or not parameters.frozen:
        raise ValueError(f"family must be a frozen dataclass, got {family!r}")
    name = family.__name__
    if name in _BUILT_IN or _REGISTERED.get(name, family) is not family:
        raise ValueError(f"family must have a name of its own, {name} is taken")
    _REGISTERED[name] = family
    return family


def names() -> list[str]:
    """The families that can be read, sorted."""
    return sorted({*_BUILT_IN, *_REGISTERED})


def encode(mechanism: Mechanism) -> dict[str, Any]:
    """The record of a mechanism: JSON types only, floats exact.

    Raises:
      ValueError: its family is not registered, or a parameter is not a finite number, string, boolean, tuple
        of such, or mechanism.
    """
    family = type(mechanism)
    if _find(family.__name__) is not family:
        raise ValueError(
            f"mechanism must be of a registered family ({', '.join(names())}), got {mechanism!r}"
        )
    fields = dataclasses.fields(cast(Any, mechanism))
    return {"family": family.__name__} | {
        f.name: _encode(f.name, getattr(mechanism, f.name)) for f in fields if f.init
    }


def decode(record: Mapping[str, Any]) -> Mechanism:
    """The mechanism of a record.

    Raises:
      ValueError: the family is unknown, a parameter is missing, unknown or out of range.
    """
    if not isinstance(cast("object", record), Mapping):  # read from a file
        raise ValueError(f"record must be a mapping with a family, got {record!r}")
    parameters = dict(record)
    name = parameters.pop("family", None)
    family = _find(name) if isinstance(name, str) else None
    if family is None:
        raise ValueError(f"family must be one of {', '.join(names())}, got {name!r}")
    known = {f.name for f in dataclasses.fields(family) if f.init}
    if unknown := set(parameters) - known:
        raise ValueError(f"parameters of {name} must be among {sorted(known)}, got {sorted(unknown)}")
    try:
        return family(**{key: _decode(value) for key, value in parameters.items()})
    except (TypeError, OverflowError) as error:
        raise ValueError(
            f"parameters of {name} must be {sorted(known)}, got {sorted(parameters)} ({error})"
        ) from error


def _find(name: str) -> type[Any] | None:
    if name in _REGISTERED:
        return _REGISTERED[name]
    if name not in _BUILT_IN:
        return None
    return cast("type[Any]", getattr(importlib.import_module(_PREFIX + _BUILT_IN[name]), name))


def _encode(name: str, value: Any) -> Any:
    if dataclasses.is_dataclass(value):
        return encode(cast(Mechanism, value))
    if isinstance(value, (list, tuple)):
        return [_encode(name, item) for item in cast("list[Any]", value)]
    if isinstance(value, (bool, str)):
        return value
    if hasattr(value, "item"):  # a NumPy number
        value = value.item()
    if not isinstance(value, (int, float)) or not abs(value) <= sys.float_info.max:
        raise ValueError(
            f"{name} must be a finite number, string, boolean, tuple or mechanism, got {value!r}"
        )
    return value


def _decode(value: Any) -> Any:
    if isinstance(value, dict):
        return decode(cast("dict[str, Any]", value))
    if isinstance(value, list):
        return tuple(_decode(item) for item in cast("list[Any]", value))
    return value
