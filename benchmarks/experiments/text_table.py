"""Public text that is no table, in the shape of one: does a first stage teach more than the template?

The words of Python's own documentation (`pydoc_data.topics` of the standard library), in their order, fifteen
to a row; columns are named after the most frequent long words, so that neither names nor cells tell anything
of any table. What a model learns from it is the template " key is value", and English.
"""

from __future__ import annotations

import collections
import re
from pydoc_data import topics

import pyarrow as pa

from exactdp.accounting import validate
from exactdp.train.tables.csv_file import RawTable

NUM_COLUMNS = 15  # as many as Adult has
_STEP = 3  # words from the start of a row to that of the next
_WORD = re.compile(r"[A-Za-z]{1,12}")
_LONG = 6


def make(num_rows: int) -> RawTable:
    """Rows of consecutive words, the first of the text first; a function of the version of Python alone.

    Args:
      num_rows: in [1, about 21 000].

    Raises:
      ValueError: more rows than the text has.
    """
    words = _words()
    most = (len(words) - NUM_COLUMNS) // _STEP + 1
    if validate.count("num_rows", num_rows, minimum=1) > most:
        raise ValueError(f"num_rows must be at most {most}, the rows that the text has, got {num_rows}")
    counted = collections.Counter(word.lower() for word in words if len(word) >= _LONG)
    names = [name for name, _ in sorted(counted.items(), key=lambda one: (-one[1], one[0]))[:NUM_COLUMNS]]
    starts = range(0, num_rows * _STEP, _STEP)
    return RawTable(
        pa.table({name: pa.array([words[k + place] for k in starts]) for place, name in enumerate(names)})
    )


def _words() -> list[str]:
    return _WORD.findall("\n".join(topics.topics[name] for name in sorted(topics.topics)))
