"""Public feature maps: what they keep, what they refuse, and that they are functions of one record."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.ndimage
from jax import Array

from exactdp.mechanisms import public
from exactdp.mechanisms.public import Blur, Columns, Composed, Downsample, Identity, Own, Public, Region

NAMES = ("age", "sex=Female", "sex=Male", "race=A", "race=B", "hours")


def images(key: int = 0, batch: int = 3, side: int = 9) -> Array:
    return jax.random.normal(jax.random.key(key), (batch, side, side + 2, 2))


MAPS = [
    Columns((0, 2)),
    Region(1, 4, 2, 7),
    Blur(1.3),
    Blur(1.0, "box"),
    Blur(30.0),
    Downsample(4),
    Identity(),
    Composed(Downsample(2), Blur(0.7)),
    Own(lambda x: jnp.sort(x, axis=0), "sorted"),
]


@pytest.mark.parametrize("inputs", MAPS, ids=lambda m: m.text)
def test_a_view_is_a_function_of_one_record(inputs: public.InputMap) -> None:
    x = jax.random.normal(jax.random.key(1), (5, 4)) if isinstance(inputs, Columns) else images(batch=5)
    inputs.require_shape(x.shape[1:])
    whole = inputs.view(x)
    assert whole.shape == x.shape
    for place in range(len(x)):
        np.testing.assert_allclose(inputs.view(x[place : place + 1])[0], whole[place], rtol=0, atol=1e-6)
    np.testing.assert_array_equal(jax.jit(inputs.view)(x), jax.jit(inputs.view)(x))
    assert hash(inputs) == hash(inputs)


@pytest.mark.parametrize(("sigma", "kernel"), [(0.5, "gaussian"), (2.0, "gaussian"), (5.0, "gaussian")])
def test_blur_is_that_of_scipy(sigma: float, kernel: str) -> None:
    x = images(side=12)
    wanted = scipy.ndimage.gaussian_filter(
        np.asarray(x, np.float64),
        (0, sigma, sigma, 0),
        mode="reflect",
        radius=(0, *[int(np.ceil(4 * sigma))] * 2, 0),
    )
    np.testing.assert_allclose(Blur(sigma, kernel).view(x), wanted, rtol=0, atol=3e-6)


def test_box_blur_is_that_of_scipy() -> None:
    x = images(side=12)
    # Standard deviation 2 is nearest to that of seven equal weights.
    wanted = scipy.ndimage.uniform_filter(np.asarray(x, np.float64), (0, 7, 7, 0), mode="reflect")
    np.testing.assert_allclose(Blur(2.0, "box").view(x), wanted, rtol=0, atol=3e-6)


def test_blur_keeps_a_constant_image_and_forgets_all_but_the_mean_at_last() -> None:
    np.testing.assert_allclose(Blur(3.0).view(jnp.full((1, 7, 8, 1), 0.25)), 0.25, atol=1e-6)
    x = images()
    wide = Blur(1e4).view(x)
    # Mirrored, each pixel is met equally often.
    np.testing.assert_allclose(wide, jnp.broadcast_to(x.mean((1, 2), keepdims=True), x.shape), atol=2e-2)


def test_downsample_takes_means_of_squares() -> None:
    x = images(side=5)
    view = np.asarray(Downsample(2).view(x))
    np.testing.assert_allclose(
        view[:, 2:4, 4:6],
        np.asarray(x)[:, 2:4, 4:6].mean((1, 2), keepdims=True) + 0 * view[:, 2:4, 4:6],
        atol=1e-6,
    )
    np.testing.assert_allclose(
        view[:, 4:, 6:], np.asarray(x)[:, 4:, 6:].mean((1, 2), keepdims=True), atol=1e-6
    )


def test_what_is_private_does_not_reach_the_view() -> None:
    """Records that agree in their public part have one view."""
    x = images()
    assert bool(jnp.all(Region(1, 4, 2, 7).view(x.at[:, 0].set(7.0)) == Region(1, 4, 2, 7).view(x)))
    table = jax.random.normal(jax.random.key(3), (4, 6))
    kept = public.parse("private:sex", num_columns=6, names=NAMES)
    np.testing.assert_array_equal(kept.view(table.at[:, 1:3].set(9.0)), kept.view(table))
    assert bool(jnp.any(kept.view(table.at[:, 3].set(9.0)) != kept.view(table)))
    assert not np.any(public.parse("label").view(table))
    assert not np.any(public.parse("none").view(table))


@pytest.mark.parametrize(
    "text",
    [
        "none",
        "label",
        "features",
        "columns:0-3,5",
        "columns:2,fill=0.5+label",
        "region:top=0,bottom=4,left=1,right=3",
        "blur:sigma=2+label",
        "blur:sigma=1.5,kernel=box",
        "downsample:factor=4",
        "downsample:factor=2>blur:sigma=0.7+label",
    ],
)
def test_texts_come_back(text: str) -> None:
    found = public.parse(text, num_columns=6)
    assert found.text == text
    assert public.parse(found.text, num_columns=6) == found


def test_columns_are_of_tables() -> None:
    for text in ("columns:0-3", "private:sex"):
        with pytest.raises(ValueError, match="columns must be of tabular records"):
            public.parse(text)


def test_names_and_groups_of_columns() -> None:
    def indices(text: str) -> tuple[int, ...]:
        inputs = public.parse(text, num_columns=6, names=NAMES).inputs
        assert isinstance(inputs, Columns)
        return inputs.indices

    assert indices("columns:age,sex,5") == (0, 1, 2, 5)
    assert indices("columns:sex=Male,hours") == (2, 5)
    assert indices("private:sex,race") == (0, 5)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("blur", "public must be one of the forms"),
        ("blur:", "public must be one of the forms"),
        ("blur:2", "blur must be given as sigma=X"),
        ("blur:sigma=x", "sigma must be a number"),
        ("blur:sigma=-1", "sigma must be"),
        ("blur:sigma=nan", "sigma must be"),
        ("blur:sigma=1e-320", "sigma must be in"),
        ("blur:kernel=box", "blur must be given as"),
        ("blur:sigma=1,sigma=2", "blur must be given as"),
        ("blur:sigma=1,kernel=cross", "kernel must be one of"),
        ("sharpen:sigma=1", "public must be one of the forms"),
        ("downsample:factor=1", "factor must be"),
        ("downsample:factor=2.5", "factor must be a whole number"),
        ("region:top=3,bottom=3,left=0,right=1", "bottom must be"),
        ("columns:colour", "columns must be indices, ranges or names"),
        ("columns:5-2", "columns must be ascending ranges"),
        ("columns:0-3,2", "columns must name each column once"),
        ("columns:sex,1", "columns must name each column once"),
        ("columns:0,fill=inf", "fill must be finite"),
        ("columns:0,fill=1e39", "fill must be finite, of size"),
        ("columns:0,fill=1,fill=2", "fill must be given once"),
        ("private:0,fill=1,fill=2", "fill must be given once"),
        ("region:top=0,bottom=1,left=0,right=1,fill=-1e39", "fill must be finite, of size"),
        ("columns:0-99999999999", "columns must be below the 6"),
        ("columns:6", "columns must be below the 6"),
        ("blur:sigma=1e308", "sigma must be in"),
        ("blur:sigma=1e300,kernel=box", "sigma must be in"),
        ("downsample:factor=99999999999999999999999", "factor must be at most"),
        ("private:0-5", "columns must name one column at least"),
        ("private:0-6", "columns must be below the 6"),
        ("label+label", "public must be one map"),
        ("blur:sigma=1+columns:0", "public must be one map"),
        ("none+label", "public must be one map"),
        ("", "public must be one of the forms"),
    ],
)
def test_texts_that_say_nothing_are_refused(text: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        public.parse(text, num_columns=6, names=NAMES)


@pytest.mark.parametrize(
    ("found", "shape", "message"),
    [
        (Public(Columns((0, 6)), False), (6,), "columns must be below the 6"),
        (Public(Columns((0,)), False), (4, 4, 1), "columns must be of tabular records"),
        (Public(Blur(1.0), False), (6,), "blur must be of images"),
        (Public(Region(0, 9, 0, 1), True), (8, 8, 1), "bottom must be at most the image's 8"),
        (Public(Identity(), True), (6,), "public must leave something private"),
        (Public(Composed(Identity(), Identity()), True), (6,), "public must leave something private"),
        (Public(Columns((0, 1, 2)), True), (3,), "public must leave something private"),
        (Public(Region(0, 8, 0, 8), True), (8, 8, 1), "public must leave something private"),
        (Public(Blur(0.01), True), (8, 8, 1), "public must leave something private"),
        (Public(Composed(Downsample(2), Blur(1.0)), True), (6,), "downsample must be of images"),
        (Public(Own(lambda x: x[:2], "cut"), True), (6,), "must give the shape of its record"),
        (Public(Own(lambda x: x / 0.0 * 0.0, "nan"), True), (6,), "must give finite numbers"),
        (Public(Own(lambda x: x.reshape(2, 5), "other"), True), (6,), "must take records of shape"),
    ],
)
def test_records_that_a_map_does_not_take_are_refused(
    found: Public, shape: tuple[int, ...], message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        found.require_shape(shape)


def test_a_stateful_function_is_refused() -> None:
    calls: list[int] = []

    def counting(x: Array) -> Array:
        calls.append(1)
        return x * len(calls)

    random = np.random.default_rng(0)
    for function in (counting, lambda x: x + random.normal()):
        with pytest.raises(ValueError, match="must be a function of the record alone"):
            Public(Own(function, "stateful"), False).require_shape((4,))


@dataclasses.dataclass(frozen=True)
class Whole:
    """A map of one's own that sees all records at once, as `InputMap` lets it."""

    function: Callable[[Array], Array]

    @property
    def text(self) -> str:
        return "whole"

    def view(self, x: Array) -> Array:
        return self.function(x)

    def require_shape(self, shape: tuple[int, ...]) -> None:
        """Takes every shape."""


@pytest.mark.parametrize("label", [False, True])
@pytest.mark.parametrize("composed", [False, True])
def test_a_map_of_one_s_own_that_is_no_function_of_the_record_is_refused(label: bool, composed: bool) -> None:
    random = np.random.default_rng(0)
    for function, message in (
        (lambda x: x * random.normal(), "got two answers for one record"),
        (lambda x: x - jnp.mean(x, 0), "got another answer beside another record"),
        (lambda x: 0.5 * jnp.sort(x, 0), "got another answer beside another record"),
        (lambda x: x * jnp.arange(len(x))[:, None], "got another answer beside another record"),
        (lambda x: x[:, :2], r"must give the shape of its record \(4,\), got \(2,\)"),
        (lambda x: jnp.log(x - 2.0), "finite numbers"),
        (lambda x: jnp.asarray(np.asarray(x) * 0.5), r"must take records of shape \(4,\), got: "),
    ):
        own = Whole(function)
        inputs = Composed(Identity(), own) if composed else own
        with pytest.raises(ValueError, match=f"^public: (features>)?whole .*{message}"):
            Public(inputs, label).require_shape((4,))


def test_targets_are_the_label_or_the_public_guess() -> None:
    y = jnp.array([2, 0])
    np.testing.assert_array_equal(Public(None, True).targets(y, num_classes=3), [[0, 0, 1], [1, 0, 0]])
    np.testing.assert_allclose(Public(Identity(), False).targets(y, num_classes=4), np.full((2, 4), 0.25))
    prior = Public(Identity(), False, (0.5, 0.25, 0.25))
    np.testing.assert_allclose(prior.targets(y, num_classes=3), [[0.5, 0.25, 0.25]] * 2)
    with pytest.raises(ValueError, match="label_prior must have 4 entries"):
        prior.targets(y, num_classes=4)


@pytest.mark.parametrize("prior", [(0.5, 0.6), (-0.1, 1.1), (float("nan"), 1.0), ()])
def test_a_prior_that_is_no_distribution_is_refused(prior: tuple[float, ...]) -> None:
    with pytest.raises(ValueError, match="label_prior must be a distribution"):
        Public(Identity(), False, prior)
    with pytest.raises(ValueError, match="label_prior must be left out"):
        Public(None, True, (0.5, 0.5))
