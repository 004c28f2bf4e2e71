"""A clean table, and a training script for it with one crashing fault and several silent ones."""

from __future__ import annotations

import numpy as np
from mleredux.plugin.task import Task

from mleredux_techniques._kit.data.dataset import Dataset
from mleredux_techniques._kit.declaration.package import declared
from mleredux_techniques._kit.planting.instances import clean, merged
from mleredux_techniques.debugging.mutations import mutants
from mleredux_techniques.debugging.scripts import script

SILENT = 3
MOST_STYLE = 2**31


def plant(dataset: Dataset, rng: np.random.Generator) -> Dataset:
    """Keep numeric columns of the competition, add predictive ones, and draw a script and its faults."""
    data = clean(dataset, "debugging", rng)
    style = int(rng.integers(MOST_STYLE))
    places = mutants(script(data, style).plain)
    kinds = sorted({kind for _line, kind, _wrong in places} - {"crash"})
    faults: dict[int, tuple[str, str]] = {}
    for kind in ("crash", *(str(kind) for kind in rng.permutation(kinds)[:SILENT])):
        options = [(line, wrong) for line, other, wrong in places if other == kind and line not in faults]
        line = int(rng.choice(sorted({line for line, _wrong in options})))
        faults[line] = kind, str(rng.choice([wrong for other, wrong in options if other == line]))
    drawn = sorted(kind for kind, _wrong in faults.values())
    return merged(data, drawn, script={"style": style, "faults": [[line, *faults[line]] for line in sorted(faults)]})


def _reason(base: Task, planted: bool) -> str | None:
    return None if planted else f"it has no script; use debugging+planted-1@{base.id}"


technique = declared(__package__, plant, reason=_reason)
