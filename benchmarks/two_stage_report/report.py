"""Writes the report of a synthetic table: report.html, report.csv, and each figure as PDF and PNG."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from jaxtyping import Int

from exactdp.benchmarks.curves import store, style
from exactdp.benchmarks.two_stage_report import marginals, matrices, page, table
from exactdp.benchmarks.two_stage_report.guarantee import Guarantee
from exactdp.benchmarks.two_stage_report.measurement import Measurement
from exactdp.train.folder import owner_only
from exactdp.train.table_metrics.evaluate import Metrics
from exactdp.train.tables.schema import Schema


def write(
    directory: str | Path,
    *,
    metrics: Metrics,
    real_test: Int[np.ndarray, "rows columns"],
    synthetic: Int[np.ndarray, "others columns"],
    schema: Schema,
    guarantee: Guarantee,
    title: str,
    measurements: Sequence[Measurement] = (),
) -> list[Path]:
    """Writes all files, for their owner alone, since they show the real rows; returns their paths.

    Args:
      directory: made if it is not there.
      metrics: of the two tables.
      real_test: codes of held-out real rows.
      synthetic: codes.
      schema: of both.
      guarantee: of the run that made the table.
      title: of the page.
      measurements: further numbers for page and CSV file.

    Raises:
      ValueError: the directory cannot be written to.
    """
    with owner_only():
        folder = store.prepare_directory("directory", directory)
        figures, paths = _draw(folder, metrics, real_test, synthetic, schema)
        about = {
            **store.versions(),
            "title": title,
            "notice": page.NOTICE,
            "privacy": guarantee.sentence,
            "epsilon": [guarantee.epsilon.lower, guarantee.epsilon.upper] if guarantee.epsilon else None,
            "delta": guarantee.delta,
            "threat_model": guarantee.threat_model,
            "end_to_end": guarantee.end_to_end,
            "leaks": list(guarantee.leaks),
            "rows": dict(metrics.rows),
        }
        numbers, text = folder / "report.csv", folder / "report.html"
        store.write_csv(numbers, about, table.COLUMNS, table.rows(metrics, measurements))
        content = page.page(metrics, guarantee, figures, title=title, measurements=measurements)
        store.write_atomically(text, content.encode("utf-8", errors="replace"))
    return [text, numbers, *paths]


def _draw(
    folder: Path,
    metrics: Metrics,
    real: Int[np.ndarray, "rows columns"],
    synthetic: Int[np.ndarray, "others columns"],
    schema: Schema,
) -> tuple[list[tuple[str, bytes]], list[Path]]:
    """Caption and PNG of each figure, and the files."""
    figures: list[tuple[str, bytes]] = []
    paths: list[Path] = []
    with style.context(), warnings.catch_warnings():
        # A letter that no font has is drawn as a box.
        warnings.filterwarnings("ignore", message="Glyph .* missing")
        drawn = marginals.figures(real, synthetic, schema, overlaps=metrics.histograms[marginals.BINS])
        captions = [
            f"Marginal distributions, {k} of {len(drawn)}: held-out real rows dashed, synthetic rows filled."
            for k in range(1, len(drawn) + 1)
        ]
        stems = [f"marginals_{k}" for k in range(1, len(drawn) + 1)]
        if len(schema.columns) > 1:
            drawn.append(matrices.figure(metrics))
            captions.append(
                "Pairs of columns: association (Cramér's V, correlation ratio, |r|) among held-out real rows "
                "and among synthetic ones, their difference, and overlap of joint distributions."
            )
            stems.append("pairs")
        for figure, caption, stem in zip(drawn, captions, stems, strict=True):
            made = style.save(figure, folder / stem)
            figures.append((caption, next(path for path in made if path.suffix == ".png").read_bytes()))
            paths += made
    return figures, paths
