"""One, two or three steps with hidden coins: closed form for one, nested quadrature for more."""

from __future__ import annotations

import math

from flint import arb

from exactdp.benchmarks.soundness import exact, sampled
from exactdp.benchmarks.soundness.contour import OutOfReachError
from exactdp.benchmarks.soundness.families import LN10


class Smooth:
    """A sampled pair on the line whose base loss u(x) is affine: P' = (1 - q) Q + q P against Q.

    delta_n(e) = E[delta_{n-1}(e - L)] splits at the point x* beyond which delta_{n-1}(e) = 1 - e^e; below it
    the substitution x = x* - scale log(1 + e^v) makes the trapezoid rule converge exponentially.
    """

    def __init__(
        self, family: sampled.HiddenGaussian | sampled.HiddenDirichlet, add: bool, digits: float
    ) -> None:
        self.family, self.add, self.digits = family, add, digits
        self.q = arb(family.q)
        self.edge = (1 - self.q).log()
        self.gaussian = isinstance(family, sampled.HiddenGaussian)
        self.scale = arb(family.sigma) if self.gaussian else 1 / arb(min(1.0, 2 * family.alpha))
        self.step = 0.155 * 40 / (digits + 10) / (1.0 if self.gaussian else 1.5)

    def inverse(self, loss: arb) -> arb:
        """x with L(x) = loss > log(1 - q)."""
        u = ((loss.exp() - 1 + self.q) / self.q).log()
        if self.gaussian:
            return u * arb(self.family.sigma) ** 2 + arb("0.5")
        return u / arb(self.family.r)

    def tails(self, x: arb) -> tuple[arb, arb]:
        """P'(X > x), Q(X > x), or for the direction add Q(X < x), P'(X < x)."""
        q = self.q
        if self.gaussian:
            sigma = arb(self.family.sigma)
            sign = -1 if self.add else 1
            under_q, under_p = exact.normal_tail(sign * x / sigma), exact.normal_tail(sign * (x - 1) / sigma)
        else:
            a, r = arb(self.family.alpha), arb(self.family.r)
            if self.add:
                b = 1 / (1 + (-x).exp())
                under_q, under_p = b.beta_lower(a, a + r, 1), b.beta_lower(a + r, a, 1)
            else:
                b = 1 / (1 + x.exp())
                under_q, under_p = b.beta_lower(a + r, a, 1), b.beta_lower(a, a + r, 1)
        mixed = (1 - q) * under_q + q * under_p
        return (under_q, mixed) if self.add else (mixed, under_q)

    def delta(self, count: int, e: arb) -> arb:
        """delta after `count` steps, e of any sign."""
        if self.add:
            if not e < -count * self.edge:
                return arb(0)
        elif not e > count * self.edge:
            return 1 - e.exp()
        if count == 0:
            return max(arb(0), 1 - e.exp())
        if count == 1:
            first, second = self.tails(self.inverse(-e if self.add else e))
            return first - e.exp() * second
        rest = (count - 1) * self.edge
        star = self.inverse(-rest - e if self.add else e - rest)
        total = arb(0)
        if not self.add:
            first, second = self.tails(star)
            total = first - e.exp() * second
        return total + self._integral(count, e, star)

    def _integral(self, count: int, e: arb, star: arb) -> arb:
        h = arb(self.step)
        tol = 10.0 ** -(self.digits + 8)
        total = arb(0)
        for sign in (1, -1):
            k, quiet, peak = (0 if sign == 1 else -1), 0, arb(0)
            while quiet < 4:
                v = h * k
                grow = v.exp()
                x = star - self.scale * (1 + grow).log()
                density, loss = self.family.exact(x)
                if self.add:
                    density, loss = density / loss.exp(), -loss
                term = density * self.delta(count - 1, e - loss) * grow / (1 + grow)
                total += term
                peak = max(peak, term.mid())
                far = abs(float(v)) > self._reach(float(star))
                quiet = quiet + 1 if far and abs(term.mid()) <= peak * tol else 0
                k += sign
                if k * sign > 40_000:
                    raise OutOfReachError("nested: the integrand does not decay")
        return total * h * self.scale

    def _reach(self, star: float) -> float:
        return 2.0 + abs(star) / float(self.scale)


class Pieces:
    """The Laplace pair with hidden coins: Gauss-Legendre on the pieces between kinks."""

    def __init__(self, family: sampled.HiddenLaplace, add: bool, digits: float) -> None:
        self.add, self.digits = add, digits
        self.q = arb(family.q)
        self.d = 1 / arb(family.noise_multiplier)
        self.order = int(10 + 0.62 * digits + 2.0 * family.width)
        ends = [self.loss(self.d), self.loss(-self.d)]
        self.high, self.low = (-ends[1], -ends[0]) if add else (ends[0], ends[1])

    def loss(self, u: arb) -> arb:
        """L as a function of the base loss u (direction remove)."""
        return (1 - self.q + self.q * u.exp()).log()

    def inverse(self, loss: arb) -> arb:
        return ((loss.exp() - 1 + self.q) / self.q).log()

    def delta(self, count: int, e: arb) -> arb:
        """delta after `count` steps, e of any sign."""
        if not e > count * self.low:
            return 1 - e.exp()
        if not e < count * self.high:
            return arb(0)
        if count == 1:
            return self._one(e)
        d = self.d
        kinks = [i * self.low + (count - 1 - i) * self.high for i in range(count)]
        cuts = [-d, d]
        for kink in kinks:
            loss = kink - e if self.add else e - kink
            if loss > self.loss(-d) and loss < self.loss(d):
                cuts.append(self.inverse(loss))
        cuts.sort(key=float)
        total = arb(0)
        for u, w in ((d, (-d).exp() / 2), (-d, arb(1) / 2)):
            total += self._term(count, e, u, w)
        for left, right in zip(cuts, cuts[1:], strict=False):
            middle, half = (left + right) / 2, (right - left) / 2
            for x, w in sampled.legendre(self.order):
                u = middle + half * x
                total += self._term(count, e, u, half * w * (-(u + d) / 2).exp() / 4)
        return total

    def _term(self, count: int, e: arb, u: arb, weight: arb) -> arb:
        ratio = 1 - self.q + self.q * u.exp()
        loss = ratio.log()
        if self.add:
            return weight * self.delta(count - 1, e + loss)
        return weight * ratio * self.delta(count - 1, e - loss)

    def _one(self, e: arb) -> arb:
        q, d = self.q, self.d
        t = self.inverse(-e if self.add else e)
        if self.add:
            under_q, under_p = 1 - (-(t + d) / 2).exp() / 2, ((t - d) / 2).exp() / 2
        else:
            under_q, under_p = (-(t + d) / 2).exp() / 2, 1 - ((t - d) / 2).exp() / 2
        mixed = (1 - q) * under_q + q * under_p
        return under_q - e.exp() * mixed if self.add else mixed - e.exp() * under_q


class Replace:
    """Replacement Gaussian with hidden coins: one step in closed form, more by the trapezoid rule in x."""

    def __init__(self, family: sampled.ReplaceGaussian, digits: float) -> None:
        self.family, self.digits = family, digits
        self.q, self.sigma = arb(family.q), arb(family.sigma)

    def delta(self, count: int, e: arb) -> arb:
        if count == 1:
            return self._one(e)
        # delta_1(e - L(x)) has branch points near the x* with L(x*) = e, at a distance of about `near`:
        # x = x* + near sinh(v) moves them away. 320 digits more let delta be as small as 1e-300.
        star = self.inverse(e)
        sigma = float(self.sigma)
        width = sigma * math.sqrt(2 * (self.digits + 320) * LN10) + 2 + abs(float(star))
        up = 1 / (1 + (1 - self.q) / self.q * (-(2 * star - 1) / (2 * self.sigma**2)).exp())
        down = 1 / (1 + (1 - self.q) / self.q * ((2 * star + 1) / (2 * self.sigma**2)).exp())
        slope = (up + down) / self.sigma**2
        near = min(sigma, float(2 * self.q * (-1 / (2 * self.sigma**2)).exp() / slope))
        h = arb(0.9 / (self.digits + 10))
        reach = math.asinh(2 * width / near) / float(h)
        total = arb(0)
        for k in range(-math.ceil(reach), math.ceil(reach) + 1):
            grow = (h * k).exp()
            x = star + near * (grow - 1 / grow) / 2
            if abs(float(x)) > width:
                continue
            density, loss = self.family.exact(x)
            total += density * self.delta(count - 1, e - loss) * near * (grow + 1 / grow) / 2
        return total * h

    def inverse(self, e: arb) -> arb:
        """x with L(x) = e: a quadratic equation in exp(x / sigma^2)."""
        # (1 - q) + q g y = e^e ((1 - q) + q g / y), g = exp(-1 / (2 sigma^2)), y = exp(x / sigma^2)
        q, grow = self.q, e.exp()
        a = q * (-1 / (2 * self.sigma**2)).exp()
        b = (1 - q) * (1 - grow)
        c = a * grow
        root = (b * b + 4 * a * c).sqrt()
        y = 2 * c / (b + root) if b > 0 else (root - b) / (2 * a)
        return y.log() * self.sigma**2

    def _one(self, e: arb) -> arb:
        t, q, s = self.inverse(e), self.q, self.sigma
        zero, plus, minus = (exact.normal_tail((t - m) / s) for m in (0, 1, -1))
        return (1 - q) * zero + q * plus - e.exp() * ((1 - q) * zero + q * minus)
