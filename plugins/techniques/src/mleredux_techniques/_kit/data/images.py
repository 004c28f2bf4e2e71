"""Images listed in a table, described by numbers: file metadata, colors, and a small gray thumbnail.

The descriptions let table techniques apply to images. Nothing is learned: equal files have equal descriptions.
"""

from __future__ import annotations

import io
import zipfile
from collections import defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from mleredux_techniques._kit.data.dataset import Array, Frame, Series

ENDINGS = (".png", ".jpg", ".jpeg", ".bmp", ".gif", ".tif", ".tiff", ".webp")
SIDE = 8
MAX_IMAGES = {"train": 4_000, "test": 2_000}
"""Number of rows drawn at random from larger tables."""
MAX_BYTES = 1 << 26
NAMED = 0.9
"""Minimum share of a column's values that name images, for the column to count as image names."""
_SAMPLE = 200
_TAGS = (271, 272, 305, 315)
"""Exif tags for maker, model, software and artist."""
THUMBNAIL = tuple(f"image pixel {row} {column}" for row in range(SIDE) for column in range(SIDE))
_FILE, _COLORS = ("bytes", "width", "height", "format", "metadata"), ("red", "green", "blue", "contrast")
COLUMNS = (*(f"image {name}" for name in (*_FILE, *_COLORS)), *THUMBNAIL)


class Place(NamedTuple):
    """The location of an image."""

    file: Path | zipfile.Path
    """The file, perhaps in an archive."""
    path: str
    """Its path under the public folder, in lower case."""
    near: str
    """The part of the path that tells training images from test images: the folder or archive, and the name."""


def with_images(
    public: Path, train: Frame, test: Frame, known: Sequence[Place] = ()
) -> tuple[Frame, Frame, tuple[str, ...]]:
    """Return at most `MAX_IMAGES` rows of both tables with image descriptions, and the thumbnail's columns; the
    unchanged tables if they share no column that names readable images.

    Descriptions that are the same for all images are omitted.

    Args:
        known: The locations of the training images, if no column names them.
    """
    import pandas as pd

    places = _index(public)
    shared = [name for name in train.columns if places and name in test.columns]
    frames = [test] if known else [train, test]
    named = next((name for name in shared if _names_images([frame[name] for frame in frames], places)), None)
    if named is None:
        return train, test, ()
    described = []
    for table, frame in (("train", train), ("test", test)):
        rows = np.sort(np.random.default_rng(0).permutation(len(frame))[: MAX_IMAGES[table]])
        frame = frame.iloc[rows].reset_index(drop=True)
        own = [known[row] for row in rows] if known and table == "train" else None
        descriptions = [_describe(place) for place in own or [_place(places, value, table) for value in frame[named]]]
        described.append(pd.concat([frame, pd.DataFrame(descriptions, index=frame.index, columns=COLUMNS)], axis=1))
    both = pd.concat(described)[list(COLUMNS)]
    if both[THUMBNAIL[0]].notna().mean() < NAMED:
        return train, test, ()
    plain = [name for name in COLUMNS if name not in THUMBNAIL and both[name].nunique(dropna=False) == 1]
    return described[0].drop(columns=plain), described[1].drop(columns=plain), THUMBNAIL


def _index(public: Path) -> dict[str, list[Place]]:
    """Return the locations of all images, even in archives, by lower-case name with and without extension."""
    places: dict[str, list[Place]] = defaultdict(list)
    for place in images_below(public):
        name = _key(place.path)
        places[name.rpartition(".")[0]].append(place)
        places[name].append(place)
    return places


def images_below(public: Path) -> list[Place]:
    """Return the locations of all images, including those in archives."""
    places: list[Place] = []
    for path in sorted(public.rglob("*")):
        shown, near = path.relative_to(public).as_posix().lower(), f"{path.parent.name} {path.stem}".lower()
        if path.suffix.lower() == ".zip" and zipfile.is_zipfile(path):
            root = zipfile.Path(path).root
            names = [name for name in root.namelist() if name.lower().endswith(ENDINGS)]
            places += [Place(zipfile.Path(root, n), f"{shown}/{n.lower()}", f"{near} {n.lower()}") for n in names]
        elif path.name.lower().endswith(ENDINGS):
            places.append(Place(path, shown, near))
    return places


def _key(value: Any) -> str:
    return str(value).rpartition("/")[2].lower()


def _names_images(columns: list[Series], places: dict[str, list[Place]]) -> bool:
    heads = [values.dropna().head(_SAMPLE) for values in columns]
    return all(len(head) and np.mean([_key(value) in places for value in head]) >= NAMED for head in heads)


def _place(places: dict[str, list[Place]], value: Any, table: str) -> Place | None:
    """Return the location of an image; if the name is ambiguous, prefer the table's own folder or archive."""
    matches = places.get(_key(value), [])
    return next(iter([*(place for place in matches if table in place.near), *matches]), None)


def _describe(place: Place | None) -> dict[str, Any]:
    if place is None:
        return {}
    with place.file.open("rb") as file:
        content = file.read(MAX_BYTES + 1)
    return describe(content) if 0 < len(content) <= MAX_BYTES else {}


def describe(content: bytes) -> dict[str, Any]:
    """Return the description of an image file; only its size if it can't be read.

    `image bytes`, `image width`, `image height` (pixels), `image format` (of the file, and of its colors), `image
    metadata` (its author, device or software, and texts in the file), `image red`, `image green`, `image blue` (means
    from 0 to 1), `image contrast` (standard deviation of gray), and `image pixel ROW COLUMN`: gray means of 8 by 8
    parts.
    """
    from PIL import Image

    facts: dict[str, Any] = {"image bytes": len(content)}
    try:
        with Image.open(io.BytesIO(content)) as image:
            facts |= {"image width": image.width, "image height": image.height}
            facts |= {"image format": f"{image.format} {image.mode}"}
            facts |= {"image metadata": " ".join(_metadata(image)) or None}
            image.draft("RGB", (16 * SIDE, 16 * SIDE))  # decode JPEG files at a smaller size
            deep = image.mode.startswith(("I", "F"))
            colors = Image.fromarray(_leveled(np.asarray(image, dtype=float))) if deep else image
            small = np.asarray(colors.convert("RGB").resize((2 * SIDE, 2 * SIDE), Image.Resampling.BOX), float) / 255
    except (OSError, ValueError, SyntaxError, Image.DecompressionBombError):
        return facts
    gray = small.mean(axis=2)
    pixels = gray.reshape(SIDE, 2, SIDE, 2).mean(axis=(1, 3)).ravel()
    figures = [*small.mean(axis=(0, 1)), gray.std(), *pixels]
    return facts | {name: round(float(value), 4) for name, value in zip(COLUMNS[-len(figures) :], figures, strict=True)}


def _leveled(values: Array) -> Array:
    """Scale gray values to eight bits; images with values above 255 are assumed to be 16-bit."""
    top = 255.0 if values.max(initial=0) <= 255 else 65_535.0
    return np.asarray(np.clip(255 * values / top, 0, 255), dtype=np.uint8)


def _metadata(image: Any) -> Iterator[str]:
    for tag, value in sorted(image.getexif().items()):
        if tag in _TAGS:
            yield str(value)[:100]
    for name, value in sorted(image.info.items()):
        if isinstance(value, str) and len(value) <= 100:
            yield f"{name} {value}"
