"""Models in Flax NNX that treat every record alone: no layer couples the records of a batch."""

from exactdp.train.models.base import Model
from exactdp.train.models.build import NAMES, apply, build, features, num_parameters
from exactdp.train.models.linear import MLP, Linear
from exactdp.train.models.small_cnn import SmallCNN
from exactdp.train.models.standardised_conv import StandardisedConv
from exactdp.train.models.vit import ViT
from exactdp.train.models.wide_resnet import WideResNet

__all__ = [
    "MLP",
    "NAMES",
    "Linear",
    "Model",
    "SmallCNN",
    "StandardisedConv",
    "ViT",
    "WideResNet",
    "apply",
    "build",
    "features",
    "num_parameters",
]
