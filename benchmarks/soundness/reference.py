"""References for (epsilon, delta) of a composition, by routes that share nothing with `exactdp`.

`Reference(mechanisms, digits).epsilon(delta)` is the smallest epsilon >= 0 at which the larger of the two
directions' hockey-stick divergences is <= delta; `.delta(epsilon)` gives both directions. A mechanism is a
dictionary such as

    {"family": "gaussian", "noise_multiplier": 1.0, "sampling_probability": 0.01, "coins": "hidden",
     "count": 1000}

(see README.md for every family). Numbers are read as the exact values of their float64.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Sequence
from typing import Any

from flint import arb

from exactdp.benchmarks.soundness import atoms, contour, exact, families, nested, sampled
from exactdp.benchmarks.soundness.contour import OutOfReachError

Config = dict[str, Any]
ATOMIC = ("pure_dp", "approximate_dp", "finite", "discrete_gaussian", "discrete_laplace")
REMOVE, ADD = False, True


@dataclasses.dataclass(frozen=True)
class Answer:
    """epsilon at a delta: the worse direction, both directions (None: not needed), and how it was found."""

    epsilon: arb
    remove: arb | None
    add: arb | None
    method: str


def smooth(config: Config) -> families.Mechanism:
    """The moment generating function of one mechanism with a continuous part."""
    family, coins, q = config["family"], config.get("coins", "none"), config.get("sampling_probability", 1.0)
    replace = config.get("adjacency", "add_remove") == "replace"
    if family == "gaussian":
        sigma = config["noise_multiplier"]
        if replace:
            return sampled.ReplaceGaussian(sigma, q) if q < 1 else families.Gaussian(sigma / 2)
        if coins == "hidden" and q < 1:
            return sampled.HiddenGaussian(sigma, q)
        base: families.Mechanism = families.Gaussian(sigma)
    elif family == "laplace":
        if coins == "hidden" and q < 1:
            return sampled.HiddenLaplace(config["noise_multiplier"], q)
        base = families.Laplace(config["noise_multiplier"])
    elif family == "dirichlet":
        if coins == "hidden" and q < 1:
            return sampled.HiddenDirichlet(config["scaling"], config["offset"], q)
        base = families.Dirichlet(config["scaling"], config["offset"])
    else:
        raise ValueError(f"family {family!r} has no smooth moment generating function here")
    return families.Visible(base, q) if coins == "visible" and q < 1 else base


def outcomes(config: Config, log_tail: float) -> atoms.Atoms:
    """The outcomes of one step of a family with atoms only."""
    family = config["family"]
    if family == "pure_dp":
        base = atoms.pure(config["epsilon"])
    elif family == "approximate_dp":
        base = atoms.approximate(config["epsilon"], config["delta"])
    elif family == "finite":
        base = atoms.finite(config["p"], config["q"])
    elif family == "discrete_gaussian":
        base = atoms.discrete_gaussian(config["noise_multiplier"], config.get("sensitivity", 1), log_tail)
    else:
        base = atoms.discrete_laplace(config["noise_multiplier"], config.get("sensitivity", 1))
    return atoms.sampled(base, config.get("coins", "none"), config.get("sampling_probability", 1.0))


class Reference:
    """Routes a composition to a method; raises `OutOfReachError` where none is certain.

    Args:
      mechanisms: the composition.
      digits: decimal digits asked for.
      vary: 1.0, or another value (0.87) for a second evaluation with another contour, step and precision.
    """

    def __init__(self, mechanisms: Sequence[Config], digits: float = 40, vary: float = 1.0) -> None:
        self.mechanisms = list(mechanisms)
        self.digits = digits + (3 if vary != 1.0 else 0)
        self.vary = vary
        self.count = sum(m["count"] for m in mechanisms)
        self.first = self.mechanisms[0]
        self.q = self.first.get("sampling_probability", 1.0)
        self.coins = self.first.get("coins", "none") if self.q < 1 else "none"
        self.replace = self.first.get("adjacency", "add_remove") == "replace"
        self.method = self._route()

    def _route(self) -> str:
        families_used = {m["family"] for m in self.mechanisms}
        if families_used == {"gaussian"} and all(
            m.get("sampling_probability", 1.0) == 1.0 for m in self.mechanisms
        ):
            return "gaussian closed form"
        if len(self.mechanisms) == 1:
            family = self.first["family"]
            if family in ATOMIC:
                return "atoms"
            if family == "laplace" and self.coins != "hidden":
                return "laplace closed form" if self.coins == "none" else "laplace binomial mixture"
            hidden_limit = 1 if family == "dirichlet" else 3
            if (
                self.coins == "hidden"
                and self.count <= hidden_limit
                and not (family == "gaussian" and self.replace)
            ):
                return "nested quadrature" if self.count > 1 else "one-step closed form"
            if family == "gaussian" and self.replace and self.count <= 2:
                return "nested quadrature" if self.count > 1 else "one-step closed form"
        if any(m["family"] in ATOMIC for m in self.mechanisms):
            raise OutOfReachError("no method for a composition that joins atoms and other families")
        return "contour"

    # -- delta ---------------------------------------------------------------------------------------------

    def delta(self, epsilon: str) -> tuple[arb, arb]:
        """delta(epsilon) in the directions remove and add."""
        symmetric = self.method in ("gaussian closed form", "laplace closed form", "laplace binomial mixture")
        remove = self._delta(REMOVE, epsilon)
        return remove, remove if symmetric or self.replace else self._delta(ADD, epsilon)

    def _delta(self, add: bool, epsilon: str) -> arb:
        if self.method == "contour":
            self._require_decay(add, epsilon)
            steps = [(smooth(m), m["count"]) for m in self.mechanisms]
            return contour.delta_at(steps, add, epsilon, self.digits, self.vary)
        if self.method == "atoms":
            return self._atoms_delta(add, epsilon)
        families.set_digits(self.digits + 40 + self._extra(epsilon))
        return self._function(add)(arb(epsilon))

    def _extra(self, epsilon: str) -> float:
        return 0.9 * float(epsilon)

    def _function(self, add: bool) -> Callable[[arb], arb]:
        """delta as a function of epsilon (arb), for the routes that are not contour or atoms."""
        c, count, digits = self.first, self.count, self.digits + (3 if self.vary != 1.0 else 0)
        if self.method == "gaussian closed form":
            total = arb(0)
            for m in self.mechanisms:
                shift = 2 if m.get("adjacency", "add_remove") == "replace" else 1
                total += m["count"] * (shift / arb(m["noise_multiplier"])) ** 2
            mu = total.sqrt()
            return lambda e: exact.gaussian_delta(mu, e)
        if self.method == "laplace closed form":
            if count > 400:
                raise OutOfReachError("laplace: more than 400 releases")
            return lambda e: exact.laplace_delta(c["noise_multiplier"], count, e)
        if self.method == "laplace binomial mixture":
            terms = self._binomial_terms()
            return lambda e: exact.visible_delta(
                lambda k: exact.laplace_delta(c["noise_multiplier"], k, e), count, self.q, terms
            )
        family = smooth(c)
        if isinstance(family, sampled.ReplaceGaussian):
            return lambda e: nested.Replace(family, digits).delta(count, e)
        if isinstance(family, sampled.HiddenLaplace):
            return lambda e: nested.Pieces(family, add, digits).delta(count, e)
        if not isinstance(family, sampled.HiddenGaussian | sampled.HiddenDirichlet):
            raise OutOfReachError(f"nested: no route for {c['family']!r}")
        return lambda e: nested.Smooth(family, add, digits).delta(count, e)

    def _binomial_terms(self) -> int:
        goal = (self.digits + 120) * families.LN10
        for k in range(self.count + 1):
            if k > 120:
                raise OutOfReachError("laplace: too many sampled steps")
            tail = k * (math.log(self.count * self.q / max(k, 1)) + 1) if k > self.count * self.q else 0.0
            if -tail > goal:
                return k
        return self.count

    def _require_decay(self, add: bool, epsilon: str) -> None:
        steps = [(smooth(m), m["count"]) for m in self.mechanisms]
        if any(m.decays for m, _ in steps):
            return
        guide = contour.Guide(steps, add)
        tau = guide.find(float(epsilon), 0)
        rate = 0.0
        for mechanism, count in steps:
            if not isinstance(mechanism, sampled.HiddenLaplace):
                raise OutOfReachError("contour: atoms and no decaying mechanism")
            s, d, q = (-1 - tau if add else tau), mechanism.width, mechanism.q
            total = mechanism.cumulant(s)[0]
            share = 0.0
            for u, mass in ((d, 0.5 * math.exp(-d)), (-d, 0.5)):
                share += mass * math.exp((s + 1) * math.log1p(q * math.expm1(u)) - total)
            rate += count * math.log(min(1.0, share + 0.5 * (1 - share)))
        if rate > -(self.digits + 12) * families.LN10:
            raise OutOfReachError("contour: the atoms' part does not decay enough")

    # -- epsilon -------------------------------------------------------------------------------------------

    def epsilon(self, delta: str, both: bool = True) -> Answer:
        """epsilon(delta); `both` asks for each direction even where one of them decides."""
        symmetric = self.method in ("gaussian closed form", "laplace closed form", "laplace binomial mixture")
        remove = self._epsilon(REMOVE, delta)
        add = remove if symmetric or self.replace else self._epsilon(ADD, delta) if both else None
        worst = remove if add is None or remove > add else add
        return Answer(worst if worst > 0 else arb(0), remove, add, self.method)

    def _epsilon(self, add: bool, delta: str) -> arb:
        if self.method == "contour":
            steps = [(smooth(m), m["count"]) for m in self.mechanisms]
            guide = contour.Guide(steps, add)
            tau = guide.find(float(arb(delta).log()), 1)
            rough = guide.saddle(tau)[0]
            self._require_decay(add, str(rough))
            if rough < -1e-3 and float(self._delta(add, "0")) < float(arb(delta)):
                return arb("-inf")
            return contour.epsilon_at(steps, add, delta, self.digits, self.vary)
        if self.method == "atoms":
            return self._atoms_epsilon(add, delta)
        families.set_digits(self.digits + 40)
        return root(self._function(add), delta, self.digits)

    def _atoms_law(self, add: bool, log_tail: float) -> atoms.Law:
        step = outcomes(self.first, log_tail)
        total = atoms.power(step, self.count)
        return atoms.Law(atoms.flip(total) if add else total)

    def _atoms_delta(self, add: bool, epsilon: str) -> arb:
        families.set_digits(self.digits + 140 + self._extra(epsilon))
        lattice = self._lattice(add, (self.digits + 100) * families.LN10)
        if lattice is not None:
            return self._lift(lattice.delta(self.count, arb(epsilon), self.digits, self.vary))
        return self._atoms_law(add, (self.digits + 330) * families.LN10).delta(arb(epsilon))

    def _atoms_epsilon(self, add: bool, delta: str) -> arb:
        families.set_digits(self.digits + 140)
        log_tail = (self.digits + 20) * families.LN10 - float(arb(delta).log())
        lattice = self._lattice(add, log_tail)
        if lattice is not None:
            if not 1 - (1 - self._infinite()) ** self.count < arb(delta):
                return arb("inf")
            return root(
                lambda e: self._lift(lattice.delta(self.count, e, self.digits, self.vary)), delta, self.digits
            )
        return self._atoms_law(add, log_tail).epsilon(arb(delta))

    def _infinite(self) -> arb:
        if self.first["family"] != "approximate_dp":
            return arb(0)
        return arb(self.first["delta"]) * (arb(self.q) if self.coins != "none" else 1)

    def _lift(self, value: arb) -> arb:
        keep = (1 - self._infinite()) ** self.count
        return 1 - keep + keep * value

    def _lattice(self, add: bool, log_tail: float) -> atoms.Lattice | None:
        """The lattice of the finite losses where there are too many types; None for small cases."""
        c, family = self.first, self.first["family"]
        size = {"pure_dp": 2, "approximate_dp": 4, "discrete_laplace": 1 + c.get("sensitivity", 1)}.get(
            family
        )
        if family == "finite":
            size = len(c["p"])
        if family == "discrete_gaussian":
            if self.count == 1 or (self.coins != "none" and self.count == 2):
                return None
        elif (
            math.comb(self.count + size + (self.coins == "visible") - 1, size - 1 + (self.coins == "visible"))
            <= 5000
        ):
            return None
        step = [(p, q) for p, q in outcomes(c, log_tail) if p > 0 and q > 0]
        mass = sum((p for p, _ in step), arb(0))
        step = [(p / mass, q / mass) for p, q in step]
        step = atoms.flip(step) if add else step
        losses = [(p / q).log() for p, q in step]
        low = min(losses, key=float)
        if len(step) == 2:
            spacing = max(losses, key=float) - low
        elif (
            self.coins == "hidden" or family == "finite" or (self.coins == "visible" and family != "pure_dp")
        ):
            raise OutOfReachError("atoms: too many types and no lattice")
        elif family == "pure_dp":
            spacing = arb(c["epsilon"])
        elif family == "discrete_gaussian":
            s = c.get("sensitivity", 1)
            spacing = s / arb(c["noise_multiplier"]) ** 2
        elif family == "discrete_laplace":
            s = c.get("sensitivity", 1)
            spacing = 2 / arb(c["noise_multiplier"])
        else:
            raise OutOfReachError("atoms: too many types and no lattice")
        indices = [round(float((loss - low) / spacing)) for loss in losses]
        return atoms.Lattice(step, low, spacing, indices)


def root(function: Callable[[arb], arb], delta: str, digits: float) -> arb:
    """The epsilon >= 0 with function(epsilon) = delta, by secants; -inf if function(0) <= delta."""
    goal = arb(delta).log()

    def value(e: arb) -> arb:
        d = function(e)
        if not d > 0:
            return arb(-1_000_000) - e
        return d.log() - goal

    low, at_low = arb(0), value(arb(0)).mid()
    if at_low <= 0:
        return arb("-inf")
    high = arb("0.125")
    at_high = value(high).mid()
    while at_high > 0:
        low, at_low, high = high, at_high, high * 2
        at_high = value(high).mid()
        if high > 1e9:
            raise OutOfReachError("root: no bracket")
    previous = None
    x, y = (low, at_low) if abs(at_low) < abs(at_high) else (high, at_high)
    for i in range(400):
        guess = None
        if previous is not None and y != previous[1]:
            guess = (x - y * (x - previous[0]) / (y - previous[1])).mid()
        if guess is None or not (guess > low and guess < high) or i % 9 == 8 or at_high < -100_000:
            guess = ((low + high) / 2).mid()
        at = value(guess).mid()
        previous, x, y = (x, y), guess, at
        if at > 0:
            low, at_low = guess, at
        else:
            high, at_high = guess, at
        gap = abs(float(x - previous[0]))
        settled = gap <= 10.0 ** -(digits + 1) * abs(float(x)) and abs(float(at)) < 10.0 ** (-0.4 * digits)
        if at == 0 or settled or float(high - low) <= 10.0 ** -(digits + 1) * abs(float(x)):
            return x
    raise OutOfReachError("root: no convergence")
