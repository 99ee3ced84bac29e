"""The standing check: every sampler of ours passes its audit, every broken one is caught."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable, Iterator, Mapping, Sequence

import jax

from exactdp.accounting import validate
from exactdp.mechanisms import keys
from exactdp.mechanisms.audit import broken, targets
from exactdp.mechanisms.audit.check import Verdict, check
from exactdp.mechanisms.audit.target import Target

Build = Callable[[], Target]

OURS: Mapping[str, Build] = {
    "gaussian": lambda: targets.gaussian(noise_multiplier=1.0),
    "gaussian, much noise": lambda: targets.gaussian(noise_multiplier=5.0),
    "clipped": lambda: targets.clipped(noise_multiplier=1.0),
    "subsampled": lambda: targets.subsampled(noise_multiplier=0.8, sampling_probability=0.2),
    "dirichlet": lambda: targets.dirichlet(scaling=2.0, offset=1.0),
    "dirichlet, the paper's": lambda: targets.dirichlet(scaling=0.235, offset=3.0),
    "dirichlet, small offset": lambda: targets.dirichlet(scaling=0.5, offset=0.1, num_classes=3),
}
BROKEN: Mapping[str, Build] = {
    "half the noise": lambda: broken.half_noise(noise_multiplier=1.0),
    "key reused": lambda: broken.reused_key(noise_multiplier=1.0),
    "clip forgotten": lambda: broken.forgotten_clip(noise_multiplier=1.0),
    "padding leak": lambda: broken.padding_leak(noise_multiplier=1.0, sampling_probability=0.2),
    "sampled too often": lambda: broken.sampled_too_often(noise_multiplier=1.0, sampling_probability=0.2),
    "twice the scaling": lambda: broken.sharp_dirichlet(scaling=2.0, offset=1.0),
}


@dataclasses.dataclass(frozen=True)
class Outcome:
    """One audit of the standing check.

    Attributes:
      name: of the target.
      broken: whether it is wrong on purpose.
      verdict: what the draws say.
      seconds: how long it took.
    """

    name: str
    broken: bool
    verdict: Verdict
    seconds: float

    @property
    def as_expected(self) -> bool:
        """Whether a correct target passed, or a broken one was caught."""
        return self.verdict.refuted == self.broken


def run(
    *,
    key: jax.Array,
    names: Sequence[str] | None = None,
    trials: int = 2**20,
    delta: float = 1e-3,
    confidence: float = 0.9999,
) -> Iterator[Outcome]:
    """Audits targets, one after the other.

    Args:
      key: of the draws, a typed scalar key. A target's draws do not depend on which others are audited.
      names: of the targets, in `OURS` or `BROKEN`; None for all of them.
      trials: draws of each correct target; a broken one gets an eighth, which must be enough.
      delta: in (0, 1), at which epsilon is reported.
      confidence: of each audit; a correct target fails with probability at most 1 - confidence.

    Raises:
      ValueError: an argument is out of range.
    """
    keys.require_key(key)
    for name in names or ():
        validate.one_of("name", name, (*OURS, *BROKEN))
    listed = [(name, build, False) for name, build in OURS.items()]
    listed += [(name, build, True) for name, build in BROKEN.items()]
    for i, (name, build, wrong) in enumerate(listed):
        if names is not None and name not in names:
            continue
        start = time.perf_counter()
        verdict = check(
            build(),
            key=jax.random.fold_in(key, i),
            trials=trials // 8 if wrong else trials,
            delta=delta,
            confidence=confidence,
        )
        yield Outcome(name, wrong, verdict, time.perf_counter() - start)
