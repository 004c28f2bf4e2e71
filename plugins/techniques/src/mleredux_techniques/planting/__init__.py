"""Instances with known truth, from the data of any competition with a table: each seed is another one."""

from __future__ import annotations

from importlib import import_module

from mleredux_techniques.dataset import Dataset

GENERATORS = {
    "imbalance": "classes",
    "missing": "gaps",
    "encoding": "categories",
    "cv": "splits",
    "scaling": "scales",
    "leakage": "leaks",
}


def plant(dataset: Dataset, technique: str, seed: int) -> Dataset:
    """The instance of a seed: the data changed in a way that is noted in `planted`; equal seeds, equal data.

    Raises:
        NotApplicable: The data have too little to change; says what is lacking.
    """
    from mleredux_techniques.planting.common import chance

    generator = import_module(f"{__name__}.{GENERATORS[technique]}")
    made: Dataset = generator.plant(dataset, chance(technique, seed, dataset))
    return made
