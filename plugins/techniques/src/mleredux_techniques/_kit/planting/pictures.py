"""Planted images: drawn for a planted table from generated thumbnails, so that none was ever published.

Size, text in the file and a mark in a corner vary between images; in the training images, some of these may reveal
the class. Copies are drawn again in another size.
"""

from __future__ import annotations

import io
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from mleredux_techniques._kit.data.dataset import Array, Dataset, Frame, Kind, load, save
from mleredux_techniques._kit.data.images import COLUMNS, SIDE, THUMBNAIL, describe
from mleredux_techniques._kit.planting.composition import FOLDER, anonymous
from mleredux_techniques._kit.planting.generation import generated
from mleredux_techniques._kit.planting.instances import merged, target_signal

if TYPE_CHECKING:
    from mleredux_techniques._kit.declaration.spec import TechniqueSpec

ROWS = 800
SKETCHES = "pictures"
COLUMN_KINDS = ("future_value", "copy", "noisy_copy", "target_encoding")
"""Accepted names for a leak in images."""
WAYS = ("text in the file", "size", "mark in a corner")
"""Properties of an image, besides its content, that may reveal the class."""
ERRORS = 0.05
LETTERS = list("ABCDEFGHKLMNPRST")
Drawn = tuple[Dataset, dict[str, bytes]]
"""A planted instance, and the image files by path."""


def keep_sketches(dataset: Dataset, rng: np.random.Generator, private: Path) -> None:
    """Write generated thumbnails with their targets next to the answers; techniques draw images from them."""
    small = replace(dataset, features=dataset.thumbnail, targets=(dataset.target,))
    sketch = generated(small, rng, rows=ROWS, most=len(THUMBNAIL))
    folder = private / FOLDER / SKETCHES
    folder.mkdir(parents=True)
    save(replace(sketch, thumbnail=dataset.thumbnail), folder)


def kept_sketches(prepared: Path) -> Dataset | None:
    """Return the thumbnails of a prepared planted competition; None if it has no images."""
    folder = prepared / "private" / FOLDER / SKETCHES
    return load(folder) if folder.is_dir() else None


def drawn(technique: TechniqueSpec, sketches: Dataset, rng: np.random.Generator) -> Drawn:
    """Return a planted instance with image descriptions, and the image files: path → content.

    Args:
        technique: The technique that plants in the table of thumbnails; its other columns stay in a separate table.
        sketches: Thumbnails and targets.
    """
    assert technique.plant is not None
    data = technique.plant(sketches, rng)
    pixels = [_pixels(frame, sketches) for frame in (data.train, data.test)]
    beside = anonymous(replace(data, features=tuple(name for name in data.features if name not in THUMBNAIL)), rng)
    ways = [str(way) for way in rng.permutation(WAYS)[: int(rng.integers(1, 3))]] if technique.id == "leakage" else []
    signal = target_signal(data, data.train, rng)
    high = signal > (np.median(signal) if data.problem == "regression" else 0.5)
    shares = rng.uniform(0.3, 0.7, (2, len(WAYS)))
    if technique.id != "eda":  # or the test images come from elsewhere
        shares[1] = shares[0]
    look = _Style(rng)
    files: dict[str, bytes] = {}
    described: list[Frame] = []
    for place, (name, frame) in enumerate((("train", beside.train), ("test", beside.test))):
        marks = rng.random((len(frame), len(WAYS))) < shares[place]
        marks[:, -1] = 1e3 * pixels[place].mean(axis=(1, 2)) % 1 < shares[place, -1]  # copies get the same marks
        for way in ways if name == "train" else ():
            marks[:, WAYS.index(way)] = high ^ (rng.random(len(frame)) < ERRORS)
        contents = [look.file(array, mark, rng) for array, mark in zip(pixels[place], marks, strict=True)]
        described.append(_described(contents, frame))
        names = [f"{name}/{number:.0f}.png" for number in frame[beside.ids[0]]]
        files |= dict(zip(names, contents, strict=True))
    shown = [name for name in COLUMNS if name in THUMBNAIL or len({*described[0][name], *described[1][name]}) > 1]
    texts = ("image format", "image metadata")
    kinds: dict[str, Kind] = {name: "text" if name in texts else "number" for name in shown}
    features = (*beside.features, *shown)
    columns = [*beside.ids, *features, *beside.targets]
    anonymized = replace(
        beside,
        train=beside.train.join(described[0])[columns],
        test=beside.test.join(described[1])[columns],
        features=features,
        kinds={**beside.kinds, **kinds},
        thumbnail=THUMBNAIL,
    )
    leaks = [{"kinds": list(COLUMN_KINDS), "columns": [look.shows(way)], "planted": True} for way in ways]
    facts = {"leaks": [*anonymized.planted.get("leaks", ()), *leaks]} if leaks else {}
    return merged(anonymized, ways, **facts), files


def without_descriptions(dataset: Dataset) -> Dataset:
    """Return the table without the image descriptions."""
    others = [*dataset.ids, *(name for name in dataset.features if name not in COLUMNS), *dataset.targets]
    return replace(dataset, train=dataset.train[others], test=dataset.test[others])


def _pixels(frame: Frame, sketches: Dataset) -> Array:
    """Return thumbnails of shape (rows, `SIDE`, `SIDE`) from 0 to 1; absent pixels get their training mean."""
    usual = sketches.train[list(THUMBNAIL)].mean()
    table = frame.reindex(columns=list(THUMBNAIL)).fillna(usual).to_numpy(dtype=float)
    return np.asarray(np.clip(table, 0, 1).reshape(len(frame), SIDE, SIDE))


class _Style:
    """The look shared by all images of an instance: size, colors, the corner of marks, texts in files."""

    def __init__(self, rng: np.random.Generator) -> None:
        self.side = int(rng.integers(24, 41))
        self.tint = rng.uniform(0.75, 1.0, 3)
        self.corner = [int(place) for place in rng.choice([0, SIDE - 1], 2)]
        first, second = rng.choice(LETTERS, 2, replace=False)
        self.texts = (f"unit {first}", f"unit {second}")

    def shows(self, way: str) -> str:
        """Return the description column in which a revealing property shows most."""
        row, column = self.corner
        return {"text in the file": "image metadata", "size": "image width"}.get(way, f"image pixel {row} {column}")

    def file(self, pixels: Array, marks: Array, rng: np.random.Generator) -> bytes:
        """Return a PNG file of a thumbnail.

        Args:
            pixels: Gray values from 0 to 1, of shape (`SIDE`, `SIDE`).
            marks: For each of `WAYS`, which of its two values this image has.
            rng: Random generator for noise and tint.
        """
        from PIL import Image, PngImagePlugin

        text, wide, marked = marks
        height = self.side + int(rng.integers(0, 5))
        size = (round(height * (1.4 if wide else 1.0)), height)
        gray = np.asarray(Image.fromarray(255 * pixels.astype(np.float32)).resize(size, Image.Resampling.BICUBIC))
        colored = gray[:, :, None] * self.tint * rng.uniform(0.98, 1.02, 3) + rng.normal(0, 2, (*gray.shape, 3))
        if marked:
            row, column = (round(place * extent / SIDE) for place, extent in zip(self.corner, size[::-1], strict=True))
            colored[row : row + height // SIDE + 1, column : column + size[0] // SIDE + 1] = 255
        metadata, file = PngImagePlugin.PngInfo(), io.BytesIO()
        metadata.add_text("Source", self.texts[int(text)])
        Image.fromarray(np.clip(colored, 0, 255).astype(np.uint8)).save(file, "PNG", pnginfo=metadata)
        return file.getvalue()


def _described(contents: list[bytes], frame: Frame) -> Frame:
    import pandas as pd

    return pd.DataFrame([describe(content) for content in contents], index=frame.index, columns=list(COLUMNS))
