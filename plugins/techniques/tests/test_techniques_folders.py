"""Competitions of images without a table: labels are the names of folders, or parts of the files' names."""

from __future__ import annotations

import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from known_tables.pictures import FIELDS, comment_in_files
from mleredux.errors import NotApplicable
from mleredux.plugin.task import Competition, Metric, Submission
from mleredux_techniques._kit.data.dataset import Dataset
from mleredux_techniques._kit.data.discovery import discover

LAYOUTS: dict[str, tuple[Callable[[int, int], str], list[Any]]] = {
    "classes": (lambda place, kind: f"train/kind_{kind}/p{place:03d}.png", ["Kind 0", "Kind 1"]),
    "equal names": (
        lambda place, kind: f"train/{('cat', 'dog')[kind]}/part{place % 2}/{place // 2}.png",
        ["cat", "dog"],
    ),
    "numbers": (lambda place, kind: f"{('cat', 'dog')[kind]}.{place}.png", [0, 1]),
}
"""The path of a training image, and the classes in the answers."""


def discovered(layout: str, archived: bool, folder: Path, text: str) -> tuple[Dataset, pd.Series[Any]]:
    """What is made of some of the pictures of a known leak, and the codes of the training images' classes."""
    known = comment_in_files(np.random.default_rng(1))
    path, classes = LAYOUTS[layout]
    rows = 60
    public, private, kinds = folder / "public", folder / "private", known.rows["y"].to_numpy()
    public.mkdir(parents=True)
    private.mkdir()
    files = {
        f"test/{place}.png" if known.test[place] else path(place, kinds[place]): content
        for place, content in enumerate([*known.files.values()][:rows])
    }
    if archived:
        with zipfile.ZipFile(public / "images.zip", "w") as archive:
            for name, content in files.items():
                archive.writestr(name, content)
    else:
        for name, content in files.items():
            (public / name).parent.mkdir(parents=True, exist_ok=True)
            (public / name).write_bytes(content)
    held = np.flatnonzero(known.test[:rows])
    answers = pd.DataFrame({"picture": held, "y": [classes[kinds[place]] for place in held]})
    answers.to_csv(private / "answers.csv", index=False)
    (folder / "about.md").write_text(text, encoding="utf-8")
    task = Competition(
        id="known",
        title="Cats and dogs",
        description=folder / "about.md",
        submission=Submission(sample=None, id_columns=("picture",), target_columns=("y",)),
        metric=Metric(grader="accuracy"),
        direction="maximize",
        **FIELDS,
    )
    return discover(task, folder)[0], known.rows["y"][~known.test][: rows - len(held)]


@pytest.mark.parametrize(
    ("layout", "archived"), [("classes", False), ("equal names", True), ("equal names", False), ("numbers", True)]
)
def test_labels_are_read_from_the_paths_of_images(layout: str, archived: bool, tmp_path: Path) -> None:
    dataset, kinds = discovered(layout, archived, tmp_path, "Submit the probability of a dog.")
    first, second = map(str, LAYOUTS[layout][1])
    labels = dataset.train["y"].astype(str)
    assert labels.value_counts().to_dict() == {first: int((kinds == 0).sum()), second: int((kinds == 1).sum())}
    told = dataset.train["image metadata"].str[-1].map({"A": first, "B": second})  # the comment tells the class
    assert (told == labels).all()
    assert not labels.is_monotonic_increasing and not labels.is_monotonic_decreasing
    assert dataset.ids == ("picture",) and dataset.train["picture"].is_unique
    assert "image bytes" in dataset.features and len(dataset.thumbnail) == 64


def test_classes_that_paths_do_not_name_are_refused(tmp_path: Path) -> None:
    with pytest.raises(NotApplicable, match="has no training table"):
        discovered("numbers", False, tmp_path, "Cats and dogs.")
