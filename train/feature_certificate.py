"""What certifies feature-DP training: either definition of neighbours, two batches or one."""

from __future__ import annotations

from exactdp.accounting.ladder import feature as ladder
from exactdp.accounting.pairs.gaussian import Gaussian
from exactdp.accounting.threat import Adjacency, Coins, ThreatModel
from exactdp.mechanisms.batches import Poisson
from exactdp.mechanisms.public import Public
from exactdp.train.certificate import Certificate
from exactdp.train.feature_settings import FeatureSettings

_RUNGS = {
    ("replace", "two"): ladder.replacement,
    ("add_remove", "two"): ladder.both_directions,
    ("replace", "single"): ladder.naive_replacement,
    ("add_remove", "single"): ladder.naive,
}


def feature(
    noise_multiplier: float, *, sampler: Poisson, public: Public, asked: FeatureSettings
) -> Certificate:
    """Feature DP of noisy sums of clipped gradients; covers the weights.

    A clipped gradient has norm at most C, so that adding a record moves the sum by C at most, and replacing
    one by 2 C. With two batches the public gradient is a function of public features and coins of its own,
    the same for both neighbours: what remains is the Poisson-sampled Gaussian with hidden coins, of
    sensitivity C (`PoissonHidden`) or with both neighbours' gradients in play (`PoissonReplaceGaussian`). On
    a single batch the public gradient tells who is in it: visible coins. Where nothing is public there is no
    public gradient, and the coins are hidden either way.

    Args:
      noise_multiplier: noise standard deviation on the sum / clip norm, > 0.
      sampler: draws the private batches.
      public: the public feature map.
      asked: adjacency and batches.

    Source: arXiv 2506.19836v1, Definitions 5 and 6, Theorem 5 and Proposition 3; the pairs are derived here.
    """
    replaces = asked.adjacency == "replace"
    batches = "two" if public.nothing else asked.batches
    visible = batches == "single"
    releases = sampler.releases(
        Gaussian(noise_multiplier, sensitivity=2.0 if replaces else 1.0),
        num_steps=1,
        coins="visible" if visible else "hidden",
        adjacency=asked.adjacency,
    )
    return Certificate(
        mechanisms=tuple(mechanism for mechanism, _ in releases),
        threat_model=ThreatModel(
            _adjacency(public) if replaces else Adjacency.ADD_REMOVE,
            Coins.VISIBLE if visible else Coins.HIDDEN,
            _released(public, visible=visible),
        ),
        rung=f"{_rung_name(asked.adjacency, batches)} (feature ladder)",
        statement=_statement(public, replaces=replaces),
        covers_weights=True,
    )


def _rung_name(adjacency: str, batches: str) -> str:
    build = _RUNGS[adjacency, batches]
    return next(name for name, made in ladder.BUILDERS.items() if made is build)


def _adjacency(public: Public) -> Adjacency:
    if public.nothing:
        return Adjacency.REPLACE
    return Adjacency.REPLACE_LABEL_PUBLIC if public.inputs is None else Adjacency.REPLACE_FEATURES_PUBLIC


def _released(public: Public, *, visible: bool) -> str:
    if public.nothing:
        return "all noisy gradient sums"
    coins = ", and so is each step's batch" if visible else ""
    return f"all noisy gradient sums and public gradients; public features ({public.text}) are known{coins}"


def _statement(public: Public, *, replaces: bool) -> str:
    known = "" if public.nothing else f"the public features ({public.text}) of all records, "
    if replaces:
        kept = "" if public.nothing else ", as far as it may change while its public features stay"
        return (
            f"The certificate covers the trained weights against whoever knows {known}the number of records "
            f"and all records but one: that record is protected{kept}."
        )
    simulated = "" if public.nothing else ", the simulator of Definition 6 being told its public features"
    return (
        f"The certificate covers the trained weights: whether one record takes part is protected{simulated}; "
        "the number of records, by which sums are divided, is public."
    )
