"""What to say when a package is missing that comes with an extra."""

from __future__ import annotations

import contextlib
from collections.abc import Generator


@contextlib.contextmanager
def needed(extra: str, *, to: str) -> Generator[None]:
    """Names the extra where a package other than this one is missing.

    Args:
      extra: that brings the packages used meanwhile.
      to: what they are needed for, a verb.

    Raises:
      ImportError: a package is missing.
    """
    try:
        yield
    except ModuleNotFoundError as error:
        if error.name is None or error.name.split(".")[0] == "exactdp":
            raise
        raise ImportError(
            f"{error.name} must be installed to {to}, it is not found: pip install 'exactdp[{extra}]'"
        ) from None
