"""Training images labeled by their paths: by a folder's name, or by a part of the file's name."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np

from mleredux_techniques._kit.data.columns import class_name
from mleredux_techniques._kit.data.dataset import Frame
from mleredux_techniques._kit.data.images import NAMED, Place, images_below


def labeled(public: Path, classes: set[str], row: str, target: str, text: str) -> tuple[Frame, list[Place]] | None:
    """Return a table of the training images with their labels, in random order, and the images' locations.

    The column `row` contains file names, or numbers if the names are not unique or contain the label.

    Args:
        public: The public files; images in archives are used only if those outside have no labels.
        classes: The classes that occur in the test rows.
        row: Name of the id column.
        target: Name of the label column.
        text: The competition's description, which may explain class 1 if the classes are 0 and 1.

    Returns:
        The table and the locations; None if the image paths do not name the classes.
    """
    import pandas as pd

    every = images_below(public)
    for archived in (False, True):
        places = [place for place in every if isinstance(place.file, Path) != archived]
        paths = [place.path for place in places]
        for wanted in (True, False):
            kept = [k for k, path in enumerate(paths) if ("train" in path) == wanted and "test" not in path]
            labeling = _labels([paths[k] for k in kept], classes, text)
            if labeling is None:
                continue
            in_name, labels = labeling
            known = [(kept[k], label) for k, label in enumerate(labels) if label]
            known = [known[k] for k in np.random.default_rng(0).permutation(len(known))]
            names = [places[k].file.name for k, _label in known]
            ids = range(len(known)) if in_name or len(set(names)) < len(names) else names
            return pd.DataFrame({row: ids, target: [label for _k, label in known]}), [places[k] for k, _label in known]
    return None


def _labels(paths: list[str], classes: set[str], text: str) -> tuple[bool, list[str | None]] | None:
    """Return whether file names contain the labels, and the label of each path; None if no labels were found."""
    parts = [_parts(path) for path in paths]
    spelled = {_plain(name): name for name in classes}
    for key in sorted({key for part in parts for key in part}):
        values = [part.get(key, "") for part in parts]
        of = spelled
        if classes <= {"0", "1"} and len(names := sorted({*values} - {""})) == 2:
            flags = [
                bool(re.search(rf"(probability of|\b1 ?(=|:|is|means)) *(an? |the )?{name}\b", text)) for name in names
            ]
            of = {name: str(int(flag)) for name, flag in zip(names, flags, strict=True)} if sum(flags) == 1 else spelled
        labels = [of.get(value) for value in values]
        if len({*labels} - {None}) > 1 and np.mean([label is not None for label in labels]) >= NAMED:
            return key.startswith("name"), labels
    return None


def _parts(path: str) -> dict[str, str]:
    """Return candidate labels: each parent folder, nearest first, and the first and last word of the file name."""
    *folders, name = path.split("/")
    words = _plain(name.rpartition(".")[0]).split() or [""]
    letters = re.sub(r"\d+$", "", words[0])
    parts = {"name, first": words[0], "name, last": words[-1], "name, letters": letters}
    return parts | {f"folder {place}": _plain(folder) for place, folder in enumerate(reversed(folders))}


def _plain(text: str) -> str:
    return re.sub(r"[\W_]+", " ", class_name(text)).strip().lower()
