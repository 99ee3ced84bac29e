"""Theorem 11 by Monte Carlo: is the mean gradient through a Dirichlet draw κ times that of the cross entropy?

Paper: arXiv 2607.19580v1, Theorem 11, E[∇(-log ρ_y)] = κ (s - e_y) in the logits z, with s = softmax(z) and
κ = r s_y ψ'(r s_y + α). It needs the gradient through the draw (pathwise), which is what is sampled here;
needs no data and trains nothing, so that no epsilon is involved.

Command:       python -m exactdp.benchmarks.dirichlet_theorem11 --out results
Expected time: a minute on one core.
Expected:      all standardised errors within the simultaneous 99 % band.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Sequence
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
from absl import app, flags
from scipy import special

from exactdp.accounting import validate
from exactdp.accounting.printed import dirichlet as printed
from exactdp.benchmarks.curves import store, style
from exactdp.benchmarks.experiments import chart
from exactdp.benchmarks.experiments.dirichlet import ARXIV
from exactdp.benchmarks.experiments.script import define_output, own_table
from exactdp.mechanisms import keys
from exactdp.mechanisms.dirichlet_mechanism import DirichletMechanism

NAME = "dirichlet_theorem11"
SETTINGS = ((0.235, 3.0), (5.0, 3.0), (1.0, 0.5), (50.0, 1.0))
PROBABILITIES = (0.05, 0.3, 0.6, 0.9, 0.99)
CONFIDENCE = 0.99
_COLUMNS = ("scaling", "offset", "probability", "coordinate", "expected", "mean", "standard_error")
_CHUNK = 20_000
_CLASSES = 10


@dataclasses.dataclass(frozen=True)
class Verdict:
    """What the samples say of all coordinates together.

    Attributes:
      count: coordinates tested.
      largest: the largest absolute error in standard errors.
      bound: what it may reach with 99 % probability if the theorem holds (Bonferroni, normal).
    """

    count: int
    largest: float
    bound: float

    @property
    def holds(self) -> bool:
        """Whether the samples agree with the theorem."""
        return self.largest <= self.bound


def sample(
    scaling: float, offset: float, probability: float, *, num_draws: int, seed: int
) -> list[tuple[float, float, float]]:
    """(expected, mean, standard error) of each coordinate of the gradient in the logits.

    The logits give `probability` to the label, class 0, and the rest unevenly to nine other classes.

    Args:
      scaling: r > 0.
      offset: alpha > 0.
      probability: s_y in (0, 1).
      num_draws: >= 2.
      seed: of the draws.

    Raises:
      ValueError: an argument is outside its range.
    """
    mechanism = DirichletMechanism(scaling=scaling, offset=offset)
    s_y = validate.open_probability("probability", probability)
    count = validate.count("num_draws", num_draws, minimum=2)
    rest = np.arange(1.0, _CLASSES)
    s = np.concatenate([[s_y], (1.0 - s_y) * rest / rest.sum()])
    z = jnp.asarray(np.log(s), jnp.float32)

    @jax.jit
    def gradients(key: jax.Array) -> jax.Array:
        def total(logits: jax.Array) -> jax.Array:
            return -jnp.sum(mechanism.log_draw(key, logits)[:, 0])

        return jax.grad(total)(jnp.broadcast_to(z, (_CHUNK, _CLASSES)))

    run_key, total, squares = keys.run_key(seed), np.zeros(_CLASSES), np.zeros(_CLASSES)
    for step, start in enumerate(range(0, count, _CHUNK)):
        found = np.asarray(gradients(keys.step_key(run_key, step=step, purpose="draw")), np.float64)
        found = found[: count - start]
        total += found.sum(axis=0)
        squares += (found**2).sum(axis=0)
    mean = total / count
    error = np.sqrt((squares / count - mean**2) / (count - 1))
    factor = printed.kappa(scaling, offset=offset, true_class_probability=s_y)
    expected = factor * (s - np.eye(_CLASSES)[0])
    return [(float(a), float(b), float(c)) for a, b, c in zip(expected, mean, error, strict=True)]


def compute(path: Path, *, num_draws: int, seed: int) -> list[store.Row]:
    """Samples what is not in the CSV file yet; after every setting the file is complete.

    Raises:
      ValueError: the file is there with another number of draws or seed.
    """
    header = {
        "paper": ARXIV,
        "num_draws": validate.count("num_draws", num_draws, minimum=2),
        "seed": validate.count("seed", seed),
        "classes": _CLASSES,
        "jax": jax.__version__,
    }
    rows: list[store.Row] = []
    if path.is_file():
        found, rows = store.read_csv(path)
        if found != header:
            raise ValueError(f"out must hold no file made with other settings, got {path}; remove it")
    have = {(row["scaling"], row["offset"], row["probability"]) for row in rows}
    for place, (r, alpha) in enumerate(SETTINGS):
        for other, s in enumerate(PROBABILITIES):
            if (repr(r), repr(alpha), repr(s)) in have:
                continue
            # A seed of its own for each, as points of one figure should be independent.
            own = seed * 10_000 + place * 100 + other
            for j, values in enumerate(sample(r, alpha, s, num_draws=num_draws, seed=own)):
                cells = (r, alpha, s, j, *values)
                rows.append({n: repr(cell) for n, cell in zip(_COLUMNS, cells, strict=True)})
            store.write_csv(path, header, _COLUMNS, [[row[n] for n in _COLUMNS] for row in rows])
    return rows


def verdict(rows: Sequence[store.Row]) -> Verdict:
    """Compares all coordinates with the theorem, at a simultaneous confidence of 99 %."""
    z = [_z(row) for row in rows]
    bound = -special.ndtri((1.0 - CONFIDENCE) / (2.0 * len(z)))
    return Verdict(len(z), float(max(abs(value) for value in z)), float(bound))


def _z(row: store.Row) -> float:
    return (float(row["mean"]) - float(row["expected"])) / float(row["standard_error"])


def draw(path: Path) -> list[Path]:
    """Draws the CSV file: the factor κ measured, and the error of every coordinate."""
    header, rows = store.read_csv(path)
    judged = verdict(rows)
    settings = list(dict.fromkeys((row["scaling"], row["offset"]) for row in rows))
    with style.context():
        figure = style.new_figure(style.PAGE, 2.9)
        left, right = figure.subplots(1, 2)
        for place, (r, alpha) in enumerate(settings):
            mine = [row for row in rows if (row["scaling"], row["offset"]) == (r, alpha)]
            colour, marker = chart.COLOURS[place], chart.MARKERS[place]
            curve = np.linspace(0.01, 1.0, 200)
            factor = [
                printed.kappa(float(r), offset=float(alpha), true_class_probability=float(s)) for s in curve
            ]
            left.plot(curve, factor, color=colour, linewidth=0.9)
            label = [row for row in mine if row["coordinate"] == "0"]
            # The label's coordinate is kappa (s - 1).
            s = np.array([float(row["probability"]) for row in label])
            found = np.array([float(row["mean"]) for row in label]) / (s - 1.0)
            error = np.array([float(row["standard_error"]) for row in label]) / (1.0 - s)
            left.errorbar(
                s,
                found,
                yerr=judged.bound * error,
                color=colour,
                marker=marker,
                markersize=3.2,
                linestyle="",
                capsize=1.8,
                elinewidth=0.7,
                label=rf"$r = {float(r):g}$, $\alpha = {float(alpha):g}$",
            )
            places = [place * len(mine) + i for i in range(len(mine))]
            right.plot(places, [_z(row) for row in mine], color=colour, marker=marker, markersize=2.4, ls="")
        left.set_yscale("log")
        left.set_xlabel("softmax output at the label $s_y$")
        left.set_ylabel(r"$\kappa$: Theorem 11 (line), measured (marker)")
        for level in (-judged.bound, judged.bound):
            right.axhline(level, color=style.GREY, linestyle="--", linewidth=0.8)
        right.axhline(0.0, color=style.GREY, linewidth=0.6)
        right.set_xlabel(r"coordinate of $\nabla_z$, all settings")
        right.set_ylabel("error in standard errors")
        title = f"{header['paper']}, Theorem 11 · {header['num_draws']} draws a setting, {_CLASSES} classes"
        note = (
            f"Bars and dashed lines: simultaneous {100 * CONFIDENCE:g} % band over {judged.count} "
            f"coordinates (± {judged.bound:.2f}); largest error {judged.largest:.2f}. No data, no ε."
        )
        chart.finish(figure, [left, right], title=title, note=note, ncols=4)
        return style.save(figure, path.with_suffix(""))


def main(argv: Sequence[str]) -> None:
    """Samples, writes the CSV file, draws the figure from it."""
    given = flags.FLAGS
    path = own_table(
        argv, name=NAME, compute=lambda path: compute(path, num_draws=given.num_draws, seed=given.seed)
    )
    rows = store.read_csv(path)[1]
    judged, written = verdict(rows), [path, *draw(path)]
    if given.json:
        answer = dataclasses.asdict(judged) | {"holds": judged.holds, "rows": rows}
        print(json.dumps(answer | {"written": [str(one) for one in written]}))
        return
    print(
        f"largest error of {judged.count} coordinates: {judged.largest:.3f} standard errors; with 99 % "
        f"probability at most {judged.bound:.3f}: {'holds' if judged.holds else 'does not hold'}"
    )
    for one in written:
        print(one)


def run() -> None:
    """Entry point; the flags are defined here, so that importing this module defines none."""
    flags.DEFINE_integer("num_draws", 200_000, "Draws in each setting.", lower_bound=2)
    flags.DEFINE_integer("seed", 0, "Seed of the draws.", lower_bound=0)
    define_output(NAME, instead_of="verdict")
    app.run(main)


if __name__ == "__main__":
    run()
