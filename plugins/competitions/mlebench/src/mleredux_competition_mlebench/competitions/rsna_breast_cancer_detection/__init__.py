"""RSNA Screening Mammography Breast Cancer Detection: patients are held out, with one answer per breast."""

from ...blocks import FilesOfRows, Metric, Workspace, competition, recipe, texts

KNOWN = ["site_id", "patient_id", "image_id", "laterality", "view", "age", "implant", "machine_id"]
IMAGES = FilesOfRows(
    tree="train_images", source="{patient_id}/{image_id}.dcm", train="train_images", test="test_images"
)


@recipe("prediction_id", "cancer", answers="answers.csv")
def prepare(w: Workspace) -> None:
    """Split the patients; several images share an answer."""
    rows = w.table("train.csv", (*KNOWN, "cancer"))
    train, test = w.split_groups(rows, "patient_id", seed=42)
    IMAGES(w, train, test)
    named = test[KNOWN].assign(prediction_id=texts(test, "{patient_id}_{laterality}"))
    answers = named.assign(cancer=test["cancer"]).groupby("prediction_id", as_index=False)[["cancer"]].first()
    w.public("train.csv", train)
    w.public("test.csv", named)
    w.answers("answers.csv", "sample_submission.csv", answers, cancer=train["cancer"].mean())


COMPETITION = competition(
    "rsna-breast-cancer-detection",
    prepare=prepare,
    metric=Metric(grader="probabilistic-f1", options={"missing": "zero-score", "refuse_all_negative": True}),
    fixed=Metric(grader="probabilistic-f1"),
)
