"""The planner's account of what is held at a time."""

from __future__ import annotations

import jax
import jax.numpy as jnp

from exactdp.mechanisms.clipping import loss as losses
from exactdp.mechanisms.clipping import plan as planning

RECORDS, TIMES, LAYERS = 4, 16, 3


def analysed():
    params = [jnp.zeros((32, 32)) for _ in range(LAYERS)]

    def loss(params, x):
        for w in params:
            x = jnp.tanh(x @ w)
        return x.sum((1, 2))

    return losses.analyse(loss, params, jax.ShapeDtypeStruct((RECORDS, TIMES, 32), jnp.float32))


def test_activations_are_freed_layer_by_layer():
    found = analysed()
    freed = planning.freed_bytes(found.program, found.uses, RECORDS)
    assert freed == [4.0 * RECORDS * TIMES * 32] * LAYERS
    kept = planning.plan(
        found.program, found.uses, found.groups, records=RECORDS, byte_budget=1e9, freed=freed, method="keep"
    )
    each = kept[0].kept_bytes
    # The last layer's gradients come first; each layer gives its activations back after it.
    assert planning.most_kept(found.groups, kept, freed) == (LAYERS * each - (LAYERS - 1) * freed[0], 0)
    assert planning.most_kept(found.groups, kept, [0.0] * LAYERS) == (LAYERS * each, 0)
    assert planning.most_kept(found.groups, kept, [2.0 * each] * LAYERS) == (each, LAYERS - 1)


def test_a_budget_counts_what_is_freed_only_where_told():
    found = analysed()
    freed = planning.freed_bytes(found.program, found.uses, RECORDS)
    for released in (freed, [0.0] * LAYERS):
        for budget in (0.0, 3e4, 6e4, 1e9):
            chosen = planning.plan(
                found.program, found.uses, found.groups, records=RECORDS, byte_budget=budget, freed=released
            )
            leanest = sum(
                min(c.kept_bytes for c in planning.choices(found.program, found.uses, group, RECORDS))
                for group in found.groups
            )
            most = planning.most_kept(found.groups, chosen, released)[0]
            assert most <= max(budget, leanest)
