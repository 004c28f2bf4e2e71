"""RSNA 2022 Cervical Spine Fracture Detection: a tenth of the CT studies, with boxes and masks, is for training."""

import random
from collections.abc import Iterable, Sequence, Sized
from functools import partial

from ...blocks import Metric, Workspace, competition, recipe

STUDY, BOXES = "StudyInstanceUID", "train_bounding_boxes.csv"


@recipe("row_id", "fractured", answers="answers.csv")
def prepare(w: Workspace, train_share: float = 0.1) -> None:
    """Draw training studies: some with boxes and a mask, some with a mask, some with boxes, then any others.

    Args:
        train_share: The share of studies to train on; the published value was apparently meant to be the test share.
    """
    rows, boxes = w.table("train.csv", (STUDY, "patient_overall")), w.table(BOXES, (STUDY,))
    masks, images = w.tree("segmentations"), w.tree("train_images")
    boxed = sorted(boxes[STUDY].unique())
    masked = sorted(name.removesuffix(".nii") for name in masks.names(".nii"))
    both = [study for study in boxed if study in set(masked)]
    random_numbers = random.Random(w.seed(0))

    def draw(studies: Iterable[str], share_of: Sized, less: Sequence[str], without: Sequence[str]) -> list[str]:
        """Draw a share of `share_of`, minus the studies already drawn, from all studies except `without`."""
        held = set(without)
        left = [study for study in studies if study not in held]
        return random_numbers.sample(left, round(len(share_of) * train_share) - len(less))

    first = draw(both, both, (), ())
    with_mask = first + draw(masked, masked, first, both)
    with_boxes = first + draw(boxed, boxed, first, both)
    marked = list(dict.fromkeys(with_mask + with_boxes))
    is_train = rows[STUDY].isin(marked + draw(rows[STUDY], rows, marked, marked))
    train, test = rows[is_train], rows[~is_train]
    answers = test.melt(id_vars=STUDY, var_name="prediction_type", value_name="fractured")
    answers["row_id"] = answers[STUDY] + "_" + answers["prediction_type"]
    w.public("train.csv", train)
    w.public(BOXES, boxes[boxes[STUDY].isin(with_boxes)])
    w.public("test.csv", answers.drop(columns="fractured"))
    w.public("sample_submission.csv", answers[["row_id"]].assign(fractured=0.5))
    w.public("segmentations", masks.pick([f"{study}.nii" for study in with_mask]))
    w.public("train_images", images.pick_folders(train[STUDY]))
    w.public("test_images", images.pick_folders(test[STUDY]))
    w.private("answers.csv", answers)


COMPETITION = competition(
    "rsna-2022-cervical-spine-fracture-detection",
    prepare=prepare,
    metric=Metric(
        grader="weighted-log-loss",
        options={
            "group": STUDY,
            "label": "prediction_type",
            "weights": {"patient_overall": [7, 14]},
            "other_weights": [1, 2],
        },
    ),
    fixed=partial(prepare, train_share=0.9),
)
