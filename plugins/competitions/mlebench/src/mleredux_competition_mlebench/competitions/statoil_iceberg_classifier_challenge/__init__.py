"""Statoil/C-CORE Iceberg Classifier Challenge: radar images as JSON in 7z archives."""

import json
from functools import partial
from typing import Any

from mleredux.errors import DataError

from ...blocks import PRIVATE_SAMPLE, Csv, Json, Metric, SevenZip, Workspace, competition, recipe

COLUMNS = {"id", "band_1", "band_2", "inc_angle"}
TARGET = "is_iceberg"


def records(w: Workspace, name: str, needed: set[str]) -> list[dict[str, Any]]:
    """Return the images of a packed file.

    Raises:
        DataError: The content is not a list of records with equal keys that include the required ones.
    """
    items: list[dict[str, Any]] = json.loads(w.tree(f"{name}.7z", inside="data/processed").read(name))
    keys = set(items[0]) if items else set()
    if not needed <= keys or any(set(record) != keys for record in items):
        raise DataError(
            f"{name} is not a list of records that all have {', '.join(sorted(needed))}.", hint="Get it again."
        )
    return items


@recipe("id", TARGET, sample=PRIVATE_SAMPLE)
def prepare(w: Workspace, scenes: bool = False) -> None:
    """Split the labeled images; the test set has the fields of the raw test file.

    Args:
        scenes: Whether to hold out all images with the same angle together; those without an angle are split
        individually.
    """
    import pandas as pd

    labelled = records(w, "train.json", {*COLUMNS, TARGET})
    if scenes:
        table = pd.DataFrame({"angle": [record["inc_angle"] for record in labelled]}, dtype=object)
        unknown = pd.to_numeric(table["angle"], errors="coerce").isna()
        table.loc[unknown, "angle"] = [f"picture {n}" for n in table.index[unknown]]
        parts = w.split_groups(table, "angle", 0.2)
        train, test = ([labelled[n] for n in part.index] for part in parts)
    else:
        train, test = w.split(labelled, 0.2)
    fields = list(records(w, "test.json", COLUMNS)[0])
    answers = pd.DataFrame({"id": [record["id"] for record in test], TARGET: [int(record[TARGET]) for record in test]})
    sample = answers.assign(**{TARGET: 0.5})
    hidden = [{field: record[field] for field in fields} for record in test]
    for name, content in (
        ("train.json", Json(train)),
        ("test.json", Json(hidden)),
        ("sample_submission.csv", Csv(sample)),
    ):
        w.public(f"{name}.7z", SevenZip({name: content}))
    w.private("test.csv", answers)
    w.private("sample_submission.csv", sample)


COMPETITION = competition(
    "statoil-iceberg-classifier-challenge",
    prepare=prepare,
    metric=Metric(grader="log-loss"),
    fixed=partial(prepare, scenes=True),
)
