"""SIIM-FISABIO-RSNA COVID-19 Detection: chest radiographs, with labels per study and boxes per image."""

from functools import partial

from mleredux.errors import DataError

from ...blocks import Column, Metric, Tree, Workspace, by_group, competition, corrected, recipe, require

STUDIES, IMAGES = "train_study_level.csv", "train_image_level.csv"
APPEARANCES = {
    "Negative for Pneumonia": "negative",
    "Typical Appearance": "typical",
    "Indeterminate Appearance": "indeterminate",
    "Atypical Appearance": "atypical",
}
WHOLE_IMAGE = " 1 0 0 1 1"


def patients(studies: Column, tree: Tree) -> Column:
    """Return each study's patient from the header of its first image; a study without one forms its own group."""
    dicom = require("pydicom", "dicom")
    first: dict[str, str] = {}
    for name in tree.names(".dcm"):
        first.setdefault(name.partition("/")[0], name)
    names = []
    for study in studies.str.removesuffix("_study"):
        if study not in first:
            raise DataError(f"The raw data has no image of study {study}.", hint="Get the raw data again.")
        with tree.open(first[study]) as file:
            header = dicom.dcmread(file, stop_before_pixels=True, specific_tags=["PatientID"], force=True)
        names.append(str(header.get("PatientID", "")) or study)
    return studies.map(dict(zip(studies, names, strict=True)))


@recipe("id", "PredictionString")
def prepare(w: Workspace, by_patient: bool = False) -> None:
    """Split the studies; images follow. Answers list the studies, then the images, each sorted by id.

    Args:
        by_patient: Whether to hold out patients as a unit.
    """
    import numpy as np
    import pandas as pd

    studies = w.table(STUDIES, ("id", *APPEARANCES))
    images = w.table(IMAGES, ("id", "boxes", "label", "StudyInstanceUID"))
    folders = w.tree("train")
    drawn = w.split_groups(studies, patients(studies["id"], folders)) if by_patient else w.split(studies)
    train, test = (part.sort_values("id") for part in drawn)
    images = images.assign(study=images["StudyInstanceUID"].astype(str) + "_study")
    if not images["study"].isin(studies["id"]).all():
        raise DataError(f"{IMAGES} has images of studies that {STUDIES} lacks.", hint="Get the raw data again.")
    parts = by_group(images.sort_values("id"), "study", train["id"], test["id"])
    train_images, test_images = (part.drop(columns="study") for part in parts)
    words = np.array(list(APPEARANCES.values()), dtype=object)
    seen = words[test[list(APPEARANCES)].to_numpy().argmax(axis=1)] + WHOLE_IMAGE
    ids = pd.concat([test["id"], test_images["id"]])
    none = ["negative" + WHOLE_IMAGE] * len(test) + ["none" + WHOLE_IMAGE] * len(test_images)
    w.public(STUDIES, train)
    w.public(IMAGES, train_images)
    w.public("sample_submission.csv", pd.DataFrame({"id": ids, "PredictionString": none}))
    w.private("test.csv", pd.DataFrame({"id": ids, "PredictionString": [*seen, *test_images["label"]]}))
    for part, rows in (("train", train), ("test", test)):
        w.public(part, folders.pick_folders(rows["id"].str.removesuffix("_study")))


COMPETITION = competition(
    "siim-covid19-detection",
    prepare=prepare,
    metric=Metric(grader="average-precision-boxes", options={"iou": 0.5}),
    fixed=corrected(
        partial(prepare, by_patient=True),
        metric=Metric(grader="average-precision-boxes", options={"iou": 0.5, "pascal_voc": True}),
    ),
)
