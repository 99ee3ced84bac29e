"""Batches of records, drawn on the device: Poisson, of fixed size, cyclic; each names its accounting."""

from exactdp.mechanisms.batches.batch import Batch, local_part
from exactdp.mechanisms.batches.cyclic import Cyclic
from exactdp.mechanisms.batches.fixed_size import FixedSize
from exactdp.mechanisms.batches.poisson import Poisson
from exactdp.mechanisms.batches.shuffled import Shuffled
from exactdp.mechanisms.batches.two import two_batches

__all__ = ["Batch", "Cyclic", "FixedSize", "Poisson", "Shuffled", "local_part", "two_batches"]
