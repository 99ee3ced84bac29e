"""Convolutions with a parameter as kernel: any rank, stride, padding, dilation of either side, groups.

The input, padded and dilated, is read at T output positions for each of the kernel's taps k:
G_i[k] = sum_t a_i[k, t] g_i[t]^T. Three ways to the norm: one batched product over the gathered patches; one
batched product for each tap, over shifted views; or Gram matrices, with
sum_k <a[k, t], a[k, s]> read off the Gram matrix of the *pixels* by shifting it (Bu et al., arXiv 2205.10683,
use the Gram matrix of patches, which is larger by the number of taps).
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax

from exactdp.mechanisms.clipping.program import Operation
from exactdp.mechanisms.clipping.rules import rule

# Below this many input channels a product for each tap has too short a side, so that patches are gathered.
_FEW_CHANNELS = 32


@dataclasses.dataclass(frozen=True)
class Conv:
    """`conv_general_dilated` of a record operand with a parameter.

    Attributes:
      operation: the use.
      record_shape: shape of the input, one record.
      shape: shape of the kernel.
      result_shape: shape of the output, one record.
    """

    operation: Operation
    record_shape: tuple[int, ...]
    shape: tuple[int, ...]
    result_shape: tuple[int, ...]

    @property
    def name(self) -> str:
        return "conv"

    @property
    def positions(self) -> tuple[int, ...]:
        return (1,)

    @property
    def _params(self) -> dict[str, Any]:
        return self.operation.params

    @property
    def _specs(self) -> tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]]:
        numbers = self._params["dimension_numbers"]
        return tuple(numbers.lhs_spec), tuple(numbers.rhs_spec), tuple(numbers.out_spec)

    @property
    def taps(self) -> tuple[int, ...]:
        """Extent of the kernel along each spatial axis."""
        return tuple(self.shape[k] for k in self._specs[1][2:])

    @property
    def _results(self) -> tuple[int, ...]:
        return tuple(self.result_shape[k] for k in self._specs[2][2:])

    @property
    def _padded(self) -> tuple[int, ...]:
        extents = [self.record_shape[k] for k in self._specs[0][2:]]
        settings = zip(extents, self._params["padding"], self._params["lhs_dilation"], strict=True)
        return tuple((n - 1) * dilation + 1 + low + high for n, (low, high), dilation in settings)

    @property
    def sizes(self) -> tuple[int, int, int, int, int]:
        """Groups, positions T, taps, channels a group, features a group."""
        groups, features = self._params["feature_group_count"], self.shape[self._specs[1][0]]
        images = self.record_shape[self._specs[0][0]]
        times = images * rule.size(self._results)
        return groups, times, rule.size(self.taps), self.shape[self._specs[1][1]], features // groups

    def forward(self, operands: Sequence[Array]) -> list[Array]:
        if self._specs[0][0] != 0 or self._specs[2][0] != 0:
            return rule.batched(self.operation, operands, (0,))
        record, parameter = operands
        result = self._convolved(record.reshape(-1, *self.record_shape[1:]), parameter)
        return [result.reshape(record.shape[0], *self.result_shape)]

    def _convolved(self, record: Array, parameter: Array) -> Array:
        return rule.bind(self.operation, (record, parameter))[0]

    def _pixels(self, record: Array) -> Array:
        """Padded and dilated input [B * images, *spatial, channels]."""
        order = self._specs[0]
        record = lax.transpose(record, (0, order[0] + 1, *[k + 1 for k in order[2:]], order[1] + 1))
        record = record.reshape(-1, *record.shape[2:])
        padding = [
            (low, high, dilation - 1)
            for (low, high), dilation in zip(
                self._params["padding"], self._params["lhs_dilation"], strict=True
            )
        ]
        return lax.pad(record, jnp.zeros((), record.dtype), [(0, 0, 0), *padding, (0, 0, 0)])

    def _outputs(self, gradient: Array) -> Array:
        """g[B, T, groups, features]."""
        order = self._specs[2]
        gradient = lax.transpose(gradient, (0, order[0] + 1, *[k + 1 for k in order[2:]], order[1] + 1))
        groups, times, _, _, features = self.sizes
        return gradient.reshape(-1, times, groups, features)

    def _window(self, tap: int) -> tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]]:
        """Starts, limits and strides of the pixels that a tap reads."""
        strides = tuple(self._params["window_strides"])
        offset = np.unravel_index(tap, self.taps) if self.taps else ()
        starts = tuple(int(k) * n for k, n in zip(offset, self._params["rhs_dilation"], strict=True))
        limits = tuple(
            first + (n - 1) * stride + 1
            for first, n, stride in zip(starts, self._results, strides, strict=True)
        )
        return starts, limits, strides

    def _shifted(self, pixels: Array, records: int, tap: int) -> Array:
        """The inputs of one tap, a[B, T, groups, channels]."""
        groups, times, _, channels, _ = self.sizes
        starts, limits, strides = self._window(tap)
        view = lax.slice(
            pixels, (0, *starts, 0), (pixels.shape[0], *limits, pixels.shape[-1]), (1, *strides, 1)
        )
        return view.reshape(records, times, groups, channels)

    def _patches(self, pixels: Array, records: int) -> Array:
        """a[B, groups, channels * taps, T]; one spatial axis after the other: copies are long and few."""
        groups, times, taps, channels, _ = self.sizes
        patches = jnp.moveaxis(pixels, -1, 1)
        settings = zip(
            self.taps,
            self._results,
            self._params["window_strides"],
            self._params["rhs_dilation"],
            strict=True,
        )
        for axis, (extent, n, stride, dilation) in enumerate(settings):
            # Axes are now: images, channels, the taps so far, the positions so far, this spatial axis, the
            # rest.
            place = 2 + 2 * axis
            cut = [
                lax.slice_in_dim(
                    patches, k * dilation, k * dilation + (n - 1) * stride + 1, stride, axis=place
                )
                for k in range(extent)
            ]
            patches = jnp.stack(cut, 2 + axis)
        return patches.reshape(records, groups, channels * taps, times)

    def gradients(self, operands: Sequence[Array], outputs: Sequence[Array]) -> list[Array]:
        right = self._outputs(outputs[0])
        records = right.shape[0]
        pixels = self._pixels(rule.after(operands[0], outputs[0]))
        if self._gathers:
            return [rule.einsum("bfkt,btfo->bfko", self._patches(pixels, records), right)]
        # With features first, neither side of the product is turned for every tap anew.
        right = jnp.moveaxis(right, 1, 3)
        parts: list[Array] = []
        for k in range(self.sizes[2]):
            view = self._shifted(pixels, records, k)
            # One view is in memory at a time.
            parts.append(
                rule.einsum("bfot,btfc->bfoc", right, rule.after(view, parts[-1]) if parts else view)
            )
        return [jnp.stack(parts, 1)]

    @property
    def _gathers(self) -> bool:
        """Are patches gathered, rather than taps taken one by one?"""
        return self.sizes[3] < _FEW_CHANNELS and self.record_shape[self._specs[0][0]] == 1

    def restored(self, gradients: Sequence[Array]) -> list[Array]:
        groups, _, taps, channels, features = self.sizes
        (gradient,) = gradients
        if self._gathers:
            gradient = gradient.reshape(-1, groups, channels, taps, features)
            gradient = jnp.transpose(gradient, (0, 1, 4, 2, 3))
        else:
            gradient = jnp.transpose(gradient, (0, 2, 3, 4, 1))
        gradient = gradient.reshape(-1, groups * features, channels, *self.taps)
        return [lax.transpose(gradient, (0, *[int(k) + 1 for k in np.argsort(self._specs[1])]))]

    def squared_norms(self, operands: Sequence[Array], outputs: Sequence[Array]) -> Array:
        right = self._outputs(outputs[0])
        pixels = self._pixels(rule.after(operands[0], outputs[0]))
        outer = rule.einsum("btfo,bsfo->bfts", right, right)
        if self._by_pixels:
            groups, times, _, channels, _ = self.sizes
            flat = pixels.reshape(right.shape[0], -1, groups, channels)
            gram = rule.einsum("bpfc,bqfc->bfpq", flat, flat)
            gram = gram.reshape(*gram.shape[:2], *self._padded, *self._padded)
            patches = jnp.float32(0.0)
            for k in range(self.sizes[2]):
                starts, limits, strides = self._window(k)
                patches += lax.slice(
                    gram, (0, 0, *starts * 2), (*gram.shape[:2], *limits * 2), (1, 1, *strides * 2)
                )
            patches = jnp.reshape(patches, (right.shape[0], groups, times, times))
        else:
            views = [self._shifted(pixels, right.shape[0], k) for k in range(self.sizes[2])]
            stacked = jnp.concatenate(views, -1)
            patches = rule.einsum("btfc,bsfc->bfts", stacked, stacked)
        return rule.gram_norms(patches, outer)

    @property
    def _by_pixels(self) -> bool:
        _, times, taps, _, _ = self.sizes
        single = self.record_shape[self._specs[0][0]] == 1
        return single and rule.size(self._padded) ** 2 <= times**2 * taps

    def weighted(self, operands: Sequence[Array], outputs: Sequence[Array], weights: Array) -> list[Array]:
        record, parameter = operands
        shape = jax.ShapeDtypeStruct(parameter.shape, jnp.float32)
        right = rule.scaled(outputs[0], weights)
        images, results = self._merged(record, self._specs[0][0]), self._merged(right, self._specs[2][0])
        params = {**self._params, "preferred_element_type": None, "precision": lax.Precision.HIGHEST}
        exact = dataclasses.replace(self, operation=dataclasses.replace(self.operation, params=params))
        transposed = jax.linear_transpose(lambda w: exact._convolved(images.astype(jnp.float32), w), shape)
        return list(transposed(results))

    @staticmethod
    def _merged(value: Array, axis: int) -> Array:
        """[B, ...] with the images of all records along one axis."""
        value = jnp.moveaxis(value, 0, axis)
        return value.reshape(*value.shape[:axis], -1, *value.shape[axis + 2 :])

    @property
    def gradient_flops(self) -> float:
        groups, times, taps, channels, features = self.sizes
        return 2.0 * groups * times * taps * channels * features

    @property
    def ghost_flops(self) -> float:
        groups, times, taps, channels, features = self.sizes
        pixels = rule.size(self._padded) ** 2 * channels if self._by_pixels else times**2 * taps * channels
        return groups * (2.0 * pixels + 2.0 * times**2 * features + 2.0 * taps * times**2)

    @property
    def ghost_floats(self) -> float:
        groups, times, taps, channels, _ = self.sizes
        own = rule.size(self._padded) ** 2 if self._by_pixels else times * taps * channels + times**2
        return groups * (own + 2.0 * times**2)


def recognised(
    operation: Operation,
    positions: tuple[int, ...],
    shapes: Sequence[tuple[int, ...]],
    result: tuple[int, ...],
) -> Conv | None:
    """The rule where the operation convolves a record operand with a parameter."""
    if operation.name != "conv_general_dilated" or positions != (1,):
        return None
    if operation.params["batch_group_count"] != 1 or rule.size(result) == 0:
        return None
    return Conv(operation, tuple(shapes[0]), tuple(shapes[1]), tuple(result))
