"""Run by Bazel: accounting depends on no other folder of ours, and cannot import one.

Usage: accounting_boundary.py CLOSURE   (a file with the labels that accounting depends on, one a line)
"""

from __future__ import annotations

import importlib
import sys
from pathlib import Path

OTHERS = ("train", "mechanisms", "benchmarks")


def main(labels: list[str]) -> None:
    """Exits with a message when the boundary has a hole."""
    own = [label for label in labels if label.startswith("//src/exactdp/accounting")]
    if len(own) < 10:
        sys.exit(f"the closure names only {len(own)} targets of accounting: {labels[:10]}")
    seen = [
        label for label in labels if label.startswith(tuple(f"//src/exactdp/{other}" for other in OTHERS))
    ]
    if seen:
        sys.exit(f"accounting depends on {seen}")
    for other in OTHERS:
        try:
            importlib.import_module(f"exactdp.{other}")
        except ModuleNotFoundError:
            continue
        sys.exit(f"exactdp.{other} is importable beside accounting")
    for label in own:
        if label.endswith(".py") and "bridges" not in label:
            name = label.removeprefix("//src/").removesuffix(".py").replace("/", ".").replace(":", ".")
            importlib.import_module(name.removesuffix(".__init__"))
    print(f"{len(own)} targets of accounting, none of {', '.join(OTHERS)}")


if __name__ == "__main__":
    main(Path(sys.argv[1]).read_text(encoding="utf-8").split())
