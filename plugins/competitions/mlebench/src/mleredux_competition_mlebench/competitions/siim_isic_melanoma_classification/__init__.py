"""SIIM-ISIC Melanoma Classification: skin lesions; the images of two of the sixteen TFRecord files are held out."""

from collections.abc import Callable
from functools import partial

from mleredux.errors import DataError

from ...blocks import Metric, Table, Workspace, bytes_feature, competition, recipe

KNOWN = ["image_name", "patient_id", "sex", "age_approx", "anatom_site_general_challenge"]
TEST_FILES = ("train00", "train06")
Divide = Callable[[Workspace, Table], tuple[Table, Table]]


def by_records(w: Workspace, table: Table) -> tuple[Table, Table]:
    """Assign each image to its TFRecord file's part; the files are public, renumbered in each part."""
    records = w.tree("tfrecords")
    labelled = [name for name in records.names(".tfrec") if name.startswith("train")]
    test_files = [name for name in labelled if name.partition("-")[0] in TEST_FILES]
    files = {"train": [name for name in labelled if name not in test_files], "test": test_files}
    if len(test_files) < len(TEST_FILES):
        raise DataError(f"tfrecords has no files {' and '.join(TEST_FILES)}.", hint="Get the raw data again.")
    held_out = {image for name in test_files for image in bytes_feature(w.path(f"tfrecords/{name}"), "image_name")}
    if held_out - set(table["image_name"]):
        raise DataError("train.csv lacks images that are in the TFRecord files.", hint="Get the raw data again.")
    is_test = table["image_name"].isin(held_out)
    for part, old in files.items():
        names = [f"{part}{n:02d}-{name.partition('-')[2]}" for n, name in enumerate(old)]
        w.public("tfrecords", records.pick(old, names))
    return table[~is_test], table[is_test]


def by_patient(w: Workspace, table: Table) -> tuple[Table, Table]:
    """Hold out whole patients, an eighth as in the published test set."""
    return w.split_groups(table, "patient_id", 1 / 8)


@recipe("image_name", "target")
def prepare(w: Workspace, divide: Divide = by_records) -> None:
    """Divide the table; DICOM and JPEG images follow."""
    train, test = divide(w, w.table("train.csv", (*KNOWN, "target")))
    for folder, kind in (("", ".dcm"), ("jpeg/", ".jpg")):
        images = w.tree(f"{folder}train")
        for part, rows in (("train", train), ("test", test)):
            w.public(f"{folder}{part}", images.pick(rows["image_name"] + kind))
    w.public("train.csv", train)
    w.public("test.csv", test[KNOWN])
    w.public("sample_submission.csv", test[["image_name"]].assign(target=0))
    w.private("test.csv", test[["image_name", "target"]])


COMPETITION = competition(
    "siim-isic-melanoma-classification",
    prepare=prepare,
    metric=Metric(grader="roc-auc", options={"bounds": [0, 1]}),
    fixed=partial(prepare, divide=by_patient),
)
