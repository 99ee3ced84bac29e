"""What is claimed of a release: the trade-off curve that Theorem 4 is read off."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from exactdp.accounting import validate
from exactdp.accounting.fdp import tradeoff
from exactdp.accounting.fdp.curve import TradeoffCurve, from_epsilon_delta
from exactdp.accounting.fdp.gaussian import GaussianTradeoff
from exactdp.accounting.ledger import Ledger
from exactdp.mechanisms.public import Public
from exactdp.train import folder

# Its ledger announces gradients without noise: whoever is sampled is seen.
_NOT_PRIVATE = "nonprivate"


@dataclasses.dataclass(frozen=True)
class Claim:
    """A guarantee under feature DP.

    Attributes:
      curve: the trade-off curve that is guaranteed.
      given: what it was made from, for the report.
    """

    curve: TradeoffCurve
    given: Mapping[str, Any]

    @classmethod
    def of_epsilon(cls, epsilon: float, *, delta: float) -> Claim:
        """The curve that (epsilon, delta) guarantees.

        Raises:
          ValueError: `epsilon` is negative or infinite, or `delta` not in (0, 1).
        """
        eps, mass = validate.non_negative("epsilon", epsilon), validate.open_probability("delta", delta)
        return cls(from_epsilon_delta(eps, delta=mass), {"epsilon": eps, "delta": mass})

    @classmethod
    def of_mu(cls, mu: float) -> Claim:
        """Gaussian differential privacy.

        Raises:
          ValueError: `mu` is not positive and finite.
        """
        return cls(GaussianTradeoff(validate.positive("gaussian_mu", mu)), {"gaussian_mu": float(mu)})

    @classmethod
    def of_run(cls, directory: str | Path, *, public: Public, parse: Callable[[str], Public]) -> Claim:
        """The exact curve of what the ledger of a run announces; the empty guarantee where it has no noise.

        Args:
          directory: the folder of the run.
          public: the map audited; a run that says which one it was trained with must name the same.
          parse: reads such a name.

        Raises:
          ValueError: there is no ledger, it is damaged or empty, or the run's map is another.
        """
        path = Path(directory) / folder.LEDGER
        if not path.is_file():
            raise ValueError(f"run must be the folder of a run, got {directory} without {folder.LEDGER}")
        ledger = Ledger.load(path)
        if not len(ledger):
            raise ValueError(f"run must have announced a release, got {directory} with an empty ledger")
        described = folder.description(Path(directory))
        trained = (described.get("settings", {}).get("feature") or {}).get("public")
        if trained is not None and parse(trained).text != public.text:
            raise ValueError(
                f"public must be what the run was trained with, {trained!r}, got {public.text!r}"
            )
        given = {"run": str(directory), "threat_model": ledger.threat_model.as_dict()}
        if described.get("method") == _NOT_PRIVATE:
            return cls(from_epsilon_delta(0.0, delta=1.0), given)
        return cls(tradeoff.curve(ledger.composition()).lower, given)
