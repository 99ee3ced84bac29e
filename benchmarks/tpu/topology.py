"""The chips that a step is compiled for: a description that libtpu makes on any host."""

from __future__ import annotations

import dataclasses
import importlib.util
import os
from typing import Any

import numpy as np
from jax.experimental import topologies
from jax.sharding import Mesh

from exactdp.train import parallel

NAME = "v5e:2x2"
"""Four chips of TPU v5e, two by two."""


@dataclasses.dataclass(frozen=True)
class Chip:
    """Peak rates of one chip.

    Attributes:
      name: of the chip.
      flops: bfloat16 operations a second.
      memory_bandwidth: bytes a second between chip and its memory.
      memory: bytes of it.
      link_bandwidth: bytes a second between chips, all links of a chip together.
    """

    name: str
    flops: float
    memory_bandwidth: float
    memory: float
    link_bandwidth: float


# cloud.google.com/tpu/docs/v5e: 197 TFLOP/s, 819 GB/s, 16 GB, 1 600 Gbit/s between chips.
V5E = Chip("TPU v5e", flops=197e12, memory_bandwidth=819e9, memory=16e9, link_bandwidth=200e9)


def available() -> bool:
    """Whether libtpu, which holds the compiler, is installed."""
    return importlib.util.find_spec("libtpu") is not None


def layout(*, split_parameters: bool) -> parallel.Layout:
    """Records over the four chips of `NAME`; parameters repeated on each, or split over them.

    Args:
      split_parameters: see `exactdp.train.parallel.Layout`.

    Raises:
      ValueError: libtpu is not installed.
    """
    if not available():
        raise ValueError("libtpu must be installed to compile for a TPU: pip install 'jax[tpu]', got none")
    # Read by libtpu when it is loaded: there is no TPU, and nobody to ask for one.
    os.environ.setdefault("TPU_SKIP_MDS_QUERY", "1")
    os.environ.setdefault("TPU_ACCELERATOR_TYPE", "v5litepod-4")
    os.environ.setdefault("TPU_WORKER_HOSTNAMES", "localhost")
    # Its lock keeps two processes from one TPU, and would keep them from compiling side by side.
    os.environ.setdefault("ALLOW_MULTIPLE_LIBTPU_LOAD", "1")
    described: Any = topologies.get_topology_desc(platform="tpu", topology_name=NAME)
    return parallel.Layout(Mesh(np.array(described.devices), (parallel.AXIS,)), split_parameters)
