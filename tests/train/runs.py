"""Small runs for the tests of the loop; as a script, one run in a process of its own."""

from __future__ import annotations

import argparse
import functools
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import jax
import numpy as np

from exactdp.accounting.ledger import Ledger
from exactdp.train import folder, loop, methods, parallel
from exactdp.train.data import Dataset
from exactdp.train.feature_settings import FeatureSettings
from exactdp.train.optimiser import Optimiser
from exactdp.train.result import Result
from exactdp.train.settings import Settings

NUM_CLASSES = 3
_OWN = ("bfloat16", "accumulation", "augmentation", "model")


@functools.cache
def dataset(seed: int = 0, *, records: int = 120) -> Dataset:
    """Classes that are bright in rows of their own."""
    rng = np.random.default_rng(seed)

    def part(count: int) -> tuple[np.ndarray, np.ndarray]:
        y = np.arange(count, dtype=np.int32) % NUM_CLASSES
        x = 0.3 * rng.random((count, 4, 4, 1), np.float32)
        x[np.arange(count), y] += 0.7
        return x.astype(np.float32), y

    x, y = part(records)
    x_test, y_test = part(60)
    return Dataset(x, y, x_test, y_test, NUM_CLASSES, "tiny", "made up")


@functools.cache
def prepare(method: str = "dpsgd", *, data: Dataset | None = None, **settings: Any) -> methods.Prepared:
    given: dict[str, Any] = {"num_steps": 20, "sampling_probability": 0.2}
    if method == "dirichlet":
        given |= {"scaling": 0.5}
    elif method != "nonprivate":
        given |= {"noise_multiplier": 2.0}
    if method == "feature":
        given |= {"feature": FeatureSettings("blur:sigma=0.8+label")}
    given |= settings
    more = {name: given.pop(name) for name in _OWN if name in given}
    return methods.prepare(
        Settings(method, **given), data=data or dataset(), model=more.pop("model", "linear"), **more
    )


def run(
    out: Path,
    prepared: methods.Prepared | None = None,
    *,
    seed: int | None = 7,
    resume: bool = False,
    learning_rate: float = 0.5,
    **options: Any,
) -> Result:
    ready = prepared or prepare()
    given: dict[str, Any] = {"checkpoint_every": 6, "report_every": 5, "progress": False} | options
    return methods.run(
        ready,
        out=out,
        seed=seed,
        resume=resume,
        options=loop.Options(
            num_steps=ready.plan.num_steps,
            delta=ready.settings.delta,
            optimiser=given.pop("optimiser", Optimiser(learning_rate=learning_rate)),
            **given,
        ),
    )


def weights(out: Path) -> dict[str, np.ndarray]:
    with np.load(out / folder.WEIGHTS) as file:
        return dict(file)


def same(one: Mapping[str, np.ndarray], other: Mapping[str, np.ndarray]) -> bool:
    """Bit for bit."""
    return one.keys() == other.keys() and all(one[k].tobytes() == other[k].tobytes() for k in one)


def entries(out: Path, *, after: int = 0) -> list[tuple[Any, ...]]:
    """The ledger's entries after so many, but for times and the name of the run."""
    return [
        (e.mechanism, e.count, e.threat_model, e.note.split(": ")[1])
        for e in Ledger.load(out / folder.LEDGER).entries[after:]
    ]


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("out", type=Path)
    parser.add_argument("--resume", action="store_true")
    parser.add_argument("--num_steps", type=int, default=300)
    parser.add_argument("--checkpoint_every", type=int, default=17)
    parser.add_argument("--coordinator")
    parser.add_argument("--process_id", type=int)
    arguments = parser.parse_args()
    if arguments.coordinator is not None:
        parallel.connect(arguments.coordinator, num_processes=2, process_id=arguments.process_id)
    run(
        arguments.out,
        prepare(num_steps=arguments.num_steps),
        resume=arguments.resume,
        checkpoint_every=arguments.checkpoint_every,
        devices=jax.device_count(),
    )


if __name__ == "__main__":
    main()
