"""PetFinder.my - Pawpularity Contest: photos of pets with twelve hand-made descriptors."""

from typing import Any

from ...blocks import FilesOfRows, Metric, Table, TableSplit, competition, corrected, similar_images


def random_scores(test: Table) -> dict[str, Any]:
    """Draw the sample's values, which reveal nothing about the answers."""
    import numpy as np

    return {"Pawpularity": np.random.default_rng(0).uniform(1, 100, len(test)).round(2)}


COMPETITION = competition(
    "petfinder-pawpularity-score",
    prepare=TableSplit(
        ids="Id", targets="Pawpularity", fill=random_scores, files=[FilesOfRows(tree="train", source="{Id}.jpg")]
    ),
    metric=Metric(grader="rmse", options={"bounds": [1, 100]}),
    fixed=corrected(
        group=similar_images("train", "{Id}.jpg"),
    ),
)
