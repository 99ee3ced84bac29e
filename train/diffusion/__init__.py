"""Diffusion models of images: a small U-Net, its loss a record, samplers, and what samples are worth."""

from exactdp.train.diffusion.inception import Inception
from exactdp.train.diffusion.objective import Diffusion
from exactdp.train.diffusion.precision_recall import PrecisionRecall, precision_recall
from exactdp.train.diffusion.processes import DDPM, EDM, Process
from exactdp.train.diffusion.quality import Quality, quality
from exactdp.train.diffusion.random_features import RandomConvolution
from exactdp.train.diffusion.samplers import Ancestral, Heun, Sampler, Stochastic
from exactdp.train.diffusion.unet import UNet

__all__ = [
    "DDPM",
    "EDM",
    "Ancestral",
    "Diffusion",
    "Heun",
    "Inception",
    "PrecisionRecall",
    "Process",
    "Quality",
    "RandomConvolution",
    "Sampler",
    "Stochastic",
    "UNet",
    "precision_recall",
    "quality",
]
