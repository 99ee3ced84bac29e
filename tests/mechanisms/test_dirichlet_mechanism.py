"""The Dirichlet mechanism: validation, its pair, and Theorem 11 of arXiv 2607.19580v1 by Monte Carlo."""

from __future__ import annotations

import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import special

from exactdp.accounting import threat
from exactdp.accounting.pairs import dirichlet as accounting
from exactdp.mechanisms.dirichlet_mechanism import DirichletMechanism


class TestConstruction:
    @pytest.mark.parametrize("value", [0.0, -1.0, math.nan, math.inf, "2", None, True])
    def test_bad_parameters_are_refused_by_name(self, value: object) -> None:
        with pytest.raises(ValueError, match="scaling must be"):
            DirichletMechanism(scaling=value, offset=3.0)  # type: ignore[arg-type]
        with pytest.raises(ValueError, match="offset must be"):
            DirichletMechanism(scaling=0.2, offset=value)  # type: ignore[arg-type]

    def test_pair_and_threat_model(self) -> None:
        mechanism = DirichletMechanism(scaling=0.235, offset=3.0)
        assert mechanism.pair() == accounting.Dirichlet(scaling=0.235, offset=3.0)
        assert mechanism.threat_model.adjacency is threat.Adjacency.REPLACE_LABEL_PUBLIC
        assert mechanism.threat_model.coins is threat.Coins.NONE
        assert hash(mechanism) == hash(DirichletMechanism(scaling=0.235, offset=3))


class TestDraw:
    def test_concentration(self) -> None:
        logits = jnp.asarray([[0.0, 0.0], [math.log(3.0), 0.0]])
        found = DirichletMechanism(scaling=2.0, offset=0.5).concentration(logits)
        assert np.allclose(found, [[1.5, 1.5], [2.0, 1.0]])

    def test_mean_of_the_draw(self) -> None:
        mechanism = DirichletMechanism(scaling=4.0, offset=0.5)
        logits = jnp.asarray([1.0, 0.0, -1.0])
        rho = np.exp(mechanism.log_draw(jax.random.key(1), jnp.tile(logits, (20_000, 1))))
        a = 4.0 * special.softmax([1.0, 0.0, -1.0]) + 0.5
        assert np.allclose(rho.mean(0), a / a.sum(), atol=5e-3)

    def test_scalar_logits_and_many_keys_are_refused(self) -> None:
        mechanism = DirichletMechanism(scaling=1.0, offset=1.0)
        with pytest.raises(ValueError, match="logits must have a class axis"):
            mechanism.log_draw(jax.random.key(1), 0.5)
        with pytest.raises(ValueError, match="key must be"):
            mechanism.log_draw(jax.random.split(jax.random.key(1)), jnp.zeros(3))

    def test_bfloat16_logits(self) -> None:
        mechanism = DirichletMechanism(scaling=1.0, offset=1.0)
        logits = jnp.zeros((4, 3), jnp.bfloat16)
        assert mechanism.log_draw(jax.random.key(1), logits).dtype == jnp.float32
        slope = jax.grad(lambda z: mechanism.log_draw(jax.random.key(1), z).sum())(logits)
        assert slope.dtype == jnp.bfloat16

    def test_nan_logits_give_nan_rows_only(self) -> None:
        mechanism = DirichletMechanism(scaling=1.0, offset=1.0)
        drawn = mechanism.log_draw(
            jax.random.key(1), jnp.asarray([[0.0, jnp.nan], [0.0, 1.0], [0.0, -jnp.inf]])
        )
        assert np.array_equal(np.isnan(drawn), [[True, True], [False, False], [False, False]])


class TestTheorem11:
    @pytest.mark.parametrize(
        ("scaling", "offset"), [(0.235, 3.0), (2.0, 0.5), (10.0, 1.0), (0.05, 0.05), (300.0, 2.0)]
    )
    def test_mean_gradient_is_kappa_times_cross_entropy(self, scaling: float, offset: float) -> None:
        mechanism = DirichletMechanism(scaling=scaling, offset=offset)
        logits, label, n = jnp.asarray([1.2, -0.3, 0.4, -1.0]), 2, 60_000

        def loss(z: jax.Array) -> jax.Array:
            return -mechanism.log_draw(jax.random.key(50), z)[:, label].sum()

        slopes = np.asarray(jax.grad(loss)(jnp.tile(logits, (n, 1))), np.float64)
        cross_entropy = jax.grad(lambda z: -jax.nn.log_softmax(z)[label])(logits)
        probability = jax.nn.softmax(logits)[label]
        expected = np.asarray(mechanism.kappa(probability) * cross_entropy)
        # 20 bands of 4.2 standard errors: all hold with probability 0.9995.
        band = 4.2 * slopes.std(0) / math.sqrt(n)
        assert np.all(np.abs(slopes.mean(0) - expected) < band)
        # The bands are narrow enough to tell kappa from 1.3 kappa.
        assert np.max(np.abs(expected) / band) > 1.0 / 0.3

    def test_kappa(self) -> None:
        mechanism = DirichletMechanism(scaling=0.235, offset=3.0)
        s = np.array([0.0, 0.1, 0.9, 1.0])
        expected = 0.235 * s * special.polygamma(1, 0.235 * s + 3.0)
        assert np.allclose(mechanism.kappa(s), expected, rtol=1e-5)
        assert np.all(np.isnan(mechanism.kappa(jnp.asarray([-0.1, 1.1, jnp.nan]))))

    def test_kappa_at_extreme_parameters(self) -> None:
        for r, alpha in ((1e-6, 3.0), (1e4, 1e-3), (1e-3, 1e-3), (5.0, 1e4)):
            expected = 0.9 * r * special.polygamma(1, 0.9 * r + alpha)
            found = DirichletMechanism(scaling=r, offset=alpha).kappa(0.9)
            assert float(found) == pytest.approx(expected, rel=1e-5)

    def test_effective_learning_rate(self) -> None:
        mechanism = DirichletMechanism(scaling=0.235, offset=3.0)
        effective = mechanism.effective_learning_rate(2.0)
        assert float(effective) == pytest.approx(2.0 * float(mechanism.kappa(0.9)))
        other = mechanism.effective_learning_rate(2.0, label_probability=0.5)
        assert float(other) == pytest.approx(2.0 * float(mechanism.kappa(0.5)))
