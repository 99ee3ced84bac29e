"""Data sets by name: images (idx, npz, MedMNIST, TFDS, embedded), tables (Adult, Criteo, privacytrustlab)."""

from exactdp.train.data.catalogue import NAMES, load, require_known
from exactdp.train.data.dataset import Dataset

__all__ = ["NAMES", "Dataset", "load", "require_known"]
