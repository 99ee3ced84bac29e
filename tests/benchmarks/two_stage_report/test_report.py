"""The report: files, what stands in them, and that no text of a table becomes markup or a formula."""

from __future__ import annotations

import dataclasses
import html.parser
import re
import stat
from pathlib import Path

import numpy as np
import pytest

from exactdp.accounting.interval import Interval
from exactdp.benchmarks.curves import store, style
from exactdp.benchmarks.two_stage_report import marginals, matrices, page, report
from exactdp.benchmarks.two_stage_report.guarantee import Guarantee
from exactdp.benchmarks.two_stage_report.labels import shortened
from exactdp.benchmarks.two_stage_report.measurement import Measurement
from exactdp.train.table_metrics.evaluate import evaluate
from exactdp.train.table_metrics.validity import Validity
from exactdp.train.tables.schema import MISSING, Column, Schema
from tests.train.table_metrics.tables import SCHEMA, draw

GOOD = Guarantee(Interval(0.97, 0.99), 1e-5, "add or remove a row; the table is released", True)
LEAKY = dataclasses.replace(GOOD, end_to_end=False, leaks=("exact label frequencies <i>",))
NASTY = "<script>alert('$x^2_{')</script>"


class Reader(html.parser.HTMLParser):
    """Tags, attributes and text of a page."""

    def __init__(self, content: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str | None]] = []
        self.text = ""
        self.feed(content)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += attrs

    def handle_data(self, data: str) -> None:
        self.text += data + " "


def written(
    folder: Path, schema: Schema, tables: list[np.ndarray], guarantee: Guarantee = GOOD
) -> list[Path]:
    metrics = evaluate(
        tables[0], tables[1], schema, train=tables[-1], validity=Validity(100, 90, {"lacks <b>": 10})
    )
    return report.write(
        folder,
        metrics=metrics,
        real_test=tables[0],
        synthetic=tables[1],
        schema=schema,
        guarantee=guarantee,
        title="A table & its <copy>",
        measurements=[Measurement("perplexity of values", 2.5, "held-out real rows")],
    )


def test_the_page_says_what_matters(tmp_path: Path) -> None:
    paths = written(tmp_path / "out", SCHEMA, [draw(120, seed=1), draw(90, seed=2), draw(100, seed=3)])
    names = ["report.html", "report.csv", "marginals_1.pdf", "marginals_1.png", "pairs.pdf", "pairs.png"]
    assert [path.name for path in paths] == names
    assert all(stat.S_IMODE(path.stat().st_mode) == 0o600 for path in paths)
    content = paths[0].read_text(encoding="utf-8")
    found = Reader(content)
    assert found.text.index(page.NOTICE) < found.text.index("Metrics")
    assert "not covered by the certificate" in page.NOTICE
    for text in (GOOD.sentence, GOOD.threat_model, "No leak is known", "PRIVATE: training rows", "lacks <b>"):
        assert text in found.text
    assert "epsilon in [0.97, 0.99] at delta = 1e-05" in found.text
    # One file: pictures are inside, and nothing is fetched.
    sources = [value for name, value in found.attributes if name in ("src", "href")]
    assert len(sources) == 2 and all(str(source).startswith("data:image/png;base64,") for source in sources)
    assert {"script", "link", "iframe", "object", "copy", "b", "i"}.isdisjoint(found.tags)


def test_numbers_stand_in_the_csv_file(tmp_path: Path) -> None:
    tables = [draw(120, seed=1), draw(90, seed=2), draw(100, seed=3)]
    written(tmp_path, SCHEMA, tables, LEAKY)
    header, rows = store.read_csv(tmp_path / "report.csv")
    metrics = evaluate(tables[0], tables[1], SCHEMA)
    assert header["leaks"] == list(LEAKY.leaks) and header["end_to_end"] is False
    assert header["epsilon"] == [0.97, 0.99] and header["notice"] == page.NOTICE
    by_name = {(row["metric"], row["part"]): row for row in rows}
    assert len(by_name) == len(rows)
    assert float(by_name["Hist, 50 bins", ""]["value"]) == metrics.hist
    assert float(by_name["Pair, 50 bins", ""]["value"]) == metrics.pair
    assert float(by_name["CorAcc", ""]["value"]) == metrics.correlation_accuracy
    assert float(by_name["AUC", ""]["value"]) == pytest.approx(metrics.utility.mean.auc)  # type: ignore[union-attr]
    assert float(by_name["association, real", "job | age"]["value"]) == metrics.real_associations[0, 2]
    assert by_name["perplexity of values", ""]["value"] == "2.5"
    assert by_name["rows", "accepted"]["value"] == "90"
    assert all(row["computed_on"] for row in rows)


def test_texts_of_a_table_are_harmless(tmp_path: Path) -> None:
    schema = Schema(
        (
            Column(NASTY, "category", values=(NASTY, 'a"b\n\x01', "$\\frac{"), missing=True),
            Column("<img src=x onerror=y>", "float", minimum=0, maximum=50, decimals=1),
            Column("漢字 & $", "category", values=("漢", "$$")),
        ),
        "漢字 & $",
    )
    generator = np.random.default_rng(1)
    tables = [
        np.stack([generator.integers(0, 3, 60), generator.integers(0, 51, 60), np.arange(60) % 2], axis=1)
        for _ in range(3)
    ]
    content = written(tmp_path, schema, tables, LEAKY)[0].read_text(encoding="utf-8")
    found = Reader(content)
    assert "script" not in found.tags and found.tags.count("img") == 2
    assert not any(name.startswith("on") for name, _ in found.attributes)
    assert NASTY in found.text and "<img src=x onerror=y>" in found.text
    assert "NOT differentially private end to end" in found.text and LEAKY.leaks[0] in found.text
    assert re.search(r"Content-Security-Policy.*default-src 'none'", content)


def test_one_column_of_nothing(tmp_path: Path) -> None:
    schema = Schema((Column("n", "integer", minimum=0, maximum=9, missing=True),))
    nothing = np.full((3, 1), MISSING)
    paths = written(tmp_path, schema, [nothing, nothing], Guarantee(None, None, "none", False))
    assert [path.name for path in paths][2:] == ["marginals_1.pdf", "marginals_1.png"]
    content = Reader(paths[0].read_text(encoding="utf-8")).text
    assert "without a differential privacy guarantee" in content
    assert "none: a single column has no pair" in content and "none: the schema names no label" in content


def test_panels_show_the_shares() -> None:
    real, synthetic = draw(200, seed=1), draw(150, seed=2)
    metrics = evaluate(real, synthetic, SCHEMA)
    with style.context():
        (drawn,) = marginals.figures(real, synthetic, SCHEMA, overlaps=metrics.histograms[20])
        pairs = matrices.figure(metrics)
    shown = [axes for axes in drawn.axes if axes.get_title(loc="left")]
    assert [axes.get_title(loc="left") for axes in shown] == list(SCHEMA.names)
    assert all(axes.get_xlabel() for axes in shown)
    sex = shown[1]
    widths = sorted(bar.get_width() for bar in sex.patches)
    expected = [np.mean(table[:, 1] == code) for table in (real, synthetic) for code in (0, 1)]
    assert widths == pytest.approx(sorted(expected))
    ages = [patch.get_data() for patch in shown[2].patches]
    assert [data.values.sum() for data in ages] == pytest.approx([np.mean(
        (synthetic[:, 2] >= real[:, 2].min()) & (synthetic[:, 2] <= real[:, 2].max())
    ), 1.0])  # fmt: skip
    assert [axes.get_title() for axes in pairs.axes[:4]] == [
        "held-out real rows", "synthetic rows", "difference", "joint distributions",
    ]  # fmt: skip
    np.testing.assert_array_equal(pairs.axes[0].images[0].get_array(), metrics.real_associations)


def test_few_codes_have_a_bar_each() -> None:
    schema = Schema((Column("n", "integer", minimum=0, maximum=900),))
    codes = np.array([[3], [3], [4], [6]])
    with style.context():
        (drawn,) = marginals.figures(codes, codes, schema, overlaps=np.ones(1))
    values, edges, _ = drawn.axes[0].patches[0].get_data()
    assert values.tolist() == [0.5, 0.25, 0.0, 0.25] and edges.tolist() == [2.5, 3.5, 4.5, 5.5, 6.5]


def test_many_columns_take_several_figures() -> None:
    columns = tuple(Column(f"column {k}", "category", values=("a", "b")) for k in range(33))
    codes = np.random.default_rng(1).integers(0, 2, (20, 33))
    schema = Schema(columns)
    with style.context():
        drawn = marginals.figures(codes, codes, schema, overlaps=np.ones(33))
        pairs = matrices.figure(evaluate(codes, codes, schema))
    assert [sum(bool(a.get_title(loc="left")) for a in figure.axes) for figure in drawn] == [15, 15, 3]
    assert pairs.axes[0].get_xlabel() == "number of the column"


def test_names_are_shortened_and_printable() -> None:
    assert shortened("Married-civ-spouse") == "Married-civ-spouse"
    assert shortened("abcdefghij", 6) == "abc\N{HORIZONTAL ELLIPSIS}ij"
    assert shortened("a\nb\x00") == "a\N{REPLACEMENT CHARACTER}b\N{REPLACEMENT CHARACTER}"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((Interval(1, 1), 1e-5, "x", True, ("leak",)), "end_to_end must be false where there are leaks"),
        ((None, None, "x", True), "end_to_end must be false where nothing is certified"),
        ((Interval(1, 1), None, "x", False), "epsilon and delta must come together"),
    ],
)
def test_a_guarantee_does_not_contradict_itself(arguments: tuple[object, ...], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Guarantee(*arguments)  # type: ignore[arg-type]
