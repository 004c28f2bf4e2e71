"""ALASKA2 Image Steganalysis: each cover with its three altered versions; one version of each test image is public."""

import random

from ...blocks import Metric, Workspace, competition, drawn_by_content, recipe

COVER = "Cover"
ALTERED = ("JMiPOD", "JUNIWARD", "UERD")


@recipe("Id", "Label")
def prepare(w: Workspace) -> None:
    """Split the covers; training images are numbered in the order drawn, test images in shuffled order."""
    import pandas as pd

    trees = {folder: w.tree(folder) for folder in (COVER, *ALTERED)}
    train, test = w.split([name for name in trees[COVER].names(".jpg") if "/" not in name], 5000, 42)
    draw = random.Random(w.seed(0))
    draw.shuffle(test)
    versions = [COVER if draw.choice((True, False)) else draw.choice(ALTERED) for _ in test]
    answers = pd.DataFrame(
        {
            "Id": [f"{n:04d}.jpg" for n in range(1, len(test) + 1)],
            "Label": [int(version != COVER) for version in versions],
        }
    )
    for folder, tree in trees.items():
        w.public(folder, tree.pick(train, [f"{n:05d}.jpg" for n in range(1, len(train) + 1)]))
        chosen = [n for n, version in enumerate(versions) if version == folder]
        w.public("Test", tree.pick([test[n] for n in chosen], answers["Id"].iloc[chosen]))
    w.answers("test.csv", "sample_submission.csv", answers, Label=0)


COMPETITION = competition(
    "alaska2-image-steganalysis",
    prepare=prepare,
    metric=Metric(grader="weighted-roc-auc"),
    fixed=drawn_by_content(prepare, COVER),
)
