"""Named tensors from a local file: safetensors or .npz."""

from __future__ import annotations

import json
import math
import struct
from collections.abc import Mapping
from pathlib import Path
from typing import Any, BinaryIO

import jax.numpy as jnp
import numpy as np

_TYPES: Mapping[str, Any] = {"F64": np.float64, "F32": np.float32, "F16": np.float16, "BF16": jnp.bfloat16}
_HEADER_LIMIT = 100_000_000  # bytes that the format allows its header


def read(path: str | Path, *, shapes: Mapping[str, tuple[int, ...]]) -> dict[str, np.ndarray]:
    """The tensors named in `shapes`, as float32; whatever else the file holds is not read.

    Args:
      path: a .safetensors or .npz file.
      shapes: name -> shape that it must have.

    Raises:
      ValueError: no such file or another suffix; a file that is damaged or cut short; a tensor that is
        missing, of another shape, not floating or not finite, by its name.
    """
    file = Path(path)
    if file.suffix not in (".safetensors", ".npz"):
        raise ValueError(f"path must end in .safetensors or .npz, got {file}")
    if not file.is_file():
        raise ValueError(f"path must be a file, got {file}")
    reader = _from_safetensors if file.suffix == ".safetensors" else _from_npz
    try:
        found = reader(file, list(shapes))
    except (OSError, KeyError, TypeError, AttributeError, EOFError, struct.error, ValueError) as error:
        raise ValueError(f"path must be a whole {file.suffix} file, got {file}: {error}") from error
    tensors: dict[str, np.ndarray] = {}
    for name, shape in shapes.items():
        if name not in found:
            raise ValueError(f"{file.name} must have a tensor {name} of shape {shape}, it is missing")
        value = found[name]
        if value.shape != shape or not jnp.issubdtype(value.dtype, jnp.floating):
            raise ValueError(
                f"{file.name}: {name} must be floating of shape {shape}, got {value.dtype} {value.shape}"
            )
        tensors[name] = value.astype(np.float32)
        if not np.isfinite(tensors[name]).all():
            raise ValueError(f"{file.name}: {name} must be finite, got NaN or infinity")
    return tensors


def names(path: str | Path) -> list[str]:
    """The names of the tensors in a .safetensors file, sorted.

    Raises:
      ValueError: no such file or another suffix; a file that is damaged or cut short within its header.
    """
    file = Path(path)
    if file.suffix != ".safetensors" or not file.is_file():
        raise ValueError(f"path must be a .safetensors file, got {file}")
    try:
        with file.open("rb") as stream:
            header, _ = _header(stream, file.stat().st_size)
            return sorted(name for name in header if name != "__metadata__")
    except (OSError, TypeError, struct.error, ValueError) as error:
        raise ValueError(f"path must be a whole .safetensors file, got {file}: {error}") from error


def _header(stream: BinaryIO, size: int) -> tuple[Mapping[str, Any], int]:
    """The header of a file of `size` bytes, and where the tensors begin."""
    (length,) = struct.unpack("<Q", stream.read(8))
    if length > min(_HEADER_LIMIT, size):
        raise ValueError(f"its header would be {length} bytes")
    return json.loads(stream.read(length)), 8 + length


def _from_npz(file: Path, names: list[str]) -> dict[str, np.ndarray]:
    try:
        with file.open("rb") as stream, np.load(stream, allow_pickle=False) as archive:
            return {name: archive[name] for name in names if name in archive.files}
    except Exception as error:  # zipfile and zlib have errors of their own
        raise ValueError(str(error)) from error


def _from_safetensors(file: Path, names: list[str]) -> dict[str, np.ndarray]:
    """Eight bytes of length, a JSON header of types, shapes and places, then the bytes of the tensors."""
    found: dict[str, np.ndarray] = {}
    with file.open("rb") as stream:
        header, begin = _header(stream, file.stat().st_size)
        for name in names:
            if name not in header:
                continue
            entry = header[name]
            shape = tuple(int(side) for side in entry["shape"])
            if entry["dtype"] not in _TYPES:
                found[name] = np.empty(shape, np.int8)  # of a type that no weight may have
                continue
            kind = np.dtype(_TYPES[entry["dtype"]])
            first, last = entry["data_offsets"]
            if last - first != math.prod(shape) * kind.itemsize:
                raise ValueError(f"{name} has {last - first} bytes for shape {shape}")
            stream.seek(begin + first)
            content = stream.read(last - first)
            if len(content) != last - first:
                raise ValueError(f"it ends within {name}")
            found[name] = np.frombuffer(content, kind.newbyteorder("<")).reshape(shape)
    return found
