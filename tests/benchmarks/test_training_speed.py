"""The speed script runs on a small batch and writes what it says; its peers take their turns."""

from __future__ import annotations

import io
import json
import sys
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from exactdp.benchmarks import training_speed
from exactdp.benchmarks.speed import models, tied, turn_worker, turns
from exactdp.train.tables import tokens

FAKE = """
import json, sys
request = json.loads(sys.stdin.readline())
if request["case"] == "cnn":
    sys.exit(3)
steps = {"torch non-private": [2_000_000, 1_000_000], "opacus hooks": [8_000_000, 1_000_000]}
print(json.dumps({"status": "ok", "steps": steps, "versions": {"opacus": "0"}}), flush=True)
for line in sys.stdin:
    print(json.dumps({"milliseconds": 1.0 if "non" in line else 3.0}), flush=True)
"""


@pytest.fixture
def fake(tmp_path: Path) -> Path:
    path = tmp_path / "fake.py"
    path.write_text(FAKE, encoding="utf-8")
    return path


def test_measures_and_writes(tmp_path: Path, fake: Path):
    peer = turns.Peer(sys.executable, "opacus", "mlp", worker=fake)
    rows = training_speed.measure(
        models.case("mlp", records=8), training_speed.PRIVATE, repeats=2, budget=60.0, peers=[peer]
    )
    peer.close()
    names = ["non-private", "clipped", "ours", "vmap", "torch non-private", "opacus hooks"]
    assert [row.step for row in rows] == names
    assert all(row.milliseconds > 0 and row.ratio > 0 and row.megabytes > 0 and row.runs == 2 for row in rows)
    plain, hooks = rows[0], rows[-1]
    assert plain.ratio == plain.own_ratio == plain.memory_ratio == 1.0
    assert (hooks.own_ratio, hooks.own_memory_ratio, hooks.compile_seconds) == (3.0, 3.0, None)
    assert hooks.ratio == pytest.approx(3.0 / plain.milliseconds, abs=2e-3 * (1.0 + hooks.ratio))
    about = training_speed.header(repeats=1, peers=peer.versions)
    training_speed.write(rows, tmp_path / "speed", about)
    assert {p.suffix for p in (tmp_path / "speed").iterdir()} == {".csv", ".pdf", ".png"}
    assert "aimed at 1.15" in training_speed.table(rows)


def test_nothing_is_repeated_beyond_the_budget(fake: Path):
    peer = turns.Peer(sys.executable, "opacus", "mlp", worker=fake)
    rows = training_speed.measure(models.case("mlp", records=2), [], repeats=9, budget=0.0, peers=[peer])
    peer.close()
    assert [row.runs for row in rows] == [1, 1, 1]


def test_a_peer_that_ends_is_an_error(fake: Path):
    peer = turns.Peer(sys.executable, "opacus", "cnn", worker=fake)
    assert (peer.status, peer.turns()) == ("error", {})
    assert "exit status 3" in peer.note
    with pytest.raises(RuntimeError, match="no process"):
        peer.milliseconds("opacus hooks")


def test_without_an_interpreter_there_is_no_peer():
    peer = turns.Peer(None, "opacus", "mlp")
    assert peer.status == "not installed"
    assert "--peers_python" in peer.note
    peer.close()


def test_the_worker_says_what_is_not_installed(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(turn_worker.PACKAGES, "opacus", ("no_such_package",))
    answers = io.StringIO()
    lines = io.StringIO(json.dumps({"library": "opacus", "case": "mlp", "records": 2}) + "\n")
    turn_worker.serve(lines, answers)
    assert json.loads(answers.getvalue()) == {"status": "not installed", "note": "no no_such_package"}


def test_what_a_peer_raises_is_reported(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(turn_worker.PACKAGES, "jax-privacy", ("jax",))
    monkeypatch.delitem(sys.modules, "jax_privacy", raising=False)
    monkeypatch.setattr(turn_worker, "beside", lambda name: (_ for _ in ()).throw(OSError(name)))
    answer, steps = turn_worker.prepare({"library": "jax-privacy", "case": "mlp", "records": 2})
    assert (answer["status"], answer["note"], steps) == ("error", "OSError: models", {})


@pytest.mark.parametrize(
    ("padding", "strides"), [("SAME", (2, 1)), ("VALID", (1, 2)), (((1, 0), (2, 1)), (2, 2))]
)
def test_convolution_by_taps(padding: Any, strides: tuple[int, int]):
    image = jax.random.normal(jax.random.key(0), (2, 7, 6, 16))
    kernel = jax.random.normal(jax.random.key(1), (3, 2, 16, 4))

    def plain(kernel: jax.Array, image: jax.Array) -> jax.Array:
        names = ("NHWC", "HWIO", "NHWC")
        return jax.lax.conv_general_dilated(image, kernel, strides, padding, dimension_numbers=names)

    def tuned(kernel: jax.Array, image: jax.Array) -> jax.Array:
        return models.conv_by_taps(image, kernel, strides, padding)

    results, pull = jax.vjp(plain, kernel, image)
    again, tuned_pull = jax.vjp(tuned, kernel, image)
    np.testing.assert_allclose(again, results, rtol=1e-5, atol=1e-4)
    for a, b in zip(pull(results), tuned_pull(results), strict=True):
        np.testing.assert_allclose(b, a, rtol=1e-4, atol=1e-2)


@pytest.mark.parametrize("axes", [(2,), (1, 2)])
def test_flat_products(axes: tuple[int, ...]):
    left = jax.random.normal(jax.random.key(0), (3, 4, 5))
    right = jax.random.normal(jax.random.key(1), (*[left.shape[k] for k in axes], 6))
    numbers = ((axes, tuple(range(len(axes)))), ((), ()))
    want = jax.lax.dot_general(left, right, numbers)
    np.testing.assert_allclose(models.flat_dot(left, right, numbers), want, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("name", ["cnn", "gpt", "gpt2"])
def test_tuned_models_compute_the_same(name: str):
    chosen = tied.case(records=2) if name == tied.NAME else models.case(name, records=1)
    assert chosen.tuned_loss is not None
    want, got = (jax.jit(loss)(chosen.params, chosen.batch) for loss in (chosen.loss, chosen.tuned_loss))
    np.testing.assert_allclose(got, want, rtol=1e-5)


def test_unknown_model_is_refused():
    with pytest.raises(ValueError, match="cases must be of"):
        models.case("lstm")


def test_rows_of_the_tied_model():
    rows = np.asarray(tied.case(records=64).batch[0])
    found = tokens.classes(jnp.asarray(rows), is_token=tied.IS, comma_token=tied.COMMA, end=tied.END)
    lengths = (np.asarray(found) != tokens.PADDING).sum(1)
    # The first end after the start counts as a token.
    assert lengths.min() >= tied.SHORTEST + 1 and lengths.max() <= tied.LENGTH
    for kind in (tokens.KEY, tokens.VALUE, tokens.OTHER):
        assert (np.asarray(found) == kind).sum(1).min() >= 2 * (tied.SHORTEST // 6)
