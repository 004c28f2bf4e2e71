"""Plant Seedlings Classification: labels exist only as one folder per species."""

from mleredux.errors import DataError

from ...blocks import Metric, Workspace, competition, recipe, texts


@recipe("file", "species", answers="answers.csv")
def prepare(w: Workspace) -> None:
    """Split the images, sorted by species and name; test images go to one flat folder."""
    import pandas as pd

    tree = w.tree("train")
    paths = sorted(parts for name in tree.names(".png") if len(parts := name.split("/")) == 2)
    rows = pd.DataFrame(paths, columns=["species", "file"])[["file", "species"]]
    if rows["file"].duplicated().any():
        raise DataError("Two images of different species have the same name.", hint="Get the raw data again.")
    train, test = w.split(rows, 0.14)
    w.public("train", tree.pick(texts(train, "{species}/{file}")))
    w.public("test", tree.pick(texts(test, "{species}/{file}"), test["file"]))
    w.answers("answers.csv", "sample_submission.csv", test, species="Sugar beet")


COMPETITION = competition(
    "plant-seedlings-classification",
    prepare=prepare,
    metric=Metric(grader="f1", options={"average": "micro", "missing": "wrong"}),
)
