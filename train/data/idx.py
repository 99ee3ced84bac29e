"""The idx format of MNIST and Fashion-MNIST, plain or gzipped."""

from __future__ import annotations

import gzip
import math
import zlib
from pathlib import Path

import numpy as np
from jaxtyping import UInt8

from exactdp.train.data import root as data_root
from exactdp.train.data.dataset import Dataset, from_pixels

_HOW = (
    "Put the four official files there ({files}, with .gz or without); MNIST: "
    "https://storage.googleapis.com/cvdf-datasets/mnist/, Fashion-MNIST: "
    "https://github.com/zalandoresearch/fashion-mnist."
)
_FILES = (
    "train-images-idx3-ubyte",
    "train-labels-idx1-ubyte",
    "t10k-images-idx3-ubyte",
    "t10k-labels-idx1-ubyte",
)
_UNSIGNED_BYTE = 0x08


def load(folder_name: str, *, name: str, source: str, root: str | Path | None) -> Dataset:
    """The data set in the folder `folder_name` of the data root: four idx files under their official names.

    Args:
      folder_name: the folder.
      name: of the data set.
      source: where it comes from, and its licence.
      root: the data root; None for EXACTDP_DATA.

    Raises:
      ValueError: the folder or a file is missing, a file is no idx file of the right rank or is cut short or
        too long, or what `Dataset` refuses.
    """
    how = _HOW.format(files=", ".join(_FILES))
    folder = data_root.find(name, root=root, candidates=[folder_name], how=how)
    x, y, x_test, y_test = (
        read(_existing(folder, file, name=name, how=how), name=name, rank=3 if "images" in file else 1)
        for file in _FILES
    )
    return from_pixels(x, y, x_test, y_test, name=name, source=source)


def _existing(folder: Path, file: str, *, name: str, how: str) -> Path:
    for path in (folder / f"{file}.gz", folder / file):
        if path.is_file():
            return path
    raise ValueError(f"{name}: {folder} must hold {file} or {file}.gz, it holds neither. {how}")


def read(path: Path, *, name: str, rank: int) -> UInt8[np.ndarray, ...]:
    """The array of unsigned bytes in one idx file.

    The header: two zero bytes, the element type (8 for unsigned bytes), the rank, then one big-endian 32-bit
    size a dimension; the elements follow, and nothing after them.

    Args:
      path: the file; gzipped where its name ends in .gz.
      name: of the data set, for messages.
      rank: how many dimensions there must be.

    Raises:
      ValueError: the gzip stream is damaged or cut short, the magic number is not that of bytes of this rank,
        or the length is not what the header says.
    """
    data = _bytes(path, name=name)
    magic = bytes([0, 0, _UNSIGNED_BYTE, rank])
    if data[:4] != magic:
        raise ValueError(
            f"{name}: {path} must begin with the magic number {magic.hex()}, got {data[:4].hex()!r}"
        )
    start = 4 + 4 * rank
    if len(data) < start:
        raise ValueError(f"{name}: {path} must have a header of {start} bytes, the file has {len(data)}")
    shape = tuple(int(n) for n in np.frombuffer(data, dtype=">u4", count=rank, offset=4))
    if len(data) - start != math.prod(shape):
        raise ValueError(
            f"{name}: {path} must hold {math.prod(shape)} bytes for its shape {shape}, it holds "
            f"{len(data) - start}"
        )
    return np.frombuffer(data, dtype=np.uint8, offset=start).reshape(shape)


def _bytes(path: Path, *, name: str) -> bytes:
    raw = path.read_bytes()
    if path.suffix != ".gz":
        return raw
    try:
        return gzip.decompress(raw)
    except (EOFError, OSError, zlib.error) as error:
        raise ValueError(f"{name}: {path} must be a whole gzip file, got: {error}") from None
