"""Attribute inference from the weights of a run: a model that has learnt its records by heart."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from exactdp.benchmarks.psi_audit import inference, report
from exactdp.mechanisms.public import parse
from exactdp.train import folder
from exactdp.train.data import Dataset
from exactdp.train.network import Network
from exactdp.train.task import Records

COLUMNS = (*(f"c{place}" for place in range(10)), "sex=F", "sex=M")


def table(num_train: int = 200) -> Dataset:
    """Coins throughout, so that nothing can be learnt but the records themselves."""
    generator = np.random.default_rng(0)
    n = num_train + 600
    x = np.concatenate(
        [generator.integers(0, 2, (n, 10)), np.eye(2)[generator.integers(0, 2, n)]], axis=1
    ).astype(np.float32)
    y = generator.integers(0, 2, n).astype(np.int32)
    return Dataset(x[:num_train], y[:num_train], x[num_train:], y[num_train:], 2, "coins", "made up", COLUMNS)


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    data, out = table(), tmp_path_factory.mktemp("run")
    network = Network("mlp", data.input_shape, 2)
    records = Records(jnp.asarray(data.x), jnp.asarray(data.y))
    params = network.initialise(jax.random.key(0))
    optimiser = optax.adam(0.02)
    state = optimiser.init(params)

    @jax.jit
    def step(params: Any, state: Any) -> tuple[Any, Any]:
        gradient = jax.grad(lambda p: network.losses(p, records).mean())(params)
        updates, state = optimiser.update(gradient, state, params)
        return optax.apply_updates(params, updates), state

    for _ in range(200):
        params, state = step(params, state)
    folder.write_weights(out, params)
    folder.write_json(out / folder.RUN, {"method": "nonprivate", "settings": {"model": None}})
    return out


def test_members_are_read_and_others_are_not(run: Path) -> None:
    found = inference.attack(
        run, table(), public=parse("private:sex", num_columns=12, names=COLUMNS), attribute="sex", seed=0
    )
    assert found.members.advantage().lower > 0.05
    assert 0.0 in found.others.advantage() and 0.5 in found.others.accuracy(confidence=0.99)
    answer = found.as_dict(confidence=0.95)
    assert answer["members"]["records"] == 200 and answer["others"]["records"] == 300
    rows = found.rows(confidence=0.95)
    assert [row[1] for row in rows] == ["sex, members", "sex, others"]
    assert all(len(row) == len(report.COLUMNS) for row in rows)


def test_less_known_less_read(run: Path) -> None:
    blind = inference.attack(run, table(), public=parse("label"), attribute="sex", seed=0)
    assert blind.members.advantage().lower < 0.05


def test_refused(run: Path, tmp_path: Path) -> None:
    data = table()
    with pytest.raises(
        ValueError, match="attribute must be private, got sex, of which features shows something"
    ):
        inference.attack(run, data, public=parse("features"), attribute="sex", seed=0)
    with pytest.raises(ValueError, match="attribute must be one of c0, .* got 'age'"):
        inference.attack(run, data, public=parse("label"), attribute="age", seed=0)
    with pytest.raises(ValueError, match="run.json must describe a run"):
        folder.write_json(tmp_path / folder.RUN, {})
        (tmp_path / folder.RUN).write_text("no JSON")
        inference.attack(tmp_path, data, public=parse("label"), attribute="sex", seed=0)
    unnamed = Dataset(data.x, data.y, data.x_test, data.y_test, 2, "unnamed", "made up")
    with pytest.raises(ValueError, match="attribute must be of a table with named columns, got unnamed"):
        inference.attack(run, unnamed, public=parse("label"), attribute="sex", seed=0)
