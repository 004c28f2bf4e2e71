"""Humpback Whale Identification Challenge: individuals with at least two images are in both parts."""

from ...blocks import FilesOfRows, Metric, Workspace, competition, recipe

UNKNOWN = "new_whale"
IMAGES = FilesOfRows(tree="train", source="{Image}")
TEST_SIZE = 0.1


@recipe("Image", "Id")
def prepare(w: Workspace) -> None:
    """Put one image of each individual in each part, single images in a random part, and split the rest at random."""
    import numpy as np

    rows = w.table("train.csv", ("Image", "Id"))
    chance = np.random.default_rng(w.seed(0))
    side = np.full(len(rows), "", dtype=object)
    for positions in rows.groupby("Id", sort=False).indices.values():
        if len(positions) == 1:
            side[positions] = chance.choice(["train", "test"], replace=False, p=[1 - TEST_SIZE, TEST_SIZE])
        else:  # a fresh generator each time: the pair drawn depends only on the number of images
            pair = np.random.RandomState(w.seed(0)).choice(len(positions), size=2, replace=False)
            side[positions[pair]] = "train", "test"
    for part, rest in zip(("train", "test"), w.split(np.flatnonzero(side == ""), TEST_SIZE), strict=True):
        side[rest] = part
    train, test = rows[side == "train"], rows[side == "test"]
    IMAGES(w, train, test)
    w.public("train.csv", train)
    w.public("sample_submission.csv", test.assign(Id=f"{UNKNOWN} w_1287fbc w_98baff9 w_7554f44 w_1eafe46"))
    w.private("test.csv", test.assign(Id=test["Id"].where(test["Id"].isin(train["Id"]), UNKNOWN)))


COMPETITION = competition(
    "whale-categorization-playground",
    prepare=prepare,
    extra_columns=False,
    metric=Metric(grader="map-at-k", options={"k": 5, "missing": "nan", "numbers": "text"}),
)
