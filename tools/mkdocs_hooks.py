"""Hooks of the documentation: navigation in a fixed order, API pages, and pages kept at the top of the tree.

A page that stands in `docs` and is not named in `ORDER` follows those that are, alphabetically; a name in
`ORDER` without its page is left out. So adding a page needs no change here.
"""

from __future__ import annotations

import pkgutil
from pathlib import Path
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files

ROOT = Path(__file__).resolve().parent.parent
ORDER: dict[str, tuple[str, ...]] = {
    "": ("index.md", "cli.md", "guarantees.md", "sharp_edges.md", "audits.md"),
    "papers": (
        "dirichlet.md",
        "dirichlet_training.md",
        "feature.md",
        "feature_training.md",
        "feature_diffusion.md",
        "feature_attacks.md",
        "two_stage.md",
        "two_stage_training.md",
    ),
    "accountants": ("pairs.md", "prv.md", "rdp.md", "fdp.md", "calibrate.md", "ledger.md", "worst_pair.md"),
    "training": ("overview.md", "runs.md", "sources.md", "tables.md"),
    "mechanisms": ("clipping.md", "batches.md", "noise.md", "dirichlet.md", "statistics.md"),
}
TITLES = {"papers": "The three papers", "api": "Reference", "": "exactdp"}
PACKAGES = ("accounting", "mechanisms", "train")
COPIES = {"contributing.md": "CONTRIBUTING.md", "changelog.md": "CHANGELOG.md"}


def api_packages() -> list[str]:
    """Names of what the packages contain directly: one page each."""
    return [
        f"exactdp.{package}.{found.name}"
        for package in PACKAGES
        for found in pkgutil.iter_modules([str(ROOT / package)])
        if not found.name.startswith("_")
    ]


def on_files(files: Files, *, config: MkDocsConfig) -> Files:
    """Adds the pages that no file in `docs` holds."""
    for name in api_packages():
        text = f"# {name.partition('.')[2]}\n\n::: {name}\n"
        files.append(File.generated(config, f"api/{name}.md", content=text))
    for page, source in COPIES.items():
        if (ROOT / source).is_file():
            text = (ROOT / source).read_text(encoding="utf-8")
            files.append(File.generated(config, page, content=text))
    config.nav = navigation({file.src_uri for file in files.documentation_pages()})
    return files


def navigation(pages: set[str]) -> list[Any]:
    """The menu: the pages of the top folder, then a section for each other folder."""
    by_folder: dict[str, list[str]] = {}
    for page in sorted(pages):
        by_folder.setdefault(page.rpartition("/")[0], []).append(page)
    menu: list[Any] = []
    for folder in sorted(
        by_folder,
        key=lambda name: (name != "", name == "api", list(ORDER).index(name) if name in ORDER else 99),
    ):
        first = [f"{folder}/{name}".lstrip("/") for name in ORDER.get(folder, ())]
        listed = [page for page in first if page in by_folder[folder]]
        listed += [page for page in by_folder[folder] if page not in listed]
        title = TITLES.get(folder, folder.replace("_", " ").replace("/", ": ").capitalize())
        menu.extend(listed if folder == "" else [{title: listed}])
    return menu
