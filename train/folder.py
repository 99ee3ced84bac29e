"""The folder of a run: what was asked for, and the files beside it."""

from __future__ import annotations

import contextlib
import json
import os
import tempfile
import zipfile
from collections.abc import Generator, Mapping
from pathlib import Path
from typing import Any, cast

import jax
import jax.numpy as jnp
import numpy as np

from exactdp.train.state import Parameters

RUN, LEDGER, CHECKPOINTS, RESULT, WEIGHTS = (
    "run.json",
    "ledger.jsonl",
    "checkpoints",
    "result.json",
    "weights.npz",
)


# Settings by other names than users give them.
_ASKED = {"options.optimiser.name": "optimizer", "settings.augmentation.multiplicity": "augmentation"}


@contextlib.contextmanager
def owner_only() -> Generator[None]:
    """Files and folders made meanwhile by this process are for their owner alone (0600 and 0700).

    No folder that is there already is changed.
    """
    before = os.umask(0o077)
    try:
        yield
    finally:
        os.umask(before)


def require_fresh(folder: Path, *, ledger: bool = False) -> None:
    """Refuses a folder that holds a run, or that cannot be written to; nothing is created.

    Args:
      folder: of the run.
      ledger: whether there may be a ledger, of what was released before the first step.

    Raises:
      ValueError: it is refused.
    """
    _require_writable(folder)
    for name in (RUN, CHECKPOINTS) if ledger else (RUN, LEDGER, CHECKPOINTS):
        if (folder / name).exists():
            raise ValueError(
                f"out must be a folder without a run, or resume must be set, got {folder} with {name}"
            )


def require_run(folder: Path) -> None:
    """Refuses a folder without a run, or that cannot be written to.

    Raises:
      ValueError: it is refused.
    """
    _require_writable(folder)
    if not (folder / RUN).is_file():
        raise ValueError(
            f"out must hold a run when resume is set, got {folder} without {RUN} (a run that was stopped "
            "before it began is started anew, without resume)"
        )


def create(folder: Path, description: Mapping[str, Any]) -> None:
    """Makes the folder, for its owner alone, and writes what was asked for.

    Raises:
      ValueError: the folder cannot be made.
      OSError: the disk refuses.
    """
    make(folder)
    write_json(folder / RUN, description)


def make(folder: Path) -> None:
    """Makes the folder, for its owner alone; one that is there stays as it is.

    Raises:
      ValueError: it cannot be made.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    except OSError as error:
        raise _unwritable(folder, error) from None


def description(folder: Path) -> dict[str, Any]:
    """What was asked for.

    Raises:
      ValueError: the file is no description of a run.
    """
    try:
        found = json.loads((folder / RUN).read_text())
        if not isinstance(found, dict):
            raise ValueError("it is no JSON object")
        return cast("dict[str, Any]", found)
    except ValueError as error:
        raise ValueError(f"{RUN} must describe a run, got {folder / RUN} ({error})") from None


def require_same(folder: Path, wanted: Mapping[str, Any]) -> None:
    """Refuses to go on with a run under other settings.

    Raises:
      ValueError: a setting differs; the message names it.
    """
    found, asked = (_flat(part) for part in (description(folder), json.loads(json.dumps(wanted))))
    # What a user chose before what follows from it.
    order = ("method", "settings", "options", "certificate")

    def place(name: str) -> tuple[int, str]:
        part = name.split(".")[0]
        return order.index(part) if part in order else len(order), name

    for name in sorted({*found, *asked} - {"run"}, key=place):
        if found.get(name) != asked.get(name):
            asked_for = _ASKED.get(name, name.split(".")[-1] if place(name)[0] < 3 else name)
            before, now = (
                "left out" if value is None else repr(value) for value in (found.get(name), asked.get(name))
            )
            raise ValueError(
                f"{asked_for} must be what the run in {folder} was started with, {before}, got {now}"
            )


def write_json(path: Path, value: Mapping[str, Any]) -> None:
    """Writes a JSON file, whole or not at all.

    Raises:
      OSError: the disk refuses.
    """
    write_bytes(path, (json.dumps(value, indent=1, allow_nan=False) + "\n").encode())


def write_bytes(path: Path, data: bytes) -> None:
    """Writes a file, whole or not at all.

    Raises:
      OSError: the disk refuses.
    """
    fresh = unfinished(path)
    try:
        with fresh.open("wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        os.replace(fresh, path)
    except BaseException:
        fresh.unlink(missing_ok=True)
        raise


def unfinished(path: Path) -> Path:
    """Where a file is written before it is whole: what is there of it when the process is killed."""
    return path.with_name(path.name + ".new")


def write_weights(folder: Path, params: Parameters) -> Path:
    """Writes the weights alone, as arrays named by their paths: what the run releases.

    Raises:
      OSError: the disk refuses.
    """
    leaves = jax.tree_util.tree_flatten_with_path(params)[0]
    named = {
        jax.tree_util.keystr(path, simple=True, separator="/"): np.asarray(leaf) for path, leaf in leaves
    }
    target = folder / WEIGHTS
    fresh = target.with_name("new-" + WEIGHTS)
    try:
        np.savez(fresh, **named)  # pyright: ignore[reportArgumentType]
        os.replace(fresh, target)
    except BaseException:
        fresh.unlink(missing_ok=True)
        raise
    return target


def read_weights(folder: Path, *, like: Parameters) -> Parameters:
    """The weights that `write_weights` wrote.

    Args:
      folder: of the run.
      like: parameters of the same model, such as initial ones, for names and shapes.

    Raises:
      ValueError: there are none, the file is damaged, or they are of another model.
    """
    path = folder / WEIGHTS
    try:
        # np.load leaves a damaged file open unless it is ours to close.
        with path.open("rb") as stream, np.load(stream, allow_pickle=False) as file:
            named = {name: np.asarray(file[name]) for name in file.files}
    except (OSError, ValueError, EOFError, zipfile.BadZipFile) as error:
        raise ValueError(f"{path} must hold the weights of a run that ended, got: {error}") from None
    leaves, structure = jax.tree_util.tree_flatten_with_path(like)
    wanted = {jax.tree_util.keystr(place, simple=True, separator="/"): leaf for place, leaf in leaves}
    if {name: array.shape for name, array in named.items()} != {
        name: leaf.shape for name, leaf in wanted.items()
    }:
        raise ValueError(f"{path} must hold weights of this model, got others: {', '.join(sorted(named))}")
    return jax.tree_util.tree_unflatten(structure, [jnp.asarray(named[name]) for name in wanted])


def _flat(record: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """Nested objects as one, with dotted names."""
    flat: dict[str, Any] = {}
    for name, value in record.items():
        flat |= _flat(value, f"{prefix}{name}.") if isinstance(value, dict) else {prefix + name: value}
    return flat


def _require_writable(folder: Path) -> None:
    try:
        there = folder.absolute()
        while not there.exists():
            there = there.parent
        # Tried, as rights alone do not tell: root has them for /proc too.
        with tempfile.TemporaryFile(dir=there):
            pass
    except OSError as error:
        raise _unwritable(folder, error) from None


def _unwritable(folder: Path, error: OSError) -> ValueError:
    return ValueError(f"out must be a folder that can be written to, got {folder} ({error.strerror})")
