"""Herbarium 2022 - FGVC9: vascular plants of North America; all images are renumbered."""

from collections import Counter

from ...blocks import IndentedJson, Metric, Workspace, competition, recipe
from ...blocks.per_category import Pair, of_pairs, split_categories


def numbered(pairs: list[Pair]) -> list[Pair]:
    """Return training pairs whose names consist of the category and a number within it."""
    counts: Counter[int] = Counter()
    new = []
    for pair in pairs:
        label = int(pair.category)
        counts[label] += 1
        name = f"{label:05d}__{counts[label]:03d}"
        new.append(pair.numbered("image_id", name, f"{label // 100:03d}/{label % 100:02d}/{name}.jpg"))
    return new


@recipe("Id", "Predicted", answers="answers.csv")
def prepare(w: Workspace) -> None:
    """Split each species; test images get running numbers in shuffled order."""
    import pandas as pd

    document, images = w.json("train_metadata.json"), w.tree("train_images")
    train, test = split_categories(w, document, 0.2, id="image_id", small=0)
    new_train = numbered(train)
    new_test = [pair.numbered("image_id", str(n), f"{n // 1000:03d}/test-{n:06d}.jpg") for n, pair in enumerate(test)]
    answers = pd.DataFrame({"Id": range(len(test)), "Predicted": [pair.category for pair in test]})
    for part, old, new in (("train", train, new_train), ("test", test, new_test)):
        names = [pair.image["file_name"] for pair in new]
        w.public(f"{part}_images", images.pick([pair.image["file_name"] for pair in old], names))
    w.public("train_metadata.json", IndentedJson(of_pairs(document, new_train)))
    w.public("test_metadata.json", IndentedJson([pair.image for pair in new_test]))
    w.answers("answers.csv", "sample_submission.csv", answers, Predicted=42)


COMPETITION = competition(
    "herbarium-2022-fgvc9",
    prepare=prepare,
    metric=Metric(grader="f1", options={"average": "macro", "labels": "integer"}),
)
