"""Is the vertex pair the worst pair of inputs of the Dirichlet mechanism?

Paper: arXiv 2607.19580v1 (mechanism rho ~ Dir(r p + α 1)). For each (r, α) and each number of classes K: the
largest ratio of δ(ε) over candidate pairs to that of the vertex pair, and what is proved
(docs/accountants/worst_pair.md).

Command:       python -m exactdp.benchmarks.worst_pair --out worst_pair
Expected time: two minutes on two cores.
Expected:      at r = 0.235, α = 3 (proved) no ratio above 1: the best uniform pair other than the vertices
               reaches 0.8716 at ε = 0 and 0.561 at the smallest δ, for every K >= 3. At r = 1, α = 0.1 the
               vertex pair is beaten: by 1.0313 for K = 3 and by 1.0476 for K = 5 and 10.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path

from absl import app, flags, logging

from exactdp.accounting import worst_pair
from exactdp.benchmarks.curves import store, style

_COLUMNS = (
    "scaling",
    "offset",
    "num_classes",
    "proof",
    "dominated",
    "epsilon",
    "vertex_delta",
    "family",
    "ratio",
)


def compute(
    settings: Sequence[tuple[float, float]],
    *,
    num_classes: Sequence[int],
    num_random: int,
    seed: int,
    path: Path,
) -> list[worst_pair.WorstPairResult]:
    """Runs the check on every setting and number of classes and writes the CSV file.

    Args:
      settings: pairs (scaling, offset).
      num_classes: numbers of classes.
      num_random: pairs in each random family.
      seed: of the random pairs.
      path: of the CSV file.
    """
    results: list[worst_pair.WorstPairResult] = []
    rows: list[Sequence[object]] = []
    for scaling, offset in settings:
        for classes in num_classes:
            result = worst_pair.check(
                scaling=scaling, offset=offset, num_classes=classes, num_random=num_random, seed=seed
            )
            results.append(result)
            for family, ratios in result.ratios.items():
                for epsilon, delta, ratio in zip(result.epsilons, result.vertex_deltas, ratios, strict=True):
                    verdict = (result.proof, result.dominated)
                    rows.append((scaling, offset, classes, *verdict, epsilon, delta, family, ratio))
            logging.info("%s", summary(result))
    header = {
        "settings": [list(setting) for setting in settings],
        "num_classes": list(num_classes),
        "num_random": num_random,
        "seed": seed,
        "versions": store.versions(),
    }
    store.write_csv(path, header, _COLUMNS, rows)
    return results


def summary(result: worst_pair.WorstPairResult) -> str:
    """One line on a result."""
    status = f"proved ({result.proof})" if result.proved else "searched"
    verdict = "dominates" if result.dominated else "is beaten"
    return (
        f"scaling {result.scaling:g}, offset {result.offset:g}, {result.num_classes} classes: vertex pair "
        f"{verdict}, {status}; best uniform pair {max(result.ratios['faces']):.4f}, best of "
        f"{result.num_pairs} evaluations {result.worst_ratio:.6f}, Rényi {result.worst_renyi_ratio:.6f}"
    )


def draw(csv_path: Path) -> list[Path]:
    """Draws the figure from the CSV file alone, next to it; returns the paths."""
    _, rows = store.read_csv(csv_path)
    settings = list(dict.fromkeys((row["scaling"], row["offset"]) for row in rows))
    colours = (style.BLACK, style.BLUE, style.VERMILLION, style.GREEN, style.PURPLE, style.ORANGE, style.SKY)
    markers = "os^Dv<>"
    with style.context():
        figure = style.new_figure(style.PAGE, 2.4)
        axes = figure.subplots(1, len(settings), squeeze=False)[0]
        for axis, setting in zip(axes, settings, strict=True):
            chosen = [row for row in rows if (row["scaling"], row["offset"]) == setting]
            axis.axhline(1.0, color=style.GREY, linewidth=0.8, zorder=0)
            for place, classes in enumerate(dict.fromkeys(row["num_classes"] for row in chosen)):
                colour, marker = colours[place % len(colours)], markers[place % len(markers)]
                for family in ("faces", "ascent"):
                    mine = [row for row in chosen if (row["num_classes"], row["family"]) == (classes, family)]
                    x = [float(row["vertex_delta"]) for row in mine]
                    y = [float(row["ratio"]) for row in mine]
                    if family == "ascent":
                        look = {"marker": marker, "markersize": 7.0 - 1.4 * (place % 5), "fillstyle": "none"}
                        axis.plot(x, y, color=colour, linestyle="", label=f"$K = {classes}$", **look)
                    elif int(classes) > 2:
                        # With K = 2 the centre is the only uniform pair. Where several K agree the dashes of
                        # the later ones let the lines below be seen.
                        line = (0.0, (3.0, 1.0 + 1.5 * place)) if place > 1 else "-"
                        axis.plot(x, y, color=colour, linestyle=line)
            axis.set_xscale("log")
            axis.invert_xaxis()
            r, alpha = (f"{float(value):g}" for value in setting)
            axis.set_title(f"$r = {r}$, $\\alpha = {alpha}$ ({_verdict(chosen)})")
            axis.set_xlabel(r"$\delta(\varepsilon)$ of the vertex pair")
        axes[0].set_ylabel(r"largest $\delta(\varepsilon)$ / vertex pair's")
        handles, labels = axes[0].get_legend_handles_labels()
        title = "lines: uniform pairs\nmarkers: after ascent"
        figure.legend(handles, labels, loc="outside right upper", title=title, title_fontsize=6.5)
        paths = style.save(figure, csv_path.with_suffix(""))
    return paths


def _verdict(rows: Sequence[store.Row]) -> str:
    if all(row["proof"] for row in rows):
        return "proved"
    beaten = any(row["dominated"] == "False" for row in rows)
    return "beaten" if beaten else "searched"


def _numbers(name: str, values: Sequence[str]) -> list[float]:
    try:
        return [float(value) for value in values]
    except ValueError:
        raise app.UsageError(
            f"--{name} must be numbers separated by commas, got {','.join(values)}"
        ) from None


def main(argv: Sequence[str]) -> None:
    """Computes, writes the CSV file and draws the figure from it."""
    if len(argv) > 1:
        raise app.UsageError(f"no positional arguments are taken, got {argv[1:]}")
    scalings, offsets = _numbers("scaling", flags.FLAGS.scaling), _numbers("offset", flags.FLAGS.offset)
    if len(scalings) != len(offsets):
        raise app.UsageError(
            f"--offset must have as many values as --scaling, got {len(offsets)}, {len(scalings)}"
        )
    classes = _numbers("num_classes", flags.FLAGS.num_classes)
    if any(value != math.floor(value) for value in classes):
        raise app.UsageError(f"--num_classes must be whole numbers, got {flags.FLAGS.num_classes}")
    try:
        path = store.prepare_directory("out", flags.FLAGS.out) / "worst_pair.csv"
        results = compute(
            list(zip(scalings, offsets, strict=True)),
            num_classes=[int(value) for value in classes],
            num_random=flags.FLAGS.num_random,
            seed=flags.FLAGS.seed,
            path=path,
        )
    except ValueError as error:
        raise app.UsageError(str(error)) from error
    for result in results:
        print(summary(result))
    for written in [path, *draw(path)]:
        print(written)


def run() -> None:
    """Entry point; the flags are defined here, so that importing this module defines none."""
    flags.DEFINE_list("scaling", ["0.235", "5", "1"], "Scalings r, one for each offset.")
    flags.DEFINE_list("offset", ["3", "0.5", "0.1"], "Offsets α, one for each scaling.")
    flags.DEFINE_list("num_classes", ["2", "3", "5", "10"], "Numbers of classes K.")
    flags.DEFINE_integer("num_random", 50, "Pairs in each random family.", lower_bound=1)
    flags.DEFINE_integer("seed", 0, "Seed of the random pairs and the ascents.", lower_bound=0)
    flags.DEFINE_string("out", "worst_pair", "Directory for worst_pair.csv, .pdf and .png.")
    app.run(main)


if __name__ == "__main__":
    run()
