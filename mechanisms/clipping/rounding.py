"""How far below its exact value a record's computed norm can be.

Model: u = 2^-24, and every float32 addition, product, quotient and root is exact times 1 + d with |d| <= u
(IEEE 754; a fused product and sum is rounded less often). Terms >= 0 lose nothing to cancellation: a sum in
which each of them passes at most k roundings is at least (1 - u)^k times the exact one, in whatever order the
compiler adds (Higham, Accuracy and Stability of Numerical Algorithms, 2nd edition, section 4.2). So a squared
norm that passes k roundings leaves the norm at least (1 - u)^(k/2) of the exact one, before its own root.

This is a proof where the norm is of the very numbers that are weighted and added:

- "keep": the squares of the kept gradient, added by `rule.squared` in blocks;
- "ghost" of dense layers at one position: |a|^2 |g|^2, of the same activations and output gradients.

It is none for Gram matrices and "recompute", whose inner products over K numbers (positions) can cancel, so
that the norm of what was rounded is not that of what is added. `rule.gram_norms` adds 8 u S^2 with
S = sum_t |a_t| |g_t|; the worst there can be is of the order K u S^2, which no inner product of numbers that
were not made for it comes near. "recompute" is off by at most about K u S, which is within the blocks' room
unless S is far above the norm, that is, unless a record's positions cancel. `method="keep"` has the proof.

Assumed besides: that a value used for norm and sum is the same number in both, that is, computed once or
twice alike; and that the compiler adds the blocks apart, as the code says.
"""

from __future__ import annotations

from exactdp.mechanisms.clipping.engine import Planned
from exactdp.mechanisms.clipping.plan import group_floats
from exactdp.mechanisms.clipping.rules import rule
from exactdp.mechanisms.clipping.rules.dense import Dense

UNIT = 2.0**-24
"""u, the unit roundoff of float32."""


def roundings(planned: Planned) -> int:
    """The k of the module's text: roundings of a term of a record's squared norm, over all groups."""
    most = 0
    for group, choice in zip(planned.groups, planned.choices, strict=True):
        members = [planned.uses[member.use].rule for member in group.members]
        found = rule.roundings(group_floats(planned.program, group)) + len(group.leaves)
        if choice.method == "ghost" and len(members) == 1 and isinstance(members[0], Dense):
            heads, times, width, features = members[0].sizes
            if times == 1:
                # Two sums, their product, the bound on what underflows, and the sum over heads.
                found = rule.roundings(width) + rule.roundings(features) + heads + 1
        most = max(most, found)
    # The groups' squared norms are added one after the other.
    return most + len(planned.groups)


def share(count: int) -> float:
    """1 - (1 - u)^(k / 2): of the norm, what k = `count` roundings of its square can take away."""
    return 1.0 - (1.0 - UNIT) ** (0.5 * count)
