"""Shadow validation: a competition whose test set is held out from another one's training table."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
from mleredux.errors import NotApplicable
from mleredux.plugin.task import Competition, Task

from mleredux_techniques._kit.data.dataset import Dataset
from mleredux_techniques._kit.data.discovery import discover
from mleredux_techniques._kit.data.splits import FOLDS, latest, pool
from mleredux_techniques._kit.planting.competition import shared, write
from mleredux_techniques.texts import rendered

VARIANT = "shadow"
_VERSION = "2"


class HeldOutCompetition(Competition):
    """A competition with the metric of its base, and a part of its training rows."""

    differences: str
    """The template of the differences from the base, for the description."""

    def describe(self, *, obfuscated: bool = False) -> str:
        """Return the base's description, with the differences."""
        assert self.base is not None
        return self.base.describe(obfuscated=obfuscated) + rendered(self.differences)


def shadow_competition(base: Task) -> HeldOutCompetition:
    """Return the task `base+shadow`.

    Raises:
        NotApplicable: The base is not a competition.
    """
    if base.kind == "technique":
        raise NotApplicable(f"No rows can be held out from {base.id}.", hint="Choose a competition.")
    return HeldOutCompetition(
        differences="shadow.md.j2",
        id=f"{base.id.replace('+', '-')}+{VARIANT}",
        version=f"{base.version}+{VARIANT}{_VERSION}",
        title=f"{base.title}: validation",
        description=base.description,
        description_obfuscated=base.description_obfuscated,
        prepare=partial(hold_back, base),
        base=base,
        known_answers=base.known_answers,
        license=base.license,
        note=f"Scored on rows held out from the training table of {base.id}, not on its private test set.",
        **shared(base),
    )


def hold_back(base: Task, raw: Path, public: Path, private: Path) -> Dataset:
    """Hold out a fifth of the training rows like the test set: whole groups, later rows, or random ones.

    Returns:
        The remaining rows, and those that are held back as the test set.

    Raises:
        NotApplicable: The competition's data does not consist of a training and a test table with ids.
    """
    dataset, source = discover(base, raw, images=False)
    if source.test is None or dataset.ids[:1] != base.submission.id_columns[:1] or not dataset.ids:
        raise NotApplicable(
            f"No rows can be held out from {base.id}, which lacks training and test tables with the submission's ids.",
            hint="Use the reward `valid`, or another competition.",
        )
    rows = dataset.train
    if dataset.time is not None:
        later = latest(dataset, rows, 1 / FOLDS)
    else:
        later = np.isin(np.arange(len(rows)), pool(dataset, max_rows=len(rows), repeats=1).splits[0].held_out)
    train, held = (rows[part].reset_index(drop=True) for part in (~later, later))
    split = replace(dataset, train=train, test=held, train_rows=len(train), test_rows=len(held))
    write(split, base, public, private)
    return split
