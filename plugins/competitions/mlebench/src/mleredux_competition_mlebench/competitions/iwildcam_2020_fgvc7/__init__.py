"""iWildCam 2020 - FGVC7: camera traps; whole locations are held out until the test set has its share of images."""

from typing import Any

from ...blocks import FilesOfRows, Json, Metric, Table, Workspace, competition, recipe

TRAIN, TEST = "iwildcam2020_train_annotations.json", "iwildcam2020_test_information.json"
DETECTIONS = "iwildcam2020_megadetector_results.json"
SHARE = 0.22
IMAGES = FilesOfRows(tree="train", source="{id}.jpg")
RANDOM_LABELS = 676


def held_out(w: Workspace, images: Table) -> list[Any]:
    """Select test locations: drawn at random, then moved one by one until their share of images is correct.

    As published, the share is relative to all images plus the test images again, which amounts to 28 % of the images.
    """
    sizes = images["location"].value_counts()
    train, test = map(list, w.split(images["location"].unique(), SHARE))

    def share() -> float:
        count = sizes[test].sum()
        return float(count / (len(images) + count))

    while train and share() < SHARE:
        test.append(train.pop())
    while test and share() > SHARE:
        train.append(test.pop())
    return test


@recipe("Id", "Category", answers="answers.csv")
def prepare(w: Workspace) -> None:
    """Split the locations; the detector's results are public for all images."""
    import numpy as np
    import pandas as pd

    known, hidden = w.json(TRAIN), w.json(TEST)
    tables = {key: pd.DataFrame(known[key]) for key in ("annotations", "images", "categories")}
    annotations, images = tables["annotations"], tables["images"]
    in_test = images["location"].isin(held_out(w, images))
    train, test = images[~in_test], images[in_test]
    answers = annotations.loc[annotations["image_id"].isin(test["id"]), ["image_id", "category_id"]]
    answers = answers.set_axis(["Id", "Category"], axis=1)
    IMAGES(w, train, test)
    tables |= {"annotations": annotations[annotations["image_id"].isin(train["id"])], "images": train}
    public = {key: table.to_dict(orient="records") for key, table in tables.items()}
    w.public(TRAIN, Json({**public, "info": known["info"]}))
    w.public(TEST, Json({"images": test.to_dict(orient="records"), **{k: hidden[k] for k in ("categories", "info")}}))
    w.public(DETECTIONS, w.file(DETECTIONS))
    guesses = np.random.RandomState(0).randint(0, RANDOM_LABELS, size=len(answers))
    w.answers("answers.csv", "sample_submission.csv", answers, Category=guesses)


COMPETITION = competition(
    "iwildcam-2020-fgvc7",
    prepare=prepare,
    types={"Category": "integer"},
    metric=Metric(grader="accuracy"),
)
