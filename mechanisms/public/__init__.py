"""Public feature maps Psi: what of a record is public.

Source: Mahloujifar, Guo, Suh and Chaudhuri 2025 (arXiv 2506.19836), section 3.
"""

from exactdp.mechanisms.public.columns import Columns as Columns
from exactdp.mechanisms.public.columns import attributes as attributes
from exactdp.mechanisms.public.columns import feature_groups as feature_groups
from exactdp.mechanisms.public.images import Blur as Blur
from exactdp.mechanisms.public.images import Downsample as Downsample
from exactdp.mechanisms.public.images import Region as Region
from exactdp.mechanisms.public.input_map import Composed as Composed
from exactdp.mechanisms.public.input_map import Identity as Identity
from exactdp.mechanisms.public.input_map import InputMap as InputMap
from exactdp.mechanisms.public.own import Own as Own
from exactdp.mechanisms.public.parse import parse as parse
from exactdp.mechanisms.public.public import Public as Public
