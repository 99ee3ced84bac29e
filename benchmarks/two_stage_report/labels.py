"""Names of columns and values as they can stand in a figure."""

from __future__ import annotations

from matplotlib.text import Text

_LONGEST = 18


def shortened(name: str, longest: int = _LONGEST) -> str:
    """What can be printed of a name, its middle left out where it is long."""
    clean = "".join(letter if letter.isprintable() else "\N{REPLACEMENT CHARACTER}" for letter in name)
    if len(clean) <= longest:
        return clean
    head = (longest - 1) // 2
    return f"{clean[: longest - 1 - head]}\N{HORIZONTAL ELLIPSIS}{clean[-head:]}"


def literal(*texts: Text) -> None:
    """Texts in which a dollar sign is a dollar sign and begins no formula."""
    for text in texts:
        text.set_parse_math(False)
