"""Freesound Audio Tagging 2019: Kaggle's own parts, with the test labels published afterwards."""

from mleredux.errors import DataError

from ...blocks import Metric, Workspace, classes, competition, recipe

ID = "freesound-audio-tagging-2019"
LABELS = "FSDKaggle2019.meta"
SAMPLE = "sample_submission.csv"


@recipe("fname", ())
def prepare(w: Workspace) -> None:
    """Copy everything, and look up the labels of the test clips."""
    clips = w.table(f"{LABELS}/test_post_competition.csv", ("fname", "labels", "usage"), archive=f"{LABELS}.zip").query(
        "usage == 'Private'"
    )
    sounds = list(classes(ID))
    answers = clips["labels"].str.get_dummies(",").reindex(columns=sounds, fill_value=0)
    answers.insert(0, "fname", clips["fname"])
    sample = w.table(SAMPLE)
    if list(sample.columns) != ["fname", *sounds] or sorted(sample["fname"]) != sorted(answers["fname"]):
        raise DataError(
            f"{SAMPLE} and {LABELS}.zip differ in clips or columns.", hint="Get both again; they belong together."
        )
    for path in sorted(w.raw.iterdir()):
        if LABELS not in path.name:
            w.public(path.name, w.tree(path.name).all() if path.is_dir() else w.file(path.name))
    w.private("test.csv", answers)


COMPETITION = competition(
    ID,
    prepare=prepare,
    extra_columns=False,
    metric=Metric(grader="lwlrap", options={"column_order": "strict"}),
    other_urls={f"{LABELS}.zip": f"https://zenodo.org/records/3612637/files/{LABELS}.zip"},
)
