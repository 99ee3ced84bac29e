"""Where data sets lie: the folder given, or that of the environment variable EXACTDP_DATA."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

VARIABLE = "EXACTDP_DATA"


def given(root: str | Path | None) -> Path | None:
    """The data root: `root`, else the folder that EXACTDP_DATA names, else None."""
    text = os.environ.get(VARIABLE, "") if root is None else str(root)
    return Path(text).expanduser() if text else None


def find(name: str, *, root: str | Path | None, candidates: Iterable[str], how: str) -> Path:
    """The first of `candidates`, taken from the data root, that exists.

    Args:
      name: of the data set, for the message.
      root: the data root; None for the environment variable EXACTDP_DATA.
      candidates: paths relative to the root.
      how: one sentence on how to get the data.

    Raises:
      ValueError: no root is given, it is no folder, or it holds none of the candidates.
    """
    folder = given(root)
    wanted = list(candidates)
    if folder is None:
        raise ValueError(
            f"{name}: the environment variable {VARIABLE} (in Python, root) must name a folder with "
            f"{' or '.join(wanted)}, it is not set. {how}"
        )
    if not folder.is_dir():
        raise ValueError(f"{name}: the data root must be a folder, got {folder}. {how}")
    for candidate in wanted:
        if (folder / candidate).exists():
            return folder / candidate
    raise ValueError(f"{name}: the data root {folder} must hold {' or '.join(wanted)}, there is none. {how}")
