"""How near audits get to the exact epsilon, and how often their bounds are too high.

Known mechanisms (randomised response, Gaussian, Poisson-subsampled Gaussian) are audited over and over: by
many independent runs and by one run with as many independent canaries. For each number of trials: lower bound
over exact epsilon, mean and range over repetitions, and how many bounds were too high.

Command:       python -m exactdp.benchmarks.audit_bounds --out audit_bounds
Expected time: three minutes on two cores.
Expected:      Gaussian, mu = 1, delta = 1e-3, 1e7 scores: 0.96 of the exact epsilon with nothing assumed,
               0.99 when the curve is taken to be Gaussian; one run with 1e5 canaries: 0.66 with that
               assumption. At 95 % confidence no confidence bound is too high in more than 5 % of its
               repetitions; the Bayesian ones are, for randomised response.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import numpy as np
from absl import app, flags, logging

from exactdp.accounting import validate
from exactdp.accounting.audit import canaries, threshold
from exactdp.accounting.audit.bayesian import Posterior
from exactdp.accounting.audit.known import Known, RandomisedResponse, SubsampledGaussian
from exactdp.accounting.threat import Adjacency, Coins, ThreatModel
from exactdp.benchmarks.curves import store, style

DELTA = 1e-3
CONFIDENCE = 0.95
_MODEL = ThreatModel(Adjacency.ADD_REMOVE, Coins.HIDDEN, "scores of simulated runs")
_COLUMNS = ("mechanism", "method", "trials", "exact", "repeats", "too_high", "mean", "lowest", "highest")

MECHANISMS: Mapping[str, Known] = {
    "Gaussian, μ = 1": SubsampledGaussian(1.0),
    "subsampled Gaussian, μ = 2, q = 0.3": SubsampledGaussian(2.0, 0.3),
    "randomised response, ε = 1": RandomisedResponse(1.0),
}


@dataclasses.dataclass(frozen=True)
class Method:
    """A bound from some number of trials.

    Attributes:
      bound: (mechanism, trials, generator) -> lower bound of epsilon at `DELTA`.
      most: trials beyond which it is left out, for time.
      gaussian: whether it takes the trade-off curve to be Gaussian; then it is tried on that alone.
    """

    bound: Callable[[Known, int, np.random.Generator], float]
    most: int
    gaussian: bool = False


def _held_out(mechanism: Known, trials: int, generator: np.random.Generator) -> float:
    scores = mechanism.draw(trials // 2, generator=generator)
    seed = int(generator.integers(2**31))
    return threshold.held_out(*scores, delta=DELTA, seed=seed, confidence=CONFIDENCE).epsilon_lower(DELTA)


def _order_statistics(mechanism: Known, trials: int, generator: np.random.Generator) -> float:
    scores = mechanism.draw(trials // 2, generator=generator)
    seed = int(generator.integers(2**31))
    return threshold.order_statistics(*scores, seed=seed, confidence=CONFIDENCE).epsilon_lower(DELTA)


def _order_statistics_gaussian(mechanism: Known, trials: int, generator: np.random.Generator) -> float:
    scores = mechanism.draw(trials // 2, generator=generator)
    seed = int(generator.integers(2**31))
    band = threshold.order_statistics(*scores, seed=seed, confidence=CONFIDENCE)
    return band.result(delta=DELTA, threat_model=_MODEL, gaussian=True).epsilon_lower


def _bayesian(mechanism: Known, trials: int, generator: np.random.Generator) -> float:
    inside, outside = mechanism.draw(trials // 2, generator=generator)
    above, below = int(np.count_nonzero(outside > 0.5)), int(np.count_nonzero(inside <= 0.5))
    posterior = Posterior(above, len(outside), below, len(inside))
    return posterior.lower(delta=DELTA, confidence=CONFIDENCE)


def _one_run(bound: canaries.Bound) -> Callable[[Known, int, np.random.Generator], float]:
    def found(mechanism: Known, trials: int, generator: np.random.Generator) -> float:
        included = generator.random(trials) < 0.5
        scores = mechanism.canaries(included, generator=generator)
        return canaries.result(
            scores, included, delta=DELTA, threat_model=_MODEL, bound=bound, confidence=CONFIDENCE
        ).epsilon_lower

    return found


METHODS: Mapping[str, Method] = {
    "runs, held out": Method(_held_out, 10**7),
    "runs, ranks": Method(_order_statistics, 10**7),
    "runs, ranks, Gaussian curve assumed": Method(_order_statistics_gaussian, 10**7, gaussian=True),
    "runs, threshold 1/2, Bayesian": Method(_bayesian, 10**7),
    "one run, (ε, δ)": Method(_one_run("dp"), 10**5),
    "one run, f-DP": Method(_one_run("f-dp"), 10**5),
    "one run, f-DP, Gaussian curve assumed": Method(_one_run("gaussian"), 10**5, gaussian=True),
}


def compute(*, trials: Sequence[int], repeats: int, budget: int, seed: int, path: Path) -> list[store.Row]:
    """Audits every mechanism by every method and writes the CSV file.

    Args:
      trials: numbers of scores in all (or of canaries), each >= 4.
      repeats: largest number of repetitions of one audit, >= 1.
      budget: scores that the repetitions of one audit may take together; at least one is made.
      seed: of all of them.
      path: of the CSV file.

    Raises:
      ValueError: an argument is out of range.
    """
    counts = [validate.count("trials", count, minimum=4) for count in trials]
    validate.count("repeats", repeats, minimum=1)
    rows: list[Sequence[object]] = []
    for name, mechanism in MECHANISMS.items():
        exact = mechanism.epsilon(DELTA)
        symmetric = isinstance(mechanism, SubsampledGaussian) and mechanism.sampling_probability == 1.0
        for label, method in METHODS.items():
            if method.gaussian and not symmetric:
                continue
            for count in (count for count in counts if count <= method.most):
                generator = np.random.default_rng([seed, len(rows)])
                number = max(1, min(repeats, budget // count))
                found = np.array([method.bound(mechanism, count, generator) for _ in range(number)])
                ratios = (found / exact).tolist()
                too_high = int(np.count_nonzero(found > exact))
                spread = (float(np.mean(ratios)), min(ratios), max(ratios))
                rows.append((name, label, count, exact, number, too_high, *spread))
                logging.info("%s, %s, %d: %.3f, %d of %d too high", name, label, count, *_short(rows[-1]))
    header = {
        "delta": DELTA,
        "confidence": CONFIDENCE,
        "trials": counts,
        "repeats": repeats,
        "budget": budget,
        "seed": seed,
        "versions": store.versions(),
    }
    store.write_csv(path, header, _COLUMNS, rows)
    return store.read_csv(path)[1]


def _short(row: Sequence[object]) -> tuple[object, object, object]:
    return row[6], row[5], row[4]


def draw(path: Path) -> list[Path]:
    """Draws the figure from the CSV file alone, next to it; returns the paths."""
    header, rows = store.read_csv(path)
    names = list(dict.fromkeys(row["mechanism"] for row in rows))
    methods = list(dict.fromkeys(row["method"] for row in rows))
    colours = (style.BLUE, style.VERMILLION, style.GREEN, style.GREY, style.ORANGE, style.PURPLE, style.BLACK)
    with style.context():
        figure = style.new_figure(style.PAGE, 2.9)
        axes = figure.subplots(1, len(names), sharey=True, squeeze=False)[0]
        for axis, name in zip(axes, names, strict=True):
            axis.axhline(1.0, color=style.GREY, linewidth=0.8, zorder=0)
            for place, method in enumerate(methods):
                mine = [row for row in rows if (row["mechanism"], row["method"]) == (name, method)]
                if not mine:
                    continue
                x = [float(row["trials"]) for row in mine]
                mean, low, high = ([float(row[key]) for row in mine] for key in ("mean", "lowest", "highest"))
                line = "--" if method.startswith("one run") else "-"
                colour = colours[place % len(colours)]
                axis.plot(x, mean, color=colour, linestyle=line, marker="o", markersize=2.6, label=method)
                axis.fill_between(x, low, high, color=colour, alpha=0.12, linewidth=0.0)
            axis.set_xscale("log")
            axis.set_title(name)
            axis.set_xlabel("scores or canaries")
        axes[0].set_ylim(0.0, 1.1)
        axes[0].set_ylabel(f"lower bound / exact ε at δ = {header['delta']:g}")
        figure.legend(*axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=4)
        return style.save(figure, path.with_suffix(""))


def main(argv: Sequence[str]) -> None:
    """Computes, writes the CSV file and draws the figure from it."""
    if len(argv) > 1:
        raise app.UsageError(f"no positional arguments are taken, got {argv[1:]}")
    try:
        path = store.prepare_directory("out", flags.FLAGS.out) / "audit_bounds.csv"
        trials = [int(float(text)) for text in flags.FLAGS.trials]
        rows = compute(
            trials=trials,
            repeats=flags.FLAGS.repeats,
            budget=flags.FLAGS.budget,
            seed=flags.FLAGS.seed,
            path=path,
        )
    except ValueError as error:
        raise app.UsageError(str(error)) from error
    for row in rows:
        print(
            f"{row['mechanism']}; {row['method']}; {row['trials']}: {float(row['mean']):.3f} of exact, "
            f"{row['too_high']} of {row['repeats']} too high"
        )
    for written in [path, *draw(path)]:
        print(written)


def run() -> None:
    """Entry point; the flags are defined here, so that importing this module defines none."""
    flags.DEFINE_list("trials", ["1e2", "1e3", "1e4", "1e5", "1e6", "1e7"], "Numbers of scores or canaries.")
    flags.DEFINE_integer("repeats", 100, "Most repetitions of one audit.", lower_bound=1)
    flags.DEFINE_integer("budget", 2 * 10**6, "Scores of all repetitions of one audit.", lower_bound=1)
    flags.DEFINE_integer("seed", 0, "Seed.", lower_bound=0)
    flags.DEFINE_string("out", "audit_bounds", "Directory for audit_bounds.csv, .pdf and .png.")
    app.run(main)


if __name__ == "__main__":
    run()
