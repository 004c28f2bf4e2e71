"""Cassava Leaf Disease Classification: whole TFRecord files, and the images in them, are held out."""

from functools import partial

from mleredux.errors import DataError

from ...blocks import Metric, Workspace, bytes_feature, competition, recipe


@recipe("image_id", "label")
def prepare(w: Workspace, test_records: bool = True) -> None:
    """Split the TFRecord files, and assign each image to its file's part; files are numbered in the order drawn.

    Args:
        test_records: Whether the test TFRecord files, including their labels, are also public, as in the published
            task.
    """
    table, records, images = (
        w.table("train.csv", ("image_id", "label")),
        w.tree("train_tfrecords"),
        w.tree("train_images"),
    )
    train_files, test_files = w.split(records.names(".tfrec"))
    held_out = {name for file in test_files for name in bytes_feature(w.path(f"train_tfrecords/{file}"), "image_name")}
    if held_out - set(table["image_id"]):
        raise DataError("train.csv lacks images that are in the TFRecord files.", hint="Get the raw data again.")
    is_test = table["image_id"].isin(held_out)
    train, test = table[~is_test], table[is_test]
    for part, rows, files in (("train", train, train_files), ("test", test, test_files)):
        names = [f"ld_{part}{n:02d}-{file.rpartition('-')[2]}" for n, file in enumerate(files)]
        if part == "train" or test_records:
            w.public(f"{part}_tfrecords", records.pick(files, names))
        w.public(f"{part}_images", images.pick(rows["image_id"]))
    w.public("train.csv", train)
    w.public("label_num_to_disease_map.json", w.file("label_num_to_disease_map.json"))
    w.answers("test.csv", "sample_submission.csv", test, label=4)


COMPETITION = competition(
    "cassava-leaf-disease-classification",
    prepare=prepare,
    metric=Metric(grader="accuracy"),
    fixed=partial(prepare, test_records=False),
)
