"""The sampler's speed script: its parsing, its turns, its verdict, and one small run from end to end."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from exactdp.benchmarks import sampler_speed


@pytest.mark.parametrize("text", ["", "10", "0x4", "4x0", "-1x4", "4x4x4", "ax4", "1.5x2"])
def test_bad_sizes_are_refused(text: str) -> None:
    with pytest.raises(ValueError, match="sizes must be rows x classes"):
        sampler_speed.parse_size(text)


def test_sizes() -> None:
    assert sampler_speed.parse_size("256x1000") == (256, 1000)


@pytest.mark.parametrize("text", ["", "zero", "0", "-1", "nan", "inf"])
def test_bad_concentrations_are_refused(text: str) -> None:
    with pytest.raises(ValueError, match="concentrations must be"):
        sampler_speed.parse_concentration(text)


def test_turns_are_taken_in_order() -> None:
    order: list[str] = []

    def turn(name: str) -> float:
        order.append(name)
        return float(len(order))

    spent = sampler_speed.interleave({"a": lambda: turn("a"), "b": lambda: turn("b")}, repeats=3, budget=60.0)
    assert order == ["a", "b"] * 3
    assert spent == {"a": [1.0, 3.0, 5.0], "b": [2.0, 4.0, 6.0]}


def test_no_round_begins_after_the_budget() -> None:
    assert sampler_speed.interleave({"a": lambda: 1.0}, repeats=100, budget=0.0) == {"a": [1.0]}


def test_verdict_counts_what_reached_its_target() -> None:
    rows = [
        {"library": "jax.random", "pass": "forward", "ratio": ratio} for ratio in (6.0, 7.0, 12.0)
    ]  # fmt: skip
    lines = sampler_speed.verdict(rows)
    assert lines[0] == ("jax.random, forward: at least 7 times ours in 2 of 3 cases, smallest ratio 6.00")
    assert lines[2] == "torch, gradient: not measured"


def test_one_small_run(tmp_path: Path) -> None:
    arguments = [
        "--out",
        str(tmp_path),
        "--sizes",
        "8x4",
        "--concentrations",
        "1",
        "--repeats",
        "1",
        "--json",
    ]
    done = subprocess.run(
        [sys.executable, "-m", "exactdp.benchmarks.sampler_speed", *arguments],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    answer = json.loads(done.stdout)
    measured = {(row["library"], row["pass"]) for row in answer["rows"]}
    assert {(name, which) for name in ("exactdp", "jax.random") for which in sampler_speed.PASSES} <= measured
    assert all(row["milliseconds"] > 0.0 for row in answer["rows"])
    for suffix in (".csv", ".pdf", ".png"):
        assert (tmp_path / f"sampler_speed{suffix}").stat().st_size > 0


def test_bad_flags_end_before_any_work(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "exactdp.benchmarks.sampler_speed", "--out", str(tmp_path), "--sizes", "4"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1
    assert "sizes must be rows x classes" in done.stdout + done.stderr
    assert not list(tmp_path.iterdir())
