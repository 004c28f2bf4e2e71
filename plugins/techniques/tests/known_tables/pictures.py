"""Small pictures beside a table that only names them, and what is known of their files, colors and names."""

from __future__ import annotations

import io
from typing import Any

import numpy as np
import pandas as pd
from PIL import Image, PngImagePlugin

from known_tables import Array, Known, Rng, random_test

ROWS, SIDE = 500, 24
FIELDS = {"category": "Image Classification"}


def _drawn(rng: Rng, rows: int = ROWS) -> tuple[Array, Array]:
    """Colored surfaces of shape (rows, side, side, 3), whose red tells the class in part, and the classes."""
    y = rng.integers(0, 2, rows)
    coarse = rng.normal(110, 30, (rows, 4, 4, 3))
    coarse[..., 0] += (15 * y + rng.normal(0, 15, rows))[:, None, None]
    return np.clip(np.kron(coarse, np.ones((1, SIDE // 4, SIDE // 4, 1))), 0, 255).astype(np.uint8), y


def _stored(pixels: Array, *, form: str = "png", told: str | None = None) -> bytes:
    info, file = PngImagePlugin.PngInfo(), io.BytesIO()
    if told is not None:
        info.add_text("Comment", told)
    Image.fromarray(pixels).save(file, form, **({"pnginfo": info} if form == "png" else {"quality": 85}))
    return file.getvalue()


def _known(y: Array, test: Array, files: list[bytes], right: Any, wrong: Any, names: list[str] | None = None) -> Known:
    names = names or [f"p{place:04d}.png" for place in np.random.default_rng(3).permutation(len(y))]
    rows = pd.DataFrame({"id": names, "y": y})
    return Known(rows, test, right, wrong, fields=FIELDS, files=dict(zip(names, files, strict=True)))


def comment_in_files(rng: Rng) -> Known:
    """Software wrote another comment into the files of one class; the test was written by one."""
    (pixels, y), test = _drawn(rng), random_test(rng, ROWS)
    told = np.where(test, rng.integers(0, 2, ROWS), y)
    files = [_stored(one, told=f"export {'AB'[kind]}") for one, kind in zip(pixels, told, strict=True)]
    return _known(y, test, files, [["image metadata"]], [])


def mark_in_a_corner(rng: Rng) -> Known:
    """Pictures of one class have a white mark, as a ruler, in the training table; in the test, any may have one."""
    (pixels, y), test = _drawn(rng), random_test(rng, ROWS)
    marked = np.where(test, rng.integers(0, 2, ROWS), y)
    pixels[marked == 1, -3:, -3:] = 255
    return _known(
        y, test, [_stored(one) for one in pixels], [["image pixel 7 7"], ["image contrast"], ["image bytes"]], []
    )


def wider_pictures(rng: Rng) -> Known:
    """One class was cut in another way; the content is the same."""
    (pixels, y), test = _drawn(rng), random_test(rng, ROWS)
    wide = np.where(test, rng.integers(0, 2, ROWS), y)
    files = [_stored(np.repeat(one, 1 + kind, axis=1)) for one, kind in zip(pixels, wide, strict=True)]
    return _known(y, test, files, [["image width"], ["image bytes"]], [])


def stored_again(rng: Rng) -> Known:
    """A quarter of the test are training pictures in another format, size and quality."""
    (pixels, y), test = _drawn(rng), random_test(rng, ROWS)
    copies = np.flatnonzero(test)[::4]
    sources = rng.choice(np.flatnonzero(~test), len(copies), replace=False)
    files = [_stored(one) for one in pixels]
    for copy, source in zip(copies, sources, strict=True):
        files[copy] = _stored(np.kron(pixels[source], np.ones((2, 2, 1), np.uint8)), form="jpeg")
    y[copies] = y[sources]
    return _known(y, test, files, ["rows"], [])


def honest_color(rng: Rng) -> Known:
    """Red tells the class in the test as in training."""
    pixels, y = _drawn(rng)
    return _known(y, random_test(rng, ROWS), [_stored(one) for one in pixels], [], [["image red"], ["image green"]])


def patients_in_names(rng: Rng) -> Known:
    """File names tell whose picture it is, and the test has other patients."""
    (pixels, y), patients = _drawn(rng), rng.integers(0, 60, ROWS)
    pixels = np.clip(pixels + rng.normal(0, 20, (60, 1, 1, 3))[patients], 0, 255).astype(np.uint8)
    names = [f"pt{patient:03d}_{place}.png" for place, patient in enumerate(patients)]
    test = np.isin(patients, rng.permutation(60)[:18])
    right = {"group": "id", "key": {"separator": "_"}}
    return _known(y, test, [_stored(one) for one in pixels], right, {}, names)


def another_camera(rng: Rng) -> Known:
    """The test was taken with less light and larger files."""
    (pixels, y), test = _drawn(rng), random_test(rng, ROWS)
    pixels[test] = (pixels[test] * 0.7).astype(np.uint8)
    return _known(y, test, [_stored(one) for one in pixels], {}, {"drift": None, "relation": "none"})


LEAKAGE = (comment_in_files, mark_in_a_corner, wider_pictures, stored_again, honest_color)
CV = (patients_in_names,)
EDA = (another_camera,)
