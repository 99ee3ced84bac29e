"""Excess risk of logistic regression with private labels, against n and d, beside Theorem 6.

Paper: arXiv 2506.19836v1, Theorem 6 (whose print is garbled; read as `exactdp ladder feature` does), and its
special case of label DP. Inputs are uniform on the unit sphere, P(y = 1) = 1/(1 + e^-z) with z = 2 x_1.
Algorithm 1 runs with all inputs public, steps c/sqrt(t) and projection onto the ball of radius 2, with the c
that is best for the bound. The noise is calibrated exactly for the target. Needs no data.

Command:       python -m exactdp.benchmarks.feature_theorem6 --out results
Expected time: half an hour on one core; with --num_steps 200, as the figure in the documentation, minutes.
Expected:      the measured excess risk lies below the printed bound at every point.
"""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
from absl import app, flags

from exactdp import __version__
from exactdp.accounting import validate
from exactdp.accounting.printed import feature as printed
from exactdp.benchmarks.curves import store, style
from exactdp.benchmarks.experiments import chart
from exactdp.benchmarks.experiments.feature import ARXIV
from exactdp.benchmarks.experiments.logistic import Logistic
from exactdp.benchmarks.experiments.script import define_output, own_table
from exactdp.mechanisms import keys
from exactdp.mechanisms.batches.two import two_batches
from exactdp.mechanisms.public import Identity, Public
from exactdp.train import calibration, feature
from exactdp.train.feature_settings import FeatureSettings
from exactdp.train.settings import Settings
from exactdp.train.task import Records

NAME = "feature_theorem6"
RECORDS = (250, 500, 1000, 2000, 4000, 8000)
DIMENSIONS = (4, 8, 16, 32, 64)
_AT_RECORDS, _AT_DIMENSION = 1000, 16
_RADIUS = 2.0
_CLIP_NORM, _LIPSCHITZ = 0.5, 1.0
_RATE = 0.1
_TESTED = 20_000
_RESAMPLES = 2000
_COLUMNS = (
    "axis",
    "num_records",
    "dimension",
    "seed",
    "noise_multiplier",
    "noise",
    "epsilon_upper",
    "bound",
    "excess_risk",
)


def excess_risks(
    num_records: int, *, dimension: int, epsilon: float, delta: float, num_steps: int, num_seeds: int
) -> tuple[list[float], dict[str, float]]:
    """Excess population risk of the last iterate, for each seed's data and noise.

    Args:
      num_records: n >= 10.
      dimension: d >= 1.
      epsilon: target, under replacement of a label, hidden coins.
      delta: in (0, 1).
      num_steps: T >= 1.
      num_seeds: >= 1.

    Returns:
      The risks; and the noise multiplier, the noise on the mean gradient, what is certified and what
      Theorem 6 bounds.

    Raises:
      ValueError: an argument is outside its range.
    """
    objective, public, asked = Logistic(dimension), Public(Identity(), False), FeatureSettings("features")
    settings = Settings(
        "feature",
        epsilon=epsilon,
        delta=delta,
        num_steps=num_steps,
        sampling_probability=_RATE,
        clip_norm=_CLIP_NORM,
        feature=asked,
    )
    plan = calibration.plan(settings, num_records=num_records, num_classes=2, public=public)
    multiplier = float(plan.noise or 0.0)
    expected = _RATE * num_records
    task = feature.task(
        objective,
        public=public,
        asked=asked,
        certificate=plan.certificate,
        sampler=plan.sampler,
        noise_multiplier=multiplier,
        clip_norm=_CLIP_NORM,
        expected_batch_size=expected,
    )
    second = task.public
    if second is None:
        raise ValueError("public must leave a public batch")
    noise = multiplier * _CLIP_NORM / expected
    diameter = 2.0 * _RADIUS
    constant = diameter / math.sqrt(_LIPSCHITZ**2 + dimension * noise**2)

    def risk(theta: jax.Array, x: jax.Array) -> jax.Array:
        """Mean over inputs of the expected loss, which needs no labels."""
        chance = jax.nn.sigmoid(_RADIUS * x[:, 0])
        z = x @ theta
        return jnp.mean(jax.nn.softplus(z) - chance * z)

    def one(key: jax.Array) -> jax.Array:
        data_key, test_key, run = jax.random.split(key, 3)
        x = _sphere(data_key, num_records, dimension)
        coins = jax.random.uniform(jax.random.fold_in(data_key, 1), (num_records,))
        data = Records(x, (coins < jax.nn.sigmoid(_RADIUS * x[:, 0])).astype(jnp.int32))

        def step(theta: jax.Array, now: jax.Array) -> tuple[jax.Array, None]:
            first, other = two_batches(task.sampler, second.sampler, key=run, step=now)

            def rows(drawn: jax.Array) -> Records:
                return Records(data.x[drawn], data.y[drawn])

            at = {"theta": theta}
            slope = task.gradient(at, rows(first.indices), first.mask, run, now).value["theta"]
            slope += second.gradient(at, rows(other.indices), other.mask, run, now)["theta"]
            moved = theta - constant / jnp.sqrt(now.astype(jnp.float32) + 1.0) * slope
            return moved * jnp.minimum(1.0, _RADIUS / jnp.linalg.norm(moved)), None

        theta = jax.lax.scan(step, jnp.zeros(dimension), jnp.arange(num_steps))[0]
        tested = _sphere(test_key, _TESTED, dimension)
        best = jnp.zeros(dimension).at[0].set(_RADIUS)
        return risk(theta, tested) - risk(best, tested)

    root = keys.run_key(0)
    own = jnp.stack([jax.random.fold_in(root, seed) for seed in range(num_seeds)])
    # One after the other: side by side, every step would pay for the rare batch that overflows.
    found = np.asarray(jax.jit(lambda all_keys: jax.lax.map(one, all_keys))(own), np.float64)
    bound = printed.excess_risk(
        num_steps,
        diameter=diameter,
        constant=constant,
        lipschitz=_LIPSCHITZ,
        dimension=dimension,
        noise=noise,
    )
    upper = plan.certificate.epsilon(num_steps, delta=delta).upper
    facts = {"noise_multiplier": multiplier, "noise": noise, "epsilon_upper": upper, "bound": bound}
    return [float(value) for value in found], facts


def _sphere(key: jax.Array, count: int, dimension: int) -> jax.Array:
    """Points uniform on the unit sphere, of norm 1 at most."""
    found = jax.random.normal(key, (count, dimension))
    return found / (jnp.linalg.norm(found, axis=1, keepdims=True) * (1.0 + 1e-6))


def compute(path: Path, *, epsilon: float, delta: float, num_steps: int, num_seeds: int) -> list[store.Row]:
    """Runs what is not in the CSV file yet; after every point the file is complete.

    Raises:
      ValueError: bad input, or the file is there with other settings.
    """
    header = {
        "paper": ARXIV,
        "versions": {"exactdp": __version__, "jax": jax.__version__},
        "epsilon": validate.positive("epsilon", epsilon),
        "delta": validate.open_probability("delta", delta),
        "num_steps": validate.count("num_steps", num_steps, minimum=1),
        "num_seeds": validate.count("num_seeds", num_seeds, minimum=2),
        "sampling_probability": _RATE,
        "radius": _RADIUS,
    }
    rows: list[store.Row] = []
    if path.is_file():
        found, rows = store.read_csv(path)
        if found != json.loads(json.dumps(header)):
            raise ValueError(f"out must hold no file made with other settings, got {path}; remove it")
    points = [("records", n, _AT_DIMENSION) for n in RECORDS]
    points += [("dimension", _AT_RECORDS, d) for d in DIMENSIONS]
    have = {(row["axis"], row["num_records"], row["dimension"]) for row in rows}
    for axis, n, d in points:
        if (axis, str(n), str(d)) in have:
            continue
        risks, facts = excess_risks(
            n, dimension=d, epsilon=epsilon, delta=delta, num_steps=num_steps, num_seeds=num_seeds
        )
        for seed, value in enumerate(risks):
            cells = {"axis": axis, "num_records": n, "dimension": d, "seed": seed} | facts
            cells["excess_risk"] = value
            rows.append({name: str(cells[name]) for name in _COLUMNS})
        store.write_csv(path, header, _COLUMNS, [[row[name] for name in _COLUMNS] for row in rows])
    return rows


def slope(rows: Sequence[store.Row], axis: str) -> dict[str, float]:
    """Slope of the log of the mean excess risk in the log of n or d, with a 95 % interval, and the bound's.

    Least squares over the points; the interval is that of 2000 resamplings of the seeds of every point.

    Args:
      rows: of the CSV file.
      axis: "records" or "dimension".
    """
    x, risks, bounds = series(rows, axis)
    places = np.log(x)

    def fitted(values: np.ndarray) -> float:
        return float(np.polyfit(places, np.log(values), 1)[0])

    random = np.random.default_rng(0)
    drawn = random.integers(0, risks.shape[1], (_RESAMPLES, *risks.shape))
    means = np.take_along_axis(risks[None], drawn, 2).mean(2)
    low, high = np.quantile([fitted(each) for each in means], (0.025, 0.975))
    return {
        "measured": fitted(risks.mean(1)),
        "lower": float(low),
        "upper": float(high),
        "printed": fitted(bounds),
    }


def series(rows: Sequence[store.Row], axis: str) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Places, risks [points, seeds] and printed bounds of an axis."""
    name = "num_records" if axis == "records" else "dimension"
    mine = [row for row in rows if row["axis"] == axis]
    places = sorted({int(row[name]) for row in mine})
    groups = [[row for row in mine if int(row[name]) == place] for place in places]
    risks = np.array([[float(row["excess_risk"]) for row in group] for group in groups])
    return np.array(places, float), risks, np.array([float(group[0]["bound"]) for group in groups])


def draw(path: Path) -> list[Path]:
    """Draws the CSV file: risk against n and d, the printed bound dashed."""
    header, rows = store.read_csv(path)
    with style.context():
        figure = style.new_figure(style.PAGE, 2.9)
        panels = figure.subplots(1, 2)
        names = {
            "records": rf"records $n$, at $d$ = {_AT_DIMENSION}",
            "dimension": rf"dimension $d$, at $n$ = {_AT_RECORDS}",
        }
        for axes, (axis, label) in zip(panels, names.items(), strict=True):
            x, risks, bounds = series(rows, axis)
            found = slope(rows, axis)
            error = 1.96 * risks.std(1, ddof=1) / math.sqrt(risks.shape[1])
            axes.errorbar(
                x,
                risks.mean(1),
                yerr=error,
                color=chart.COLOURS[0],
                marker="o",
                markersize=3.2,
                capsize=1.8,
                elinewidth=0.7,
                label="measured, 95 % intervals",
            )
            axes.plot(x, bounds, color=style.BLACK, linestyle="--", label="Theorem 6 as printed")
            axes.set_title(
                f"slope {found['measured']:.2f} [{found['lower']:.2f}, {found['upper']:.2f}], printed "
                f"{found['printed']:.2f}",
                fontsize=7,
            )
            axes.set_xscale("log")
            axes.set_xticks(x, [f"{place:g}" for place in x])
            axes.set_xticks([], minor=True)
            axes.set_yscale("log")
            axes.set_xlabel(label)
            axes.set_ylabel("excess risk (nats)")
        title = (
            f"{header['paper']}, Theorem 6 · logistic regression, labels private, ε = {header['epsilon']:g} "
            f"at δ = {header['delta']:g} (label replaced, hidden coins), T = {header['num_steps']}, "
            f"{header['num_seeds']} seeds"
        )
        chart.finish(figure, list(panels), title=title, ncols=2)
        return style.save(figure, path.with_suffix(""))


def main(argv: Sequence[str]) -> None:
    """Runs, writes the CSV file, draws the figure from it."""
    given = flags.FLAGS
    path = own_table(
        argv,
        name=NAME,
        compute=lambda path: compute(
            path,
            epsilon=given.epsilon,
            delta=given.delta,
            num_steps=given.num_steps,
            num_seeds=given.num_seeds,
        ),
    )
    rows = store.read_csv(path)[1]
    slopes, written = {axis: slope(rows, axis) for axis in ("records", "dimension")}, [path, *draw(path)]
    if given.json:
        print(json.dumps({"slopes": slopes, "rows": rows, "written": [str(one) for one in written]}))
        return
    for axis, found in slopes.items():
        print(
            f"{axis}: slope {found['measured']:.3f}, 95 % [{found['lower']:.3f}, {found['upper']:.3f}]; of "
            f"the printed bound {found['printed']:.3f}"
        )
    for one in written:
        print(one)


def run() -> None:
    """Entry point; the flags are defined here, so that importing this module defines none."""
    flags.DEFINE_float("epsilon", 0.1, "Target of every run.")
    flags.DEFINE_float("delta", 1e-5, "At which epsilon is stated.")
    flags.DEFINE_integer("num_steps", 300, "Steps of a run.", lower_bound=1)
    flags.DEFINE_integer("num_seeds", 20, "Data sets and runs of each point.", lower_bound=2)
    define_output(NAME, instead_of="slopes")
    app.run(main)


if __name__ == "__main__":
    run()
