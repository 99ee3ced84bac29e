"""The README and the documentation run: each Python block, and each `exactdp` command written out."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
BLOCK = re.compile(r"^```(\w*)[^\n]*\n(.*?)^```", re.MULTILINE | re.DOTALL)
# Commands that take long (but for README's), and those that stand for a form rather than for one command.
SLOW = ("ladder", "check", "audit", "train", "psi-audit")
FORM = re.compile(r"…|\.\.\.|[\[\]<>|]|\b(DIR|FILE|NAME)\b|exactdp curves|\bclaims\.toml")


def blocks(page: Path) -> list[tuple[str, str]]:
    """Language and text of each fenced block."""
    return BLOCK.findall(page.read_text(encoding="utf-8"))


def commands(pages: list[Path]) -> list[str]:
    """Every command once, comments and line continuations removed."""
    found: dict[str, None] = {}
    for page in pages:
        if page.is_file():
            for language, text in blocks(page):
                if language in ("", "bash", "console", "sh", "shell", "text"):
                    for line in text.replace("\\\n", " ").splitlines():
                        command = line.removeprefix("$ ").split("  #")[0].strip()
                        if command.startswith("exactdp ") and not FORM.search(command):
                            found[" ".join(command.split())] = None
    return list(found)


def parameters() -> list[Any]:
    first = commands([ROOT / "README.md"])
    return [
        pytest.param(line, marks=pytest.mark.slow if line.split()[1] in SLOW and line not in first else ())
        for line in commands(PAGES)
    ]


def python_pages() -> list[Path]:
    return [page for page in PAGES if page.is_file() and any(kind == "python" for kind, _ in blocks(page))]


def test_there_is_something_to_run() -> None:
    assert commands(PAGES)
    assert python_pages()


@pytest.mark.parametrize("page", python_pages(), ids=lambda page: str(page.relative_to(ROOT)))
def test_python_blocks_run(page: Path, tmp_path: Path) -> None:
    # In one process a page, in order, as a reader would paste them; away from the tree.
    text = "\n".join(code for kind, code in blocks(page) if kind == "python")
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", text], cwd=tmp_path, capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("command", parameters())
def test_command_runs(command: str) -> None:
    words = shlex.split(command)[1:]
    done = subprocess.run(
        [sys.executable, "-c", "from exactdp.benchmarks.cli.main import run; run()", *words],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=600,
    )
    # `check` says by its exit status that a claim is violated; the gallery holds such claims.
    allowed = (0, 1) if words[0] == "check" else (0,)
    assert done.returncode in allowed, done.stderr
    assert done.stdout
    assert "Traceback" not in done.stderr
