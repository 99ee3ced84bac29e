"""Binary records as the privacytrustlab collection distributes them: Location-30 and Purchase-100."""

from __future__ import annotations

import tarfile
import zlib
from pathlib import Path

import numpy as np
from jaxtyping import Int, UInt8

from exactdp.train.data import root as data_root
from exactdp.train.data import split
from exactdp.train.data.dataset import Dataset

_HOW = "Put the archive there as published at https://github.com/privacytrustlab/datasets."
# name -> (archive, classes, features)
_KNOWN = {
    "location30": ("dataset_location.tgz", 30, 446),
    "purchase100": ("dataset_purchase.tgz", 100, 600),
}
_ZERO = ord("0")


def load(folder_name: str, *, name: str, source: str, root: str | Path | None) -> Dataset:
    """The records of the one file in a .tgz, each a line `label,0,1,...`; labels 1 ... K become 0 ... K - 1.

    The collection gives no split: four fifths are trained on and one fifth tested, by the fixed shuffle of
    `exactdp.train.data.split.fixed`. Columns are feature_0, feature_1, ...

    Args:
      folder_name: the folder of the data root; location30 and purchase100 have the archive's published name
        in it, any other <folder>.tgz.
      name: of the data set.
      source: where it comes from, and its licence.
      root: the data root; None for EXACTDP_DATA.

    Raises:
      ValueError: the archive is missing, damaged or does not hold exactly one file; a line has another number
        of cells; a cell is not 0 or 1; a label is not a whole number from 1, or beyond the published number
        of classes; or what `Dataset` refuses.
    """
    archive, num_classes, num_features = _KNOWN.get(folder_name, (f"{folder_name}.tgz", None, None))
    path = data_root.find(name, root=root, candidates=[f"{folder_name}/{archive}"], how=_HOW)
    lines = _only_file(path, name=name).split()
    if not lines:
        raise ValueError(f"{name}: {path} must hold at least one record, it holds none")
    features = lines[0].count(b",") if num_features is None else num_features
    x = np.empty((len(lines), features), np.uint8)
    y = np.empty(len(lines), np.int32)
    for row, line in enumerate(lines):
        label, _, cells = line.partition(b",")
        y[row] = _label(label, name=name, row=row, num_classes=num_classes)
        x[row] = _cells(cells, name=name, row=row, num_features=features)
    train, test = split.fixed(len(lines))
    return Dataset(
        x=x[train].astype(np.float32),
        y=y[train],
        x_test=x[test].astype(np.float32),
        y_test=y[test],
        num_classes=int(y.max()) + 1 if num_classes is None else num_classes,
        name=name,
        source=source,
        columns=tuple(f"feature_{place}" for place in range(features)),
    )


def _only_file(path: Path, *, name: str) -> bytes:
    try:
        with tarfile.open(path, "r:gz") as archive:
            # Left out: what macOS adds beside each file.
            files = [m for m in archive.getmembers() if m.isfile() and not Path(m.name).name.startswith("._")]
            stream = archive.extractfile(files[0]) if len(files) == 1 else None
            if stream is None:
                raise ValueError(f"it holds {len(files)} files")
            return stream.read()
    except (tarfile.TarError, zlib.error, EOFError, OSError, ValueError) as error:
        raise ValueError(f"{name}: {path} must be a whole .tgz of one file, got: {error}") from None


def _label(text: bytes, *, name: str, row: int, num_classes: int | None) -> int:
    digits = text.strip(b'"')
    # Nine digits stay within int32.
    if not digits.isdigit() or len(digits) > 9 or not 1 <= int(digits) <= (num_classes or 10**9):
        upper = "" if num_classes is None else f" and <= {num_classes}"
        raise ValueError(
            f"{name}: labels must be whole numbers >= 1{upper}, record {row} has "
            f"{text.decode(errors='replace')!r}"
        )
    return int(digits) - 1


def _cells(text: bytes, *, name: str, row: int, num_features: int) -> UInt8[np.ndarray, " d"]:
    codes: Int[np.ndarray, " c"] = np.frombuffer(text, np.uint8)
    values = codes[::2] - np.uint8(_ZERO)
    # One character a cell and a comma between: anything else is found by its length or by its characters.
    if len(codes) == 2 * num_features - 1 and (values <= 1).all() and (codes[1::2] == ord(",")).all():
        return values
    cells = text.split(b",") if text else []
    if len(cells) != num_features:
        raise ValueError(
            f"{name}: records must have {num_features} features, record {row} has {len(cells)} "
            "(a file cut short?)"
        )
    bad = next(place for place, cell in enumerate(cells) if cell not in (b"0", b"1"))
    raise ValueError(
        f"{name}: features must be 0 or 1, feature {bad} of record {row} is "
        f"{cells[bad].decode(errors='replace')!r}"
    )
