"""What a run releases before its first step: announced once, counted in every epsilon, resumed with."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import numpy as np
import pytest

from exactdp.accounting import prv
from exactdp.accounting.ledger import Ledger
from exactdp.accounting.pairs.discrete_laplace import DiscreteLaplace
from exactdp.accounting.pairs.pure import PureDP
from exactdp.train import folder, reservation
from exactdp.train.budget import Budget
from exactdp.train.certificate import Certificate
from exactdp.train.methods import Prepared
from tests.train import runs

DELTA = 1e-5
BEFORE = ((PureDP(0.25), 3, "three ranges"), (DiscreteLaplace(4.0), 1, "a histogram"))


def prepared() -> Prepared:
    ready = runs.prepare("dpsgd")
    certificate = dataclasses.replace(ready.task.certificate, before=BEFORE)
    return dataclasses.replace(ready, task=dataclasses.replace(ready.task, certificate=certificate))


def announced(out: Path, certificate: Certificate) -> None:
    out.mkdir()
    with Ledger(out / folder.LEDGER, threat_model=certificate.threat_model) as ledger:
        reservation.announce(ledger, certificate)
        reservation.announce(ledger, certificate)  # nothing is missing any more


def test_a_certificate_composes_it_with_every_number_of_steps() -> None:
    certificate = prepared().task.certificate
    plain = [(mechanism, count) for mechanism, count, _ in BEFORE]
    assert certificate.composition(0) == plain
    assert certificate.epsilon(0, delta=DELTA).upper == prv.epsilon(plain, delta=DELTA).upper
    together = certificate.epsilon(20, delta=DELTA)
    alone = dataclasses.replace(certificate, before=()).epsilon(20, delta=DELTA)
    assert alone.upper < together.lower
    assert Budget(certificate, num_steps=20, delta=DELTA).upper(1) > certificate.epsilon(0, delta=DELTA).lower


def test_a_run_counts_it_and_is_the_same_run_otherwise(tmp_path: Path) -> None:
    ready = prepared()
    announced(tmp_path / "with", ready.task.certificate)
    result = runs.run(tmp_path / "with", ready)
    runs.run(tmp_path / "without")
    ledger = Ledger.load(tmp_path / "with" / folder.LEDGER)
    assert [(e.mechanism, e.count, e.note) for e in ledger.entries[:2]] == list(BEFORE)
    assert runs.entries(tmp_path / "without") == runs.entries(tmp_path / "with", after=2)
    assert runs.same(runs.weights(tmp_path / "with"), runs.weights(tmp_path / "without"))
    expected = ready.task.certificate.epsilon(20, delta=DELTA)
    assert (result.epsilon.lower, result.epsilon.upper) == (expected.lower, expected.upper)


def test_a_run_announces_what_was_not(tmp_path: Path) -> None:
    runs.run(tmp_path / "run", prepared())
    entries = Ledger.load(tmp_path / "run" / folder.LEDGER).entries
    assert [(e.mechanism, e.count, e.note) for e in entries[:2]] == list(BEFORE)


@pytest.mark.parametrize("wrong", [(PureDP(0.5), 3, "three ranges"), (PureDP(0.25), 2, "three ranges")])
def test_another_ledger_is_refused(tmp_path: Path, wrong: tuple[PureDP, int, str]) -> None:
    ready = prepared()
    certificate = dataclasses.replace(ready.task.certificate, before=(wrong,))
    announced(tmp_path / "run", certificate)
    with pytest.raises(ValueError, match="entry 1"):
        runs.run(tmp_path / "run", ready)
    with (
        Ledger(tmp_path / "run" / folder.LEDGER, threat_model=certificate.threat_model) as ledger,
        pytest.raises(ValueError, match="entry 1"),
    ):
        reservation.announce(ledger, ready.task.certificate)


def test_without_it_a_ledger_is_another_runs(tmp_path: Path) -> None:
    announced(tmp_path / "run", prepared().task.certificate)
    with pytest.raises(ValueError, match="out must be a folder without a run"):
        runs.run(tmp_path / "run")


def test_resuming_goes_on_behind_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ready = prepared()
    announced(tmp_path / "whole", ready.task.certificate)
    runs.run(tmp_path / "whole", ready)
    announced(tmp_path / "cut", ready.task.certificate)
    appended = Ledger.append

    def failing(self: Ledger, *args: object, **kwargs: object) -> object:
        if len(self) == 4:
            raise OSError("disk full")
        return appended(self, *args, **kwargs)  # type: ignore[arg-type]

    with monkeypatch.context() as patch:
        patch.setattr(Ledger, "append", failing)
        with pytest.raises(OSError, match="disk full"):
            runs.run(tmp_path / "cut", ready)
    runs.run(tmp_path / "cut", ready, resume=True)
    assert runs.entries(tmp_path / "cut", after=2) == runs.entries(tmp_path / "whole", after=2)
    one, other = runs.weights(tmp_path / "cut"), runs.weights(tmp_path / "whole")
    assert runs.same(one, other)
    assert all(np.isfinite(array).all() for array in one.values())
