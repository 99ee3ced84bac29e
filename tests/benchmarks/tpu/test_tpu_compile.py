"""Steps lowered for a GPU, and compiled for TPU v5e where libtpu is installed."""

from __future__ import annotations

from typing import Any

import jax
import pytest
from jax import export

from exactdp.benchmarks import tpu_compile
from exactdp.benchmarks.tpu import roofline, steps, topology
from exactdp.train import parallel

needs_libtpu = pytest.mark.skipif(
    not topology.available(), reason="libtpu, which holds the compiler for TPUs, is not installed"
)


@pytest.mark.parametrize("method", steps.METHODS)
def test_every_method_lowers_for_cuda(method: str) -> None:
    step, shapes = steps.jitted(steps.Case(method, "cnn", 16, 64), layout=parallel.Layout())
    exported = export.export(step, platforms=["cuda"])(*shapes)
    assert exported.platforms == ("cuda",)
    assert [leaf.shape for leaf in exported.out_avals][: len(jax.tree.leaves(shapes[0].params))] == [
        leaf.shape for leaf in jax.tree.leaves(shapes[0].params)
    ]


def test_parts_and_diffusion_lower_for_cuda() -> None:
    for case in (
        steps.Case("dpsgd", "mlp", 16, 64, accumulation=4),
        steps.Case("feature", "unet", 4, 16, bfloat16=False),
    ):
        step, shapes = steps.jitted(case, layout=parallel.Layout())
        assert export.export(step, platforms=["cuda"])(*shapes).platforms == ("cuda",)


def test_roofline_is_the_slowest_part() -> None:
    chip = topology.Chip("made up", flops=10.0, memory_bandwidth=4.0, memory=8.0, link_bandwidth=2.0)
    cost = roofline.Cost(flops=20.0, memory_traffic=12.0, memory=3.0, collective=2.0, sent=3.0, kinds={})
    assert roofline.seconds(cost, chip=chip) == {"compute": 2.0, "memory": 3.0, "links": 1.5}


def test_cost_of_a_product() -> None:
    a = jax.ShapeDtypeStruct((64, 32), "float32")
    b = jax.ShapeDtypeStruct((32, 16), "float32")
    cost = roofline.cost(jax.jit(lambda a, b: a @ b).lower(a, b).compile(), num_devices=1)
    assert cost.flops == 2 * 64 * 32 * 16
    held = 4 * (64 * 32 + 32 * 16 + 64 * 16)
    assert held <= cost.memory <= 2 * held + 1024
    assert cost.memory_traffic >= held and cost.sent == 0.0


def test_of_a_loop_over_parts_one_turn_is_counted() -> None:
    a = jax.ShapeDtypeStruct((8, 32, 32), "float32")

    def turns(a: jax.Array, number: jax.Array) -> jax.Array:
        return jax.lax.fori_loop(0, number, lambda k, x: x @ a[k], a[0])

    found = roofline.cost(jax.jit(turns).lower(a, jax.ShapeDtypeStruct((), "int32")).compile(), num_devices=1)
    assert 2 * 32**3 <= found.flops < 2 * 2 * 32**3


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"method": "pate"}, "method must be one of nonprivate, dpsgd, label_public, .* got 'pate'"),
        ({"method": "dirichlet", "model": "gpt2"}, "method must be one of nonprivate, dpsgd for gpt2"),
        (
            {"model": "gpt"},
            "model must be one of linear, mlp, cnn, wrn-16-4, vit-tiny, unet, gpt-tiny, gpt2, got 'gpt'",
        ),
        ({"method": "dirichlet", "model": "unet"}, "method must be one of nonprivate, dpsgd, .* for unet"),
        ({"accumulation": 0}, "accumulation must be a whole number >= 1, got 0"),
        ({"method": "dirichlet", "accumulation": 2}, "accumulation must be 1 for dirichlet, got 2"),
        ({"capacity": 1}, "capacity must be a whole number >= 2, got 1"),
        ({"capacity": 64, "num_records": 63}, "num_records must be a whole number >= 64, got 63"),
    ],
)
def test_bad_cases(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        steps.Case(**({"method": "dpsgd", "model": "cnn"} | changes))


@pytest.mark.skipif(topology.available(), reason="libtpu is installed")
def test_missing_libtpu_is_named() -> None:
    with pytest.raises(ValueError, match="libtpu must be installed"):
        topology.layout(split_parameters=False)


@needs_libtpu
@pytest.mark.slow
@pytest.mark.parametrize("split", [False, True])
@pytest.mark.parametrize(
    # Of an mlp's step the data set is most of what is held; that one turn is counted shows the loop.
    ("method", "model", "less"),
    [("dpsgd", "cnn", "memory_bytes"), ("feature", "mlp", "flops")],
)
def test_parts_compile_for_four_chips(method: str, model: str, less: str, split: bool) -> None:
    whole, parts = (
        tpu_compile.measure(steps.Case(method, model, 256, 1024, accumulation=number), split=split)
        for number in (1, 4)
    )
    assert parts["fits"] and parts[less] < whole[less]


@needs_libtpu
@pytest.mark.slow
@pytest.mark.parametrize("split", [False, True])
@pytest.mark.parametrize("method", steps.METHODS)
def test_compiles_for_four_chips(method: str, split: bool) -> None:
    row = tpu_compile.measure(steps.Case(method, "cnn", 64, 256), split=split)
    assert row["fits"] and row["flops"] > 0 and row["roofline_seconds"] > 0
    # At least the gradient goes round: 26 010 numbers of two bytes or more.
    assert row["collective_bytes"] >= 2 * 26_010
    assert tpu_compile.line(row).startswith(method)
