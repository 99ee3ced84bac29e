"""Bad input: status 2, a message that names flag, rule and value, nothing on stdout, and no work done."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest

from exactdp.benchmarks.cli import main
from exactdp.benchmarks.setting import accountants

GOOD = "epsilon gaussian --noise_multiplier 1 --delta 1e-5"
TABLE = [
    ("", "the following arguments are required: command"),
    ("epsilom", "invalid choice: 'epsilom'"),
    ("epsilon", "the following arguments are required: mechanism, --delta"),
    ("epsilon cauchy --delta 1e-5", "invalid choice: 'cauchy'"),
    ("epsilon gaussian --delta 1e-5", "noise_multiplier must be given for gaussian"),
    ("epsilon gaussian --noise_multiplier 0 --delta 1e-5", "noise_multiplier must be finite and > 0, got 0"),
    ("epsilon gaussian --noise_multiplier nan --delta 1e-5", "noise_multiplier must be a number, got nan"),
    (
        "epsilon gaussian --noise_multiplier inf --delta 1e-5",
        "noise_multiplier must be finite and > 0, got inf",
    ),
    (
        "epsilon gaussian --noise_multiplier one --delta 1e-5",
        "--noise_multiplier: invalid float value: 'one'",
    ),
    ("epsilon gaussian --noise 1 --delta 1e-5", "unrecognized arguments: --noise 1"),
    (f"{GOOD} --scaling 2", "scaling must be left out for gaussian"),
    (f"{GOOD} --sensitivity=-1", "sensitivity must be finite and > 0, got -1"),
    ("epsilon gaussian --noise_multiplier 1 --delta 0", "delta must be in (0, 1), got 0"),
    ("epsilon gaussian --noise_multiplier 1 --delta 1", "delta must be in (0, 1), got 1"),
    ("epsilon gaussian --noise_multiplier 1 --delta nan", "delta must be a number, got nan"),
    (f"{GOOD} --sampling_probability 1.1", "sampling_probability must be in [0, 1], got 1.1"),
    (f"{GOOD} --num_steps -1", "num_steps must be a whole number >= 0, got -1"),
    (f"{GOOD} --num_steps 1.5", "num_steps must be a whole number >= 0, got 1.5"),
    (f"{GOOD} --num_steps inf", "num_steps must be a whole number >= 0, got inf"),
    (f"{GOOD} --num_steps 1{'0' * 400}", "num_steps must be a number below 1.8e+308, got about 10**400"),
    (f"{GOOD} --num_steps 1{'0' * 5000}", "num_steps must be a whole number >= 0, got inf"),
    (f"{GOOD} --adjacency swap", "--adjacency: invalid choice: 'swap'"),
    (f"{GOOD} --coins none", "--coins: invalid choice: 'none'"),
    (f"{GOOD} --tolerance 0", "tolerance must be finite and > 0, got 0"),
    (f"{GOOD} --accountant rdp --engine contour", "engine must be auto with accountant rdp, got contour"),
    (
        "epsilon laplace --noise_multiplier 1 --delta 1e-5 --adjacency replace --sampling_probability 0.1",
        "adjacency must be add_remove when the coins are hidden",
    ),
    (
        "epsilon approximate --epsilon0 1 --delta0 0.1 --delta 0.5 --accountant gdp",
        "accountant must be prv for approximate",
    ),
    (
        "epsilon approximate --epsilon0 1 --delta0 0.1 --delta 0.5 --accountant rdp",
        "accountant must be prv for approximate",
    ),
    (
        "epsilon discrete_gaussian --noise_multiplier 1 --sensitivity 1.5 --delta 1e-5",
        "sensitivity must be a whole",
    ),
    ("epsilon approximate --epsilon0 0.1 --delta0 1 --delta 1e-5", "delta0 must be in [0, 1), got 1"),
    ("epsilon dirichlet --scaling 1 --delta 1e-5", "offset must be given for dirichlet"),
    ("delta gaussian --noise_multiplier 1 --epsilon=-1", "epsilon must be finite and >= 0, got -1"),
    ("delta gaussian --noise_multiplier 1 --epsilon inf", "epsilon must be finite and >= 0, got inf"),
    ("delta gaussian --noise_multiplier 1", "the following arguments are required: --epsilon"),
    ("tradeoff gaussian --noise_multiplier 1 --fpr 0.1,1.5", "fpr must be in [0, 1], got 1.5"),
    (
        "tradeoff gaussian --noise_multiplier 1 --fpr 0,5e-324",
        "fpr must be 0 or at least 1e-300, got 4.94066e-324",
    ),
    ("tradeoff gaussian --noise_multiplier 1 --fpr 0.1,,2", "--fpr: invalid numbers value: '0.1,,2'"),
    ("calibrate gaussian --epsilon 0 --delta 1e-5", "epsilon must be finite and > 0, got 0"),
    ("calibrate gaussian --epsilon 1 --delta 2", "delta must be in (0, 1), got 2"),
    (
        "calibrate gaussian --epsilon 1 --delta 1e-5 --noise_multiplier 2",
        "noise_multiplier must be left out when it is solved for, got 2",
    ),
    ("calibrate gaussian --epsilon 1 --delta 1e-5 --parameter num_steps", "noise_multiplier must be given"),
    (
        "calibrate gaussian --epsilon 1 --delta 1e-5 --noise_multiplier 1 --num_steps 7"
        " --parameter num_steps",
        "num_steps must be left out when it is solved for, got 7",
    ),
    (
        "calibrate gaussian --epsilon 1 --delta 1e-5 --parameter scaling",
        "parameter must be one of noise_multiplier, sampling_probability, num_steps for gaussian, got sc",
    ),
    (
        "calibrate approximate --epsilon 1 --delta 1e-5 --delta0 1e-6 --num_steps 100",
        "delta must be at least 9.99951e-05, as num_steps x delta0 (100 x 1e-06) is lost at any epsilon0",
    ),
    (
        "calibrate laplace --epsilon 1 --delta 1e-5 --noise_multiplier 1 --adjacency replace"
        " --parameter sampling_probability",
        "adjacency must be add_remove when the coins are hidden",
    ),
    ("ladder other", "invalid choice: 'other'"),
    ("ladder dirichlet --dataset adult", "dataset must be left out for dirichlet"),
    ("ladder dirichlet --delta 2", "delta must be in (0, 1), got 2"),
    ("ladder two_stage --num_steps -1", "num_steps must be a whole number >= 0, got -1"),
    ("check /nowhere/claims.toml", "claims file must be readable text, got /nowhere/claims.toml"),
    ("curves --out /proc/nowhere", "out must be a directory that can be written to, got /proc/nowhere"),
    (
        "curves --out /tmp --papers dirichlet,other",
        "papers must be one of dirichlet, feature, two_stage, got 'other'",
    ),
    ("check claims.toml --out ''", "--out: must be the name of a directory, got ''"),
    ("curves --out ''", "--out: must be the name of a directory, got ''"),
    ("curves --out /tmp --jobs 0", "jobs must be a whole number >= 1, got 0"),
    ("curves", "the following arguments are required: --out"),
]


@pytest.mark.parametrize(("line", "message"), TABLE, ids=[line[:120] or "(nothing)" for line, _ in TABLE])
def test_bad_input(
    line: str,
    message: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def work(*_: object, **__: object) -> None:
        raise AssertionError("work was begun")

    for name in ("epsilon", "delta"):
        monkeypatch.setattr(accountants, name, work)
    monkeypatch.chdir(tmp_path)
    words = shlex.split(line)
    try:
        status = main.main(main.parser(words).parse_args(words))
    except SystemExit as stop:
        status = stop.code
    printed = capsys.readouterr()
    assert status == 2
    assert printed.out == ""
    assert message in printed.err


@pytest.mark.parametrize("name", ["", *main.COMMANDS])
def test_help(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    words = [*name.split(), "--help"]
    with pytest.raises(SystemExit) as stop:
        main.parser(words).parse_args(words)
    assert stop.value.code == 0
    printed = capsys.readouterr().out
    assert "usage: exactdp" in printed
    assert name == "" or f"exactdp {name} " in printed.split("examples:")[1]
