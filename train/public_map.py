"""The public feature map that a text describes, for a data set."""

from __future__ import annotations

from exactdp.mechanisms.public import Public, parse
from exactdp.train.data import Dataset


def public_map(text: str, *, data: Dataset) -> Public:
    """The map, checked against the records' shape and the names of their columns.

    Args:
      text: as `exactdp.mechanisms.public.parse` takes it.
      data: whose records it is for.

    Raises:
      ValueError: the text has another form, or the map does not take the records.
    """
    shape = data.input_shape
    found = parse(text, num_columns=shape[0] if len(shape) == 1 else 0, names=data.columns)
    found.require_shape(shape)
    return found
