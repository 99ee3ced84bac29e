"""Attacks: on feature DP (attributes guessed, records recognised), and on released gradients and weights."""

from exactdp.train.attacks.attribute import Attribute as Attribute
from exactdp.train.attacks.attribute import Inference as Inference
from exactdp.train.attacks.attribute import infer as infer
from exactdp.train.attacks.inversion import Inverted as Inverted
from exactdp.train.attacks.inversion import invert_dense as invert_dense
from exactdp.train.attacks.optimised_inversion import invert as invert
from exactdp.train.attacks.reidentification import Reidentification as Reidentification
from exactdp.train.attacks.reidentification import reidentify as reidentify
