"""VinBigData Chest X-ray Abnormalities Detection: boxes by several radiologists, one true box per image and class."""

from ...blocks import Metric, Workspace, by_group, competition, recipe, texts

BOX = ("x_min", "y_min", "x_max", "y_max")
NO_FINDING = 14


@recipe("image_id", "PredictionString", answers="answers.csv")
def prepare(w: Workspace) -> None:
    """Split the images; the answers are the first box of each class in each image."""
    import pandas as pd

    rows = w.table("train.csv", ("image_id", "class_name", "class_id", "rad_id", *BOX))
    train_ids, test_ids = w.split(list(rows["image_id"].unique()))
    train, test = by_group(rows, "image_id", train_ids, test_ids)
    answers = test.groupby(["image_id", "class_id"], as_index=False).first()
    answers = answers.fillna(dict.fromkeys(BOX, 0.0))
    answers.loc[answers["class_id"] == NO_FINDING, ["x_max", "y_max"]] = 1.0
    boxes = pd.Series(texts(answers, "{class_id} 1.0 {x_min} {y_min} {x_max} {y_max}"))
    images = w.tree("train")
    w.public("train.csv", train)
    w.public("sample_submission.csv", pd.DataFrame({"image_id": test_ids}).assign(PredictionString="14 1 0 0 1 1"))
    w.public("train", images.pick([f"{image}.dicom" for image in train_ids]))
    w.public("test", images.pick([f"{image}.dicom" for image in test_ids]))
    w.private("answers.csv", answers)
    w.private(
        "gold_submission.csv", boxes.groupby(answers["image_id"]).agg(" ".join).rename("PredictionString").reset_index()
    )


COMPETITION = competition(
    "vinbigdata-chest-xray-abnormalities-detection",
    prepare=prepare,
    metric=Metric(
        grader="coco-map", options={"iou": [0.4], "corners_as_sizes": True, "number_zero_is_unmatched": True}
    ),
    fixed=Metric(grader="coco-map", options={"iou": [0.4], "pascal_voc": True}),
)
