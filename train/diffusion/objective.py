"""A diffusion model as the trainers see it: a loss a record, and what is made of the trained parameters."""

from __future__ import annotations

import dataclasses
import functools
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from flax import nnx
from jaxtyping import Array, Bool, Float, Int

from exactdp.accounting import validate
from exactdp.mechanisms import keys
from exactdp.mechanisms.public import Public
from exactdp.train.diffusion import unet
from exactdp.train.diffusion.processes import EDM, Process, scaled_to_range, scaled_to_unit
from exactdp.train.diffusion.samplers import Heun, Sampler
from exactdp.train.objective import Residual, two_passes
from exactdp.train.state import Parameters
from exactdp.train.task import Records

_ROWS = 64  # images that are measured or sampled at a time
_LEVELS = 8  # noise levels of the test loss
_TEST_SEED = 0  # of the test loss's noise, which is the same for every model and step


class Noisy(NamedTuple):
    """Records with the random numbers of their K draws.

    Attributes:
      x: images, as the data set has them.
      mirrored: whether left and right change places.
      sigma: noise levels.
      noise: standard normal.
      label: class, -1 where the draw is made without one.
    """

    x: Float[Array, "batch h w c"]
    mirrored: Bool[Array, "batch draws"]
    sigma: Float[Array, "batch draws"]
    noise: Float[Array, "batch draws h w c"]
    label: Int[Array, "batch draws"]


@dataclasses.dataclass(frozen=True)
class Diffusion:
    """A U-Net that denoises images, at any noise level.

    The loss of a record is the mean over its K draws of (sigma, epsilon) and over pixels of
    lambda(sigma) |D(y + sigma epsilon; sigma) - y|^2 = |F - target|^2; see `processes`. It is one number with
    one gradient, however many draws it is made of, and all its randomness comes with the batch.

    Attributes:
      input_shape: (height, width, channels) of one image.
      num_classes: K >= 2 for a model that is told the class, None for one that is not.
      process: the noise and what is predicted.
      multiplicity: draws a record, >= 1.
      label_dropout: probability that a draw is made without its class, so that the model also learns to do
        without (classifier-free guidance); 0 for a model without classes.
      flip: whether a draw mirrors the image with probability 1/2.
      pixel_range: least and largest value of a pixel, public constants of the data set's format.
      width: channels at full resolution, a multiple of 4.
      multipliers: each level's channels over `width`; the sides are halved between levels.
      blocks: residual blocks a level and direction.
      heads: attention heads at the lowest level, 0 for none.
      bfloat16: whether activations are computed in bfloat16; parameters, losses and sums of gradients stay
        float32.

    Raises:
      ValueError: an argument is outside its range.

    Source: arXiv 2206.00364 (loss); arXiv 2207.12598 (label dropout, guidance); arXiv 2210.09929 (several
    draws a record under DP-SGD).
    """

    input_shape: tuple[int, ...]
    num_classes: int | None = None
    process: Process = EDM()
    multiplicity: int = 1
    label_dropout: float = 0.0
    flip: bool = False
    pixel_range: tuple[float, float] = (-1.0, 1.0)
    width: int = 16
    multipliers: tuple[int, ...] = (1, 2)
    blocks: int = 1
    heads: int = 2
    bfloat16: bool = False
    _graph: Any = dataclasses.field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        validate.count("multiplicity", self.multiplicity, 1)
        if validate.probability("label_dropout", self.label_dropout) and self.num_classes is None:
            raise ValueError(f"label_dropout must be 0 without classes, got {self.label_dropout}")
        low, high = (validate.finite("pixel_range", end) for end in self.pixel_range)
        if high <= low:
            raise ValueError(f"pixel_range must be ascending, got {self.pixel_range}")
        graphs: list[Any] = []

        def parameters(key: jax.Array) -> Parameters:
            graph, params = self._build(key)
            graphs.append(graph)
            return params

        # Shapes only: nothing is computed, and this key gives no parameter.
        jax.eval_shape(parameters, jax.random.key(0))
        object.__setattr__(self, "_graph", graphs[0])

    @property
    def metric(self) -> str:
        """`test_loss`."""
        return "test_loss"

    def initialise(self, key: jax.Array) -> Parameters:
        """Parameters for a key."""
        return self._build(key)[1]

    def examples(self, records: Records, *, key: jax.Array, public: Public | None = None) -> Noisy:
        """The records, or their public views, with noise of their own.

        The noise is a function of the key and of a record's place in the batch: a record and its public view
        get the same. Where the label is private, the view has no class.

        Args:
          records: the batch.
          key: of one step and purpose.
          public: what is public, for the public views.
        """
        x, labels = records
        if public is not None:
            x = public.view(x)
            labels = labels if public.label else jnp.full_like(labels, -1)
        draws = (self.multiplicity,)

        def one(slot: jax.Array, label: Array) -> tuple[Array, Array, Array, Array]:
            level, noise, dropped, flipped = jax.random.split(slot, 4)
            missing = jax.random.bernoulli(dropped, self.label_dropout, draws)
            return (
                jax.random.bernoulli(flipped, 0.5 if self.flip else 0.0, draws),
                self.process.draw(level, draws),
                jax.random.normal(noise, (*draws, *self.input_shape), jnp.float32),
                jnp.where(missing, -1, label),
            )

        return Noisy(x, *jax.vmap(one)(jax.random.split(key, x.shape[0]), labels))

    def residual(self, public: Public) -> Residual:
        """The residual loss: of the record and its public view, with the same noise."""
        return two_passes(self, public)

    def losses(self, params: Parameters, examples: Noisy) -> Float[Array, " batch"]:
        """One loss a record."""
        shape = examples.noise.shape
        image = scaled_to_unit(examples.x, pixel_range=self.pixel_range)[:, None]
        if self.flip:
            image = jnp.where(examples.mirrored[..., None, None, None], image[..., ::-1, :], image)
        image = jnp.reshape(jnp.broadcast_to(image, shape), (-1, *shape[2:]))
        noise = jnp.reshape(examples.noise, image.shape)
        sigma, label = jnp.reshape(examples.sigma, (-1,)), jnp.reshape(examples.label, (-1,))
        level = sigma[:, None, None, None]
        predicted = self._network(params, image + level * noise, sigma, label)
        error = predicted - self.process.target(image, noise, level)
        each = jnp.mean(jnp.square(error), axis=(1, 2, 3))
        return jnp.mean(jnp.reshape(each, shape[:2]), axis=1)

    def measure(self, params: Parameters, x: np.ndarray, y: np.ndarray) -> float:
        """The mean loss over records at eight fixed quantiles of the noise levels, with fixed noise.

        Computed in chunks of 64 records. The noise is a public constant: the number depends on parameters and
        records alone.

        Args:
          params: parameters.
          x: test images.
          y: their labels; not read by a model without classes.

        Raises:
          ValueError: there are no records.
        """
        validate.count("records", len(x), 1)
        total = 0.0
        for start in range(0, len(x), _ROWS):
            rows, labels = x[start : start + _ROWS], y[start : start + _ROWS]
            missing = min(_ROWS, len(x)) - len(rows)
            images = np.pad(rows, [(0, missing)] + [(0, 0)] * (rows.ndim - 1))
            records = Records(jnp.asarray(images).reshape(-1, *self.input_shape), _padded(labels, missing))
            losses = self._test_losses(params, records, jnp.int32(start))
            total += float(np.sum(np.asarray(losses, np.float64)[: len(rows)]))
        return total / len(x)

    def denoise(
        self,
        params: Parameters,
        noisy: Float[Array, "n h w c"],
        sigma: Float[Array, ...],
        labels: Int[Array, " n"],
        *,
        guidance: float = 0.0,
    ) -> Float[Array, "n h w c"]:
        """D(z; sigma), the image expected of a noisy one; both scaled so that pixels are in [-1, 1].

        With guidance w it is (1 + w) D(z; sigma, class) - w D(z; sigma).

        Args:
          params: parameters.
          noisy: z = y + sigma epsilon.
          sigma: noise level, one number or one an image; > 0.
          labels: class of each image, -1 for none.
          guidance: w, a Python number.
        """
        levels = jnp.broadcast_to(jnp.asarray(sigma, jnp.float32), noisy.shape[:1])
        found = self._denoised(params, noisy, levels, labels)
        if guidance == 0.0:
            return found
        without = self._denoised(params, noisy, levels, jnp.full_like(labels, -1))
        return (1.0 + guidance) * found - guidance * without

    def sample(
        self,
        params: Parameters,
        count: int,
        *,
        key: jax.Array,
        sampler: Sampler | None = None,
        labels: Int[np.ndarray, " count"] | None = None,
        guidance: float = 0.0,
    ) -> Float[np.ndarray, "count h w c"]:
        """Images, with pixels in `pixel_range`; computed in chunks of 64.

        Args:
          params: parameters.
          count: how many, >= 1.
          key: a typed key; the same key gives the same images.
          sampler: one of `samplers`; None for `Heun()`.
          labels: class of each image, -1 for none; None for no class at all.
          guidance: w of `denoise`, >= 0.

        Raises:
          ValueError: labels that are not one a sample or no classes of the model; no class, or guidance, of a
            model with classes whose `label_dropout` is 0.
        """
        validate.count("count", count, 1)
        keys.require_key(key)
        classes = np.full(count, -1) if labels is None else np.asarray(labels)
        most = -1 if self.num_classes is None else self.num_classes - 1
        if classes.shape != (count,) or classes.dtype.kind not in "iu":
            raise ValueError(f"labels must be {count} whole numbers, got {classes.dtype} {classes.shape}")
        least = -1 if self.num_classes is None or self.label_dropout else 0
        if classes.min() < least or classes.max() > most:
            raise ValueError(f"labels must be in {least} ... {most}, got {classes.min()} to {classes.max()}")
        if validate.non_negative("guidance", guidance) and not self.label_dropout:
            raise ValueError(f"guidance must be 0 where label_dropout is 0, got {guidance}")
        chosen = Heun() if sampler is None else sampler
        rows = min(_ROWS, count)
        images: list[np.ndarray] = []
        for start in range(0, count, rows):
            part = classes[start : start + rows]
            chunk = jax.random.fold_in(key, start)
            made = self._sampled(params, _padded(part, rows - len(part)), chunk, chosen, float(guidance))
            images.append(np.asarray(made)[: len(part)])
        return np.concatenate(images)

    def _build(self, key: jax.Array) -> tuple[Any, Parameters]:
        return unet.build(
            self.input_shape,
            num_classes=self.num_classes,
            key=key,
            width=self.width,
            multipliers=tuple(self.multipliers),
            blocks=self.blocks,
            heads=self.heads,
            dtype=jnp.bfloat16 if self.bfloat16 else jnp.float32,
        )

    def _network(self, params: Parameters, noisy: Array, sigma: Array, labels: Array) -> Array:
        scaled = self.process.c_in(sigma)[:, None, None, None] * noisy
        return nnx.merge(self._graph, params)(scaled, self.process.c_noise(sigma), labels)

    def _denoised(self, params: Parameters, noisy: Array, sigma: Array, labels: Array) -> Array:
        predicted = self._network(params, noisy, sigma, labels)
        return self.process.denoised(noisy, predicted, sigma[:, None, None, None])

    @functools.partial(jax.jit, static_argnums=0)
    def _test_losses(self, params: Parameters, records: Records, start: Array) -> Array:
        # A record's noise depends on its number alone, not on the chunk that it is in.
        numbers = start + jnp.arange(records.x.shape[0])
        key = keys.step_key(jax.random.key(_TEST_SEED), step=0, purpose="evaluation")

        def at(level: tuple[Array, Array]) -> Array:
            number, sigma = level
            fold = jax.vmap(lambda n: jax.random.fold_in(jax.random.fold_in(key, n), number))
            noise = jax.vmap(lambda k: jax.random.normal(k, (1, *self.input_shape), jnp.float32))(
                fold(numbers)
            )
            one = (records.x.shape[0], 1)
            found = Noisy(
                records.x, jnp.zeros(one, bool), jnp.full(one, sigma), noise, jnp.reshape(records.y, one)
            )
            return self.losses(params, found)

        grid = jnp.asarray(self.process.grid(_LEVELS))
        return jnp.mean(jax.lax.map(at, (jnp.arange(_LEVELS), grid)), axis=0)

    @functools.partial(jax.jit, static_argnums=(0, 4, 5))
    def _sampled(
        self, params: Parameters, labels: Array, key: jax.Array, sampler: Sampler, guidance: float
    ) -> Array:
        def denoise(noisy: Array, sigma: Array) -> Array:
            return self.denoise(params, noisy, sigma, labels, guidance=guidance)

        levels = self.process.levels(sampler.num_steps)
        made = sampler.run(denoise, levels, key=key, shape=(labels.shape[0], *self.input_shape))
        return scaled_to_range(made, pixel_range=self.pixel_range)


def _padded(labels: np.ndarray, missing: int) -> Int[Array, " rows"]:
    return jnp.asarray(np.pad(labels, (0, missing)), jnp.int32)
