"""Google Smartphone Decimeter Challenge 2022: whole days of drives are held out."""

from functools import partial
from pathlib import PurePosixPath

from mleredux.errors import DataError

from ...blocks import Metric, Workspace, competition, corrected, read_fast, recipe

TRUTH, TRACK = "ground_truth.csv", "span_log.nmea"
PERCENTILES = {"group": "tripId", "percentiles": [50, 95]}
POSITION = ("LatitudeDegrees", "LongitudeDegrees")
SAMPLE = dict(zip(POSITION, (37.904611315634504, -86.48107806249548), strict=True))


def day(drive: str) -> str:
    """Return the date at the beginning of a drive's name, with two digits for month and day."""
    year, month, rest = drive.split("-")[:3]
    return f"{year}-{month.zfill(2)}-{rest.zfill(2)}"


@recipe(("tripId", "UnixTimeMillis"), POSITION)
def prepare(w: Workspace, hidden: tuple[str, ...] = (TRUTH,)) -> None:
    """Split the days; the true positions of test drives become the answers.

    Args:
        hidden: Names of files that are removed from test drives; all others are kept, as in the published task.
    """
    import pandas as pd

    tree = w.tree("train")
    drives = sorted(name for name in tree.folders if "/" not in name)
    train_days, test_days = w.split(sorted({day(drive) for drive in drives}))
    parts = {"train": train_days, "test": test_days}
    chosen = {part: {drive for drive in drives if day(drive) in days} for part, days in parts.items()}
    truths = sorted(PurePosixPath(name) for name in tree.names("/" + TRUTH) if name.split("/")[0] in chosen["test"])
    if not truths:
        raise DataError(f"No drive of the test days has a {TRUTH}.", hint="Get the raw data again.")
    tables = []
    for path in truths:
        read = partial(w.table, f"train/{path}", ("UnixTimeMillis", *POSITION))
        table = read_fast(read, POSITION)  # the published files come from pandas' old float parser
        trip = f"{path.parts[0]}-{path.parts[1]}"
        tables.append(table.assign(tripId=trip)[["tripId", "UnixTimeMillis", *POSITION]])
    answers = pd.concat(tables, ignore_index=True)
    w.public("train", tree.pick_folders(sorted(chosen["train"])))
    w.public("test", tree.pick_folders(sorted(chosen["test"])).without(lambda name: name.rpartition("/")[2] in hidden))
    w.public("metadata", w.tree("metadata").all())
    w.answers("test.csv", "sample_submission.csv", answers, **SAMPLE)


COMPETITION = competition(
    "smartphone-decimeter-2022",
    prepare=prepare,
    metric=Metric(grader="haversine-percentiles", options={**PERCENTILES, "match": "group-position", "keep_nan": True}),
    fixed=corrected(
        partial(prepare, hidden=(TRUTH, TRACK)),
        metric=Metric(grader="haversine-percentiles", options=PERCENTILES),
    ),
)
