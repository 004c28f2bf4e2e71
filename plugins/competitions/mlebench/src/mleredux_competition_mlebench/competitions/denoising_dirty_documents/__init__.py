"""Denoising Dirty Documents: the answers are the pixels of the clean pages, one per row."""

import io
from collections.abc import Callable
from functools import partial
from typing import IO, Any

from mleredux.errors import DataError

from ...blocks import Metric, Tree, Workspace, Written, competition, recipe, require


def grey(tree: Tree, name: str) -> Any:
    """Read an image as an array of rows and columns, from 0 (black) to 255 (white).

    Raises:
        DataError: The image can't be read.
    """
    import numpy as np

    try:
        with require("PIL.Image", "images").open(io.BytesIO(tree.read(name))) as picture:
            return np.asarray(picture.convert("L"))
    except (OSError, SyntaxError) as error:  # Pillow raises the latter for broken PNG files
        raise DataError(f"{tree.where} has an image {name} that can't be read.", hint="Get it again.") from error


def pixels(pictures: dict[str, Any], value: Callable[[int], str]) -> Callable[[IO[bytes]], None]:
    """Return a function that writes one line per pixel, image by image and row by row, counting from 1."""
    values = [value(intensity) for intensity in range(256)]

    def write(file: IO[bytes]) -> None:
        file.write(b"id,value\n")
        for name, array in pictures.items():
            for row, cells in enumerate(array.tolist(), 1):
                start = f"{name}_{row}_"
                lines = [f"{start}{column},{values[cell]}\n" for column, cell in enumerate(cells, 1)]
                file.write("".join(lines).encode())

    return write


@recipe("id", "value", answers="answers.csv", sample="sampleSubmission.csv")
def prepare(w: Workspace, by_page: bool = False) -> None:
    """Split the images by name; clean test images become the answers.

    Args:
        by_page: Whether to hold out images of the same clean page together.
    """
    import pandas as pd

    noisy, clean = w.tree("train.zip", inside="train"), w.tree("train_cleaned.zip", inside="train_cleaned")
    names = noisy.names(".png")
    if by_page:
        table = pd.DataFrame({"name": names, "page": [grey(clean, name).tobytes() for name in names]})
        train, test = (list(part["name"]) for part in w.split_groups(table, "page", 0.2))
    else:
        train, test = w.split(names, 0.2)
    w.public("train", noisy.pick(train))
    w.public("train_cleaned", clean.pick(train))
    w.public("test", noisy.pick(test))
    pictures = {name.removesuffix(".png"): grey(clean, name) for name in sorted(test)}
    w.public("sampleSubmission.csv", Written(pixels(pictures, lambda _: "1")))
    w.private("answers.csv", Written(pixels(pictures, lambda intensity: repr(intensity / 255.0))))


COMPETITION = competition(
    "denoising-dirty-documents",
    prepare=prepare,
    metric=Metric(grader="rmse"),
    fixed=partial(prepare, by_page=True),
)
