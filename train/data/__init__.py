"""Image data sets by name: embedded digits, idx and npz folders, MedMNIST files, prepared TFDS builders."""

from exactdp.train.data.catalogue import NAMES, load, require_known
from exactdp.train.data.dataset import Dataset

__all__ = ["NAMES", "Dataset", "load", "require_known"]
