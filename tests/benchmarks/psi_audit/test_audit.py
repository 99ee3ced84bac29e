"""Audits of maps of which the answer is known, and the files that are written."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from exactdp.accounting.attribute.ball import Ball
from exactdp.accounting.interval import Interval
from exactdp.accounting.ledger import Ledger
from exactdp.accounting.pairs.gaussian import Gaussian
from exactdp.accounting.threat import Adjacency, Coins, ThreatModel
from exactdp.benchmarks.curves import store
from exactdp.benchmarks.psi_audit import report, verdict
from exactdp.benchmarks.psi_audit.audit import Audit, Options, audit
from exactdp.benchmarks.psi_audit.balls import Curves
from exactdp.benchmarks.psi_audit.claim import Claim
from exactdp.mechanisms.public import parse
from exactdp.train import data, folder
from exactdp.train.data import Dataset

OPTIONS = Options(records=120, neighbours=30)


def table(seed: int = 0) -> Dataset:
    """Columns a, b, c: b repeats a, c is a coin; all 0 or 1. Labels are coins."""
    generator = np.random.default_rng(seed)
    x = generator.integers(0, 2, (400, 3)).astype(np.float32)
    x[:, 1] = x[:, 0]
    y = generator.integers(0, 2, 400).astype(np.int32)
    return Dataset(x[:300], y[:300], x[300:], y[300:], 2, "table", "made up", ("a", "b", "c"))


def digits(public: str, **options: Any) -> Audit:
    return audit(
        data.load("digits"),
        public=parse(public),
        levels=options.pop("levels", 0),
        claim=options.pop("claim", None),
        options=dataclasses.replace(OPTIONS, **options),
    )


def of_table(public: str, *, radius: float = 0.4, claim: Claim | None = None) -> Audit:
    dataset = table()
    parsed = parse(public, num_columns=3, names=dataset.columns)
    options = Options(records=120, neighbours=30, radius=radius)
    return audit(dataset, public=parsed, levels=0, claim=claim, options=options)


def test_blur_of_digits_is_undone_in_full_precision_and_less_so_in_256_levels() -> None:
    sharp, rounded = digits("blur:sigma=2"), digits("blur:sigma=2", levels=256)
    assert sharp.verdict.text == verdict.UNSAFE
    assert sharp.ball[sharp.place].lower > 0.8
    assert rounded.ball[rounded.place].lower < 0.2
    errors = [found.curves.error for found in (sharp, rounded)]
    assert errors[0] is not None and errors[1] is not None and errors[0] < 0.6 * errors[1]


def test_nothing_public() -> None:
    found = digits("none")
    assert found.verdict.text == verdict.NOTHING and found.curves.method == "equal views"
    best = max(found.matches, key=lambda match: match.rate(1))
    assert best.chance(1) in best.interval(1, confidence=0.999)
    assert found.curves.with_view[found.place].certified
    assert all(ball.lower <= 1e-2 for ball in found.ball[: found.place])


def test_a_private_copy_of_a_public_column_is_known() -> None:
    """b is private and equals a: Ball(0.4) is 1, and equal views certify it."""
    found = of_table("columns:a,c")
    assert found.curves.method == "equal views" and found.ball[found.place].lower > 0.9
    assert found.verdict.text == verdict.UNSAFE
    assert "guessed within 0.4" in found.verdict.reasons[0]


def test_a_private_coin_is_not() -> None:
    """c is a fair coin: Ball(0.4) is one half; at twice the radius the two values are still apart."""
    found = of_table("columns:a,b", claim=Claim.of_mu(0.5))
    interval = found.ball[found.place]
    assert interval.lower < 0.5 < interval.upper < 0.75
    # 1 - f(1/2) of a Gaussian trade-off is Phi(mu).
    bound = found.advantage[found.place]
    assert bound.lower < 0.6914625 < bound.upper < 0.9


def test_labels_are_strata() -> None:
    found = digits("label")
    assert found.curves.method == "equal views" and "10 public views" in found.curves.with_view[0].statement
    assert found.verdict.text != verdict.UNSAFE
    blurred = digits("blur:sigma=3+label", levels=256)
    assert blurred.curves.method == "nearest views"


def test_same_seed_same_audit() -> None:
    first, again, other = (digits("downsample:factor=4", seed=seed) for seed in (1, 1, 2))
    rows = [report.rows(found, confidence=0.95) for found in (first, again, other)]
    assert rows[0] == rows[1] != rows[2]


def test_guesses_refute_neighbours() -> None:
    near = Ball(1.0, 0.1, 0.3, 0.2, 0.95, certified=False, statement="")
    curves = Curves("nearest views", (near,), (near,), (Interval(0.8, 1.0),), 0.5)
    assert curves.refuted(0) and curves.interval(0) == Interval(0.8, 1.0, "Ball")
    agreeing = dataclasses.replace(curves, guessed=(Interval(0.25, 1.0),))
    assert not agreeing.refuted(0) and agreeing.interval(0) == Interval(0.25, 0.3, "Ball")
    # What neighbours say from below is not proved; what equal views say is.
    assert dataclasses.replace(curves, guessed=()).interval(0).lower == 0.0
    certified = dataclasses.replace(near, certified=True)
    assert dataclasses.replace(curves, with_view=(certified,), guessed=()).interval(0).lower == 0.1


def test_files_and_figure_from_csv(tmp_path: Path) -> None:
    found = digits("blur:sigma=1", claim=Claim.of_epsilon(1.0, delta=1e-5))
    paths = report.write(tmp_path, found, [], asked={"dataset": "digits"}, confidence=0.95)
    assert [path.name for path in paths] == ["psi_audit.csv", "psi_audit.pdf", "psi_audit.png"]
    header, rows = store.read_csv(paths[0])
    assert header["dataset"] == "digits" and header["verdict"] == found.verdict.text
    assert {row["part"] for row in rows} == {"reidentification", "ball", "advantage"}
    # Twelve attacks, top 1 and top 5; three curves and the bound at each radius.
    assert len(rows) == 12 * 2 + 4 * len(found.radii)
    assert paths[1].read_bytes().startswith(b"%PDF") and paths[2].read_bytes().startswith(b"\x89PNG")


def test_without_a_claim_there_is_no_bound(tmp_path: Path) -> None:
    found = of_table("columns:a")
    answer = report.as_dict(found, confidence=0.95)
    assert answer["attribute_advantage"] is None
    assert report.write(tmp_path, found, [], asked={}, confidence=0.95)[2].stat().st_size > 5000


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"distance": "ssim"}, "distance must be one of l2, cosine, perceptual"),
        ({"radius": -1.0}, "radius must be finite and >= 0"),
        ({"records": 39}, "records must be a whole number >= 40, got 39"),
        ({"noise": 0.0}, "noise must be finite and > 0"),
        ({"neighbours": 3}, "neighbours must be a whole number >= 4"),
        ({"confidence": 1.0}, "confidence must be in"),
        ({"seed": -1}, "seed must be a whole number >= 0"),
        ({"seed": 2**32}, "seed must be below 2.32"),
    ],
)
def test_options_refused(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Options(**arguments)


def test_records_refused() -> None:
    with pytest.raises(ValueError, match="blur must be of images"):
        audit(table(), public=parse("blur:sigma=1"), levels=0, claim=None, options=OPTIONS)
    with pytest.raises(ValueError, match="leave something private"):
        digits("features+label")
    x, y = np.zeros((60, 2), np.float32), np.arange(60, dtype=np.int32) % 2
    alike = Dataset(x, y, x, y, 2, "alike", "made up")
    with pytest.raises(ValueError, match="alike: two records must differ"):
        audit(alike, public=parse("label"), levels=0, claim=None, options=OPTIONS)
    small = Dataset(x[:20], y[:20], x[:5], y[:5], 2, "small", "made up")
    with pytest.raises(ValueError, match="small: an audit needs 40 records at least, got 25"):
        audit(small, public=parse("label"), levels=0, claim=None, options=OPTIONS)


def test_claim_of_a_run(tmp_path: Path) -> None:
    model = ThreatModel(Adjacency.ADD_REMOVE, Coins.HIDDEN, "all noisy gradient sums")
    with pytest.raises(ValueError, match="run must be the folder of a run, got .* without ledger.jsonl"):
        Claim.of_run(tmp_path, public=parse("label"), parse=parse)
    with Ledger(tmp_path / folder.LEDGER, threat_model=model) as ledger:
        folder.write_json(
            tmp_path / folder.RUN, {"method": "feature", "settings": {"feature": {"public": "label"}}}
        )
        with pytest.raises(ValueError, match="run must have announced a release"):
            Claim.of_run(tmp_path, public=parse("label"), parse=parse)
        ledger.append(Gaussian(2.0), count=4)
    claim = Claim.of_run(tmp_path, public=parse("label"), parse=parse)
    # Four releases at noise 2 are one at mu = 1; the curve is a certified lower one.
    exact = Claim.of_mu(1.0).curve.fnr(0.3)
    assert exact - 1e-3 < claim.curve.fnr(0.3) <= exact
    with pytest.raises(ValueError, match="public must be what the run was trained with, 'label', got 'none'"):
        Claim.of_run(tmp_path, public=parse("none"), parse=parse)
    folder.write_json(tmp_path / folder.RUN, {"method": "nonprivate", "settings": {}})
    assert Claim.of_run(tmp_path, public=parse("none"), parse=parse).curve.fnr(0.01) == 0.0


def test_verdict_does_not_blame_the_map_for_what_is_known_without_it() -> None:
    judged = verdict.judge(
        ball=Interval(0.9, 1.0),
        without_view=Interval(0.9, 0.95),
        refuted=False,
        radius=1.0,
        matches=[digits("none").matches[0]],
        is_image=True,
        advantage=None,
        confidence=0.95,
    )
    assert judged.text == verdict.NOTHING
