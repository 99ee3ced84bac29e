"""The models of the training speed script in Flax, with non-private steps; its worker loads them by path.

Only JAX, Flax and Optax are imported, so that an environment with a peer and these three can run the same
models. A *tuned* model computes the same function as the plain one by operations that XLA runs faster on a
CPU: dense layers over all positions at once, and the gradient of a kernel by one matrix product a tap.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import optax
from flax import linen as nn
from jax import Array, lax

CLIP_NORM, NOISE, RATE = 1.0, 1.0, 0.1
# With fewer channels the products of a tap have too short a side.
_FEW_CHANNELS = 16

Step = Callable[[Any, Any, Array], Any]
"""(params, batch, key) -> params."""


def flat_dot(left: Array, right: Array, dimension_numbers: Any, precision: Any = None, **_: Any) -> Array:
    """`lax.dot_general` with all axes of the left side that are not summed as one."""
    (summed, other), (shared, _) = dimension_numbers
    free = left.ndim - len(summed)
    if shared or free < 2 or tuple(summed) != tuple(range(free, left.ndim)):
        return lax.dot_general(left, right, dimension_numbers, precision=precision)
    rows = left.reshape(-1, *left.shape[free:])
    numbers = ((tuple(range(1, rows.ndim)), tuple(other)), ((), ()))
    result = lax.dot_general(rows, right, numbers, precision=precision)
    return result.reshape(*left.shape[:free], *result.shape[1:])


def conv_by_taps(image: Array, kernel: Array, strides: Any, padding: Any, **_: Any) -> Array:
    """A convolution whose kernel gradient is one matrix product for each tap, one view in memory at a time.

    Args:
      image: [records, height, width, channels].
      kernel: [height, width, channels, features].
      strides: two of them.
      padding: as `lax.conv_general_dilated` takes it.
    """
    names = ("NHWC", "HWIO", "NHWC")
    strides = tuple(strides)
    if image.shape[-1] < _FEW_CHANNELS:
        return lax.conv_general_dilated(image, kernel, strides, padding, dimension_numbers=names)
    taps = kernel.shape[:2]
    if isinstance(padding, str):
        padding = lax.padtype_to_pads(image.shape[1:3], taps, strides, padding)

    def plain(image: Array, kernel: Array) -> Array:
        return lax.conv_general_dilated(image, kernel, strides, padding, dimension_numbers=names)

    @jax.custom_vjp
    def convolved(image: Array, kernel: Array) -> Array:
        return plain(image, kernel)

    def forward(image: Array, kernel: Array) -> tuple[Array, tuple[Array, Array]]:
        return plain(image, kernel), (image, kernel)

    def backward(kept: tuple[Array, Array], gradient: Array) -> tuple[Array, Array]:
        image, kernel = kept
        (of_image,) = jax.linear_transpose(lambda x: plain(x, kernel), image)(gradient)
        height, width, features = gradient.shape[1:]
        rows = gradient.reshape(-1, features)
        padded = jnp.pad(image, ((0, 0), *padding, (0, 0)))
        parts: list[Array] = []
        for i in range(taps[0]):
            for j in range(taps[1]):
                limits = (i + (height - 1) * strides[0] + 1, j + (width - 1) * strides[1] + 1)
                view = padded[:, i : limits[0] : strides[0], j : limits[1] : strides[1]]
                # Not before the product of the tap before.
                earlier = parts[-1] if parts else rows
                view = view.reshape(-1, image.shape[-1]) + 0.0 * earlier[0, 0]
                parts.append(lax.dot_general(view, rows, (((0,), (0,)), ((), ()))))
        return of_image, jnp.stack(parts).reshape(kernel.shape)

    convolved.defvjp(forward, backward)
    return convolved(image, kernel)


class Perceptron(nn.Module):
    """784-128-10."""

    @nn.compact
    def __call__(self, x: Array) -> Array:
        return nn.Dense(10)(nn.relu(nn.Dense(128)(x.reshape(x.shape[0], -1))))


def pooled(x: Array) -> Array:
    """Maximum over 2x2 windows at stride 1; of four slices, as a reduced window is slow on a CPU."""
    x = jnp.maximum(x[:, 1:], x[:, :-1])
    return jnp.maximum(x[:, :, 1:], x[:, :, :-1])


def _conv(tuned: bool, features: int, taps: int, stride: int, **options: Any) -> nn.Conv:
    if tuned:
        options["conv_general_dilated"] = conv_by_taps
    return nn.Conv(features, (taps, taps), (stride, stride), **options)


class SmallCNN(nn.Module):
    """16 filters 8x8 stride 2 and 32 filters 4x4 stride 2, pooled, 32 hidden units: 26 010 parameters."""

    tuned: bool = False

    @nn.compact
    def __call__(self, x: Array) -> Array:
        x = pooled(nn.tanh(_conv(self.tuned, 16, 8, 2, padding="SAME")(x)))
        x = pooled(nn.tanh(_conv(self.tuned, 32, 4, 2, padding="VALID")(x)))
        return nn.Dense(10)(nn.tanh(nn.Dense(32)(x.reshape(x.shape[0], -1))))


class WideResNet(nn.Module):
    """WRN-16-4 with GroupNorm of 16 groups."""

    tuned: bool = False

    @nn.compact
    def __call__(self, x: Array) -> Array:
        x = _conv(self.tuned, 16, 3, 1, use_bias=False)(x)
        for stage, features in enumerate((64, 128, 256)):
            for block in range(2):
                stride = 2 if stage > 0 and block == 0 else 1
                y = nn.relu(nn.GroupNorm(16)(x))
                skip = x if block else _conv(self.tuned, features, 1, stride, use_bias=False)(y)
                y = _conv(self.tuned, features, 3, stride, use_bias=False)(y)
                y = nn.relu(nn.GroupNorm(16)(y))
                x = skip + _conv(self.tuned, features, 3, 1, use_bias=False)(y)
        x = nn.relu(nn.GroupNorm(16)(x))
        return nn.Dense(10)(x.mean((1, 2)))


class Transformer(nn.Module):
    """Four blocks of width 256 with 8 heads, causal, over a vocabulary of 1024."""

    tuned: bool = False

    @nn.compact
    def __call__(self, tokens: Array) -> Array:
        dot: Any = flat_dot if self.tuned else None
        x = nn.Embed(1024, 256)(tokens)
        x = x + self.param("position", nn.initializers.normal(0.02), (tokens.shape[1], 256))
        mask = nn.make_causal_mask(tokens)
        for _ in range(4):
            y = nn.LayerNorm()(x)
            x = x + nn.MultiHeadDotProductAttention(8, qkv_dot_general=dot, out_dot_general=dot)(y, mask=mask)
            hidden = nn.gelu(nn.Dense(1024, dot_general=dot)(nn.LayerNorm()(x)))
            x = x + nn.Dense(256, dot_general=dot)(hidden)
        return nn.Dense(1024, dot_general=dot)(nn.LayerNorm()(x))


@dataclasses.dataclass(frozen=True)
class Case:
    """A model with a batch.

    Attributes:
      name: mlp, cnn, wrn or gpt.
      loss: (params, batch) to one loss a record.
      tuned_loss: the same function by faster operations; None where there are none.
      params: where the steps start.
      batch: inputs and labels.
    """

    name: str
    loss: Callable[[Any, Any], Array]
    tuned_loss: Callable[[Any, Any], Array] | None
    params: Any
    batch: tuple[Array, Array]


def cross_entropy(logits: Array, labels: Array) -> Array:
    """One loss a record; the mean over positions where there are several."""
    each = optax.softmax_cross_entropy_with_integer_labels(logits, labels)
    return each.reshape(each.shape[0], -1).mean(1)


def _loss(model: nn.Module) -> Callable[[Any, Any], Array]:
    def loss(params: Any, batch: tuple[Array, Array]) -> Array:
        return cross_entropy(jnp.asarray(model.apply({"params": params}, batch[0])), batch[1])

    return loss


def case(name: str, *, records: int | None = None) -> Case:
    """The model of that name with random data.

    Args:
      name: mlp, cnn, wrn or gpt.
      records: batch size; the usual one by default.

    Raises:
      ValueError: another name.
    """
    models: dict[str, tuple[nn.Module, nn.Module | None, tuple[int, ...], int]] = {
        "mlp": (Perceptron(), None, (28, 28, 1), 1024),
        "cnn": (SmallCNN(), SmallCNN(tuned=True), (28, 28, 1), 256),
        "wrn": (WideResNet(), WideResNet(tuned=True), (32, 32, 3), 64),
        "gpt": (Transformer(), Transformer(tuned=True), (128,), 16),
    }
    if name not in models:
        raise ValueError(f"cases must be of {', '.join(models)}, got {name!r}")
    model, tuned, shape, usual = models[name]
    count = usual if records is None else records
    first, second, third = jax.random.split(jax.random.key(0), 3)
    if name == "gpt":
        tokens = jax.random.randint(first, (count, shape[0] + 1), 0, 1024)
        batch = (tokens[:, :-1], tokens[:, 1:])
    else:
        batch = (jax.random.normal(first, (count, *shape)), jax.random.randint(second, (count,), 0, 10))
    params = jax.jit(model.init)(third, batch[0][:1])["params"]
    return Case(name, _loss(model), None if tuned is None else _loss(tuned), params, batch)


def descend(params: Any, gradient: Any, records: int) -> Any:
    """A step of gradient descent by the mean of `records` gradients."""
    return jax.tree.map(lambda p, g: p - RATE / records * g, params, gradient)


def plain_steps(chosen: Case) -> dict[str, Step]:
    """The non-private steps, as written and tuned."""
    records = chosen.batch[1].shape[0]

    def of(loss: Callable[[Any, Any], Array]) -> Step:
        def step(params: Any, batch: Any, key: Array) -> Any:
            return descend(params, jax.grad(lambda p: loss(p, batch).sum())(params), records)

        return step

    found = {"non-private": of(chosen.loss)}
    if chosen.tuned_loss is not None:
        found["non-private, tuned"] = of(chosen.tuned_loss)
    return found


def memory(compiled: Any) -> tuple[int, int]:
    """Bytes that a compiled step asks for, and those of parameters, old and new, and batch."""
    found = compiled.memory_analysis()
    return found.temp_size_in_bytes, found.argument_size_in_bytes + found.output_size_in_bytes
