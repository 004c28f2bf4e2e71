"""Small images as features: files in the data folder, or in archives there, that are named after the tables' ids."""

from __future__ import annotations

import io
import time
import zipfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from mleredux_agent_baseline.columns import IMAGE_PREFIX

SUFFIXES = (".jpg", ".jpeg", ".png", ".tif", ".tiff", ".bmp", ".gif")
SIDE = 16
SAMPLE = 20


@dataclass(frozen=True)
class ImageFile:
    """An image on disk, or a member of an archive."""

    path: Path
    member: str | None = None


def find_images(data_dir: Path) -> dict[str, ImageFile]:
    """Return images by file name and by stem; names that occur twice (in train and test) are omitted."""
    images: dict[str, ImageFile | None] = {}

    def add(name: str, image: ImageFile) -> None:
        for key in {name, Path(name).stem}:
            images[key] = None if key in images else image

    for path in sorted(data_dir.rglob("*")):
        if path.suffix.lower() in SUFFIXES:
            add(path.name, ImageFile(path))
        elif path.suffix.lower() == ".zip":
            with zipfile.ZipFile(path) as archive:
                for member in archive.namelist():
                    if Path(member).suffix.lower() in SUFFIXES and not member.startswith("__MACOSX"):
                        add(Path(member).name, ImageFile(path, member))
    return {key: image for key, image in images.items() if image is not None}


def image_column(train: pd.DataFrame, test: pd.DataFrame, images: dict[str, ImageFile]) -> str | None:
    """Return the column whose values name images in nine of ten rows of both tables, or None."""
    for name in test.columns.intersection(train.columns):
        if all(table[name].head(500).astype(str).isin(images).mean() >= 0.9 for table in (train, test)):
            return str(name)
    return None


def read_pixels(names: pd.Series[Any], images: dict[str, ImageFile], *, colour: bool, deadline: float) -> pd.DataFrame:
    """Return the images of a column as rows, resized to 16 by 16 pixels; missing images are gray.

    Args:
        color: Whether to use three channels instead of one.
        deadline: Unix time by which all images must be read.

    Raises:
        TimeoutError: The first images show that reading all of them would take too long.
    """
    size = SIDE * SIDE * (3 if colour else 1)
    pixels = np.full((len(names), size), 0.5, dtype=np.float32)
    archives: dict[Path, zipfile.ZipFile] = {}
    import PIL.Image  # noqa: F401  (not part of the time that an image takes)

    started = time.time()
    try:
        for row, name in enumerate(names.astype(str)):
            if row == SAMPLE and started + (time.time() - started) / SAMPLE * len(names) > deadline:
                raise TimeoutError(f"reading {len(names)} images would take too long")
            if name in images:
                pixels[row] = _shrunk(images[name], archives, colour)
    finally:
        for archive in archives.values():
            archive.close()
    columns = [f"{IMAGE_PREFIX}{place}" for place in range(size)]
    return pd.DataFrame(pixels, columns=columns, index=names.index)


def _shrunk(image: ImageFile, archives: dict[Path, zipfile.ZipFile], colour: bool) -> np.ndarray[Any, Any]:
    from PIL import Image

    if image.member is None:
        source: Path | io.BytesIO = image.path
    else:
        if image.path not in archives:  # the list of members is read once
            archives[image.path] = zipfile.ZipFile(image.path)
        source = io.BytesIO(archives[image.path].read(image.member))
    with Image.open(source) as opened:
        opened.draft("RGB" if colour else "L", (SIDE * 4, SIDE * 4))
        small = opened.convert("RGB" if colour else "L").resize((SIDE, SIDE), Image.Resampling.BOX)
    return np.asarray(small, dtype=np.float32).ravel() / 255
