"""The ledger: round trips, torn and damaged files, full disks, two writers."""

from __future__ import annotations

import dataclasses
import errno
import json
import os
import subprocess
import sys

import pytest

from exactdp.accounting import families, prv
from exactdp.accounting.fdp.approximation import Approximation
from exactdp.accounting.interval import Interval
from exactdp.accounting.ledger import Ledger
from exactdp.accounting.pairs.finite import Finite
from exactdp.accounting.pairs.gaussian import Gaussian
from exactdp.accounting.pairs.laplace import Laplace
from exactdp.accounting.rdp.bound import UpperBound
from exactdp.accounting.sampling.hidden import PoissonHidden
from exactdp.accounting.threat import Adjacency, Coins, ThreatModel

MODEL = ThreatModel(Adjacency.ADD_REMOVE, Coins.HIDDEN, "all noisy sums")
STEP = PoissonHidden(Gaussian(1.1), 0.1)


@pytest.fixture
def path(tmp_path):
    return tmp_path / "releases.jsonl"


def fill(path):
    with Ledger(path, threat_model=MODEL) as ledger:
        ledger.append(STEP, count=3, note="warm up")
        ledger.append(Laplace(10.0), count=1, threat_model=dataclasses.replace(MODEL, released="a histogram"))
        ledger.append(STEP, count=4)


def test_round_trip_and_merging(path):
    fill(path)
    read = Ledger.load(path)
    assert [e.count for e in read.entries] == [3, 1, 4]
    assert read.entries[0].note == "warm up"
    assert read.entries[1].threat_model.released == "a histogram"
    assert read.composition() == [(STEP, 7), (Laplace(10.0), 1)]
    with Ledger(path, threat_model=MODEL) as again:
        again.append(STEP, count=1)
        assert again.composition() == [(STEP, 8), (Laplace(10.0), 1)]
    assert len(Ledger.load(path)) == 4
    for line in path.read_text().splitlines():
        json.loads(line)


def test_three_accountants(path):
    fill(path)
    read = Ledger.load(path)
    exact = read.epsilon(delta=1e-5)
    assert exact == prv.epsilon([(STEP, 7), (Laplace(10.0), 1)], delta=1e-5)
    bound, rough = read.epsilon(delta=1e-5, accountant="rdp"), read.epsilon(delta=1e-5, accountant="gdp")
    assert isinstance(bound, UpperBound)
    assert isinstance(rough, Approximation)
    assert exact.lower <= bound.value <= 2.0 * exact.upper
    assert 0.0 < rough.value < 2.0 * exact.upper
    with pytest.raises(ValueError, match="accountant"):
        read.epsilon(delta=1e-5, accountant="moments")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="delta"):
        read.epsilon(delta=0.0)


def test_empty_ledger_is_free(path):
    with Ledger(path, threat_model=MODEL) as ledger:
        assert ledger.epsilon(delta=1e-5) == Interval(0.0, 0.0, "empty ledger")
        assert ledger.epsilon(delta=1e-5, accountant="rdp").value == 0.0
        assert ledger.epsilon(delta=1e-5, accountant="gdp").value == 0.0


def test_truncation_at_every_byte_never_loses_a_finished_append(path, monkeypatch):
    monkeypatch.setattr(os, "fsync", lambda file: None)  # thousands of them; durability is not what is tested
    ends = []
    with Ledger(path, threat_model=MODEL) as ledger:
        ends.append(path.stat().st_size)
        for count in (1, 2, 3):
            ledger.append(STEP, count=count)
            ends.append(path.stat().st_size)
    data = path.read_bytes()
    for size in range(len(data) + 1):
        path.write_bytes(data[:size])
        finished = sum(end <= size for end in ends[1:])
        if size < ends[0] - 1:
            with pytest.raises(ValueError, match="header"):
                Ledger.load(path)
        else:
            # A line that lacks only its newline is counted: at most one too many, never one too few.
            counted = len(Ledger.load(path))
            assert counted == sum(end - 1 <= size for end in ends[1:]) >= finished
        with Ledger(path, threat_model=MODEL) as ledger:
            assert len(ledger) >= finished
            before = len(ledger)
            ledger.append(Laplace(3.0), count=9)
        assert len(Ledger.load(path)) == before + 1
        assert path.read_bytes().endswith(b"\n")


def test_damage_in_whole_lines_is_refused(path):
    fill(path)
    data = path.read_bytes()
    lines = data.splitlines(keepends=True)
    changed = data.replace(b'"count":3', b'"count":1')
    assert changed != data
    for damaged in (
        changed,
        b"".join([lines[0], *lines[2:]]),
        b"".join([lines[0], lines[2], lines[1], lines[3]]),
    ):
        path.write_bytes(damaged)
        with pytest.raises(ValueError, match="undamaged"):
            Ledger.load(path)
        with pytest.raises(ValueError, match="undamaged"):
            Ledger(path, threat_model=MODEL)
        assert path.read_bytes() == damaged


@pytest.mark.parametrize("broken", ["write", "fsync"])
def test_full_disk_raises_and_loses_nothing(path, monkeypatch, broken):
    fill(path)
    before = path.read_bytes()
    real_write, real_fsync = os.write, os.fsync
    left = [1]

    def partial_write(file, data):
        if len(data) > 20:
            return real_write(file, bytes(data[:20]))
        raise OSError(errno.ENOSPC, "No space left on device")

    def failing_fsync(file):
        if left[0]:
            left[0] -= 1
            raise OSError(errno.EIO, "Input/output error")
        real_fsync(file)

    with Ledger(path, threat_model=MODEL) as ledger:
        with monkeypatch.context() as patch:
            patch.setattr(os, broken, partial_write if broken == "write" else failing_fsync)
            with pytest.raises(OSError, match=r"No space|Input"):
                ledger.append(STEP, count=5)
        assert len(ledger) == 3
        assert path.read_bytes() == before
        ledger.append(STEP, count=6)
    assert [e.count for e in Ledger.load(path).entries] == [3, 1, 4, 6]


def test_a_ledger_that_cannot_cut_its_tail_writes_no_more(path, monkeypatch):
    fill(path)
    real_write = os.write

    def torn_write(file, data):
        real_write(file, bytes(data[:10]))
        raise OSError(errno.ENOSPC, "No space left on device")

    def no_truncate(file, size):
        raise OSError(errno.EIO, "Input/output error")

    ledger = Ledger(path, threat_model=MODEL)
    with monkeypatch.context() as patch:
        patch.setattr(os, "write", torn_write)
        patch.setattr(os, "ftruncate", no_truncate)
        with pytest.raises(OSError, match="No space"):
            ledger.append(STEP, count=5)
    with pytest.raises(ValueError, match="open for writing"):
        ledger.append(STEP, count=5)
    assert len(Ledger.load(path)) == 3
    fill(path)
    assert len(Ledger.load(path)) == 6


def test_second_writer_is_refused_here_and_in_another_process(path):
    with Ledger(path, threat_model=MODEL) as ledger:
        ledger.append(STEP, count=1)
        with pytest.raises(BlockingIOError, match="elsewhere"):
            Ledger(path, threat_model=MODEL)
        code = (
            "import sys\n"
            "from exactdp.accounting.ledger import Ledger\n"
            "from exactdp.accounting.threat import ThreatModel\n"
            "model = ThreatModel('add_remove', 'hidden', 'sums')\n"
            "try:\n    Ledger(sys.argv[1], threat_model=model)\n"
            "except BlockingIOError:\n    sys.exit(7)\n"
        )
        environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
        done = subprocess.run(
            [sys.executable, "-c", code, str(path)], env=environment, check=False, timeout=60
        )
        assert done.returncode == 7
    fill(path)
    assert len(Ledger.load(path)) == 4


def test_threat_models_do_not_mix(path):
    fill(path)
    visible = ThreatModel(Adjacency.ADD_REMOVE, Coins.VISIBLE, "all noisy sums")
    with pytest.raises(ValueError, match="threat_model"):
        Ledger(path, threat_model=visible)
    with Ledger(path, threat_model=MODEL) as ledger, pytest.raises(ValueError, match="threat_model"):
        ledger.append(STEP, count=1, threat_model=visible)
    assert len(Ledger.load(path)) == 3


def test_bad_input(path):
    with Ledger(path, threat_model=MODEL) as ledger:
        for count in (0, -1, 1.5, float("nan")):
            with pytest.raises(ValueError, match="count"):
                ledger.append(STEP, count=count)  # type: ignore[arg-type]
        with pytest.raises(ValueError, match="registered family"):
            ledger.append(object(), count=1)  # type: ignore[arg-type]
        assert len(ledger) == 0
    with pytest.raises(ValueError, match="open for writing"):
        ledger.append(STEP, count=1)
    with pytest.raises(ValueError, match="open for writing"):
        Ledger.load(path).append(STEP, count=1)
    path.write_text("not a ledger\n")
    with pytest.raises(ValueError, match="undamaged"):
        Ledger(path, threat_model=MODEL)


@pytest.mark.parametrize(
    "mechanism",
    [
        Gaussian(0.1 + 0.2),
        Gaussian(1.0, 2.0),
        STEP,
        Finite((0.25, 0.75), (0.5, 0.5)),
        PoissonHidden(Laplace(3.0), 1e-3),
    ],
)
def test_families_round_trip_through_json(mechanism):
    record = json.loads(json.dumps(families.encode(mechanism), allow_nan=False))
    assert families.decode(record) == mechanism


def test_families_refuse_what_they_do_not_know():
    for record, message in [
        ({"family": "os.system"}, "family"),
        ({}, "family"),
        ({"family": "Gaussian", "sigma": 1.0}, "parameters"),
        ({"family": "Gaussian"}, "parameters"),
        ({"family": "Gaussian", "noise_multiplier": -1.0}, "noise_multiplier"),
    ]:
        with pytest.raises(ValueError, match=message):
            families.decode(record)


def test_own_family():
    @families.register
    @dataclasses.dataclass(frozen=True)
    class TestsOwnGaussian(Gaussian):
        """A mechanism of one's own."""

    assert families.decode(families.encode(TestsOwnGaussian(2.0))) == TestsOwnGaussian(2.0)
    assert "TestsOwnGaussian" in families.names()
    with pytest.raises(ValueError, match="taken"):
        families.register(dataclasses.dataclass(frozen=True)(type("Gaussian", (), {})))
    with pytest.raises(ValueError, match="frozen"):
        families.register(int)
