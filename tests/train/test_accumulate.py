from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import export

from exactdp.mechanisms.batches import FixedSize, Poisson
from exactdp.mechanisms.batches.cyclic import Cyclic
from exactdp.mechanisms.batches.shuffled import Shuffled
from exactdp.train.accumulate import accumulate

ROOT = Path(__file__).resolve().parents[2]
ROWS, PARTS, EACH = 23, 5, 5  # 23 rows and 2 more in 5 slices of 5
MASKS = {
    "none": [],
    "the first": [0],
    "the last": [22],
    "two full slices": range(10),
    "one more than two full slices": range(11),
    "all": range(23),
    "with gaps": [1, 7, 8, 13],
}


def batch(rows: int = ROWS) -> dict[str, jax.Array]:
    x = jax.random.normal(jax.random.key(0), (rows, 3))
    return {"x": x, "label": jnp.arange(rows) % 4}


def part(records: Any, mask: jax.Array) -> dict[str, Any]:
    """A sum over the rows that count; and how often it was called, which no sum over them should tell."""
    each = jnp.where(mask[:, None], jnp.sin(records["x"]) * (1 + records["label"][:, None]), 0.0)
    return {"sum": each.sum(0), "rows": (mask.sum(), jnp.int32(1))}


def masked(places: Any, rows: int = ROWS) -> jax.Array:
    return jnp.zeros(rows, bool).at[jnp.asarray(list(places), int)].set(True)


@jax.jit
def in_parts(records: Any, mask: jax.Array) -> Any:
    return accumulate(part, records, mask, parts=PARTS)


@pytest.mark.parametrize("name", MASKS)
def test_the_sum_of_the_slices_is_that_of_the_batch(name: str) -> None:
    mask = masked(MASKS[name])
    whole = part(batch(), mask)
    found = in_parts(batch(), mask)
    np.testing.assert_allclose(found["sum"], whole["sum"], rtol=1e-6, atol=1e-6)
    assert found["rows"][0] == whole["rows"][0]
    last = max(MASKS[name], default=-1)
    assert found["rows"][1] == -(-(last + 1) // EACH)


def test_every_number_of_rows_and_of_parts() -> None:
    records = batch()
    for parts in (3, 40):
        compiled = jax.jit(lambda m, n=parts: accumulate(part, records, m, parts=n))
        for count in range(0, ROWS + 1, 4):
            whole, found = part(records, masked(range(count))), compiled(masked(range(count)))
            np.testing.assert_allclose(found["sum"], whole["sum"], rtol=1e-5, atol=1e-6)
            assert found["rows"][0] == count


def test_an_empty_batch_is_zero_exactly() -> None:
    found = in_parts({**batch(), "x": jnp.full((ROWS, 3), jnp.nan)}, masked([]))
    assert all(not np.any(leaf) for leaf in jax.tree.leaves(found))


def test_one_part_is_the_batch_itself() -> None:
    seen = []

    def keep(records: Any, mask: Any) -> jax.Array:
        seen.append((records, mask))
        return jnp.float32(0.0)

    records, mask = batch(), masked([3])
    accumulate(keep, records, mask, parts=1)
    assert seen[0][0] is records and seen[0][1] is mask


@pytest.mark.parametrize("parts", [0, -1, 1.5])
def test_bad_parts_are_refused(parts: Any) -> None:
    with pytest.raises(ValueError, match="accumulation must be a whole number >= 1"):
        accumulate(part, batch(), masked([0]), parts=parts)


@pytest.mark.parametrize(
    "sampler",
    [
        Poisson(40, 0.1, 8),
        Poisson(40, 0.5, 8),  # overflows
        Poisson(40, 1.0, 40),
        FixedSize(40, 7),
        Cyclic(40, 7),
        Shuffled(40, 7),
    ],
    ids=str,
)
def test_samplers_put_the_records_drawn_at_the_front(sampler: Any) -> None:
    masks = np.asarray(jax.vmap(lambda step: sampler.draw(jax.random.key(5), step=step).mask)(jnp.arange(12)))
    assert masks.any()
    assert not np.any(masks[:, 1:] & ~masks[:, :-1])


def product(records: Any, mask: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Holds much more than it is given: 64 times as many numbers."""
    wide = jnp.sin(records[:, :, None] * jnp.arange(64.0))
    return jnp.where(mask, jnp.sum(wide @ wide.mT, (1, 2)), 0.0).sum(), jnp.int32(1)


def test_memory_and_program_are_those_of_one_slice() -> None:
    records, mask = jnp.ones((512, 32)), jnp.ones(512, bool)
    found = {}
    for parts in (1, 4, 32):
        lowered = jax.jit(lambda r, m, n=parts: accumulate(product, r, m, parts=n)).lower(records, mask)
        memory: Any = lowered.compile().memory_analysis()
        found[parts] = (memory.temp_size_in_bytes, len(lowered.as_text()))
    assert found[4][0] < 0.4 * found[1][0]
    assert found[32][0] < 0.2 * found[4][0]
    assert found[32][1] < 1.1 * found[4][1]


def convolved(records: jax.Array, mask: jax.Array) -> tuple[jax.Array, jax.Array]:
    # Within a loop of its own, as a model may have it.
    kernel = jnp.ones((1, 1, 3))

    def layer(x: jax.Array, _: None) -> tuple[jax.Array, None]:
        return jax.lax.conv_general_dilated(x, kernel, (1,), "SAME"), None

    out = jax.lax.scan(layer, records[:, None], None, length=2)[0]
    return jnp.where(mask[:, None, None], out, 0.0).sum((0, 1)), jnp.int32(1)


@pytest.mark.skipif(jax.default_backend() != "cpu", reason="of the CPU backend")
def test_a_convolution_is_written_out_on_cpus_only() -> None:
    records, mask = batch()["x"], masked(range(7))

    def run(r: jax.Array, m: jax.Array) -> Any:
        return accumulate(convolved, r, m, parts=PARTS)

    total, calls = jax.jit(run)(records, mask)
    np.testing.assert_allclose(total, convolved(records, mask)[0], rtol=1e-5)
    assert calls == PARTS
    loops = {}
    for platform in ("cpu", "cuda", "tpu"):
        text = export.export(jax.jit(run), platforms=[platform])(records, mask).mlir_module()
        loops[platform] = text.count("stablehlo.while")
    # The model's own loop once for every slice, against once within that over the slices.
    assert loops == {"cpu": PARTS, "cuda": 2, "tpu": 2}


SCRIPT = """
import sys
from pathlib import Path
import jax, jax.numpy as jnp, numpy as np
from exactdp.train import parallel
from exactdp.train.accumulate import accumulate
from tests.train import runs
from tests.train.test_accumulate import batch, masked, part
assert len(jax.devices()) == 8
layout = parallel.make(8)

def spread(records, mask):
    rows = jax.tree.map(layout.padded, (records, mask))
    return accumulate(part, *layout.spread(rows), parts=3)

compiled = jax.jit(spread)
records = batch(90)
for count in (0, 1, 31, 32, 33, 64, 65, 90):
    mask = masked(range(count), 90)
    whole, found = part(records, mask), compiled(records, mask)
    np.testing.assert_allclose(found["sum"], whole["sum"], rtol=1e-5, atol=1e-5)
    assert found["rows"][0] == count, count
    # 96 rows: 12 of each device, 4 of each in a slice, so that a slice holds 32 records drawn.
    assert found["rows"][1] == -(-count // 32), (count, found)
text = compiled.lower(records, masked([0], 90)).compile().as_text()
assert "f32[4,3]" in text and "f32[32,3]" not in text
out = Path(sys.argv[1])
ready = runs.prepare("dpsgd", model="mlp", num_steps=8, sampling_probability=0.31, accumulation=3)
runs.run(out / "one", ready)
runs.run(out / "eight", ready, devices=8)
runs.run(out / "split", ready, devices=8, split_parameters=True)
"""


@pytest.mark.slow
def test_eight_devices_share_every_slice(tmp_path: Path) -> None:
    from tests.train import runs

    path = os.pathsep.join([str(ROOT), str(ROOT / "src"), os.environ.get("PYTHONPATH", "")])
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", SCRIPT, str(tmp_path)],
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
    one = runs.weights(tmp_path / "one")
    for name in ("eight", "split"):
        other = runs.weights(tmp_path / name)
        assert one.keys() == other.keys()
        for key, value in one.items():
            np.testing.assert_allclose(other[key], value, rtol=0.0, atol=2e-5)
