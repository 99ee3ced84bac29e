"""The certificate of each method: which mechanism a step runs, against whom, and what that covers."""

from __future__ import annotations

from exactdp.accounting.ladder.dirichlet_setting import REPLACE_GRADIENTS, REPLACE_VISIBLE
from exactdp.accounting.pairs.approximate import ApproximateDP
from exactdp.accounting.pairs.base import Pair
from exactdp.accounting.pairs.dirichlet import Dirichlet
from exactdp.accounting.pairs.gaussian import Gaussian
from exactdp.accounting.prv import Mechanism
from exactdp.accounting.threat import Adjacency, Coins, ThreatModel
from exactdp.accounting.worst_pair.proved import loss_dominance_proved
from exactdp.mechanisms.batches import Poisson
from exactdp.train.certificate import Certificate


def dpsgd(noise_multiplier: float, *, sampler: Poisson) -> Certificate:
    """DP-SGD: add/remove neighbours, hidden coins; covers the weights.

    Args:
      noise_multiplier: noise standard deviation / clip norm, > 0.
      sampler: draws the batches.
    """
    return Certificate(
        mechanisms=_step(sampler, Gaussian(noise_multiplier)),
        threat_model=ThreatModel(Adjacency.ADD_REMOVE, Coins.HIDDEN, "all noisy gradient sums"),
        rung="exact, hidden coins: the Poisson-sampled Gaussian (two_stage ladder, exact)",
        statement=(
            "The certificate covers the trained weights, which are computed from the noisy gradient sums "
            "alone; the number of records, by which sums are divided, is public."
        ),
        covers_weights=True,
    )


def label_public(noise_multiplier: float, *, sampler: Poisson) -> Certificate:
    """DP-SGD with labels public: feature DP with Psi(x, y) = y; covers the weights.

    Neighbours differ in the input of one record, which keeps its label. Its two gradients may be two clip
    norms apart, hence `PoissonReplaceGaussian`, which is exact.

    Args:
      noise_multiplier: noise standard deviation / clip norm, > 0.
      sampler: draws the batches.

    Source: arXiv 2506.19836v1, Definition 5 with Psi(x, y) = y and no public loss; the pair is derived here.
    """
    return Certificate(
        mechanisms=_step(sampler, Gaussian(noise_multiplier, sensitivity=2.0), adjacency="replace"),
        threat_model=REPLACE_GRADIENTS,
        rung="feature DP, label public (dirichlet ladder)",
        statement=(
            "The certificate covers the trained weights against whoever knows all labels and the number of "
            "records, and all inputs but one record's: that input is what is protected, its label is not."
        ),
        covers_weights=True,
    )


def dirichlet(scaling: float, *, offset: float, sampler: Poisson, num_classes: int) -> Certificate:
    """Dirichlet softmax training: label-public replacement, visible coins; covers the draws only.

    Args:
      scaling: r > 0.
      offset: alpha > 0.
      sampler: draws the batches.
      num_classes: K >= 2.

    Source: arXiv 2607.19580v1; the exact value is derived here.
    """
    model = REPLACE_VISIBLE
    if loss_dominance_proved(scaling=scaling, offset=offset, num_classes=num_classes) is None:
        model = ThreatModel(
            model.adjacency,
            model.coins,
            f"{model.released} (inputs one-hot in two classes only: with this offset and scaling, other "
            "inputs may be told apart better)",
        )
    return Certificate(
        mechanisms=_step(sampler, Dirichlet(float(scaling), float(offset)), coins="visible"),
        threat_model=model,
        rung="exact, visible coins (dirichlet ladder)",
        statement=(
            "What the certificate of arXiv 2607.19580 covers is rho, the Dirichlet draws of the sampled "
            "records, and not the trained weights: their update contains the network's Jacobian at the raw "
            "record."
        ),
        covers_weights=False,
    )


def gaussian_features(noise_multiplier: float, *, sampler: Poisson) -> Certificate:
    """Gaussian noise on clipped features: label-public replacement, visible coins; covers the features only.

    Two features of norm at most C are at most 2 C apart.

    Args:
      noise_multiplier: noise standard deviation / clip norm, > 0.
      sampler: draws the batches.
    """
    return Certificate(
        mechanisms=_step(sampler, Gaussian(noise_multiplier, sensitivity=2.0), coins="visible"),
        threat_model=ThreatModel(
            Adjacency.REPLACE_LABEL_PUBLIC,
            Coins.VISIBLE,
            "the noisy features of each step's batch, and who is in it",
        ),
        rung="exact, visible coins: Gaussian noise on features of norm at most the clip norm",
        statement=(
            "What the certificate covers is the noisy features of the sampled records, and not the trained "
            "weights: their update contains the network's Jacobian at the raw record."
        ),
        covers_weights=False,
    )


def nonprivate(*, sampler: Poisson) -> Certificate:
    """Training without noise: whoever is sampled may be given away.

    Args:
      sampler: draws the batches.
    """
    return Certificate(
        # A record is given away when it is sampled: (0, q)-DP a step, and nothing better.
        mechanisms=(ApproximateDP(0.0, sampler.sampling_probability),),
        threat_model=ThreatModel(Adjacency.ADD_REMOVE, Coins.NONE, "all gradients, without noise"),
        rung="none: no privacy is claimed",
        statement="Nothing is certified: gradients are released without noise.",
        covers_weights=False,
    )


def _step(
    sampler: Poisson, pair: Pair, *, coins: str = "hidden", adjacency: str = "add_remove"
) -> tuple[Mechanism, ...]:
    """What one step releases, batches that overflow included."""
    releases = sampler.releases(pair, num_steps=1, coins=coins, adjacency=adjacency)
    return tuple(mechanism for mechanism, _ in releases)
