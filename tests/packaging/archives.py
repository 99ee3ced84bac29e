"""Checks an sdist and a wheel: every module and data file of the tree, as a file, and nothing else.

Usage: python archives.py REPOSITORY SDIST WHEEL
"""

from __future__ import annotations

import sys
import tarfile
import zipfile
from pathlib import Path

FOLDERS = ("accounting", "mechanisms", "train", "benchmarks")
SUFFIXES = (".py", ".toml", ".json", ".csv")


def expected_files(root: Path) -> set[str]:
    """What the package consists of, as paths from the folder `exactdp`."""
    found = {
        path.relative_to(root).as_posix()
        for folder in FOLDERS
        for path in (root / folder).rglob("*")
        if path.suffix in SUFFIXES and path.is_file() and "__pycache__" not in path.parts
    }
    return {f"exactdp/{name}" for name in found} | {"exactdp/__init__.py", "exactdp/py.typed"}


def check(kind: str, wanted: set[str], present: set[str]) -> None:
    """Exits with a message unless both sets are equal."""
    missing, extra = sorted(wanted - present), sorted(present - wanted)
    if missing or extra:
        sys.exit(f"{kind}: missing {missing[:10]}, unexpected {extra[:10]}")


def main(root: Path, sdist: Path, wheel: Path) -> None:
    """Compares both archives with the tree."""
    wanted = expected_files(root)
    with zipfile.ZipFile(wheel) as archive:
        files = {name for name in archive.namelist() if not name.endswith("/")}
        licences = [name for name in files if name.endswith(".dist-info/licenses/LICENSE")]
        entry = [name for name in files if name.endswith(".dist-info/entry_points.txt")]
        if len(licences) != 1 or len(entry) != 1:
            sys.exit(f"wheel: needs one LICENSE and one entry_points.txt, got {licences + entry}")
        check("wheel", wanted, {name for name in files if ".dist-info/" not in name})
    with tarfile.open(sdist) as archive:
        members = archive.getmembers()
        links = [member.name for member in members if member.issym()]
        if links:
            sys.exit(f"sdist: has symbolic links {links[:10]}")
        inside = {member.name.partition("/src/")[2] for member in members if not member.isdir()}
        check("sdist", wanted, {name for name in inside if name.startswith("exactdp/")})
    print(f"{sdist.name}, {wheel.name}: {len(wanted)} files each, all there and nothing else")


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:4]))
