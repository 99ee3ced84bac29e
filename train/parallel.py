"""Data parallelism: the rows of a batch over devices, parameters on all of them or split over them.

The devices may belong to several processes, each started with the same command (`connect`). The records are
spread over the devices, so that those of a process hold its shard only; every process draws the same batches,
noise and draws, from the same key. The first process alone writes the ledger and the metrics.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any, TypeVar

import jax
import jax.numpy as jnp
import numpy as np
from jax.experimental import multihost_utils
from jax.sharding import Mesh, NamedSharding, PartitionSpec
from jaxtyping import Array

from exactdp.accounting import validate

Tree = TypeVar("Tree")
AXIS = "records"


@dataclasses.dataclass(frozen=True)
class Layout:
    """Where a step is computed; `make` builds one.

    Attributes:
      mesh: the devices in one row; None for one device.
      split_parameters: whether each large parameter is split over the devices, by its largest axis that
        they divide, rather than repeated on all.
    """

    mesh: Mesh | None = None
    split_parameters: bool = False

    @property
    def num_devices(self) -> int:
        """How many devices share a batch."""
        return 1 if self.mesh is None else self.mesh.size

    def padded(self, rows: Array) -> Array:
        """`rows` with zero rows added until the devices divide their number; the batch itself is as drawn."""
        missing = -rows.shape[0] % self.num_devices
        return jnp.pad(rows, [(0, missing)] + [(0, 0)] * (rows.ndim - 1)) if missing else rows

    def spread(self, tree: Tree) -> Tree:
        """Arrays of a compiled function with their first axis over the devices."""
        if self.mesh is None:
            return tree
        return jax.lax.with_sharding_constraint(tree, NamedSharding(self.mesh, PartitionSpec(AXIS)))

    def shared(self, rows: np.ndarray) -> Array:
        """Records put on the devices, each holding a part; zero rows that nothing refers to even it out."""
        if self.mesh is None:
            return jnp.asarray(rows)
        missing = -len(rows) % self.num_devices
        sharding = NamedSharding(self.mesh, PartitionSpec(AXIS))

        def part(index: tuple[slice, ...] | None) -> np.ndarray:
            whole = slice(None) if index is None else index[0]
            start, stop, _ = whole.indices(len(rows) + missing)
            there = rows[start : min(stop, len(rows))]
            return np.pad(there, [(0, stop - start - len(there))] + [(0, 0)] * (rows.ndim - 1))

        return jax.make_array_from_callback((len(rows) + missing, *rows.shape[1:]), sharding, part)

    def placed(self, tree: Tree) -> Tree:
        """The state put on the devices: repeated, or split where `split_parameters` says so."""
        return self._each(tree, _put)

    def gathered(self, tree: Tree) -> Tree:
        """Arrays whole on every device, for this process to read."""
        if self.mesh is None:
            return tree
        return jax.jit(lambda x: x, out_shardings=NamedSharding(self.mesh, PartitionSpec()))(tree)

    def kept(self, tree: Tree) -> Tree:
        """The state of a compiled function, left where `placed` puts it."""
        return self._each(tree, jax.lax.with_sharding_constraint)

    def _each(self, tree: Tree, put: Callable[[Any, NamedSharding], Any]) -> Tree:
        mesh = self.mesh
        if mesh is None:
            return tree
        return jax.tree.map(lambda leaf: put(leaf, NamedSharding(mesh, self._spec(leaf, mesh.size))), tree)

    def _spec(self, leaf: Any, count: int) -> PartitionSpec:
        shape: tuple[int, ...] = np.shape(leaf)
        divisible = [axis for axis, side in enumerate(shape) if side and side % count == 0]
        if not self.split_parameters or not divisible or not jnp.issubdtype(leaf.dtype, jnp.floating):
            return PartitionSpec()
        largest = max(divisible, key=lambda axis: shape[axis])
        return PartitionSpec(*(AXIS if axis == largest else None for axis in range(len(shape))))


def connect(coordinator: str, *, num_processes: int, process_id: int) -> None:
    """Joins the processes of a run, before anything else is done with JAX.

    Args:
      coordinator: host:port of the first process.
      num_processes: how many there are, >= 2.
      process_id: which this one is, from 0.

    Raises:
      ValueError: bad input.
    """
    count = validate.count("num_processes", num_processes, minimum=2)
    if validate.count("process_id", process_id) >= count:
        raise ValueError(f"process_id must be below num_processes {count}, got {process_id}")
    jax.distributed.initialize(coordinator, num_processes=count, process_id=int(process_id))


def is_first() -> bool:
    """Whether this is the process that writes."""
    return jax.process_index() == 0


def meet(place: str) -> None:
    """Waits until every process is here; nothing with one process."""
    if jax.process_count() > 1:
        multihost_utils.sync_global_devices(place)


def agreed(key: jax.Array) -> jax.Array:
    """The first process's key, on all of them."""
    if jax.process_count() == 1:
        return key
    data = multihost_utils.broadcast_one_to_all(jax.random.key_data(key))
    return jax.random.wrap_key_data(jnp.asarray(data), impl=jax.random.key_impl(key))


def _put(leaf: Any, sharding: NamedSharding) -> Any:
    if jax.process_count() == 1:
        return jax.device_put(leaf, sharding)
    if jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key):
        words = _put(jax.random.key_data(leaf), sharding)
        return jax.random.wrap_key_data(words, impl=jax.random.key_impl(leaf))
    value = np.asarray(leaf)
    return jax.make_array_from_callback(value.shape, sharding, lambda index: value[index])


def make(num_devices: int = 1, *, split_parameters: bool = False) -> Layout:
    """A layout over the first `num_devices` devices, or over all of several processes.

    The batches, the noise and the draws are those of one device; sums over records are taken in another
    order, so that parameters agree to rounding.

    Args:
      num_devices: >= 1.
      split_parameters: see `Layout`.

    Raises:
      ValueError: there are fewer devices, or not all devices of several processes are used.
    """
    count = validate.count("devices", num_devices, minimum=1)
    found = jax.devices()
    if count > len(found):
        raise ValueError(f"devices must be at most {len(found)}, the devices there are, got {count}")
    if jax.process_count() > 1 and count < len(found):
        raise ValueError(f"devices must be all {len(found)} of the processes, got {count}")
    if count == 1:
        return Layout()
    return Layout(Mesh(np.array(found[:count]), (AXIS,)), split_parameters)
