"""SIIM-ISIC Melanoma Classification: skin lesions; the images of two of the sixteen TFRecord files are held out."""

from __future__ import annotations

from functools import partial

from mleredux.errors import DataError

from mleredux_mlebench.blocks import Metric, Workspace, bytes_feature, competition
from mleredux_mlebench.blocks.fixed import prepared_by

KNOWN = ["image_name", "patient_id", "sex", "age_approx", "anatom_site_general_challenge"]
TEST_FILES = ("train00", "train06")


def prepare(w: Workspace, test_records: bool = True) -> None:
    """Send each image where its TFRecord file went; files are numbered anew in each part.

    Args:
        test_records: Whether the TFRecord files of the test are public too, with the labels in them, as published.
    """
    table, records = w.table("train.csv", (*KNOWN, "target")), w.tree("tfrecords")
    labelled = [name for name in records.names(".tfrec") if name.startswith("train")]
    test_files = [name for name in labelled if name.partition("-")[0] in TEST_FILES]
    files = {"train": [name for name in labelled if name not in test_files], "test": test_files}
    if len(test_files) < len(TEST_FILES):
        raise DataError(f"tfrecords has no files {' and '.join(TEST_FILES)}.", hint="Get the raw data again.")
    held_out = {image for name in test_files for image in bytes_feature(w.path(f"tfrecords/{name}"), "image_name")}
    is_test = table["image_name"].isin(held_out)
    train, test = table[~is_test], table[is_test]
    for folder, kind in (("", ".dcm"), ("jpeg/", ".jpg")):
        images = w.tree(f"{folder}train")
        for part, rows in (("train", train), ("test", test)):
            w.public(f"{folder}{part}", images.pick(rows["image_name"] + kind))
    for part, old in files.items():
        names = [f"{part}{n:02d}-{name.partition('-')[2]}" for n, name in enumerate(old)]
        if part == "train" or test_records:
            w.public("tfrecords", records.pick(old, names))
    w.public("train.csv", train)
    w.public("test.csv", test[KNOWN])
    w.public("sample_submission.csv", test[["image_name"]].assign(target=0))
    w.private("test.csv", test[["image_name", "target"]])


COMPETITION = competition(
    "siim-isic-melanoma-classification",
    prepare=prepare,
    id_columns=("image_name",),
    target_columns=("target",),
    metric=Metric(grader="roc-auc", options={"bounds": [0, 1]}),
    variants={
        "fixed": prepared_by(
            partial(prepare, test_records=False),
            wrong="The TFRecord files of the test hold its labels.",
            done=(
                "They are left out; the images are there as JPEG and DICOM. Images of one patient may "
                "still be on both sides."
            ),
        )
    },
)
