"""Weights written and read back."""

from __future__ import annotations

from pathlib import Path

import jax
import numpy as np
import pytest

from exactdp.train import folder
from exactdp.train.network import Network


def test_there_and_back(tmp_path: Path) -> None:
    network = Network("mlp", (5,), 3)
    params = network.initialise(jax.random.key(3))
    folder.write_weights(tmp_path, params)
    found = folder.read_weights(tmp_path, like=network.initialise(jax.random.key(0)))
    x = jax.random.normal(jax.random.key(1), (4, 5))
    np.testing.assert_array_equal(network.logits(found, x), network.logits(params, x))


def test_refused(tmp_path: Path) -> None:
    like = Network("mlp", (5,), 3).initialise(jax.random.key(0))
    with pytest.raises(ValueError, match="weights.npz must hold the weights of a run that ended, got"):
        folder.read_weights(tmp_path, like=like)
    folder.write_weights(tmp_path, Network("mlp", (6,), 3).initialise(jax.random.key(0)))
    with pytest.raises(ValueError, match="weights.npz must hold weights of this model, got others: head/"):
        folder.read_weights(tmp_path, like=like)
    path = tmp_path / folder.WEIGHTS
    whole = path.read_bytes()
    for blob in (whole[:100], b"", b"text"):
        path.write_bytes(blob)
        with pytest.raises(ValueError, match="must hold the weights of a run that ended, got"):
            folder.read_weights(tmp_path, like=like)
