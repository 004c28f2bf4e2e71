"""A clean table, and a training script for it with a fault that crashes and others that are silent."""

from __future__ import annotations

import numpy as np

from mleredux_techniques._kit.dataset import Dataset
from mleredux_techniques._kit.instances import clean, merged
from mleredux_techniques.debugging.scripts import script

SILENT = 3
MOST_STYLE = 2**31


def plant(dataset: Dataset, rng: np.random.Generator) -> Dataset:
    """Keep numbers of the competition, add some that tell of the target, and draw a script and its faults."""
    made = clean(dataset, "debugging", rng)
    style = int(rng.integers(MOST_STYLE))
    drafted = script(made, style)
    kinds = sorted({kind for line in drafted.lines for kind in line.wrong} - {"crash"})
    drawn = ["crash", *(str(kind) for kind in rng.permutation(kinds)[:SILENT])]
    faults = sorted((int(rng.choice(drafted.places(kind))), kind) for kind in drawn)
    return merged(made, sorted(drawn), script={"style": style, "faults": faults})
