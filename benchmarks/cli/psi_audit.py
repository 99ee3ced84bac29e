"""`exactdp psi-audit`: is a public feature map safe to call public."""

from __future__ import annotations

import argparse
import functools
import time
from pathlib import Path

from exactdp.benchmarks.cli import extras, flags, output
from exactdp.benchmarks.curves.ladders import number

HELP = "attacks a public feature map: re-identification, Ball and Theorem 4 of arXiv 2506.19836"
EXAMPLES = """\
  exactdp psi-audit --dataset digits --public blur:sigma=2
  exactdp psi-audit --dataset lfw_faces --public blur:sigma=2 --epsilon 8 --delta 1e-5 --out audit
  exactdp psi-audit --dataset adult --public private:sex,race --gaussian_mu 1 --json
  exactdp psi-audit --dataset digits --public label --run runs/label_public
  exactdp psi-audit --dataset adult --public private:sex,race --run runs/adult --attribute sex,race
What is printed is computed from the records without noise: it is as private as they are."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the flags."""
    parser.add_argument("--dataset", required=True, metavar="X", help="digits, lfw_faces, adult, ...")
    parser.add_argument(
        "--public",
        required=True,
        metavar="X",
        help="the map, as `exactdp train feature` takes it: blur:sigma=2, columns:0-99+label, label, ...",
    )
    parser.add_argument(
        "--levels",
        type=number,
        default=0,
        metavar="X",
        help="round what is published to so many levels, as picture files do with 256 (0: float32)",
    )
    parser.add_argument(
        "--distance", default="l2", metavar="X", help="of Ball: l2, cosine or perceptual (l2)"
    )
    parser.add_argument(
        "--radius",
        type=float,
        metavar="X",
        help="of Ball (0.45 of tables, else a quarter of two records' median distance)",
    )
    parser.add_argument(
        "--records", type=number, default=500, metavar="X", help="candidates to re-identify among (500)"
    )
    parser.add_argument(
        "--noise", type=float, default=0.1, metavar="X", help="what alters an adversary's copies (0.1)"
    )
    parser.add_argument(
        "--neighbours", type=number, default=50, metavar="X", help="records near a view, for Ball (50)"
    )
    parser.add_argument("--confidence", type=float, default=0.95, metavar="X", help="of each interval (0.95)")
    parser.add_argument("--seed", type=number, default=0, metavar="X", help="of noise and samples (0)")
    flags.add(parser, "epsilon", "delta")
    parser.add_argument(
        "--gaussian_mu", type=float, metavar="X", help="mu of a release that is claimed, instead of --epsilon"
    )
    parser.add_argument("--run", metavar="DIR", help="a run's folder, whose exact curve is taken instead")
    parser.add_argument(
        "--attribute",
        metavar="NAMES",
        help="with --run, of tables: private attributes to guess from the trained model, comma-separated",
    )
    parser.add_argument(
        "--out",
        type=flags.directory,
        metavar="DIR",
        help="also write psi_audit.csv and a figure (PDF, PNG) into DIR",
    )
    flags.add_json(parser)


def execute(arguments: argparse.Namespace) -> tuple[str, int]:
    """Audits the map."""
    _require_one_claim(arguments)
    with extras.needed("train", to="audit"):
        return _audit(arguments)


def _audit(arguments: argparse.Namespace) -> tuple[str, int]:
    from exactdp.benchmarks.curves import store
    from exactdp.benchmarks.psi_audit import inference, report
    from exactdp.benchmarks.psi_audit.audit import Options, audit
    from exactdp.benchmarks.psi_audit.claim import Claim
    from exactdp.train import data
    from exactdp.train.public_map import public_map

    options = Options(
        distance=arguments.distance,
        radius=arguments.radius,
        records=arguments.records,
        noise=arguments.noise,
        neighbours=arguments.neighbours,
        confidence=arguments.confidence,
        seed=arguments.seed,
    )
    claim = None
    if arguments.epsilon is not None:
        claim = Claim.of_epsilon(arguments.epsilon, delta=arguments.delta)
    elif arguments.gaussian_mu is not None:
        claim = Claim.of_mu(arguments.gaussian_mu)
    attributes: list[str] = [] if arguments.attribute is None else arguments.attribute.split(",")
    run: str | None = arguments.run
    if attributes and run is None:
        raise ValueError(f"attribute must be given with run, got {arguments.attribute} without")
    data.require_known(arguments.dataset)
    dataset = data.load(arguments.dataset)
    parse = functools.partial(public_map, data=dataset)
    parsed = parse(arguments.public)
    if run is not None:
        claim = Claim.of_run(run, public=parsed, parse=parse)
    start = time.perf_counter()
    result = audit(dataset, public=parsed, levels=arguments.levels, claim=claim, options=options)
    attacked = (
        []
        if run is None
        else [
            inference.attack(run, dataset, public=parsed, attribute=name, seed=options.seed)
            for name in attributes
        ]
    )
    asked = {
        "dataset": arguments.dataset,
        "public": parsed.text,
        "levels": arguments.levels,
        "distance": options.distance,
        "records": options.records,
        "noise": options.noise,
        "neighbours": options.neighbours,
        "confidence": options.confidence,
        "seed": options.seed,
        "claim": None if claim is None else dict(claim.given),
    }
    files: list[Path] = []
    if arguments.out is not None:
        directory = store.prepare_directory("out", arguments.out)
        files = report.write(directory, result, attacked, asked=asked, confidence=options.confidence)
    answer = {
        **asked,
        **report.as_dict(result, confidence=options.confidence),
        "attribute_inference": [found.as_dict(confidence=options.confidence) for found in attacked],
        "files": [str(path) for path in files],
        "seconds": time.perf_counter() - start,
    }
    if arguments.json:
        return output.as_json(answer), 0
    return "\n".join([report.lines(answer), *(f"wrote {path}" for path in files)]), 0


def _require_one_claim(arguments: argparse.Namespace) -> None:
    if (arguments.epsilon is None) != (arguments.delta is None):
        raise ValueError("epsilon and delta must be given together, got one of them")
    given = [name for name in ("epsilon", "gaussian_mu", "run") if getattr(arguments, name) is not None]
    if len(given) > 1:
        raise ValueError(f"one claim must be given at most, got {' and '.join(given)}")
