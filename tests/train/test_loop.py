from __future__ import annotations

import csv
import errno
import json
import math
import os
import signal
import struct
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax
import numpy as np
import pytest
from tensorboardX.proto.event_pb2 import Event

from exactdp.accounting import prv
from exactdp.accounting.ledger import Ledger
from exactdp.accounting.threat import Adjacency, Coins, ThreatModel
from exactdp.train import checkpoints, folder, loop, methods
from exactdp.train.checkpoints import Checkpoints
from exactdp.train.interrupt import Interrupted
from exactdp.train.optimiser import Optimiser
from tests.train import runs


class Crash(Exception):
    pass


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run that was never stopped."""
    out = tmp_path_factory.mktemp("whole") / "run"
    runs.run(out)
    return out


def before_step(monkeypatch: pytest.MonkeyPatch, number: int, act: Callable[[], None]) -> None:
    """Acts before the step of that number is computed, once."""
    made = loop.compile_step

    def compiled(*args: Any, **keywords: Any) -> Any:
        step, seen = made(*args, **keywords), [0]

        def counting(state: Any, data: Any) -> Any:
            if int(state.step) == number and not seen[0]:
                seen[0] = 1
                act()
            return step(state, data)

        return counting

    monkeypatch.setattr(loop, "compile_step", compiled)


def crash() -> None:
    raise Crash


def interrupted_run(out: Path, monkeypatch: pytest.MonkeyPatch, step: int) -> None:
    with monkeypatch.context() as patched:
        before_step(patched, step, crash)
        with pytest.raises(Crash):
            runs.run(out)


def test_a_run_trains_and_reports(tmp_path: Path) -> None:
    out = tmp_path / "run"
    result = runs.run(out, runs.prepare(num_steps=60, noise_multiplier=1.0), learning_rate=2.0)
    assert result.measured > 0.9 and result.steps == 60
    certificate = runs.prepare(num_steps=60, noise_multiplier=1.0).plan.certificate
    assert result.epsilon == prv.epsilon(certificate.composition(60), delta=1e-5)
    assert result.threat_model.adjacency is Adjacency.ADD_REMOVE
    assert json.loads((out / folder.RESULT).read_text()) == result.as_dict()
    with (out / "metrics.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert [int(row["step"]) for row in rows] == list(range(5, 61, 5))
    spent = [float(row["epsilon"]) for row in rows]
    assert spent == sorted(spent) and spent[-1] == result.epsilon.upper
    # What is shown bounds what the steps announced so far cost.
    assert spent[0] >= certificate.epsilon(6, delta=1e-5).lower
    assert "loss" not in rows[0] and "batch_size" not in rows[0]
    assert [value for _, name, value in scalars(out) if name == "epsilon"] == pytest.approx(spent)
    assert (out.stat().st_mode & 0o077) == 0


def test_records_lie_flat_on_the_device(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # A TPU would move the whole data set at every step if they lay there as images.
    compile_step, given = loop.compile_step, list[tuple[int, ...]]()

    def compiled(task: Any, optimiser: Any, **how: Any) -> Callable[..., Any]:
        step = compile_step(task, optimiser, **how)

        def watched(state: Any, data: Any) -> Any:
            given.append(data.x.shape)
            return step(state, data)

        return watched

    monkeypatch.setattr(loop, "compile_step", compiled)
    runs.run(tmp_path / "run", runs.prepare(num_steps=1))
    assert given == [(len(runs.dataset().y), 16)]


def test_what_holds_the_run_key_is_private_whatever_the_folder_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "run"
    out.mkdir()
    out.chmod(0o755)
    before = os.umask(0o022)
    try:
        with monkeypatch.context() as patched:
            before_step(patched, 9, crash)
            with pytest.raises(Crash):
                runs.run(out, private_metrics=True)
        (out / folder.CHECKPOINTS).chmod(0o755)  # as a copy of the folder may be
        runs.run(out, resume=True, private_metrics=True)
        assert os.umask(0o022) == 0o022
    finally:
        os.umask(before)
    assert out.stat().st_mode & 0o777 == 0o755  # the user's own choice
    steps = list((out / folder.CHECKPOINTS).iterdir())
    private = [*(path for step in steps for path in (step, *step.rglob("*"))), out / "metrics.csv"]
    private += [out / "tensorboard", *(out / "tensorboard").iterdir()]
    assert len(steps) == 2 and len(private) > 10
    for path in private:
        assert path.stat().st_mode & 0o777 == (0o700 if path.is_dir() else 0o600), path
    for name in (folder.RUN, folder.LEDGER, folder.RESULT, folder.WEIGHTS):
        assert (out / name).stat().st_mode & 0o777 == 0o644


def scalars(out: Path) -> list[tuple[int, str, float]]:
    """What TensorBoard reads: records of length, checksum, event, checksum."""
    found: list[tuple[int, str, float]] = []
    for file in sorted((out / "tensorboard").iterdir()):
        data, place = file.read_bytes(), 0
        while place < len(data):
            (length,) = struct.unpack_from("Q", data, place)
            event = Event.FromString(data[place + 12 : place + 12 + length])
            found += [(event.step, value.tag, value.simple_value) for value in event.summary.value]
            place += 16 + length
    return found


def test_epsilon_is_left_out_of_the_metrics_where_there_is_none(tmp_path: Path) -> None:
    runs.run(tmp_path / "run", runs.prepare("nonprivate"))
    with (tmp_path / "run" / "metrics.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert [row["epsilon"] for row in rows] == [""] * 4
    found = scalars(tmp_path / "run")
    assert {name for _, name, _ in found} == {"learning_rate", "gradient_norm", "test_accuracy", "seconds"}
    assert all(math.isfinite(value) for *_, value in found)


def test_tensorboard_gets_each_row(whole: Path) -> None:
    found = scalars(whole)
    assert [step for step, name, _ in found if name == "epsilon"] == [5, 10, 15, 20]
    with (whole / "metrics.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert [value for _, name, value in found if name == "epsilon"] == pytest.approx(
        [float(row["epsilon"]) for row in rows]
    )


def test_the_ledger_announces_each_step_once(whole: Path) -> None:
    found = runs.entries(whole)
    mechanisms = runs.prepare().plan.certificate.mechanisms
    assert [entry[:2] for entry in found] == [(m, c) for c in (6, 6, 6, 2) for m in mechanisms]
    assert [entry[3] for entry in found[:: len(mechanisms)]] == [
        "steps 0 to 5",
        "steps 6 to 11",
        "steps 12 to 17",
        "steps 18 to 19",
    ]


@pytest.mark.parametrize("step", [0, 1, 6, 11, 19])
def test_resumed_equals_uninterrupted(
    step: int, whole: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "run"
    interrupted_run(out, monkeypatch, step)
    announced = sum(entry[1] for entry in runs.entries(out)[::2])
    assert announced >= step + 1  # written ahead: the step that was about to run is in
    runs.run(out, resume=True)
    assert runs.same(runs.weights(out), runs.weights(whole))
    assert runs.entries(out) == runs.entries(whole)
    ours, theirs = ((o / "metrics.csv").read_text().splitlines() for o in (out, whole))
    assert [line.rsplit(",", 1)[0] for line in ours] == [line.rsplit(",", 1)[0] for line in theirs]


def test_resuming_needs_no_seed_and_may_change_nothing_else(
    whole: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "run"
    interrupted_run(out, monkeypatch, 9)
    with pytest.raises(ValueError, match="seed must be the one that the run was started with"):
        runs.run(out, seed=8, resume=True)
    with pytest.raises(
        ValueError,
        match="^noise_multiplier must be what the run in .* was started with, 2.0, got 3.0",
    ):
        runs.run(out, runs.prepare(noise_multiplier=3.0), resume=True)
    with pytest.raises(ValueError, match="^learning_rate must be what the run in"):
        runs.run(out, resume=True, learning_rate=0.1)
    with pytest.raises(ValueError, match="data must be what the run was started with"):
        runs.run(out, runs.prepare(data=runs.dataset(1)), resume=True)
    with pytest.raises(ValueError, match="out must be a folder without a run"):
        runs.run(out)
    runs.run(out, seed=None, resume=True)
    assert runs.same(runs.weights(out), runs.weights(whole))


def test_a_run_stopped_before_its_first_checkpoint_asks_for_its_seed(
    whole: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "run"

    def stop(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(Checkpoints, "save", stop)
        with pytest.raises(KeyboardInterrupt):
            runs.run(out)
    with pytest.raises(ValueError, match="^seed must be the one that the run in .* first checkpoint"):
        runs.run(out, seed=None, resume=True)
    runs.run(out, resume=True)
    assert runs.same(runs.weights(out), runs.weights(whole))


def test_without_a_seed_runs_differ(tmp_path: Path) -> None:
    one, other = (runs.run(tmp_path / name, seed=None) for name in "ab")
    assert not np.array_equal(*(np.asarray(jax.random.key_data(r.state.key)) for r in (one, other)))
    assert not runs.same(runs.weights(tmp_path / "a"), runs.weights(tmp_path / "b"))


def test_a_ledger_of_another_run_is_refused(
    whole: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "run"
    interrupted_run(out, monkeypatch, 13)
    (out / folder.LEDGER).write_bytes((whole / folder.LEDGER).read_bytes())
    with pytest.raises(ValueError, match="ledger must be the one of this run"):
        runs.run(out, resume=True)


def test_a_ledger_cut_back_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    out = tmp_path / "run"
    interrupted_run(out, monkeypatch, 13)
    lines = (out / folder.LEDGER).read_bytes().splitlines(keepends=True)
    (out / folder.LEDGER).write_bytes(b"".join(lines[:3]))
    with pytest.raises(ValueError, match="ledger must match the checkpoint of step 12.* shorter"):
        runs.run(out, resume=True)


def test_a_ledger_written_anew_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    out = tmp_path / "run"
    interrupted_run(out, monkeypatch, 13)
    old = Ledger.load(out / folder.LEDGER)
    (out / folder.LEDGER).unlink()
    time.sleep(1.1)  # entries carry the second they were written in
    with Ledger(out / folder.LEDGER, threat_model=old.threat_model) as fresh:
        for entry in old.entries:
            fresh.append(entry.mechanism, count=entry.count, note=entry.note)
    with pytest.raises(ValueError, match="ledger must match the checkpoint of step 12.* differs"):
        runs.run(out, resume=True)


def test_a_ledger_of_another_threat_model_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    out = tmp_path / "run"
    interrupted_run(out, monkeypatch, 13)
    (out / folder.LEDGER).unlink()
    Ledger(out / folder.LEDGER, threat_model=ThreatModel(Adjacency.REPLACE, Coins.HIDDEN, "sums")).close()
    with pytest.raises(ValueError, match="threat_model must be the same"):
        runs.run(out, resume=True)


def test_lost_checkpoints_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    out = tmp_path / "run"
    interrupted_run(out, monkeypatch, 13)
    (out / folder.CHECKPOINTS).rename(out / "moved")
    with pytest.raises(ValueError, match="checkpoints must hold one at least"):
        runs.run(out, resume=True)


def test_killed_before_its_first_checkpoint_a_run_starts_again(
    whole: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "run"
    with monkeypatch.context() as patched:
        patched.setattr(checkpoints.Checkpoints, "save", lambda *_, **__: crash())
        with pytest.raises(Crash):
            runs.run(out)
    assert runs.entries(out) == []
    runs.run(out, resume=True)
    assert runs.same(runs.weights(out), runs.weights(whole))


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupt_leaves_a_run_to_resume(
    number: int, whole: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "run"
    handler = signal.getsignal(number)
    with monkeypatch.context() as patched:
        before_step(patched, 8, lambda: signal.raise_signal(number))
        with pytest.raises(Interrupted, match="interrupted after step 9 of 20; .* goes on when resumed"):
            runs.run(out)
    assert signal.getsignal(number) == handler
    result = runs.run(out, resume=True)
    assert result.steps == 20
    assert runs.same(runs.weights(out), runs.weights(whole))
    assert runs.entries(out) == runs.entries(whole)


def test_a_full_disk_before_the_noise_announces_nothing_and_runs_nothing(
    whole: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out, append = tmp_path / "run", Ledger.append

    def full(self: Ledger, *args: Any, **keywords: Any) -> Any:
        if len(self) >= 2:
            raise OSError(errno.ENOSPC, "No space left on device")
        return append(self, *args, **keywords)

    with monkeypatch.context() as patched:
        patched.setattr(Ledger, "append", full)
        with pytest.raises(OSError, match="No space left"):
            runs.run(out)
    assert len(runs.entries(out)) == 2
    runs.run(out, resume=True)
    assert runs.same(runs.weights(out), runs.weights(whole))
    assert runs.entries(out) == runs.entries(whole)


def test_finished_runs_resume_to_the_same_result(whole: Path) -> None:
    before = runs.weights(whole)
    again = runs.run(whole, resume=True)
    assert again.steps == 20 and runs.same(runs.weights(whole), before)


def test_the_state_is_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Optimiser state, moving average and schedule survive too."""
    options: dict[str, Any] = {
        "ema_decay": 0.9,
        "optimiser": Optimiser("adam", 0.05, "cosine"),
        "private_metrics": True,
    }
    runs.run(tmp_path / "whole", **options)
    with monkeypatch.context() as patched:
        before_step(patched, 10, crash)
        with pytest.raises(Crash):
            runs.run(tmp_path / "run", **options)
    result = runs.run(tmp_path / "run", resume=True, **options)
    assert runs.same(runs.weights(tmp_path / "run"), runs.weights(tmp_path / "whole"))
    params, ema = (jax.tree.leaves(tree)[0] for tree in (result.state.params, result.state.ema))
    assert not np.array_equal(params, ema)
    assert runs.weights(tmp_path / "run")[next(iter(runs.weights(tmp_path / "run")))].shape == ema.shape
    header = (tmp_path / "run" / "metrics.csv").read_text().splitlines()[0]
    assert header.endswith("seconds,batch_size,loss")


def test_a_plan_and_its_options_must_fit(tmp_path: Path) -> None:
    ready = runs.prepare()
    with pytest.raises(ValueError, match="options must be for the plan's 20 steps"):
        methods.run(
            ready, out=tmp_path / "run", options=loop.Options(num_steps=21, delta=1e-5, optimiser=Optimiser())
        )
    with pytest.raises(ValueError, match="optimizer must be plain sgd for dirichlet"):
        runs.run(tmp_path / "run", runs.prepare("dirichlet"), optimiser=Optimiser("adam"))
    assert not (tmp_path / "run").exists()
