"""From claims to results, with injected accountants: which question is asked, and what is made of trouble."""

from __future__ import annotations

from pathlib import Path

import pytest

from exactdp.accounting.interval import Interval
from exactdp.benchmarks.check import claims, evaluate, figure, report
from exactdp.benchmarks.curves import store
from exactdp.benchmarks.setting.setting import Setting
from tests.benchmarks.check.test_claims import NOISE, changed

PNG, PDF = b"\x89PNG", b"%PDF"


class Injected:
    """epsilon = 1 / noise multiplier, delta = noise multiplier / 1000; every question is written down."""

    def __init__(self, width: float = 0.0) -> None:
        self.width = width
        self.asked: list[tuple[object, ...]] = []

    def epsilon(self, setting: Setting, delta: float) -> Interval:
        noise = setting.parameters["noise_multiplier"]
        self.asked.append(("epsilon", noise, delta))
        return Interval(1.0 / noise, 1.0 / noise + self.width)

    def delta(self, setting: Setting, epsilon: float) -> Interval:
        noise = setting.parameters["noise_multiplier"]
        self.asked.append(("delta", noise, epsilon))
        return Interval(noise / 1000.0, noise / 1000.0 + self.width)

    def noise_multiplier(self, setting: Setting, epsilon: float, delta: float) -> float:
        self.asked.append(("noise_multiplier", epsilon, delta))
        return 1.0 / epsilon


class Broken(Injected):
    def epsilon(self, setting: Setting, delta: float) -> Interval:
        raise ArithmeticError("out of reach")


def results(*entries: dict[str, object], exact: evaluate.Exact | None = None) -> list[evaluate.Result]:
    parsed = claims.parse({"claim": list(entries)}, source="file")
    return evaluate.evaluate_all(parsed, exact or Injected(), progress=False)


def test_epsilon_is_asked_at_the_claims_delta() -> None:
    exact = Injected()
    (one,) = results(changed(noise_multiplier=0.5), exact=exact)
    assert exact.asked == [("epsilon", 0.5, 1e-5)]
    assert one.verdict.text == "holds, tight"
    assert one.exact == Interval(2.0, 2.0)


def test_delta_is_asked_at_the_claims_epsilon() -> None:
    exact = Injected()
    (one,) = results(changed(delta=..., epsilon=3.0, claimed={"delta": 1e-4}, rounding=0.0), exact=exact)
    assert exact.asked == [("delta", 1.1, 3.0)]
    assert one.verdict.kind == "violated"
    assert one.as_dict()["exact_delta"] == {"lower": 1.1e-3, "upper": 1.1e-3}


def test_noise_is_judged_at_its_largest_reading_and_shown_as_printed() -> None:
    exact = Injected()
    entry = changed(**{**NOISE, "claimed": {"noise_multiplier": 0.75, "epsilon": 2.0}}, rounding=0.25)
    (one,) = results(entry, exact=exact)
    assert exact.asked == [("epsilon", 0.75, 1e-5), ("epsilon", 1.0, 1e-5), ("noise_multiplier", 2.0, 1e-5)]
    assert one.exact == Interval(1.0 / 0.75, 1.0 / 0.75)
    assert one.needed == 0.5
    # The claimed noise is half as much again as the needed one, but no further away than its rounding.
    assert one.verdict.text == "holds, tight"
    assert one.verdict.ratio == 1.5


def test_noise_that_does_not_suffice_is_violated_even_when_rounded_in_its_favour() -> None:
    entry = changed(**{**NOISE, "claimed": {"noise_multiplier": 0.4, "epsilon": 2.0}}, rounding=0.05)
    (one,) = results(entry)
    assert one.verdict.kind == "violated"
    (saved,) = results({**entry, "rounding": 0.1})
    assert saved.verdict.text == "holds, tight"


def test_trouble_leaves_a_claim_undecided() -> None:
    found = results(
        changed(),
        changed(name="b", mechanism="laplace", adjacency="replace"),
        exact=Broken(),
    )
    assert [one.verdict.kind for one in found] == ["undecided", "undecided"]
    assert "out of reach" in found[0].verdict.reason
    assert "no dominating pair" in found[1].verdict.reason
    assert report.exit_status(found) == 0


def test_exit_status() -> None:
    assert report.exit_status(results(changed(noise_multiplier=0.5))) == 0
    assert report.exit_status(results(changed(), changed(name="b", noise_multiplier=0.1))) == 1


@pytest.fixture
def several() -> list[evaluate.Result]:
    return results(
        changed(name="tight", noise_multiplier=0.5),
        changed(name="loose", noise_multiplier=4.0),
        changed(name="violated", noise_multiplier=0.1),
        changed(name="noise", **NOISE),
        changed(name="no pair", mechanism="laplace", adjacency="replace"),
        changed(name="delta", delta=..., epsilon=3.0, claimed={"delta": 1e-2}, rounding=0.004),
    )


def test_files(tmp_path: Path, several: list[evaluate.Result]) -> None:
    paths = report.write(tmp_path, several, claims_file="claims.toml")
    assert [path.name for path in paths] == ["claims.csv", "claims.pdf", "claims.png"]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["claims.csv", "claims.pdf", "claims.png"]
    header, rows = store.read_csv(paths[0])
    assert header["claims"] == "claims.toml"
    assert [row["name"] for row in rows] == ["tight", "loose", "violated", "noise", "no pair", "delta"]
    assert [row["kind"] for row in rows] == ["holds", "holds", "violated", "holds", "undecided", "holds"]
    assert float(rows[2]["axis_lower"]) == 10.0
    # A noise multiplier is drawn through the epsilon that it is claimed for, against the one that it gives.
    assert (rows[3]["axis"], float(rows[3]["axis_claimed"]), float(rows[3]["axis_upper"])) == (
        "epsilon",
        2.0,
        1.0,
    )
    assert (rows[5]["axis"], float(rows[5]["axis_claimed"])) == ("delta", 1e-2)
    assert rows[4]["axis_upper"] == ""
    assert paths[1].read_bytes().startswith(PDF) and paths[2].read_bytes().startswith(PNG)


def test_the_figure_is_drawn_from_the_csv_alone(tmp_path: Path, several: list[evaluate.Result]) -> None:
    csv_path, *_ = report.write(tmp_path, several, claims_file="claims.toml")
    moved = tmp_path / "elsewhere" / "renamed.csv"
    moved.parent.mkdir()
    moved.write_bytes(csv_path.read_bytes())
    pdf, png = figure.draw(moved)
    assert (pdf.name, png.name) == ("renamed.pdf", "renamed.png")
    assert png.read_bytes() == (tmp_path / "claims.png").read_bytes()


def test_table_shows_every_claim(several: list[evaluate.Result]) -> None:
    lines = report.lines(several)
    assert [line[0] for line in lines[1:]] == [one.claim.name for one in several]
    assert lines[1][2] == "2" and lines[4][2] == "0.5" and lines[5][2] == "-"
