"""UW-Madison GI Tract Image Segmentation: some cases, and the later days of others, are held out."""

from mleredux.errors import DataError

from ...blocks import Column, Files, Member, Metric, Table, Tree, Workspace, competition, recipe

TRAIN_DAYS = 4
SIZES = ("image_width", "image_height")
MASKS = {"height": "image_height", "width": "image_width", "missing": "blank"}


def sizes(tree: Tree, scans: Column) -> Table:
    """Return the width and height in pixels of each slice (`case1_day2_slice_0003`), from the names of the image files.

    Raises:
        DataError: A slice has no image or several images.
    """
    import pandas as pd

    names = pd.Series([name for name in tree.files if "/scans/slice_" in name])
    parts = names.str.extract(r"([^/]+)/scans/slice_([^_]+)_(\d+)_(\d+)_[^/]*\.png$").dropna()
    table = parts[[2, 3]].astype(float).set_axis(list(SIZES), axis=1).set_axis(parts[0] + "_slice_" + parts[1])
    table = table[table.index.isin(scans)]
    if table.index.has_duplicates or not scans.isin(table.index).all():
        raise DataError("Some slices in train.csv have no image, or more than one.", hint="Get the raw data again.")
    return table.reindex(scans)


@recipe(("id", "class"), "predicted")
def prepare(w: Workspace) -> None:
    """Split the cases, then move training cases' days after the fourth to the test set too."""
    rows, tree = w.table("train.csv", ("id", "class", "segmentation")), w.tree("train")
    scans = rows["id"].str.split("_", expand=True)[[0, 1]].set_axis(["case", "day"], axis=1)
    cases = list(scans["case"].unique())
    test_cases = set(w.split(cases, seed=42)[1])
    days = scans.drop_duplicates().assign(number=lambda table: table["day"].str.removeprefix("day").astype(int))
    days = days.sort_values("number")
    late = days[(days.groupby("case").cumcount() >= TRAIN_DAYS) | days["case"].isin(test_cases)]
    moved = set(late["case"] + "_" + late["day"])
    is_test = (scans["case"] + "_" + scans["day"]).isin(moved)
    train, test = rows[~is_test], rows[is_test].rename(columns={"segmentation": "predicted"})

    def in_test(path: str) -> bool | None:
        """Return whether a file or folder goes to the test set; None if it belongs to no case."""
        case, _, rest = path.partition("/")
        return (case in test_cases or rest.partition("/")[0] in moved) if case in cases else None

    for part, wanted in (("train", False), ("test", True)):
        members = [Member(name, name) for name in tree.files if in_test(name) is wanted]
        w.public(part, Files(tree, members, [name for name in tree.folders if in_test(name) is wanted]))
    w.public("train.csv", train)
    w.public("test.csv", test[["id", "class"]])
    w.public("sample_submission.csv", test[["id", "class"]].assign(predicted="1 1 5 2"))
    shapes = sizes(tree, test["id"])
    w.private("test.csv", test.assign(**{size: shapes[size].to_numpy() for size in SIZES}))


COMPETITION = competition(
    "uw-madison-gi-tract-image-segmentation",
    prepare=prepare,
    metric=Metric(grader="dice-hausdorff", options={**MASKS, "match": "position-shortest"}),
    fixed=Metric(grader="dice-hausdorff", options={**MASKS, "classes": "class"}),
)
