"""Invasive Species Monitoring: forest photographs in 7z archives, which are empty in the benchmark."""

from functools import partial

from ...blocks import PRIVATE_SAMPLE, Csv, Metric, SevenZip, Workspace, Zip, competition, filled, recipe

EMPTY_ENTRY = "prepared/public/{}"


@recipe("name", "invasive", answers="answers.csv", sample=PRIVATE_SAMPLE)
def prepare(w: Workspace, pictures: bool = False) -> None:
    """Split the labels; the images must exist, but the published archives contain none of them.

    Args:
        pictures: Whether to publish the images, in folders, instead of the empty archives.
    """
    train, test = w.split(w.table("train_labels.csv", ("name", "invasive"), archive="train_labels.csv.zip"), 0.2)
    sample = filled(test, ["name"], {"invasive": 0.5})
    w.private("answers.csv", test)
    w.private("sample_submission.csv", sample)
    w.public("train_labels.csv.zip", Zip({"train_labels.csv": Csv(train)}))
    w.public("sample_submission.csv.zip", Zip({"sample_submission.csv": Csv(sample)}))
    tree = w.tree("train.7z", inside="train")
    for part, rows in (("train", train), ("test", test)):
        images = tree.pick(rows["name"].astype(str) + ".jpg")
        if pictures:
            w.public(part, images)
        else:
            w.public(f"{part}.7z", SevenZip(empty_folders=(EMPTY_ENTRY.format(part),)))


COMPETITION = competition(
    "invasive-species-monitoring",
    prepare=prepare,
    metric=Metric(grader="roc-auc", options={"bounds": [0, 1]}),
    fixed=partial(prepare, pictures=True),
)
