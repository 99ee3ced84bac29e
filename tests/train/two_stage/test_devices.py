"""Stage 2 with a batch over eight devices ends where it ends on one."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from exactdp.train import folder

ROOT = Path(__file__).resolve().parents[3]
SCRIPT = """
import sys
from pathlib import Path
import jax
from tests.train.two_stage import tables
assert len(jax.devices()) == 8
place = Path(sys.argv[1])
one = tables.run(place, place / "one", first_stage="none", holdout=0.0)
# The noise of the statistics has no seed: the other run is given the same.
(place / "eight").mkdir()
for name in ("two_stage.json", "key.json", "statistics.json"):
    (place / "eight" / name).write_bytes((place / "one" / name).read_bytes())
eight = tables.run(place, place / "eight", first_stage="none", holdout=0.0, resume=True, devices=8)
assert one.epsilon == eight.epsilon
"""


@pytest.mark.slow
def test_eight_devices_give_the_weights_of_one(tmp_path: Path) -> None:
    path = os.pathsep.join([str(ROOT), str(ROOT / "src"), os.environ.get("PYTHONPATH", "")])
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, str(tmp_path)],
        env={
            **os.environ,
            "PYTHONPATH": path,
            "JAX_PLATFORMS": "cpu",
            "XLA_FLAGS": f"{os.environ.get('XLA_FLAGS', '')} --xla_force_host_platform_device_count=8",
        },
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-4000:]
    with (
        np.load(tmp_path / "one" / folder.WEIGHTS) as one,
        np.load(tmp_path / "eight" / folder.WEIGHTS) as eight,
    ):
        assert one.files == eight.files
        for name in one.files:
            np.testing.assert_allclose(eight[name], one[name], rtol=0.0, atol=2e-4)
