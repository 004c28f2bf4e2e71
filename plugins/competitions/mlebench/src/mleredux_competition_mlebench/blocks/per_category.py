"""Image collections described by a COCO document, split category by category."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from mleredux.errors import DataError

from mleredux_competition_mlebench.blocks.json_records import IndentedJson
from mleredux_competition_mlebench.blocks.recipes import recipe
from mleredux_competition_mlebench.blocks.workspace import Workspace

SMALL = 5
"""Categories with fewer images are not shuffled: their last image goes to the test set, and an only image to
training.
"""


@dataclass(frozen=True)
class Pair:
    """An image and its only annotation, as in the document."""

    annotation: dict[str, Any]
    image: dict[str, Any]

    @property
    def category(self) -> Any:
        """The label."""
        return self.annotation["category_id"]

    def numbered(self, id: str, new: str, file_name: str) -> Pair:
        """Return the pair with another image id and file name.

        Args:
            id: The key of an image's id.
            new: The new id.
        """
        return Pair({**self.annotation, "image_id": new}, {**self.image, id: new, "file_name": file_name})


def split_categories(
    w: Workspace, document: dict[str, Any], test_size: float, *, id: str = "id", small: int = SMALL
) -> tuple[list[Pair], list[Pair]]:
    """Split each category's pairs with the same seed, taking categories in order of first appearance.

    Args:
        document: A document with parallel lists `annotations` and `images`.
        id: The key of an image's id.
        small: Categories with fewer pairs give their last one to the test set, if they have more than one.

    Returns:
        Training pairs, category by category, in the order drawn; test pairs, shuffled.

    Raises:
        DataError: The two lists are not parallel.
    """
    annotations, images = document["annotations"], document["images"]
    if len(annotations) != len(images) or any(
        annotation["image_id"] != image[id] for annotation, image in zip(annotations, images, strict=True)
    ):
        raise DataError(
            "The annotations and images of the metadata are not parallel lists.", hint="Get the raw data again."
        )
    categories: dict[Any, list[Pair]] = {}
    for pair in map(Pair, annotations, images):
        categories.setdefault(pair.category, []).append(pair)
    train: list[Pair] = []
    test: list[Pair] = []
    drawn: dict[int, tuple[list[int], list[int]]] = {}  # the same for all categories of one size, as is the seed
    for pairs in categories.values():
        if len(pairs) < small:
            kept, held_out = (pairs[:-1], pairs[-1:]) if len(pairs) > 1 else (pairs, [])
        else:
            if len(pairs) not in drawn:
                drawn[len(pairs)] = w.split(list(range(len(pairs))), test_size)
            kept, held_out = ([pairs[n] for n in positions] for positions in drawn[len(pairs)])
        train += kept
        test += held_out
    random.Random(w.seed(0)).shuffle(test)
    return train, test


def of_pairs(document: dict[str, Any], pairs: list[Pair]) -> dict[str, Any]:
    """Return the document restricted to the annotations and images of these pairs."""
    return {
        **document,
        "annotations": [pair.annotation for pair in pairs],
        "images": [pair.image for pair in pairs],
    }


def herbarium(root: str, encoding: str) -> Callable[[Workspace], None]:
    """Return the recipe for herbaria with `metadata.json` next to the images: test images get running numbers.

    Args:
        root: Prefix of the folders `train` and `test`: a folder with `/`, or empty.
        encoding: Encoding with which the published preparation reads the metadata.
    """

    @recipe("Id", "Predicted", answers="answers.csv")
    def prepare(w: Workspace) -> None:
        """Split each species; test images get running numbers in shuffled order."""
        import pandas as pd

        document = w.json(f"{root}train/metadata.json", encoding)
        train, test = split_categories(w, document, 0.2)
        renamed = [pair.numbered("id", str(n), f"images/{n // 1000:03d}/{n}.jpg") for n, pair in enumerate(test)]
        images = w.tree(f"{root}train")
        answers = pd.DataFrame({"Id": range(len(test)), "Predicted": [pair.category for pair in test]})
        w.public(f"{root}train/metadata.json", IndentedJson(of_pairs(document, train)))
        w.public(
            f"{root}test/metadata.json",
            IndentedJson(
                {**{key: document[key] for key in ("info", "licenses")}, "images": [p.image for p in renamed]}
            ),
        )
        w.public(f"{root}train", images.pick([pair.image["file_name"] for pair in train]))
        w.public(
            f"{root}test",
            images.pick([pair.image["file_name"] for pair in test], [pair.image["file_name"] for pair in renamed]),
        )
        w.answers("answers.csv", "sample_submission.csv", answers, Predicted=0)

    return prepare
