"""Cdiscount's Image Classification Challenge: products with images, as BSON documents."""

from collections.abc import Callable, Iterator
from functools import partial
from operator import itemgetter
from typing import IO, Any

from mleredux.errors import DataError

from ...blocks import Metric, Table, Workspace, competition, one_pass, recipe, require

PRODUCTS, ID, TARGET = "train.bson", "_id", "category_id"
EXAMPLES = 100


def documents(w: Workspace, take: Callable[[Any], Any] = dict, **options: Any) -> Iterator[Any]:
    """Yield the products in file order, or the selected fields of each.

    Raises:
        DataError: The file is truncated or not BSON.
    """
    bson = require("bson", "bson")
    with w.path(PRODUCTS).open("rb") as file:
        try:
            yield from map(take, bson.decode_file_iter(file, bson.CodecOptions(**options)))
        except bson.errors.BSONError as error:
            raise DataError(f"{PRODUCTS} is truncated or damaged ({error}).", hint="Download it again.") from error


def write(w: Workspace, test: Table, *files: IO[bytes]) -> None:
    """Distribute the products to their parts in a single pass, test products without their category."""
    bson = require("bson", "bson")
    train_file, test_file, example_file = files
    held_out = set(test[ID])
    examples = 0
    for product in documents(w):
        if product[ID] in held_out:
            del product[TARGET]
            test_file.write(bson.encode(product))
            continue
        content = bson.encode(product)
        train_file.write(content)
        if examples < EXAMPLES:
            example_file.write(content)
            examples += 1


@recipe(ID, TARGET, answers="answers.csv")
def prepare(w: Workspace) -> None:
    """Split the products by id, without reading the images."""
    import numpy as np
    import pandas as pd

    raw = require("bson.raw_bson", "bson").RawBSONDocument  # decodes only requested fields
    pairs = documents(w, itemgetter(ID, TARGET), document_class=raw)
    table = pd.DataFrame(np.fromiter(pairs, dtype=[(ID, np.int64), (TARGET, np.int64)]))
    _, test = w.split(table)
    answers = test.sort_values(ID)
    train_file, test_file, example_file = one_pass(partial(write, w, test), 3)
    w.public(PRODUCTS, train_file)
    w.public("test.bson", test_file)
    w.public("train_example.bson", example_file)
    w.public("category_names.csv", w.file("category_names.csv"))
    w.answers("answers.csv", "sample_submission.csv", answers, category_id=1000010653)


COMPETITION = competition(
    "cdiscount-image-classification-challenge",
    prepare=prepare,
    types={"category_id": "integer"},
    metric=Metric(grader="accuracy"),
)
