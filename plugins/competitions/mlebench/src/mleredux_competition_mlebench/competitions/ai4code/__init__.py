"""AI4Code: the order of notebook cells; notebooks with the same origin stay together."""

import json
from functools import partial
from typing import Any

from mleredux.errors import DataError

from ...blocks import Metric, Table, Tree, Workspace, by_group, competition, recipe

TEST_SIZE = 20_000


def held_out(notebooks: Table, size: int) -> list[Any]:
    """Select origins in order of first appearance, skipping those that would make the test set larger than `size`.

    Raises:
        DataError: The test set can't be filled exactly.
    """
    origins: list[Any] = []
    count = 0
    for origin, copies in notebooks.groupby("ancestor_id", sort=False).size().items():
        if count + copies <= size:
            origins.append(origin)
            count += copies
    if count != size:
        raise DataError(f"A test set of exactly {size} notebooks can't be formed.", hint="Get the data again.")
    return origins


def file_order(tree: Tree, notebook: str) -> str:
    """Return the cells of a notebook in the order of its file."""
    return " ".join(json.loads(tree.read(f"{notebook}.json"))["cell_type"])


@recipe("id", "cell_order", answers="test_orders.csv")
def prepare(w: Workspace, evenly: bool = False) -> None:
    """Shuffle the notebooks, then fill the test set with whole origins.

    Args:
        evenly: Whether to draw origins with equal probability, regardless of the resulting number of notebooks.
    """
    raw = w.table("train_ancestors.csv", ("id", "ancestor_id", "parent_id"))
    orders = w.table("train_orders.csv", ("id", "cell_order"))
    tree = w.tree("train")
    notebooks = raw.sample(frac=1, random_state=w.seed(0))
    size = int(w.settings.test_size or TEST_SIZE)
    if evenly:
        _, origins = w.split(list(raw["ancestor_id"].unique()), size / len(raw))
    else:
        origins = held_out(notebooks, size)
    is_test = notebooks["ancestor_id"].isin(origins)
    train, test = by_group(orders, "id", notebooks.loc[~is_test, "id"], notebooks.loc[is_test, "id"])
    for part, rows in (("train", notebooks[~is_test]), ("test", notebooks[is_test])):
        w.public(part, tree.pick(rows["id"] + ".json"))
    w.public("train_orders.csv", train)
    w.public("train_ancestors.csv", notebooks[~is_test])
    w.answers(
        "test_orders.csv", "sample_submission.csv", test, cell_order=[file_order(tree, name) for name in test["id"]]
    )


COMPETITION = competition(
    "AI4Code",
    prepare=prepare,
    metric=Metric(grader="kendall-tau-pooled"),
    fixed=partial(prepare, evenly=True),
)
