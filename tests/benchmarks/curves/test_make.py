"""`exactdp curves` as a whole, on ladders with known numbers."""

from __future__ import annotations

import re
import shutil
from pathlib import Path
from typing import Any

import pytest

from exactdp.benchmarks.curves import compute, figure, make, panels, store, tradeoffs

Calls = list[tuple[str, dict[str, Any]]]
PANELS = ("num_steps", "delta", "scaling", "tradeoff")


@pytest.fixture
def made(tmp_path: Path, finished: Path, calls: Calls) -> Path:
    """A copy of a finished directory, time stamps included."""
    return Path(shutil.copytree(finished, tmp_path / "curves"))


def test_what_is_written(made: Path) -> None:
    stems = ["dirichlet", *(f"dirichlet_{name}" for name in PANELS)]
    expected = {f"{stem}{suffix}" for stem in stems for suffix in (".csv", ".pdf", ".png")}
    expected = expected - {"dirichlet.csv"} | {"dirichlet_ladder.csv", "index.html"}
    assert {path.name for path in made.iterdir()} == expected


def test_the_csv_says_what_made_it(made: Path) -> None:
    header, rows = store.read_csv(made / "dirichlet_num_steps.csv")
    assert {**header, **store.versions()} == header
    assert header["arxiv"] == "arXiv 2607.19580v1"
    assert header["parameters"] == {
        "delta": 1e-5,
        "sampling_probability": 0.01,
        "noise_multiplier": 1.0,
        "scaling": 0.2,
        "offset": 3.0,
    }
    assert [float(row["x"]) for row in rows if row["rung"] == "exact"] == [100.0, 1000.0, 10_000.0]
    exact = {float(row["x"]): float(row["lower"]) for row in rows if row["rung"] == "exact"}
    assert exact[10_000.0] == pytest.approx(10.0 * exact[100.0])
    assert {row["reason"] for row in rows if row["rung"] == "audited"} == {"no audit yet"}


def test_finished_files_are_used_again(made: Path, calls: Calls) -> None:
    before = {path: path.stat().st_mtime_ns for path in made.iterdir() if path.name != "index.html"}
    make.make(made, ["dirichlet"])
    assert calls == []
    assert {path: path.stat().st_mtime_ns for path in before} == before


def test_an_interrupted_run_goes_on(made: Path, calls: Calls) -> None:
    (made / "dirichlet_delta.csv").unlink()
    (made / "dirichlet_tradeoff.png").unlink()
    untouched = (made / "dirichlet_scaling.pdf").stat().st_mtime_ns
    make.make(made, ["dirichlet"])
    assert [sorted(parameters) for _, parameters in calls] == [["delta"]] * 3
    assert (made / "dirichlet_delta.csv").is_file() and (made / "dirichlet_tradeoff.png").is_file()
    assert (made / "dirichlet_scaling.pdf").stat().st_mtime_ns == untouched


@pytest.mark.parametrize("old", ['"exactdp"', '"delta": 1e-05'])
def test_other_versions_and_parameters_are_computed_again(
    made: Path, calls: Calls, old: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(make, "_draw", lambda *_: None)
    path = made / "dirichlet_num_steps.csv"
    text = path.read_text()
    changed = (
        text.replace('# exactdp: "', '# exactdp: "0')
        if old == '"exactdp"'
        else text.replace(old, '"delta": 1e-06')
    )
    assert changed != text
    path.write_text(changed)
    make.make(made, ["dirichlet"])
    assert len(calls) == 3
    assert path.read_text() == text


def test_fresh_computes_everything(made: Path, calls: Calls, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(make, "_draw", lambda *_: None)
    make.make(made, ["dirichlet"], fresh=True)
    assert len(calls) > 10


def test_a_failure_keeps_what_was_finished(
    tmp_path: Path, calls: Calls, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(tradeoffs, "rows", fail)
    with pytest.raises(KeyboardInterrupt):
        make.make(tmp_path, ["dirichlet"])
    names = {path.name for path in tmp_path.iterdir()}
    assert names == {f"dirichlet_{name}.csv" for name in ("ladder", "num_steps", "delta", "scaling")}


def test_figures_come_from_the_csv_alone(made: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    copy = tmp_path / "copy"
    copy.mkdir()
    paths = [Path(shutil.copy(made / f"dirichlet_{name}.csv", copy)) for name in PANELS]
    monkeypatch.setattr(compute, "rows", None)
    monkeypatch.setattr(panels, "of", None)
    for path in paths:
        pdf, png = figure.draw_panel(path)
        assert png.read_bytes() == (made / png.name).read_bytes()
        assert pdf.read_bytes() == (made / pdf.name).read_bytes()
    figure.draw_paper(paths, copy / "dirichlet")
    assert (copy / "dirichlet.png").read_bytes() == (made / "dirichlet.png").read_bytes()


def test_pdf_fonts_can_be_edited(made: Path) -> None:
    content = (made / "dirichlet_delta.pdf").read_bytes()
    assert b"/Type3" not in content
    assert b"/FontFile2" in content or b"/Type42" in content or b"/CIDFontType2" in content


def test_the_page_is_self_contained(made: Path) -> None:
    text = (made / "index.html").read_text()
    links = re.findall(r'(?:src|href)="([^"]+)"', text)
    assert links and not any(link.startswith(("http", "/", "//")) for link in links)
    assert all((made / link).is_file() for link in links if not link.startswith("#"))
    assert "order = 12" in text
    assert "a note with &lt;angle brackets&gt;" in text
    assert "audited (no audit yet)" in text


def test_an_exact_rung_has_its_whole_curve(made: Path) -> None:
    _, rows = store.read_csv(made / "dirichlet_tradeoff.csv")
    exact = {
        float(row["x"]): (float(row["lower"]), float(row["upper"])) for row in rows if row["rung"] == "exact"
    }
    for fpr, fnr in ((0.01, 0.907638), (0.1, 0.610857), (0.5, 0.158655)):  # Phi(Phi^-1(1 - fpr) - 1)
        assert exact[fpr][0] - 1e-6 <= fnr <= exact[fpr][1] + 1e-6
    assert exact[0.0] == (1.0, 1.0)


def test_no_two_threat_models_look_alike(made: Path) -> None:
    _, rows = store.read_csv(made / "dirichlet_num_steps.csv")
    every = figure.series(rows)
    assert [one.label for one in every] == [
        "as printed (add/remove, hidden coins)",
        "repaired (add/remove, hidden coins)",
        "exact (add/remove, hidden coins)",
        "exact, seen (replace, label public, visible coins)",
    ]
    look = figure.styles(every)
    assert len(set(look.values())) == len(every)


@pytest.mark.parametrize(
    ("fpr", "epsilon", "delta", "fnr"),
    [
        (0.0, 1.0, 0.0, 1.0),
        (0.0, 1.0, 0.1, 0.9),
        (0.1, 0.0, 0.0, 0.9),
        (0.1, 0.6931471805599453, 0.0, 0.8),
        (0.5, 0.6931471805599453, 0.0, 0.25),
        (1.0, 1.0, 0.0, 0.0),
        (0.5, float("inf"), 0.0, 0.0),
        (0.0, float("inf"), 0.1, 0.9),
    ],
)
def test_what_epsilon_and_delta_guarantee(fpr: float, epsilon: float, delta: float, fnr: float) -> None:
    assert tradeoffs.guaranteed(fpr, epsilon=epsilon, delta=delta) == pytest.approx(fnr, abs=1e-15)


def test_a_bound_that_explodes_leaves_the_panel_and_is_named() -> None:
    def one(rung: str, kind: str, values: list[float]) -> figure.Series:
        rows = [
            {
                "x": str(x),
                "rung": rung,
                "kind": kind,
                "adjacency": "add_remove",
                "coins": "hidden",
                "lower": str(y),
                "upper": str(y),
            }
            for x, y in enumerate(values)
        ]
        return figure.Series(rows)

    exact, near, far = (
        one("e", "exact", [1.0, 2.0]),
        one("n", "printed", [3.0, 900.0]),
        one("f", "printed", [1e8, 1e9]),
    )
    assert figure.ceiling([exact, one("m", "printed", [3.0, 4.0])]) == float("inf")
    assert figure.ceiling([exact, near, far]) == 10.0
    every = [exact, near, far]
    labels = [entry.get_label() for entry in figure.handles(every, [every], figure.styles(every))]
    assert [str(label).endswith(": beyond the panel") for label in labels] == [False, False, True]
