"""Bytes exchanged, read from programs written here and from one that XLA compiled."""

from __future__ import annotations

import pytest

from exactdp.benchmarks.tpu.collectives import Collective, collectives

PROGRAM = """HloModule step, num_partitions=4

%sum (a: f32[], b: f32[]) -> f32[] {
  %a = f32[] parameter(0)
  %b = f32[] parameter(1)
  ROOT %add = f32[] add(%a, %b)
}

%small (p: f32[8]) -> f32[8] {
  %p = f32[8]{0} parameter(0)
  ROOT %all-reduce.1 = f32[8]{0} all-reduce(%p), replica_groups={{0,1,2,3}}, to_apply=%sum
}

%large (q: f32[8]) -> f32[8] {
  %q = f32[8]{0} parameter(0)
  %all-reduce.2 = (f32[8]{0:T(128)}, bf16[4,2]{1,0:T(8,128)(2,1)S(1)}) all-reduce(%q, %r), to_apply=%sum
  ROOT %x = f32[8]{0} get-tuple-element(%all-reduce.2), index=0
}

ENTRY %main (input: f32[8]) -> f32[32] {
  %input = f32[8]{0} parameter(0)
  %conditional.1 = f32[8]{0} conditional(%n, %input, %input), branch_computations={%small, %large}
  %conditional.2 = f32[8]{0} conditional(%c, %i, %i), true_computation=%small, false_computation=%small
  %all-gather-start.1 = (f32[8]{0}, f32[32]{0}) all-gather-start(%conditional.1), dimensions={0}
  %all-gather-done.1 = f32[32]{0} all-gather-done(%all-gather-start.1)
  %reduce-scatter.1 = s8[6]{0} reduce-scatter(%y), to_apply=%sum
  %permuted = pred[5]{0} collective-permute(%z), source_target_pairs={{0,1}}
  ROOT %copy = f32[32]{0} copy(%all-gather-done.1)
}
"""


def test_each_kind_by_its_ring() -> None:
    found = collectives(PROGRAM, num_devices=4)
    assert sorted(found) == sorted(
        [
            Collective("all-gather", 128, 96.0),
            Collective("reduce-scatter", 6, 18.0),
            Collective("collective-permute", 5, 5.0),
            Collective("all-reduce", 48, 72.0),  # the larger branch: f32[8] and bf16[4,2]
            Collective("all-reduce", 32, 48.0),
        ]
    )
    assert sum(each.sent for each in collectives(PROGRAM, num_devices=1)) == 5.0


def test_a_text_that_is_no_program() -> None:
    with pytest.raises(ValueError, match="text must be a program with an ENTRY computation"):
        collectives("nothing", num_devices=4)
