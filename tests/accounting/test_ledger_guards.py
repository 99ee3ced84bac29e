"""The ledger refuses: foreign files, other processes, replaced files, mechanisms of another threat model."""

from __future__ import annotations

import dataclasses
import json
import os
import pathlib
import subprocess
import sys
import threading
from typing import ClassVar

import pytest

from exactdp.accounting import families
from exactdp.accounting.ledger import Ledger
from exactdp.accounting.pairs.gaussian import Gaussian
from exactdp.accounting.pairs.laplace import Laplace
from exactdp.accounting.sampling.fixed_size import FixedSize
from exactdp.accounting.sampling.hidden import PoissonHidden
from exactdp.accounting.sampling.replace import PoissonReplaceGaussian
from exactdp.accounting.sampling.visible import PoissonVisible
from exactdp.accounting.threat import Adjacency, Coins, ThreatModel

MODEL = ThreatModel(Adjacency.ADD_REMOVE, Coins.HIDDEN, "all noisy sums")
STEP = Gaussian(1.1)
ROOT = pathlib.Path(__file__).resolve().parents[2]


@families.register
@dataclasses.dataclass(frozen=True)
class GuardsReplace(Gaussian):
    """Bound to replacing a record, whatever the coins."""

    coins: ClassVar[str | None] = None
    adjacency: ClassVar[str | None] = "replace"


@pytest.fixture
def path(tmp_path):
    return tmp_path / "releases.jsonl"


def fill(path, counts=(3, 1)):
    with Ledger(path, threat_model=MODEL) as ledger:
        for count in counts:
            ledger.append(STEP, count=count)


@pytest.mark.parametrize(
    "content",
    [
        b"precious data without newline",
        b'{"a":1}',
        b'{"a":1}\n',
        b"[" * 200_000,
        b"\xff\xfe",
        b"\0" * 64,
        b'{"body":{"format":"another",',
        b'{"body":[],"check":""}\n',
        b"\n",
    ],
)
def test_a_foreign_file_is_refused_and_left_alone(path, content):
    path.write_bytes(content)
    with pytest.raises(ValueError, match=r"releases\.jsonl"):
        Ledger(path, threat_model=MODEL)
    with pytest.raises(ValueError, match=r"releases\.jsonl"):
        Ledger.load(path)
    assert path.read_bytes() == content


@pytest.mark.parametrize(
    "tail", [b"notes of my own", b'{"a":1}', b'{"body":{"count":1},"check":"0"}', b"[" * 200_000]
)
def test_a_foreign_tail_is_refused_and_left_alone(path, tail):
    fill(path)
    content = path.read_bytes() + tail
    path.write_bytes(content)
    with pytest.raises(ValueError, match=r"line 4 of .*releases\.jsonl"):
        Ledger(path, threat_model=MODEL)
    with pytest.raises(ValueError, match=r"line 4 of .*releases\.jsonl"):
        Ledger.load(path)
    assert path.read_bytes() == content


@pytest.mark.parametrize("kept", [0, 1, 40])
def test_a_torn_tail_that_the_disk_filled_with_zeros_is_cut(path, kept):
    fill(path)
    content = path.read_bytes()
    last = content.splitlines(keepends=True)[-1]
    path.write_bytes(content + last[:kept] + b"\0" * 100)
    assert len(Ledger.load(path)) == 2
    fill(path, (7,))
    assert [e.count for e in Ledger.load(path).entries] == [3, 1, 7]


def test_a_torn_header_of_another_threat_model_is_refused(path):
    other = ThreatModel(Adjacency.REPLACE, Coins.HIDDEN, "all noisy sums")
    Ledger(path, threat_model=other).close()
    torn = path.read_bytes()[:-10]
    path.write_bytes(torn)
    with pytest.raises(ValueError, match=r"releases\.jsonl"):
        Ledger(path, threat_model=MODEL)
    assert path.read_bytes() == torn
    Ledger(path, threat_model=other).close()
    assert Ledger.load(path).threat_model == other


def test_a_too_deep_line_is_refused(path):
    fill(path)
    path.write_bytes(path.read_bytes() + b"[" * 200_000 + b"\n")
    with pytest.raises(ValueError, match="undamaged"):
        Ledger.load(path)


def test_threads_share_one_ledger(path, monkeypatch):
    real_write = os.write

    def short_write(file, data):  # two writes a line: threads meet between them
        return real_write(file, bytes(data[: max(1, min(len(data), 100))]))

    monkeypatch.setattr(os, "write", short_write)
    monkeypatch.setattr(os, "fsync", lambda file: None)
    with Ledger(path, threat_model=MODEL) as ledger:

        def work():
            for _ in range(50):
                ledger.append(STEP, count=1)

        threads = [threading.Thread(target=work) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(ledger) == 200
    assert Ledger.load(path).composition() == [(STEP, 200)]


def in_child(work):
    """The exit code of a forked process: 0 for a RuntimeError, 1 for another error, 2 for none."""
    child = os.fork()
    if child == 0:
        code = 1
        try:
            work()
            code = 2
        except RuntimeError:
            code = 0
        finally:
            os._exit(code)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def alone(scenario, path):
    """Runs a scenario of this file in a fresh process: one that holds JAX's threads must not fork."""
    program = (
        "import pathlib; from tests.accounting import test_ledger_guards as guards; "
        f"guards.{scenario.__name__}(pathlib.Path({str(path)!r}))"
    )
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", program], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


def test_a_forked_process_does_not_write(path):
    alone(fork_and_write, path)


def fork_and_write(path):
    with Ledger(path, threat_model=MODEL) as ledger:
        ledger.append(STEP, count=1)
        before = path.read_bytes()
        assert in_child(lambda: ledger.append(STEP, count=2)) == 0
        assert path.read_bytes() == before
        assert in_child(ledger.close) == 2
        with pytest.raises(BlockingIOError):  # the child's close left the lock where it was
            Ledger(path, threat_model=MODEL)
        ledger.append(STEP, count=3)
    assert [e.count for e in Ledger.load(path).entries] == [1, 3]


def test_closing_frees_the_lock_though_a_forked_process_lives_on(path):
    alone(close_after_fork, path)


def close_after_fork(path):
    ledger = Ledger(path, threat_model=MODEL)
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(writing)
        os.read(reading, 1)
        os._exit(0)
    try:
        ledger.close()
        fill(path)
    finally:
        os.close(writing)
        os.close(reading)
        os.waitpid(child, 0)
    assert len(Ledger.load(path)) == 2


def test_an_unlinked_or_replaced_file_is_noticed(path, tmp_path):
    with Ledger(path, threat_model=MODEL) as ledger:
        ledger.append(STEP, count=1)
        kept = tmp_path / "kept"
        path.rename(kept)
        with pytest.raises(RuntimeError, match=r"releases\.jsonl"):
            ledger.append(STEP, count=2)
        path.write_bytes(kept.read_bytes())
        with pytest.raises(RuntimeError, match=r"releases\.jsonl"):
            ledger.append(STEP, count=2)
        assert path.read_bytes() == kept.read_bytes()
        kept.unlink()
        with pytest.raises(RuntimeError, match=r"releases\.jsonl"):
            ledger.append(STEP, count=2)
        assert len(ledger) == 1
    assert len(Ledger.load(path)) == 1


@pytest.mark.parametrize("change", [b"foreign\n", b""])
def test_a_file_of_another_size_is_noticed(path, change):
    with Ledger(path, threat_model=MODEL) as ledger:
        ledger.append(STEP, count=1)
        path.write_bytes(path.read_bytes() + change if change else path.read_bytes()[:-1])
        content = path.read_bytes()
        with pytest.raises(RuntimeError, match=r"releases\.jsonl"):
            ledger.append(STEP, count=2)
        assert path.read_bytes() == content


def test_a_relative_path_survives_a_change_of_folder(path, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "elsewhere").mkdir()
    with Ledger(path.name, threat_model=MODEL) as ledger:
        monkeypatch.chdir(tmp_path / "elsewhere")
        ledger.append(STEP, count=1)
    assert len(Ledger.load(path)) == 1


def test_a_threat_model_of_another_type_is_refused_before_any_file(path):
    with pytest.raises(ValueError, match="threat_model"):
        Ledger(path, threat_model="add_remove")  # type: ignore[arg-type]
    assert not path.exists()
    with Ledger(path, threat_model=MODEL) as ledger, pytest.raises(ValueError, match="threat_model"):
        ledger.append(STEP, count=1, threat_model="add_remove")  # type: ignore[arg-type]


def test_counts_are_below_two_to_the_63(path):
    with Ledger(path, threat_model=MODEL) as ledger:
        for count in (10**400, -(10**400), 10**5000, 2**63, 2.0**63):
            with pytest.raises(ValueError, match="count"):
                ledger.append(STEP, count=count)  # type: ignore[arg-type]
        ledger.append(STEP, count=2**63 - 1)
    assert [e.count for e in Ledger.load(path).entries] == [2**63 - 1]


@pytest.mark.parametrize(
    ("mechanism", "adjacency", "coins"),
    [
        (PoissonHidden(STEP, 0.1), "add_remove", "visible"),
        (PoissonHidden(STEP, 0.1), "add_remove", "none"),
        (PoissonHidden(STEP, 0.1), "replace", "hidden"),
        (PoissonHidden(STEP, 0.1), "replace_label_public", "hidden"),
        (PoissonVisible(STEP, 0.1), "add_remove", "hidden"),
        (GuardsReplace(1.0), "add_remove", "hidden"),
        (PoissonReplaceGaussian(1.1, 0.1), "add_remove", "hidden"),
        (PoissonReplaceGaussian(1.1, 0.1), "replace", "visible"),
        (FixedSize(STEP, 0.1), "add_remove", "hidden"),
    ],
)
def test_a_mechanism_of_another_threat_model_is_refused(path, mechanism, adjacency, coins):
    with Ledger(path, threat_model=ThreatModel(adjacency, coins, "sums")) as ledger:
        before = path.read_bytes()
        with pytest.raises(ValueError, match="mechanism"):
            ledger.append(mechanism, count=1)
        assert path.read_bytes() == before


@pytest.mark.parametrize(
    ("mechanism", "adjacency", "coins"),
    [
        (PoissonHidden(STEP, 0.1), "add_remove", "hidden"),
        (PoissonVisible(STEP, 0.1), "replace", "visible"),
        (PoissonVisible(STEP, 0.1), "add_remove", "visible"),
        (GuardsReplace(1.0), "replace", "hidden"),
        (PoissonReplaceGaussian(1.1, 0.1), "replace_features_public", "hidden"),
        (FixedSize(STEP, 0.1), "replace", "hidden"),
        (GuardsReplace(1.0), "replace_label_public", "none"),
        (GuardsReplace(1.0), "replace_features_public", "visible"),
        (Laplace(2.0), "replace", "none"),
    ],
)
def test_a_mechanism_of_the_threat_model_is_taken(path, mechanism, adjacency, coins):
    with Ledger(path, threat_model=ThreatModel(adjacency, coins, "sums")) as ledger:
        ledger.append(mechanism, count=2)
    assert Ledger.load(path).composition() == [(mechanism, 2)]


@pytest.mark.parametrize(
    "record",
    [
        {"family": "Gaussian", "noise_multiplier": 10**400},
        {"family": "Gaussian", "noise_multiplier": {"family": "Gaussian", "noise_multiplier": 1.0}},
        5,
    ],
)
def test_odd_records_are_value_errors(record):
    with pytest.raises(ValueError, match=r"must be"):
        families.decode(json.loads(json.dumps(record)))


def test_a_parameter_beyond_floats_is_a_value_error():
    @families.register
    @dataclasses.dataclass(frozen=True)
    class GuardsUnchecked:
        size: int

    with pytest.raises(ValueError, match="size"):
        families.encode(GuardsUnchecked(10**400))  # type: ignore[arg-type]
