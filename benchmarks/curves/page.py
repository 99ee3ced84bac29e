"""index.html: the figures and ladder tables of a directory, drawn up from the files alone."""

from __future__ import annotations

import html
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from exactdp.benchmarks.curves import ladders, store

_STYLE = """
body { font: 16px/1.5 Georgia, 'Times New Roman', serif; max-width: 68em; margin: 2em auto; padding: 0 1em;
       color: #111; background: #fff; }
h1, h2, h3 { line-height: 1.2; }
table { border-collapse: collapse; font-size: 0.86em; width: 100%; }
caption { text-align: left; padding: 0.4em 0; }
th, td { text-align: left; vertical-align: top; padding: 0.3em 0.7em 0.3em 0; border-bottom: 1px solid #ddd; }
td.number { font-variant-numeric: tabular-nums; white-space: nowrap; }
td small { color: #555; display: block; }
figure { margin: 1.5em 0; }
figure img { max-width: 100%; height: auto; }
figcaption, .made { font-size: 0.86em; color: #444; }
.panels { display: flex; flex-wrap: wrap; gap: 1em; }
.panels figure { flex: 1 1 26em; margin: 0; }
"""

_HOW_TO_READ = """
<p>Each curve is one rung of a paper's ladder: the bound <em>as printed</em> (dashed), with defects
<em>repaired</em> (dash-dotted), and numerically <em>exact</em> (solid). An exact value is a certified
interval, drawn as a band; it is mostly thinner than the line. The legend names the threat model of every
rung: numbers of different threat models are shown side by side and are not bounds on one another. A thin
vertical line marks the paper's own value, where it has one.</p>
"""


def write(directory: Path) -> Path:
    """Writes index.html for the papers whose files are in `directory`; returns its path.

    Links are relative, so that the directory can be moved; nothing is loaded from elsewhere.
    """
    found = [paper for paper in ladders.PAPERS if (directory / f"{paper}_ladder.csv").is_file()]
    parts = [_paper(directory, paper) for paper in found]
    made = ""
    if found:
        header, _ = store.read_csv(directory / f"{found[0]}_ladder.csv")
        versions = ", ".join(f"{name} {header[name]}" for name in store.versions() if name in header)
        made = f'<p class="made">Made by <code>exactdp curves</code>: {html.escape(versions)}.</p>'
    contents = " · ".join(f'<a href="#{paper}">{html.escape(ladders.TITLES[paper])}</a>' for paper in found)
    text = (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>Printed and exact privacy bounds</title>\n<style>{_STYLE}</style>\n</head>\n<body>\n"
        f"<h1>Printed and exact privacy bounds</h1>\n<p>{contents}</p>\n{_HOW_TO_READ}\n"
        + "\n".join(parts)
        + f"\n{made}\n</body>\n</html>\n"
    )
    path = directory / "index.html"
    store.write_atomically(path, text.encode())
    return path


def _paper(directory: Path, paper: str) -> str:
    header, rows = store.read_csv(directory / f"{paper}_ladder.csv")
    parts = [
        f'<section id="{paper}">',
        f"<h2>{html.escape(ladders.TITLES[paper])}, {html.escape(str(header['arxiv']))}</h2>",
        _table(rows, header["parameters"]),
        f'<p><a href="{paper}_ladder.csv">Ladder as CSV</a></p>',
        _figure(paper, f"All four panels of {ladders.TITLES[paper]}."),
        '<div class="panels">',
    ]
    for path in sorted(directory.glob(f"{paper}_*.csv")):
        if path.name != f"{paper}_ladder.csv":
            about, panel_rows = store.read_csv(path)
            parts.append(_figure(path.stem, _caption(about, panel_rows), path.name))
    return "\n".join([*parts, "</div>\n</section>"])


def _table(rows: Sequence[store.Row], parameters: Any) -> str:
    body = []
    filled = any(row["kind"] == "audited" and row["lower"] for row in rows)
    for row in rows:
        if filled and row["kind"] == "audited" and not row["lower"]:
            continue  # the open rung, which audits fill
        ends = [float(row[end]) if row[end] else None for end in ("lower", "upper")]
        named = (
            ("corrects", "Corrects: "),
            ("quantities", ""),
            ("note", ""),
            ("reason", "No value: "),
            ("source", ""),
        )
        remarks = [f"{prefix}{row[key]}" for key, prefix in named if row[key]]
        small = "".join(f"<small>{html.escape(remark)}</small>" for remark in remarks)
        threat = f"{row['adjacency']}, coins {row['coins']}<small>{html.escape(row['released'])}</small>"
        body.append(
            f"<tr><td>{html.escape(row['rung'])}{small}</td><td>{row['kind']}</td>"
            f'<td class="number">{html.escape(ladders.cell(*ends))}</td><td>{threat}</td></tr>'
        )
    return (
        f"<table>\n<caption>The ladder at {html.escape(_parameters(parameters))}</caption>\n"
        "<thead><tr><th>rung</th><th>kind</th><th>ε</th><th>threat model</th></tr></thead>\n<tbody>\n"
        + "\n".join(body)
        + "\n</tbody></table>"
    )


def _caption(header: dict[str, Any], rows: Sequence[store.Row]) -> str:
    """What is drawn, at which parameters, and which rungs have no value there."""
    missing = {row["rung"]: row["reason"] for row in rows if not row["upper"]}
    for row in rows:
        if row["upper"]:
            missing.pop(row["rung"], None)
    x = str(header["x_label"]).replace("$", "").replace("\\", "")
    text = f"Against {x}; {_parameters(header['parameters'])}."
    for audit in header.get("audits", ()):
        text += (
            f" Mark with an arrow: audited lower bound, {100.0 * audit['confidence']:g} % "
            f"{audit['certainty']}, from {audit['file']}."
        )
    if missing:
        text += " Not drawn: " + "; ".join(f"{rung} ({reason})" for rung, reason in missing.items()) + "."
    return text


def _parameters(parameters: dict[str, Any]) -> str:
    return ", ".join(
        f"{name} = {value if isinstance(value, str) else json.dumps(value)}"
        for name, value in parameters.items()
        if value is not None
    )


def _figure(stem: str, caption: str, csv: str | None = None) -> str:
    links = f'<a href="{stem}.pdf">PDF</a>' + (f', <a href="{csv}">CSV</a>' if csv else "")
    return (
        f'<figure><img src="{stem}.png" alt="{html.escape(caption, quote=True)}">'
        f"<figcaption>{html.escape(caption)} {links}</figcaption></figure>"
    )
