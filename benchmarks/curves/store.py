"""Files that are either complete or absent, and CSV files that say what made them.

A CSV file starts with comment lines `# key: JSON value`, from which `exactdp curves` also decides whether it
can be used again.
"""

from __future__ import annotations

import csv
import functools
import hashlib
import io
import itertools
import json
import os
import platform
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

Row = dict[str, str]


def prepare_directory(name: str, directory: str | Path) -> Path:
    """The directory, made if it was not there, after trying that a file can be written into it.

    Raises:
      ValueError: it cannot be made or written to.
    """
    path = Path(directory)
    try:
        path.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=path):
            pass
    except OSError as error:
        raise ValueError(
            f"{name} must be a directory that can be written to, got {directory} ({error.strerror})"
        ) from error
    return path


def write_atomically(path: Path, content: bytes) -> None:
    """Writes `content` under a temporary name, then renames it: no reader ever sees half a file."""
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        # mkstemp makes files private; these are meant to be read by others, as far as the umask says.
        umask = os.umask(0)
        os.umask(umask)
        os.chmod(temporary, 0o666 & ~umask)
        os.replace(temporary, path)
    except BaseException:
        os.unlink(temporary)
        raise


def versions() -> dict[str, str]:
    """What the numbers depend on besides the parameters: versions, and a digest of the code."""
    import numpy
    import scipy

    from exactdp import __version__

    return {
        "exactdp": __version__,
        "code": _code_digest(),
        "numpy": numpy.__version__,
        "scipy": scipy.__version__,
        "python": platform.python_version(),
    }


@functools.cache
def _code_digest() -> str:
    import exactdp.accounting
    import exactdp.benchmarks

    digest = hashlib.sha256()
    for package in (exactdp.accounting, exactdp.benchmarks):
        root = Path(package.__path__[0])
        for path in sorted(root.rglob("*.py")):
            digest.update(str(path.relative_to(root)).encode())
            digest.update(path.read_bytes())
    return digest.hexdigest()[:16]


def write_csv(
    path: Path, header: Mapping[str, object], columns: Sequence[str], rows: Sequence[Sequence[object]]
) -> None:
    """Writes a CSV file with its header comments, atomically. Floats round-trip; None is an empty field."""
    text = io.StringIO()
    for key, value in header.items():
        text.write(f"# {key}: {json.dumps(value, sort_keys=True)}\n")
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(columns)
    for row in rows:
        writer.writerow(
            ["" if cell is None else repr(cell) if isinstance(cell, float) else str(cell) for cell in row]
        )
    write_atomically(path, text.getvalue().encode())


def read_csv(path: Path) -> tuple[dict[str, object], list[Row]]:
    """Header and rows of a CSV file that `write_csv` wrote.

    Raises:
      ValueError: it is no such file.
    """
    header: dict[str, object] = {}
    lines = path.read_text(encoding="utf-8").splitlines(keepends=True)
    comments = list(itertools.takewhile(lambda line: line.startswith("# "), lines))
    for line in comments:
        key, separator, value = line[2:].partition(": ")
        if not separator:
            raise ValueError(f"{path} must have header lines '# key: JSON value', got {line.rstrip()!r}")
        header[key] = json.loads(value)
    return header, list(csv.DictReader(lines[len(comments) :]))


def is_current(path: Path, header: Mapping[str, object], *, but_for: str | None = None) -> bool:
    """Whether `path` was written with this very header, so that computing it again would change nothing.

    Args:
      path: of a CSV file, or of none.
      header: that it should have.
      but_for: a key whose value may be another, or missing.
    """
    if not path.is_file():
        return False
    try:
        found, rows = read_csv(path)
    except (ValueError, OSError):
        return False
    expected = json.loads(json.dumps(header))
    if but_for is not None:
        for one in (found, expected):
            one.pop(but_for, None)
    return bool(rows) and found == expected
