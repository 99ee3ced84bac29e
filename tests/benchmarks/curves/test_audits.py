"""`exactdp curves --audit`: where results stand, what is refused, and what is computed again."""

from __future__ import annotations

import math
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from exactdp.accounting.audit.result import AuditResult
from exactdp.accounting.ladder.dirichlet_setting import REPLACE_WEIGHTS
from exactdp.accounting.ladder.feature_setting import REPLACE
from exactdp.accounting.ladder.two_stage_setting import END_TO_END
from exactdp.accounting.threat import Adjacency, Coins, ThreatModel
from exactdp.benchmarks.cli import main
from exactdp.benchmarks.curves import audits, compute, figure, ladders, make, marks, panels, store
from exactdp.benchmarks.curves.audits import Audit

Calls = list[tuple[str, dict[str, Any]]]

MODEL = ThreatModel(Adjacency.ADD_REMOVE, Coins.HIDDEN, "everything")
OTHER = ThreatModel(Adjacency.ADD_REMOVE, Coins.HIDDEN, "something else")
SETTING = {"scaling": 0.2, "offset": 3.0, "sampling_probability": 0.01, "num_steps": 1000.0}
PANELS = ("num_steps", "delta", "scaling", "tradeoff")


@pytest.fixture
def redrawn(monkeypatch: pytest.MonkeyPatch) -> list[set[str]]:
    """For each call of `make`, the names of the CSV files whose figures it would draw; it draws none."""
    names: list[set[str]] = []

    def draw(_: Path, __: list[str], new: set[Path]) -> None:
        names.append({path.name for path in new})

    monkeypatch.setattr(make, "_draw", draw)
    return names


@pytest.fixture
def made(tmp_path: Path, finished: Path, calls: Calls, redrawn: list[set[str]]) -> Path:
    """A copy of a finished directory without audits."""
    return Path(shutil.copytree(finished, tmp_path / "curves"))


def stored(folder: Path, name: str = "weights.json", **changes: Any) -> Path:
    values: dict[str, Any] = {
        "epsilon_lower": 2.5,
        "confidence": 0.95,
        "delta": 1e-5,
        "trials": 1000,
        "method": "by hand",
        "threat_model": MODEL,
        "parameters": SETTING,
    }
    path = folder / name
    AuditResult(**(values | changes)).save(path)
    return path


def read(*files: Path) -> list[Audit]:
    return audits.read(files, papers=["dirichlet"])


def placed(made: Path, name: str) -> list[tuple[float, float, float]]:
    _, rows = store.read_csv(made / f"dirichlet_{name}.csv")
    audited = [row for row in rows if row["kind"] == "audited" and row["lower"]]
    return [(float(row["x"]), float(row["lower"]), float(row["upper"])) for row in audited]


def test_a_result_at_the_papers_setting_stands_everywhere(made: Path, tmp_path: Path, calls: Calls) -> None:
    before = {name: store.read_csv(made / f"dirichlet_{name}.csv") for name in PANELS}
    make.make(made, ["dirichlet"], audited=read(stored(tmp_path)))
    assert calls == []  # the curves are as they were
    assert placed(made, "num_steps") == [(1000.0, 2.5, math.inf)]
    assert placed(made, "delta") == [(1e-5, 2.5, math.inf)]
    assert placed(made, "scaling") == [(0.2, 2.5, math.inf)]
    assert placed(made, "tradeoff") == []
    for name in ("num_steps", "delta", "scaling"):
        header, rows = store.read_csv(made / f"dirichlet_{name}.csv")
        assert rows[:-1] == before[name][1]
        entries: Any = header.pop("audits")
        (entry,) = entries
        assert (entry["file"], entry["parameters"], entry["confidence"]) == ("weights.json", SETTING, 0.95)
        assert header == before[name][0]
    text = (made / "index.html").read_text()
    assert "[2.5, inf]" in text and "audited lower bound, 95 % confidence, from weights.json" in text
    ladder = text[text.index("<table>") : text.index("</table>")]
    assert "no audit yet" not in ladder and ladder.count("<td>audited<small>") == 1


def test_another_scaling_stands_in_its_own_panel_alone(made: Path, tmp_path: Path) -> None:
    file = stored(tmp_path, parameters={**SETTING, "scaling": 0.01})
    make.make(made, ["dirichlet"], audited=read(file))
    assert [placed(made, name) for name in ("num_steps", "delta")] == [[], []]
    assert placed(made, "scaling") == [(0.01, 2.5, math.inf)]
    assert "[2.5, inf]" not in (made / "index.html").read_text()


def test_a_larger_delta_stands_where_it_holds(made: Path, tmp_path: Path) -> None:
    # A lower bound at one delta is one at every smaller delta.
    make.make(made, ["dirichlet"], audited=read(stored(tmp_path, delta=1e-3)))
    assert placed(made, "num_steps") == [(1000.0, 2.5, math.inf)]
    assert placed(made, "delta") == [(1e-3, 2.5, math.inf)]
    make.make(made, ["dirichlet"], audited=read(stored(tmp_path, delta=1e-7)))
    assert [placed(made, name) for name in ("num_steps", "delta", "scaling")] == [
        [],
        [(1e-7, 2.5, math.inf)],
        [],
    ]


@pytest.mark.parametrize(
    "changes",
    [
        {"parameters": {}},
        {"parameters": {name: value for name, value in SETTING.items() if name != "offset"}},
        {"epsilon_lower": 0.0},
    ],
)
def test_what_has_no_place_in_a_panel_is_in_the_ladder(
    made: Path, tmp_path: Path, changes: dict[str, Any]
) -> None:
    make.make(made, ["dirichlet"], audited=read(stored(tmp_path, **changes)))
    assert [placed(made, name) for name in ("num_steps", "delta", "scaling")] == [[], [], []]
    _, rows = store.read_csv(made / "dirichlet_ladder.csv")
    assert [row["upper"] for row in rows if row["kind"] == "audited"] == ["", "inf"]


def test_going_back_gives_the_same_files(
    made: Path, finished: Path, tmp_path: Path, calls: Calls, redrawn: list[set[str]]
) -> None:
    changed = {f"dirichlet_{name}.csv" for name in ("ladder", "num_steps", "delta", "scaling")}
    make.make(made, ["dirichlet"], audited=read(stored(tmp_path)))
    make.make(made, ["dirichlet"], audited=read(tmp_path / "weights.json"))
    make.make(made, ["dirichlet"])
    assert redrawn == [changed, set(), changed]
    assert calls == []
    for path in finished.iterdir():
        assert (made / path.name).read_bytes() == path.read_bytes(), path.name


def test_figures_come_from_the_csv_alone(
    made: Path, finished: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make.make(made, ["dirichlet"], audited=read(stored(tmp_path)))
    copy = tmp_path / "copy"
    copy.mkdir()
    path = Path(shutil.copy(made / "dirichlet_scaling.csv", copy))
    for module, name in ((compute, "rows"), (panels, "of"), (audits, "in_panel")):
        monkeypatch.setattr(module, name, None)
    for one, other in zip(figure.draw_panel(made / path.name), figure.draw_panel(path), strict=True):
        assert one.read_bytes() == other.read_bytes() != (finished / one.name).read_bytes()


def test_the_mark_and_its_arrow_are_in_view() -> None:
    axes = figure.style.new_figure(3.0, 2.0).subplots()
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_ylim(0.1, 1.0)
    row = {"x": "0.2", "kind": "audited", "lower": "50.0"}
    marks.draw(axes, [row, {"x": "0.2", "kind": "audited", "lower": ""}])
    low, high = axes.get_ylim()
    assert low == 0.1 and high > 95.0
    (mark,) = [line for line in axes.lines if line.get_marker() == "o"]
    assert [np.asarray(part, float).tolist() for part in mark.get_data()] == [[0.2], [50.0]]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (
            {"threat_model": OTHER},
            "audit must be about what the audited rung of a ladder of dirichlet is about",
        ),
        (
            {"parameters": {**SETTING, "scaling": 0.01, "num_steps": 7.0}},
            "audit must agree with the ladder of dirichlet, .*, in all but one .*num_steps = 7",
        ),
        ({"parameters": {}, "delta": 1e-9}, "audit must agree with the ladder of dirichlet"),
    ],
)
def test_results_about_something_else_are_refused(
    tmp_path: Path, calls: Calls, changes: dict[str, Any], message: str
) -> None:
    with pytest.raises(ValueError, match=message) as error:
        read(stored(tmp_path, **changes))
    assert "weights.json" in str(error.value)


def test_the_command_refuses_before_any_work(
    tmp_path: Path, calls: Calls, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "out"
    file = stored(tmp_path, threat_model=OTHER)
    argv = ["curves", "--out", str(out), "--papers", "dirichlet", "--audit", str(file)]
    assert main.main(main.parser(argv).parse_args(argv)) == 2
    assert "audit must be about what the audited rung" in capsys.readouterr().err
    assert calls == [] and not out.exists()


def test_no_results_are_refused(tmp_path: Path, calls: Calls) -> None:
    path = tmp_path / "weights.json"
    path.write_text("{}")
    with pytest.raises(ValueError, match="audit must be a stored audit result, got [^:]*weights.json: an au"):
        read(path)
    with pytest.raises(ValueError, match="audit must be a file that can be read"):
        read(tmp_path / "none.json")


def test_the_threat_model_is_that_of_the_open_rung() -> None:
    assert {ladders.audited(paper) for paper in ladders.PAPERS} == {REPLACE_WEIGHTS, REPLACE, END_TO_END}
    # No steps: what is exact takes no time.
    (rung,) = [rung for rung in ladders.rungs("dirichlet", num_steps=0) if rung.kind == "audited"]
    assert rung.threat_model == ladders.audited("dirichlet")
