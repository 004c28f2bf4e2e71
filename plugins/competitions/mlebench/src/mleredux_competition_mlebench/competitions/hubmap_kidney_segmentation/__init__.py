"""HuBMAP - Hacking the Kidney: glomeruli in a handful of huge microscope images."""

from functools import partial

from ...blocks import Metric, Workspace, competition, recipe

INFORMATION = "HuBMAP-20-dataset_information.csv"
SIZES = ["width_pixels", "height_pixels"]
REGIONS, TARGETS = "-anatomical-structure.json", ".json"


@recipe("id", "predicted")
def prepare(w: Workspace, published: bool = True) -> None:
    """Hold out three images; image sizes are joined to the answers.

    Args:
        published: Whether to hold out single images and to make the outlines of glomeruli in test images public as
            well, as in the published split; otherwise donors are held out as a unit.
    """
    rows = w.table("train.csv", ("id", "encoding"))
    information = w.table(INFORMATION, ("image_file", "patient_number", *SIZES))
    names = information["image_file"].str.replace(".tiff", "", regex=False)
    if published:
        train, test = w.split(rows, 3)
    else:
        donors = rows["id"].map(dict(zip(names, information["patient_number"], strict=True)))
        train, test = w.split_groups(rows, donors, 0.2)
    images = w.tree("train")
    sample = test[["id"]].assign(predicted="")
    w.public(INFORMATION, information[names.isin(rows["id"])])
    w.public("train.csv", train)
    for name in ("sample_submission.csv", "test/sample_submission.csv"):
        w.public(name, sample)
    for part, chosen in (("train", train), ("test", test)):
        ends = [".tiff", REGIONS, TARGETS] if published or part == "train" else [".tiff", REGIONS]
        w.public(part, images.pick([id + end for id in chosen["id"] for end in ends]))
    w.private("test.csv", test.merge(information[SIZES].assign(id=names), on="id"))
    w.private("gold_submission.csv", test[["id"]].assign(predicted=test["encoding"]))


COMPETITION = competition(
    "hubmap-kidney-segmentation",
    prepare=prepare,
    metric=Metric(
        grader="dice",
        options={"height": "height_pixels", "width": "width_pixels", "truth": ["encoding"], "missing": "blank"},
    ),
    fixed=partial(prepare, published=False),
)
