"""Dogs vs. Cats Redux: Kernels Edition: labels are in the file names."""

from collections import Counter

from ...blocks import Metric, Workspace, Zip, competition, drawn_by_content, recipe


def numbered(names: list[str]) -> list[str]:
    """Return new names of training images: each class is numbered separately, in the order drawn."""
    counts: Counter[str] = Counter()
    new = []
    for name in names:
        animal = "cat" if "cat" in name else "dog"
        new.append(f"{animal}.{counts[animal]}.jpg")
        counts[animal] += 1
    return new


@recipe("id", "label", answers="answers.csv")
def prepare(w: Workspace) -> None:
    """Split the sorted names; the images are made public twice, in folders and in archives."""
    import pandas as pd

    tree = w.tree("train.zip", inside="train")
    train, test = w.split([name for name in tree.names(".jpg") if "/" not in name])
    answers = pd.DataFrame({"id": range(1, len(test) + 1), "label": [int("dog" in name) for name in test]})
    for part, old, new in (("train", train, numbered(train)), ("test", test, [f"{n}.jpg" for n in answers["id"]])):
        files = tree.pick(old, new)
        w.public(part, files)
        w.public(f"{part}.zip", Zip(files))
    w.answers("answers.csv", "sample_submission.csv", answers, label=0.5)


COMPETITION = competition(
    "dogs-vs-cats-redux-kernels-edition",
    prepare=prepare,
    metric=Metric(grader="log-loss"),
    fixed=drawn_by_content(prepare, "train.zip", "train"),
)
