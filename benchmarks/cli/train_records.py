"""`exactdp train METHOD`: trains a model of records with labels, and says what certifies it."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from exactdp.benchmarks.cli import flags, output, training
from exactdp.benchmarks.cli.training import Flag
from exactdp.benchmarks.curves.ladders import number
from exactdp.train.feature_settings import ADJACENCIES, BATCHES, PRIVATE_LOSSES, FeatureSettings
from exactdp.train.settings import ACCOUNTANTS, Settings

HELP = "a model of records with labels, or of images"
EXAMPLES = """\
  exactdp train dpsgd --dataset digits --epsilon 4 --delta 1e-5
  exactdp train dirichlet --dataset digits --epsilon 4 --offset 3 --sampling_probability 0.05 --json
  exactdp train dirichlet --dataset digits --epsilon 4 --accountant printed --out runs/printed --seed 1
  exactdp train label_public --dataset mnist --epsilon 1 --model cnn --num_steps 2000 --out runs/mnist
  exactdp train feature --dataset digits --public blur:sigma=2+label --epsilon 1 --adjacency replace
  exactdp train feature --dataset lfw_faces --model unet --public blur:sigma=2 --epsilon 8 --optimizer adam
  exactdp train dpsgd --dataset digits --epsilon 2 --noise_multiplier 4      (stops when epsilon is 2)
  exactdp train nonprivate --dataset digits --num_steps 500
An interrupted run goes on with the command that it prints: the same one with its --out DIR and --resume. A
seed is as secret as the data: whoever has it can take the noise off; left out, it comes from the operating
system."""

_SHARED: Mapping[str, Flag] = {
    "epsilon": Flag("target epsilon, in (0, 1000]; left out where noise and --num_steps are given"),
    "delta": Flag("delta in (0, 1) (1e-5)", float, 1e-5),
    "noise_multiplier": Flag(
        "dpsgd, feature, label_public, gaussian_features: noise standard deviation over the "
        "clip norm (what --epsilon needs)"
    ),
    "scaling": Flag("dirichlet: r in Dir(r * probabilities + offset) (what --epsilon needs)"),
    "offset": Flag("dirichlet: alpha in Dir(scaling * probabilities + alpha) (3)"),
}
_TRAINING: Mapping[str, Flag] = {
    "sampling_probability": Flag(
        "probability that a record is in a step's batch (an expected batch of 256; dirichlet, "
        "gaussian_features: 64; a quarter of the records at most)"
    ),
    "num_steps": Flag("number of steps (500, or as many as --epsilon allows the noise given)", number),
    "clip_norm": Flag(
        "dpsgd, feature, label_public: of a record's gradient; gaussian_features: of its features (1)"
    ),
    "learning_rate": Flag("learning rate (0.5; dirichlet: --effective_learning_rate / kappa)"),
    "effective_learning_rate": Flag(
        "dirichlet: gamma_eff, instead of --learning_rate, which is then gamma_eff / kappa (3)"
    ),
    "accountant": Flag(
        "exact: certified; printed: dirichlet's scaling by the paper's rule (exact)",
        str,
        "exact",
        ACCOUNTANTS,
    ),
}
_FEATURE: Mapping[str, Flag] = {
    "public": Flag(
        "feature: what of a record is public: none, label, features, columns:0-99,age, private:sex,race, "
        "blur:sigma=2, downsample:factor=4 or region:top=0,bottom=8,left=0,right=8; +label for the label too",
        str,
    ),
    "adjacency": Flag(
        "feature: replace (Definition 5, public features kept) or add_remove (Definition 6) (replace)",
        str,
        None,
        ADJACENCIES,
    ),
    "batches": Flag(
        "feature: two independent batches, or the naive single one, whose coins are visible (two)",
        str,
        None,
        BATCHES,
    ),
    "public_batch_size": Flag("feature: records of the public batch (the expected private batch)", number),
    "private_loss": Flag(
        "feature: what is clipped: the residual, or the whole loss (residual)", str, None, PRIVATE_LOSSES
    ),
    "mixing_weight": Flag("feature: a of (1 - a) private + a public gradient, in (0, 1) (their sum)"),
    "public_noise_multiplier": Flag(
        "feature: noise on the public sum over the clip norm; none is needed (0)"
    ),
    "public_steps": Flag("feature: steps of pre-training on public features, which are free (0)", number),
    "public_learning_rate": Flag("feature: of pre-training (--learning_rate)"),
}
_RUN: Mapping[str, Flag] = {
    "dataset": Flag("digits, mnist, fashion_mnist, ..., or <layout>:<name> (digits)", str, "digits"),
    "model": Flag(
        "linear, mlp, cnn, wrn-16-4, wrn-40-4 or vit-tiny (cnn; tables, and images with a side below 16: "
        "mlp); or unet, a diffusion model",
        str,
    ),
    "optimizer": Flag("sgd, adam or adamw (sgd; dirichlet: sgd only)", str, "sgd"),
    "schedule": Flag("of the learning rate: constant, cosine or linear (constant)", str, "constant"),
    "momentum": Flag("of sgd (0)", float, 0.0),
    "weight_decay": Flag("of adamw (0)", float, 0.0),
    "ema_decay": Flag("moving average of the weights, which are then evaluated and released (none)"),
    "accumulation": Flag("compute a batch in so many parts, to save memory (1)", number, 1),
    "augmentation": Flag("random views of a record in a step; needs --padding or --flip (1)", number, 1),
    "draws": Flag("unet: draws of noise a record and step, whose losses are averaged (1)", number, 1),
    "padding": Flag("pixels by which a view may be shifted (0)", number, 0),
    "devices": Flag("devices that share a batch (1; all of them where --coordinator is given)", number, 1),
    "coordinator": Flag("host:port of the first process of a run on several", str),
    "num_processes": Flag("with --coordinator: processes of the run, 2 at least", number, 1),
    "process_id": Flag("with --coordinator: which process this is, from 0 (0)", number, 0),
    "checkpoint_every": Flag("steps between checkpoints, announced at once (a 20th of the run)", number),
    "report_every": Flag("steps between rows of metrics.csv (a 20th of the run)", number),
    "seed": Flag("of all randomness of the run, in [0, 2^64) (from the operating system)", number),
}
_SWITCHES: Mapping[str, str] = {
    "flip": "mirror images at random",
    "conditional": "unet: tell the model the class",
    "bfloat16": "compute activations in bfloat16",
    "split_parameters": "split the parameters over the devices too; needs several devices",
    "private_metrics": "also write losses and batch sizes, which no certificate covers, to the metrics",
    "resume": "go on with the run in --out",
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the flags, which all methods share."""
    training.add_flags(parser, {**_SHARED, **_TRAINING, **_FEATURE, **_RUN}, switches=_SWITCHES)
    training.add_out(parser)
    flags.add_json(parser)


def execute(arguments: argparse.Namespace) -> tuple[str, int]:
    """Trains; progress and what certifies the run go to stderr."""
    given = {name: getattr(arguments, name) for name in (*_SHARED, *_TRAINING)}
    settings = Settings(arguments.method, **given, feature=_feature(arguments))
    if arguments.resume and arguments.out is None:
        raise ValueError("out must be given when resume is set, got nothing")
    out = arguments.out or training.folder_name(settings.method, arguments.dataset)
    with training.begun(out, going_on=lambda: _going_on(arguments, out)):
        prepared, result = _run(arguments, settings, out)
    if arguments.json:
        return output.as_json(result.as_dict()), 0
    rows = [
        (result.metric.replace("_", " "), "epsilon, lower", "epsilon, upper", "delta", "steps"),
        (result.measured, result.epsilon.lower, result.epsilon.upper, result.delta, result.steps),
    ]
    lines = [
        output.statement(result.threat_model),
        prepared.plan.certificate.statement,
        "",
        output.table(rows),
        "",
        f"run: {result.run} ({result.seconds:.1f} s)",
    ]
    return "\n".join(lines), 0


def _feature(arguments: argparse.Namespace) -> FeatureSettings | None:
    """What feature is asked for; the flags are refused for the other methods."""
    given = {name: getattr(arguments, name) for name in _FEATURE}
    given = {name: value for name, value in given.items() if value is not None}
    if arguments.method == "feature":
        return FeatureSettings(given.pop("public", ""), **given)
    for name, value in given.items():
        raise ValueError(f"{name} must be left out for {arguments.method}, got {value}")
    return None


def _run(arguments: argparse.Namespace, settings: Settings, out: str) -> tuple[Any, Any]:
    """The run as it was prepared, and its result."""
    # JAX is imported from here on, so that the accountants' commands do without.
    from exactdp.train import start

    run = start.Start(
        settings=settings,
        out=out,
        **{name: getattr(arguments, name) for name in (*_RUN, *_SWITCHES)},
    )
    prepared = run.prepare()

    def announce() -> None:
        print("\n".join(_opening(prepared)), file=sys.stderr, flush=True)

    return prepared, run.carry_out(prepared, announce=announce)


def _going_on(arguments: argparse.Namespace, out: str) -> str:
    """How to go on with a run that was begun; nothing where none was."""
    if not (Path(out) / "run.json").is_file():
        return ""
    return training.going_on(
        arguments, out, values={**_SHARED, **_TRAINING, **_FEATURE, **_RUN}, switches=_SWITCHES
    )


def _opening(prepared: Any) -> list[str]:
    """What is said before the first step."""
    plan, settings = prepared.plan, prepared.settings
    shown = {
        settings.parameter: plan.noise,
        "sampling_probability": plan.sampler.sampling_probability,
        "num_steps": plan.num_steps,
        "learning_rate": plan.learning_rate,
    }
    numbers = ", ".join(f"{name} {output.show(value)}" for name, value in shown.items() if name)
    lines = [f"{settings.method} on {prepared.data.name}: {numbers}", *plan.certificate.lines()]
    if plan.printed is not None:
        lines.append(
            f"scaling chosen as the paper does: its rule gives epsilon {output.show(plan.printed.epsilon)} "
            f"(dirichlet ladder, {plan.printed.rung}), under another threat model than the certified epsilon "
            "at the end"
        )
    return lines
