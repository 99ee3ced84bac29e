"""What SDMetrics and dython say of two small tables; writes peers.json beside this file.

Command: PYTHONPATH=src:. python tests/train/table_metrics/make_peers.py, with an interpreter that has
         sdmetrics and dython (0.32 and 0.7.12 made the file).
"""

from __future__ import annotations

import itertools
import json
import warnings
from importlib import metadata
from pathlib import Path

import numpy as np
import pandas as pd
from dython.nominal import associations
from sdmetrics.column_pairs import ContingencySimilarity
from sdmetrics.single_column import TVComplement

from exactdp.train.tables.schema import MISSING
from tests.train.table_metrics.tables import SCHEMA, draw

NUMBERS = [column.name for column in SCHEMA.columns if column.kind != "category"]
BINS = 10


def frame(codes: np.ndarray) -> pd.DataFrame:
    """A table as the peers take it: categories as texts, missing ones too; numbers as floats."""
    found = {}
    for place, column in enumerate(SCHEMA.columns):
        own = codes[:, place]
        if column.kind == "category":
            found[column.name] = ["?" if code == MISSING else column.values[code] for code in own]
        else:
            found[column.name] = [np.nan if code == MISSING else float(code) for code in own]
    return pd.DataFrame(found)


def main() -> None:
    tables = draw(400, seed=1), draw(300, seed=2, strength=0.6)
    # The peers count what is outside the real range into the outer bins; here nothing is. With ages from 0
    # to 99 ten bins of ours and ten of NumPy's hold the same whole numbers.
    tables[0][:2, 2] = 0, 99
    real, synthetic = map(frame, tables)
    categories = [name for name in SCHEMA.names if name not in NUMBERS]
    usable = [*categories, "age"]
    pairs = {}
    for first, second in itertools.combinations(usable, 2):
        binned = [name for name in (first, second) if name in NUMBERS] or None
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # pandas, on the peer's way of assigning columns
            pairs[f"{first},{second}"] = ContingencySimilarity.compute(
                real[[first, second]].copy(),
                synthetic[[first, second]].copy(),
                continuous_column_names=binned,
                num_discrete_bins=BINS,
            )
    result = {
        "versions": {name: metadata.version(name) for name in ("sdmetrics", "dython")},
        "bins": BINS,
        "real": tables[0].tolist(),
        "synthetic": tables[1].tolist(),
        "histograms": {name: TVComplement.compute(real[name], synthetic[name]) for name in categories},
        "pairs": {name: float(value) for name, value in pairs.items()},
        # dython drops nothing and puts 0 for a missing number, so numbers with missing ones are left out.
        "associations": associations(real.drop(columns="pay"), nominal_columns=categories, compute_only=True)[
            "corr"
        ].to_dict(),
    }
    path = Path(__file__).with_name("peers.json")
    path.write_text(json.dumps(result, separators=(",", ":")) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
