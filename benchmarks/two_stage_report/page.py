"""The report as one HTML page that needs no other file; every text in it is escaped."""

from __future__ import annotations

import base64
import html
import itertools
from collections.abc import Iterable, Sequence

import numpy as np

from exactdp.benchmarks.two_stage_report import table
from exactdp.benchmarks.two_stage_report.guarantee import Guarantee
from exactdp.benchmarks.two_stage_report.measurement import Measurement
from exactdp.train.table_metrics.evaluate import BINS, TRAINING, Metrics

NOTICE = (
    "The numbers and figures below are computed on held-out real rows, without noise. They are not covered "
    "by the certificate of the synthetic table: keep this report as private as those rows."
)

_MOST = 20  # pairs listed

_STYLE = """
body { font: 15px/1.45 Georgia, serif; max-width: 62rem; margin: 2rem auto; padding: 0 1rem; color: #111; }
h1 { font-size: 1.5rem; } h2 { font-size: 1.15rem; margin-top: 2rem; }
.notice { border: 2px solid #D55E00; padding: .6rem .9rem; font-weight: bold; }
table { border-collapse: collapse; margin: .6rem 0; } caption { text-align: left; font-style: italic; }
th, td { text-align: left; padding: .15rem .9rem .15rem 0; border-bottom: 1px solid #ccc; }
th, td { vertical-align: top; }
td.number { text-align: right; font-variant-numeric: tabular-nums; white-space: nowrap; }
td.word { overflow-wrap: anywhere; }
figure { margin: 1rem 0; } img { max-width: 100%; } figcaption { font-size: .9rem; }
"""


def page(
    metrics: Metrics,
    guarantee: Guarantee,
    figures: Sequence[tuple[str, bytes]],
    *,
    title: str,
    measurements: Sequence[Measurement] = (),
) -> str:
    """The page.

    Args:
      metrics: of the table.
      guarantee: of the run that made it.
      figures: caption and PNG of each.
      title: of the report.
      measurements: further numbers.
    """
    sections = [
        f"<h1>{_safe(title)}</h1>",
        f'<p class="notice">{_safe(NOTICE)}</p>',
        *_guarantee(guarantee),
        "<h2>Metrics</h2>",
        _counts(metrics),
        _headline(metrics, measurements),
        *_classifiers(metrics),
        *_closest(metrics),
        *_validity(metrics),
        "<h2>Figures</h2>",
        *(_figure(caption, picture) for caption, picture in figures),
        "<h2>Columns</h2>",
        _columns(metrics),
        *_pairs(metrics),
    ]
    body = "\n".join(sections)
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        # Should anything slip through all the same, it is not run and nothing is fetched.
        '<meta http-equiv="Content-Security-Policy" content="default-src \'none\'; img-src data:; '
        "style-src 'unsafe-inline'\">\n"
        f"<title>{_safe(title)}</title>\n<style>{_STYLE}</style>\n</head>\n<body>\n{body}\n</body>\n</html>\n"
    )


def _safe(text: object) -> str:
    return html.escape(str(text), quote=True)


def _table(caption: str, head: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """Floats and counts stand to the right."""
    lines = ["<tr>" + "".join(f"<th>{_safe(name)}</th>" for name in head) + "</tr>"]
    for row in rows:
        cells = "".join(
            f'<td class="number">{_safe(_number(cell))}</td>'
            if isinstance(cell, (int, float))
            else f'<td class="word">{_safe(cell)}</td>'
            for cell in row
        )
        lines.append(f"<tr>{cells}</tr>")
    return f"<table><caption>{_safe(caption)}</caption>{''.join(lines)}</table>"


def _number(value: float) -> str:
    if isinstance(value, int):
        return f"{value:,}".replace(",", "\N{NARROW NO-BREAK SPACE}")
    return f"{value:.4f}" if 1e-3 <= abs(value) < 1e3 or value == 0.0 else f"{value:.4g}"


def _guarantee(guarantee: Guarantee) -> list[str]:
    found = [
        "<h2>Privacy</h2>",
        f"<p>{_safe(guarantee.sentence)}</p>",
        f"<p>Threat model: {_safe(guarantee.threat_model)}</p>",
    ]
    if guarantee.epsilon is not None:
        ends = [
            ["epsilon, lower end", guarantee.epsilon.lower],
            ["epsilon, upper end", guarantee.epsilon.upper],
        ]
        found.append(
            _table(
                "The certified interval contains the exact epsilon; quote the upper end.",
                ("", ""),
                [*ends, ["delta", guarantee.delta]],
            )
        )
    leaks = "".join(f"<li>{_safe(leak)}</li>" for leak in guarantee.leaks)
    found.append(f"<p>Not covered by it:</p><ul>{leaks}</ul>" if leaks else "<p>No leak is known.</p>")
    return found


def _counts(metrics: Metrics) -> str:
    names = {"real_test": "held-out real rows", "synthetic": "synthetic rows", "train": "training rows"}
    counts = [[names[name], count] for name, count in metrics.rows.items()]
    return _table("Tables", ("", "rows"), [*counts, ["columns", len(metrics.columns)]])


def _headline(metrics: Metrics, measurements: Sequence[Measurement]) -> str:
    rows: list[Sequence[object]] = [
        (name, value if value is not None else f"none: {reason}", computed)
        for name, value, computed, reason in table.headline(metrics)
    ]
    rows += [(one.name, one.value, one.computed_on) for one in measurements]
    caption = "1 is best in all but those that name a unit."
    return _table(caption, ("metric", "value", "computed on"), rows)


def _classifiers(metrics: Metrics) -> list[str]:
    if metrics.utility.mean is None:
        return []
    rows = [(one.classifier, one.f1, one.auc, one.accuracy) for one in metrics.utility.parts]
    caption = (
        f"Classifiers of {metrics.utility.label!r}, trained on {metrics.utility.trained} synthetic rows, "
        f"tested on {metrics.utility.tested} held-out real ones"
    )
    return [_table(caption, ("classifier", "F1", "AUC", "accuracy"), rows)]


def _closest(metrics: Metrics) -> list[str]:
    if metrics.closest is None:
        return []
    return [_table(f"Closest training record. {TRAINING}", ("", ""), table.closest(metrics))]


def _validity(metrics: Metrics) -> list[str]:
    counts = table.generated(metrics)
    return [_table("Generated rows", ("", "rows"), counts)] if counts else []


def _figure(caption: str, picture: bytes) -> str:
    data = base64.b64encode(picture).decode("ascii")
    text = _safe(caption)
    image = f'<img alt="{text}" src="data:image/png;base64,{data}">'
    return f"<figure>{image}<figcaption>{text}</figcaption></figure>"


def _columns(metrics: Metrics) -> str:
    rows = [
        (place + 1, name, *(float(values[place]) for values in metrics.histograms.values()))
        for place, name in enumerate(metrics.columns)
    ]
    head = ("number", "column", *(f"overlap, {bins} bins" for bins in metrics.histograms))
    return _table("Overlap of each column's histograms", head, rows)


def _pairs(metrics: Metrics) -> list[str]:
    names = metrics.columns
    places = list(itertools.combinations(range(len(names)), 2))
    if not places:
        return []
    gaps = [abs(metrics.synthetic_associations[at] - metrics.real_associations[at]) for at in places]
    worst = [places[k] for k in np.argsort(-np.array(gaps), kind="stable")[:_MOST]]
    rows = [
        (
            names[at[0]],
            names[at[1]],
            float(metrics.real_associations[at]),
            float(metrics.synthetic_associations[at]),
            float(metrics.pairs[at]),
        )
        for at in worst
    ]
    head = ("column", "column", "association, real", "association, synthetic", f"overlap, {BINS[0]} bins")
    return [_table(f"The {len(rows)} pairs whose associations differ most", head, rows)]
