"""Attacks on feature DP: a private attribute guessed from a model, a record recognised by its public view."""

from exactdp.train.attacks.attribute import Attribute as Attribute
from exactdp.train.attacks.attribute import Inference as Inference
from exactdp.train.attacks.attribute import infer as infer
from exactdp.train.attacks.reidentification import Reidentification as Reidentification
from exactdp.train.attacks.reidentification import reidentify as reidentify
