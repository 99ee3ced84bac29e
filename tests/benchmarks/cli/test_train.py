"""`exactdp train`, through the command itself."""

from __future__ import annotations

import errno
import functools
import io
import json
import os
import shlex
import signal
import subprocess
import sys
import tarfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from exactdp.accounting import calibrate, prv
from exactdp.accounting.ledger import Ledger
from exactdp.benchmarks.cli import main, train_records
from exactdp.train import board, data

KEYS = ["test_accuracy", "epsilon", "delta", "threat_model", "steps", "seconds", "run"]
SHORT = "--dataset digits --model linear --num_steps 30 --seed 1"


def command(line: str) -> subprocess.CompletedProcess[str]:
    words = [sys.executable, "-m", "exactdp.benchmarks.cli.main", *shlex.split(line)]
    return subprocess.run(words, capture_output=True, text=True, check=False)


def answer(line: str) -> tuple[dict[str, Any], str]:
    done = command(f"{line} --json")
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("\n") == 1
    return json.loads(done.stdout), done.stderr


def test_one_object_on_stdout_and_the_certificate_before_the_start(tmp_path: Path) -> None:
    out = tmp_path / "run"
    found, told = answer(f"train dpsgd {SHORT} --epsilon 4 --delta 1e-5 --out {out}")
    assert list(found) == KEYS
    assert 3.9 < found["epsilon"]["lower"] <= found["epsilon"]["upper"] <= 4.0
    assert (found["delta"], found["steps"], found["run"]) == (1e-5, 30, str(out))
    assert found["threat_model"]["adjacency"] == "add_remove" and 0.1 < found["test_accuracy"] <= 1.0
    assert told.index("certified by: exact, hidden coins") < told.index("epsilon <=")
    again = command(f"train dpsgd {SHORT} --epsilon 4 --out {out}")
    assert again.returncode == 2 and "out must be a folder without a run" in again.stderr
    resumed, _ = answer(f"train dpsgd {SHORT} --epsilon 4 --delta 1e-5 --out {out} --resume")
    assert resumed["test_accuracy"] == found["test_accuracy"]


def test_dirichlet_says_what_is_covered(tmp_path: Path) -> None:
    done = command(f"train dirichlet {SHORT} --epsilon 8 --accountant printed --out {tmp_path / 'run'}")
    assert done.returncode == 0, done.stderr
    sentence = "What the certificate of arXiv 2607.19580 covers is rho, the Dirichlet draws of the sampled"
    assert sentence in done.stderr[: done.stderr.index("0/30")] and sentence in done.stdout
    assert "scaling chosen as the paper does: its rule gives epsilon" in done.stderr
    assert "repaired conversion" in done.stderr
    assert "test accuracy" in done.stdout and f"run: {tmp_path / 'run'}" in done.stdout
    assert "coins visible" in done.stdout


def test_no_privacy_is_infinite_epsilon(tmp_path: Path) -> None:
    found, told = answer(f"train nonprivate {SHORT} --out {tmp_path / 'run'}")
    assert found["epsilon"] == {"lower": "inf", "upper": "inf"}
    assert "Nothing is certified" in told


def test_interrupted_from_the_keyboard_and_resumed(tmp_path: Path) -> None:
    out = tmp_path / "run"
    line = f"train dpsgd --dataset digits --model linear --num_steps 20000 --epsilon 4 --seed 1 --out {out}"
    words = [sys.executable, "-m", "exactdp.benchmarks.cli.main", *line.split()]
    process = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        deadline = time.monotonic() + 120
        while not (out / "metrics.csv").exists() and time.monotonic() < deadline:
            time.sleep(0.05)
        time.sleep(2.0)
        process.send_signal(signal.SIGINT)
        printed, told = process.communicate(timeout=60)
    finally:
        process.kill()
    assert (process.returncode, printed) == (130, ""), told
    assert "interrupted after step" in told
    # What is printed can be pasted: the whole command, without the seed, which is in the checkpoint.
    paste = told.splitlines()[-1].strip()
    assert paste == (
        f"exactdp train dpsgd --epsilon 4.0 --num_steps 20000 --model linear --out {out} --resume"
    )


TABLE = [
    ("train other", "invalid choice: 'other'"),
    ("train dpsgd", "epsilon must be given, or both noise_multiplier and num_steps"),
    ("train dpsgd --epsilon 1 --sampling_probability 1", "sampling_probability must be in (0, 1), got 1"),
    ("train dpsgd --epsilon 1 --sampling_probability 0", "sampling_probability must be in (0, 1), got 0"),
    ("train dpsgd --epsilon 1 --sampling_probability 1e-6", "must give batches of one record at least"),
    ("train dpsgd --epsilon nan", "epsilon must be a number, got nan"),
    ("train dpsgd --epsilon 1 --accountant other", "--accountant: invalid choice: 'other'"),
    ("train dpsgd --epsilon 1 --offset 3", "offset must be left out for dpsgd, got 3"),
    ("train dpsgd --epsilon 1 --model resnet", "model must be one of linear"),
    ("train dpsgd --epsilon 1 --dataset nowhere", "dataset must be one of digits"),
    ("train dpsgd --epsilon 1 --optimizer lion", "optimizer must be one of sgd, adam, adamw, got 'lion'"),
    ("train dpsgd --epsilon 1 --momentum 1", "momentum must be in [0, 1), got 1"),
    ("train dpsgd --epsilon 1 --ema_decay 1", "ema_decay must be in (0, 1), got 1"),
    ("train dpsgd --epsilon 1 --accumulation 0", "accumulation must be a whole number >= 1, got 0"),
    ("train dpsgd --epsilon 1 --checkpoint_every 0", "checkpoint_every must be a whole number >= 1, got 0"),
    ("train dpsgd --epsilon 1 --devices 4096", "devices must be at most"),
    ("train dpsgd --epsilon 1 --seed -1", "seed must be a whole number >= 0, got -1"),
    ("train dpsgd --epsilon 1 --resume", "out must be given when resume is set"),
    ("train dpsgd --epsilon 1 --resume --out nowhere", "out must hold a run when resume is set"),
    ("train dpsgd --epsilon 1 --out /proc/nowhere", "out must be a folder that can be written to"),
    ("train dpsgd --epsilon 1 --out ''", "--out: must be the name of a directory, got ''"),
    ("train dirichlet --epsilon 1 --optimizer adam", "optimizer must be plain sgd for dirichlet"),
    ("train dirichlet --epsilon 1 --optimizer adam", "for dirichlet (its Algorithm 1), got adam"),
    ("train dirichlet --epsilon 1 --momentum 0.9", "momentum must be 0 for dirichlet"),
    ("train dirichlet --epsilon 1 --accumulation 2", "accumulation must be 1 for dirichlet, got 2"),
    ("train gaussian_features --epsilon 1 --augmentation 2 --flip", "augmentation must be 1 for gaussian_f"),
    ("train dpsgd --epsilon 1001", "epsilon must be at most 1000, got 1001"),
    ("train dpsgd --epsilon 1 --num_steps 1e30", "num_steps must be at most 2147483647, got 1e+30"),
    ("train dpsgd --epsilon 1 --accumulation 1e30", "accumulation must be at most 2147483647, got 1e+30"),
    ("train dpsgd --epsilon 1 --checkpoint_every 1e30", "checkpoint_every must be at most 2147483647"),
    ("train dpsgd --epsilon 1 --report_every inf", "report_every must be a whole number >= 1, got inf"),
    ("train dpsgd --epsilon 1 --clip_norm 1e30", "clip_norm must be in [1e-15, 1e+15], as steps are"),
    ("train dpsgd --noise_multiplier 1e30 --num_steps 3", "noise_multiplier must be in [1e-15, 1e+15]"),
    ("train dirichlet --scaling 1e30 --num_steps 3", "scaling must be in [1e-15, 1e+15]"),
    ("train dirichlet --epsilon 1 --offset 1e-30", "offset must be in [1e-15, 1e+15]"),
    ("train dpsgd --epsilon 1 --learning_rate 1e300", "learning_rate must be in [1e-15, 1e+15]"),
    (
        "train dirichlet --epsilon 1 --effective_learning_rate 1e300",
        "effective_learning_rate must be in [1e-15, 1e+15]",
    ),
    ("train dpsgd --epsilon 1 --optimizer adamw --weight_decay 1e30", "weight_decay must be at most 1e+15"),
    ("train dpsgd --epsilon 1 --momentum 0.5 --optimizer adam", "momentum must be 0 with adam, got 0.5"),
    ("train dpsgd --epsilon 1 --seed 1e30", "seed must be < 2^64, got 1e+30"),
    ("train dpsgd --epsilon 1 --padding 8", "padding must be below the sides of the images, 8 and 8, got 8"),
    ("train dpsgd --epsilon 1 --padding 1e30", "padding must be at most 2147483647"),
    ("train dpsgd --epsilon 1 --augmentation 2", "augmentation must be 1 where neither padding nor flip"),
    ("train dpsgd --epsilon 1 --dataset npz:../x", "dataset must be <layout>:<name>"),
    ("train dpsgd --epsilon 1 --dataset npz:x", "npz:x: the environment variable EXACTDP_DATA"),
    ("train dpsgd --epsilon 1 --split_parameters", "split_parameters must be left out with one device"),
    ("train dpsgd --epsilon 1 --num_processes 2", "num_processes must be left out where coordinator is not"),
    ("train dpsgd --epsilon 1 --num_processes nan", "num_processes must be a number, got nan"),
    ("train dpsgd --epsilon 1 --process_id 1", "process_id must be left out where coordinator is not given"),
    ("train dpsgd --epsilon 1 --process_id=-1", "process_id must be a whole number >= 0, got -1"),
    ("train dpsgd --epsilon 1 --coordinator localhost:9", "num_processes must be 2 at least where coord"),
    ("train dpsgd --epsilon 1 --coordinator x --num_processes 2", "coordinator must be host:port, got 'x'"),
    (
        "train dpsgd --epsilon 1 --coordinator localhost:9 --num_processes 2 --process_id 2",
        "process_id must be below num_processes 2, got 2",
    ),
    (
        "train dpsgd --epsilon 1 --coordinator localhost:9 --num_processes 2 --devices 2",
        "devices must be left out where coordinator is given",
    ),
    ("train nonprivate --epsilon 1", "epsilon must be left out for nonprivate, got 1"),
    ("train dpsgd --epsilon 1 --dataset nowhere --model cnn", "dataset must be one of digits"),
    (
        "train dirichlet --epsilon 0.01 --accountant printed --num_steps 5000",
        "epsilon must be larger for the paper's rule",
    ),
]


FEATURE = "train feature --epsilon 1 --model mlp --public"
TABLE += [
    ("train feature --epsilon 1", "public must be given for feature"),
    (f"{FEATURE} ''", "public must be given for feature"),
    (f"{FEATURE} own:mine", "public must be one of the forms none, label, features"),
    (f"{FEATURE} blur", "public must be one of the forms none, label, features"),
    (f"{FEATURE} blur:sigma=nan", "sigma must be a number, got nan"),
    (f"{FEATURE} columns:0-3", "columns must be of tabular records"),
    (f"{FEATURE} features+label", "public must leave something private, got features+label"),
    (f"{FEATURE} region:top=0,bottom=8,left=0,right=8+label", "public must leave something private"),
    (f"{FEATURE} label --public_batch_size 0", "public_batch_size must be a whole number >= 1, got 0"),
    (f"{FEATURE} label --public_batch_size 1e6", "must be at most the 1442 records there are, got 1000000"),
    (f"{FEATURE} label --batches single --public_batch_size 3", "public_batch_size must be left out with a"),
    (f"{FEATURE} label --public_steps -1", "public_steps must be a whole number >= 0, got -1"),
    (f"{FEATURE} label --mixing_weight 1", "mixing_weight must be in (0, 1), got 1"),
    (f"{FEATURE} label --adjacency other", "--adjacency: invalid choice: 'other'"),
]


LIMITS = ("nan", "inf", "-inf", "-1", "1e400", "1e300", "abc", "''")
NUMBERS = [
    name
    for name, flag in {**train_records._SHARED, **train_records._TRAINING, **train_records._RUN}.items()
    if flag.kind is not str
]
TABLE += [
    (
        f"train {'dirichlet' if name in ('scaling', 'offset', 'effective_learning_rate') else 'dpsgd'} "
        f"{'' if name == 'epsilon' else '--epsilon 1 '}--{name}={value}",
        f"{name}",
    )
    for name in NUMBERS
    for value in LIMITS
]


@pytest.mark.parametrize(("line", "message"), TABLE, ids=[line[:120] for line, _ in TABLE])
def test_bad_input(
    line: str,
    message: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    worked: list[object] = []

    def refuse(*_: object, **__: object) -> None:
        worked.append(1)
        raise ValueError("out must be a folder that can be written to")

    for name in ("noise_multiplier", "scaling", "num_steps"):
        monkeypatch.setattr(calibrate, name, refuse)
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("EXACTDP_DATA", raising=False)
    words = shlex.split(line)
    try:
        status = main.main(main.parser(words).parse_args(words))
    except SystemExit as stop:
        status = stop.code
    printed = capsys.readouterr()
    assert status == 2
    assert printed.out == ""
    assert message in printed.err.splitlines()[-1]
    assert not list(tmp_path.iterdir())
    assert "certified by" not in printed.err and not worked


def images(folder: Path, **changed: Any) -> None:
    """60 and 30 images of three classes, with what a case changes of them."""
    pixels = np.random.default_rng(0).integers(0, 255, (90, 6, 6)).astype(np.float32)
    arrays = {"x_train": pixels[:60], "y_train": np.arange(60) % 3, "x_test": pixels[60:]}
    (folder / "own").mkdir()
    np.savez(folder / "own" / "own.npz", **(arrays | {"y_test": np.arange(30) % 3} | changed))


def census(folder: Path, *, cell: str = "0") -> None:
    """Thirty rows of six columns in the layout of Location-30, one of whose cells a case changes."""
    rows = [[str(k % 3 + 1), *(str((k >> j) % 2) for j in range(6))] for k in range(30)]
    rows[7][3] = cell
    text = "".join(f"{','.join(row)}\n" for row in rows).encode()
    (folder / "own").mkdir()
    with tarfile.open(folder / "own" / "own.tgz", "w:gz") as archive:
        member = tarfile.TarInfo("own")
        member.size = len(text)
        archive.addfile(member, io.BytesIO(text))


@pytest.mark.parametrize(
    ("make", "line", "message"),
    [
        (
            functools.partial(images, x_train=np.full((60, 6, 6), np.nan, np.float32)),
            "npz:own --public blur:sigma=1",
            "npz:own: training records must be finite, record 0 holds NaN or infinity",
        ),
        (
            functools.partial(images, x_test=np.full((30, 6, 6), np.nan, np.float32)),
            "npz:own --public label",
            "npz:own: test records must be finite, record 0 holds NaN or infinity",
        ),
        (
            functools.partial(images, y_test=np.arange(30) % 4),
            "npz:own --public label",
            "npz:own: test labels must be in 0 ... 2, record 3 has 3",
        ),
        (
            functools.partial(images, y_train=2 * (np.arange(60) % 2)),
            "npz:own --public label",
            "npz:own: each of the 3 classes must have a training record, class 1 has none",
        ),
        (
            functools.partial(census, cell="nan"),
            "privacytrustlab:own --public columns:0-2",
            "privacytrustlab:own:",
        ),
        (census, "privacytrustlab:own --public columns:0-6", "columns must be below the 6 that there are"),
        (
            census,
            "privacytrustlab:own --public columns:age",
            "must be indices, ranges or names (feature_0, feature_1",
        ),
        (
            census,
            "privacytrustlab:own --public private:age",
            "must be indices, ranges or names (feature_0, feature_1",
        ),
        (census, "privacytrustlab:own --public private:0-5", "columns must name one column at least"),
        (census, "privacytrustlab:own --public columns:0-5+label", "public must leave something private"),
        (census, "privacytrustlab:own --public blur:sigma=1", "blur must be of images"),
    ],
)
def test_bad_records_and_maps_that_do_not_fit_them(
    make: Any,
    line: str,
    message: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    make(tmp_path)
    monkeypatch.setenv("EXACTDP_DATA", str(tmp_path))
    out = tmp_path / "run"
    status, told = called(f"train feature --epsilon 1 --model mlp --out {out} --dataset {line}", capsys)
    assert status == 2
    assert message in told.splitlines()[-1]
    assert "certified by" not in told and not out.exists()


def test_what_cannot_be_certified_is_not_begun(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def unable(*_: Any, **__: Any) -> Any:
        raise ArithmeticError("neither engine certifies this query")

    monkeypatch.setattr(prv, "epsilon", unable)
    status, told = called(f"train dpsgd {SHORT} --noise_multiplier 1 --out {tmp_path / 'run'}", capsys)
    assert status == 1
    assert "no certified answer: neither engine certifies this query" in told
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("package", ["jax", "flax", "optax", "orbax", "tensorboardX", "sklearn"])
def test_a_package_that_is_not_installed_is_named(package: str, tmp_path: Path) -> None:
    code = (
        "import sys; from exactdp.benchmarks.cli import main; from importlib.abc import MetaPathFinder\n"
        "class Gone(MetaPathFinder):\n"
        "    def find_spec(self, name, path, target=None):\n"
        f"        if name.split('.')[0] == {package!r}:\n"
        "            raise ModuleNotFoundError(f'No module named {name!r}', name=name)\n"
        "sys.meta_path.insert(0, Gone())\n"
        f"words = 'train dpsgd --epsilon 4 --num_steps 2 --out {tmp_path / 'run'}'.split()\n"
        "sys.exit(main.main(main.parser(words).parse_args(words)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 1 and done.stdout == ""
    assert done.stderr.startswith(f"exactdp train: error: {package}")
    assert done.stderr.endswith("must be installed to train, it is not found: pip install 'exactdp[train]'\n")
    assert not list(tmp_path.iterdir())


def test_a_full_disk_is_said_and_the_run_goes_on_with_what_is_printed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    out, write = tmp_path / "run", board.Board.write

    def full(self: board.Board, values: Any, *, step: int) -> None:
        if step == 4:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        write(self, values, step=step)

    line = f"train nonprivate {SHORT} --checkpoint_every 3 --report_every 1 --flip --out {out}"
    with monkeypatch.context() as patched:
        patched.setattr(board.Board, "write", full)
        status, told = called(line, capsys)
    assert status == 1
    said, paste = told.splitlines()[-2:]
    assert said == "exactdp train: error: [Errno 28] No space left on device; go on with:"
    assert paste == (
        "  exactdp train nonprivate --num_steps 30 --model linear --checkpoint_every 3 --report_every 1 "
        f"--flip --out {out} --resume"
    )
    assert called(paste.removeprefix("  exactdp "), capsys)[0] == 0
    assert (out / "result.json").exists()


def test_a_run_in_a_folder_that_another_run_uses_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "run"
    assert called(f"train nonprivate {SHORT} --out {out}", capsys)[0] == 0
    with Ledger(out / "ledger.jsonl", threat_model=Ledger.load(out / "ledger.jsonl").threat_model):
        status, told = called(f"train nonprivate {SHORT} --out {out} --resume", capsys)
    assert status == 2
    assert f"out must be a folder that no other run is using, got {out}" in told


def test_resuming_under_another_setting_names_its_flag(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out, line = tmp_path / "run", f"train dirichlet {SHORT} --scaling 0.5 --flip --out {tmp_path / 'run'}"
    assert called(line, capsys)[0] == 0
    for given, message in {
        "--scaling 0.6": "scaling must be what the run in {out} was started with, 0.5, got 0.6",
        "--scaling 0.5 --padding 1": "padding must be what the run in {out} was started with, 0, got 1",
        "--scaling 0.5 --schedule cosine": "schedule must be what the run in {out} was started with",
        "--scaling 0.5 --ema_decay 0.5": (
            "ema_decay must be what the run in {out} was started with, left out, got 0.5"
        ),
        "--scaling 0.5 --offset 2": "offset must be what the run in {out} was started with, 3.0, got 2.0",
        "--scaling 0.5 --seed 2": "seed must be the one that the run was started with",
    }.items():
        status, told = called(f"{line.replace('--scaling 0.5', given)} --resume", capsys)
        assert status == 2
        assert f"error: {message.format(out=out)}" in told
        assert "certified by" not in told
    # What holds by default may be said.
    status, told = called(f"{line} --offset 3 --resume", capsys)
    assert status == 0 and "certified by" in told


def test_a_run_that_is_refused_names_the_clip_norm_it_was_started_with(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    line = f"train dpsgd {SHORT} --noise_multiplier 4 --out {tmp_path / 'run'}"
    assert called(line, capsys)[0] == 0
    status, told = called(f"{line} --resume --clip_norm 2", capsys)
    assert status == 2
    assert told.splitlines()[-1].endswith(
        f"error: clip_norm must be what the run in {tmp_path / 'run'} was started with, 1.0, got 2.0"
    )
    assert "certified by" not in told


def test_a_folder_that_cannot_be_written_to_is_refused_before_the_data_is_read(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def load(_: str) -> Any:
        raise AssertionError("the data was read")

    monkeypatch.setattr(data, "load", load)
    for out in ("/proc/x", "/proc/x/y", str(tmp_path / ("a" * 300))):
        status, told = called(f"train dpsgd {SHORT} --epsilon 4 --out {out}", capsys)
        assert status == 2
        assert f"error: out must be a folder that can be written to, got {out} (" in told


def called(line: str, capsys: pytest.CaptureFixture[str]) -> tuple[object, str]:
    """Status and stderr of a command run in this process."""
    words = shlex.split(line)
    status = main.main(main.parser(words).parse_args(words))
    return status, capsys.readouterr().err


def test_help_says_what_holds(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main.parser(["train", "dpsgd", "--help"]).parse_args(["train", "dpsgd", "--help"])
    text = " ".join(capsys.readouterr().out.split())
    assert "--epsilon X target epsilon, in (0, 1000]" in text
    assert "--delta X delta in (0, 1) (1e-5)" in text
    # Every flag with a default says it.
    for name, flag in {**train_records._SHARED, **train_records._TRAINING, **train_records._RUN}.items():
        if flag.default is not None and name != "num_processes":
            assert (
                f"({flag.default:g}".replace("1e-05", "1e-5") in flag.help
                if flag.kind is not str
                else f"({flag.default}" in flag.help
            ), name


def test_the_other_commands_start_without_jax() -> None:
    code = (
        "import sys; from exactdp.benchmarks.cli import main; main.parser(['train', 'dpsgd']);"
        "print([name for name in ('jax', 'flax', 'optax', 'orbax', 'sklearn') if name in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, env=dict(os.environ)
    )
    assert done.stdout == "[]\n"
